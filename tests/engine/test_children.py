"""Agents delegate to child sessions, with real workers: started once, told once, waited for."""

from __future__ import annotations

import asyncio
import json
import time
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest
from django.db.models import Q

from core.db import in_db_thread
from core.ids import Prefix, decode_id, parse_event_id
from sessions_app.domain.events import Draft
from sessions_app.domain.vocabulary import TERMINAL_TURN, Visibility
from sessions_app.eventlog import StoredEvent
from sessions_app.models import Session, Turn
from sessions_app.selectors import get_session
from sessions_app.services import attempts
from sessions_app.services.archiving import archive_session, delete_session
from sessions_app.services.calls import Call
from sessions_app.services.cancelling import cancel_session
from sessions_app.services.children.spawning import NewChild, spawn_child
from sessions_app.services.holding import pause_session
from sessions_app.services.model_settings import RequestedSettings
from sessions_app.services.waits import Confirmation, confirm_call
from tests.engine.conftest import Talk, probe_lines, working
from tests.engine.test_recovery import DeadWorker
from tests.factories import Cast, make_session

WAIT = {"tool": "session.wait_children", "args": {}}


def start(*script: dict[str, Any], title: str = "", **args: Any) -> dict[str, Any]:
    prompt = json.dumps({"script": list(script)})
    return {"tool": "session.start_child", "args": {"prompt": prompt, "title": title, **args}}


async def child_ids(talk: Talk) -> list[str]:
    return [event["child_id"] for event in await talk.events("child.started")]


async def child(talk: Talk, number: int = 0) -> Talk:
    pk = decode_id(Prefix.SESSION, (await child_ids(talk))[number])
    return Talk(talk.cast, await in_db_thread(Session.objects.get, pk=pk))


async def results(talk: Talk) -> list[Any]:
    """What the model was told by its calls, as JSON where it is."""
    texts = [event["content"][0]["text"] for event in await talk.events("agent.tool_result")]
    return [json.loads(text) if text.startswith("{") else text for text in texts]


async def test_a_parent_waits_for_its_children_and_is_told_all_at_once(
    talk: Talk, home: Path
) -> None:
    async with working(home):
        turn = await talk.script(
            {
                "call": [
                    start({"say": "I looked at the left."}, title="Left"),
                    start({"say": "I looked at the right."}, title="Right"),
                ]
            },
            {"call": [WAIT]},
            {"say": "Both are done."},
        )
        assert (await talk.ending(turn))["type"] == "turn.completed"
        assert await talk.answer() == "Both are done."
        *_, told = await results(talk)
        assert [(each["title"], each["status"], each["text"]) for each in told["results"]] == [
            ("Left", "completed", "I looked at the left."),
            ("Right", "completed", "I looked at the right."),
        ]
        assert told["unfinished"] == []
        assert len(await talk.events("child.result")) == 2


async def test_a_turn_that_waits_for_a_child_holds_no_worker_and_its_session_runs(
    talk: Talk, home: Path
) -> None:
    async with working(home, concurrency=1):
        turn = await talk.script(
            {"call": [start({"say": "Slowly.", "chunks": 4, "every_ms": 50})]},
            {"call": [WAIT]},
            {"say": "So."},
        )
        await talk.until_type("turn.waiting")
        session = await in_db_thread(Session.objects.get, pk=talk.session.pk)
        assert (session.status, session.stop_reason, session.live_attempt_id) == (
            "running",
            None,
            None,
        )
        # With room for one turn in the only worker, the child could not run otherwise.
        assert (await talk.ending(turn))["type"] == "turn.completed"


async def test_an_idle_parent_is_not_woken_and_its_next_turn_sees_the_result(
    talk: Talk, home: Path
) -> None:
    async with working(home):
        first = await talk.script(
            {"call": [start({"hang_ms": 300, "say": "Found it."}, title="Search")]},
            {"say": "It is on its way."},
        )
        assert (await talk.ending(first))["type"] == "turn.completed"
        await talk.until_type("child.result")
        await asyncio.sleep(0.3)
        assert len(await talk.events("turn.started")) == 1
        second = await talk.script({"say": "Seen."})
        await talk.ending(second)
        third = await talk.script({"say": "Sent:"}, echo=True)
        await talk.ending(third)
        sent = await talk.answer()
        assert sent.count("user: [Results of child sessions") == 1
        assert sent.index("“Search”, completed:\nFound it.") < sent.index('{"say": "Seen."}')


async def test_a_failed_child_says_why(talk: Talk, home: Path) -> None:
    async with working(home):
        broken = {"fail": {"status": 400, "message": "Too much."}, "times": 9, "say": "-"}
        turn = await talk.script({"call": [start(broken)]}, {"call": [WAIT]}, {"say": "Well."})
        await talk.ending(turn)
        (result,) = await talk.events("child.result")
        assert result["status"] == "failed"
        assert result["error"]["code"].startswith("provider_")
        *_, told = await results(talk)
        assert told["results"][0]["error"] == result["error"]


async def test_a_child_that_waits_for_a_person_is_not_finished(talk: Talk, home: Path) -> None:
    async with working(home):
        asked = {"tool": "probe.append_asked", "args": {"line": "one"}}
        turn = await talk.script(
            {"call": [start({"call": [asked]}, {"say": "Done."})]},
            {"call": [WAIT]},
            {"say": "So."},
        )
        await talk.until_type("turn.waiting")
        below = await child(talk)
        await below.until_type("turn.waiting")
        assert await talk.events("child.result") == []
        access = await in_db_thread(talk.cast.access, "member")
        row = await in_db_thread(get_session, access=access, session_id=talk.session.pk)
        assert (row.open_waits, row.is_working) == (1, True)
        reason = (await below.events("session.status_idle"))[-1]["stop_reason"]
        await in_db_thread(
            confirm_call,
            access=access,
            session_id=below.session.pk,
            confirmation=Confirmation(reason["event_ids"][0], allow=True),
        )
        assert (await talk.ending(turn))["type"] == "turn.completed"


async def test_a_wait_with_a_timeout_goes_on_with_what_is_there(talk: Talk, home: Path) -> None:
    async with working(home):
        turn = await talk.script(
            {"call": [start({"say": "Quick."}), start({"hang_ms": 20_000, "say": "Slow."})]},
            {"call": [{"tool": "session.wait_children", "args": {"timeout_seconds": 1}}]},
            {"say": "Enough."},
        )
        assert (await talk.ending(turn))["type"] == "turn.completed"
        *_, told = await results(talk)
        assert [each["text"] for each in told["results"]] == ["Quick."]
        assert told["unfinished"] == [(await child_ids(talk))[1]]
        await (await child(talk, 1)).stop()
        await talk.until_type("child.result", 2)


async def test_a_parent_goes_on_when_the_paused_child_that_it_waits_for_is_archived(
    talk: Talk, home: Path
) -> None:
    async with working(home, concurrency=1):
        turn = await talk.script(
            {"call": [start({"say": "Never."})]},
            {"call": [{"tool": "probe.lookup", "args": {"sleep_ms": 600}}, WAIT]},
            {"say": "Without it."},
        )
        await talk.until_type("child.started")
        below = await child(talk)
        access = await in_db_thread(talk.cast.access, "member")
        await in_db_thread(pause_session, access=access, session_id=below.session.pk)
        await talk.until_type("turn.waiting")
        await in_db_thread(archive_session, access=access, session_id=below.session.pk)
        assert (await talk.ending(turn))["type"] == "turn.completed"
        assert await talk.answer() == "Without it."
        assert [each["status"] for each in (await results(talk))[-1]["results"]] == ["archived"]
        assert await below.events("turn.started") == []


async def test_waiting_for_children_that_are_done_does_not_wait(talk: Talk, home: Path) -> None:
    async with working(home):
        first = await talk.script({"call": [start({"say": "Done."})]}, {"say": "Sent."})
        await talk.ending(first)
        await talk.until_type("child.result")
        (done,) = await child_ids(talk)
        named = {"tool": "session.wait_children", "args": {"session_ids": [done]}}
        asked = {"tool": "session.result", "args": {"session_id": done}}
        turn = await talk.script({"call": [named, asked, WAIT]}, {"say": "Seen."})
        await talk.ending(turn)
        assert await talk.events("child.awaited") == []
        _, waited, looked, all_of_them = await results(talk)
        assert waited == looked
        assert waited["results"][0]["text"] == "Done."
        assert "(no_children)" in all_of_them


async def test_a_prompt_queues_behind_a_turn_that_waits_for_children_alone(
    talk: Talk, home: Path
) -> None:
    async with working(home):
        turn = await talk.script(
            {"call": [start({"hang_ms": 500, "say": "Late."})]}, {"call": [WAIT]}, {"say": "So."}
        )
        await talk.until_type("turn.waiting")
        other = await talk.script({"say": "Next."})
        assert (await talk.ending(turn))["type"] == "turn.completed"
        assert (await talk.ending(other))["type"] == "turn.completed"


async def test_stopping_the_parent_lets_its_child_go_on(talk: Talk, home: Path) -> None:
    async with working(home):
        turn = await talk.script(
            {"call": [start({"hang_ms": 500, "say": "Late."})]}, {"call": [WAIT]}, {"say": "So."}
        )
        await talk.until_type("turn.waiting")
        await talk.stop()
        assert (await talk.ending(turn))["type"] == "turn.cancelled"
        await talk.until_type("child.result")
        assert [e["status"] for e in await talk.events("child.result")] == ["completed"]
        following = await talk.script({"say": "Seen:"}, echo=True)
        await talk.ending(following)
        assert (await talk.answer()).count("completed:\nLate.") == 1


async def test_a_worker_lost_before_a_start_leaves_one_child(talk: Talk, home: Path) -> None:
    """The call had no result, so it had no effect either: it is run, and only once."""
    turn = await talk.script({"call": [start({"say": "Once."})]}, {"call": [WAIT]}, {"say": "So."})
    await in_db_thread(lose_worker_before_the_start)
    async with working(home):
        assert (await talk.ending(turn))["type"] == "turn.completed"
        assert len(await child_ids(talk)) == 1
        assert len(await talk.events("child.result")) == 1


def lose_worker_before_the_start() -> None:
    worker = DeadWorker()
    worker.checkpoint(1)
    worker.response(1)
    call = start({"say": "Once."})
    worker.call(call["tool"], call["args"])
    worker.die()


async def test_a_start_whose_commit_was_hidden_is_not_repeated(talk: Talk) -> None:
    """What an outage at commit leaves open is asked of the log."""
    await talk.send("Start one.")
    assert await in_db_thread(start_twice) == 1
    assert len(await child_ids(talk)) == 1
    assert len(await results(talk)) == 1


def start_twice() -> int:
    worker = DeadWorker()
    worker.checkpoint(1)
    worker.response(1)
    call = start({"say": "Once."})
    session_id, seq = parse_event_id(worker.call(call["tool"], call["args"]))
    made = Call(session_id, seq, "call_1_1", call["tool"])
    effects: list[Session] = []

    def do(parent: Session, turn: Turn) -> Draft:
        new = NewChild(prompt="Once.")
        child = spawn_child(parent, turn=turn, attempt=1, tool_use_id=made.tool_use_id, new=new)
        effects.append(child)
        return made.result({"session_id": child.public_id})

    for _ in range(2):
        attempts.record_effect(lease=worker.lease, call=made, effect=do)
    return len(effects)


async def test_a_child_that_cannot_be_is_told_to_the_model(talk: Talk, home: Path) -> None:
    async with working(home):
        turn = await talk.script(
            {
                "call": [
                    start({"say": "-"}, model="demo/unknown"),
                    start({"say": "-"}, agent="Nobody"),
                    {"tool": "session.start_child", "args": {"prompt": "   "}},
                    {"tool": "session.result", "args": {"session_id": talk.session.public_id}},
                ]
            },
            {"say": "None of them."},
        )
        await talk.ending(turn)
        assert await child_ids(talk) == []
        codes = [text.rsplit("(", 1)[1] for text in await results(talk)]
        assert codes == [
            "model_unavailable)",
            "agent_not_found)",
            "content_required)",
            "unknown_child)",
        ]


async def test_depth_and_number_have_their_bounds(talk: Talk, home: Path, settings: Any) -> None:
    settings.CHILD_MAX_DEPTH, settings.CHILDREN_MAX_LIVE = 1, 1
    async with working(home):
        turn = await talk.script(
            {
                "call": [
                    start(
                        {"call": [start({"say": "Too deep."})]},
                        {"hang_ms": 400, "say": "Alone."},
                    ),
                    start({"say": "One too many."}),
                ]
            },
            {"call": [WAIT]},
            {"say": "So."},
        )
        await talk.ending(turn)
        assert "(too_many_children)" in (await results(talk))[1]
        below = await child(talk)
        assert "(too_deep)" in (await results(below))[0]


async def test_a_started_child_is_what_its_parent_is(talk: Talk, home: Path) -> None:
    async with working(home):
        turn = await talk.script({"call": [start({"say": "Here."}, title="x" * 300)]}, {"say": "."})
        await talk.ending(turn)
        below = (await child(talk)).session
        parent = talk.session
        assert (below.workspace_id, below.maker_id) == (parent.workspace_id, parent.maker_id)
        assert (below.parent_id, below.root_id, below.depth) == (parent.pk, parent.pk, 1)
        assert below.ancestor_ids == [parent.pk]
        assert len(below.title) == 120
        (prompt,) = await (await child(talk)).events("user.message")
        assert prompt["author"]["type"] == "agent"
        assert prompt["author"]["id"] == parent.public_id


@pytest.mark.parametrize("becomes", ["viewer", "nobody"])
async def test_an_agent_does_no_more_than_its_initiator_may_now(
    talk: Talk, home: Path, becomes: str
) -> None:
    """Not what they might do when they sent the prompt."""
    turn = await talk.script(
        {"call": [{"tool": "probe.lookup", "args": {"sleep_ms": 600}}]},
        {"call": [start({"say": "-"})]},
        {"say": "."},
    )
    async with working(home):
        await talk.until_type("agent.tool_use")
        membership = talk.cast.member.workspace_memberships.filter(workspace=talk.cast.workspace)
        if becomes == "viewer":
            await in_db_thread(membership.update, role="viewer")
        else:
            await in_db_thread(membership.delete)
        await talk.ending(turn)
        reason = "(missing_role)" if becomes == "viewer" else "(initiator_gone)"
        assert (await results(talk))[1].endswith(reason)
        assert await child_ids(talk) == []


async def test_a_cancel_ends_a_working_tree_and_no_call_comes_after(talk: Talk, home: Path) -> None:
    """BR-049: three children, a grandchild, and one that is only queued."""
    busy = [
        {"call": [{"tool": "probe.append", "args": {"line": f"line {n}", "sleep_ms": 60}}]}
        for n in range(200)
    ]
    async with working(home, concurrency=4):
        await talk.script(
            {"call": [start(*busy), start({"call": [start(*busy)]}, *busy), start(*busy)]},
            {"call": [WAIT]},
        )
        await talk.until_type("turn.waiting")
        nested = await child(talk, 1)
        await nested.until_type("child.started")
        while not (home / "probe.log").exists():
            await asyncio.sleep(0.01)
        owner = await in_db_thread(talk.cast.access, "owner")
        began = time.monotonic()
        await in_db_thread(cancel_session, access=owner, session_id=talk.session.pk)
        statuses = await in_db_thread(tree_statuses, talk.session)
        assert (len(statuses), set(statuses)) == (5, {"terminated"})
        await asyncio.sleep(0.5)  # a call at work when it was fenced may have had its effect
        lines = len(probe_lines(home))
        await asyncio.sleep(0.5)
        assert len(probe_lines(home)) == lines
        assert time.monotonic() - began < 5
        assert await talk.events("child.result") == []


async def test_deleting_a_tree_makes_every_worker_below_quiet_at_once(
    talk: Talk, home: Path
) -> None:
    """Each hears it by a hint: its next heartbeat, which would tell too, is far away."""
    late = {"call": [{"tool": "probe.append", "args": {"line": "late", "sleep_ms": 3_000}}]}
    async with AsyncExitStack() as stack:
        workers = [
            await stack.enter_async_context(working(home, concurrency=1, heartbeat_seconds=8))
            for _ in range(4)
        ]
        await talk.script({"call": [start(late), start({"call": [start(late)]}, late)]}, late)
        await talk.until_type("child.started", 2)
        nested = await child(talk, 1)
        await nested.until_type("child.started")
        for each in (talk, await child(talk), nested, await child(nested)):
            await each.until(lambda events: any(e.get("name") == "probe.append" for e in events))
        assert [len(worker._running) for worker in workers] == [1] * 4
        owner = await in_db_thread(talk.cast.access, "owner")
        await in_db_thread(delete_session, access=owner, session_id=talk.session.pk, stop=True)
        deleted_at = time.monotonic()
        while any(worker._running for worker in workers):
            assert time.monotonic() - deleted_at < 0.5
            await asyncio.sleep(0.01)
        await asyncio.sleep(3)
    assert probe_lines(home) == []
    assert not await in_db_thread(Session.objects.exists)


def tree_statuses(top: Session) -> list[str]:
    tree = Session.objects.filter(Q(pk=top.pk) | Q(root_id=top.pk))
    assert not Turn.objects.filter(session__in=tree).exclude(status__in=TERMINAL_TURN).exists()
    return list(tree.values_list("status", flat=True))


async def test_what_was_read_of_the_log_is_not_read_again_after_each_call(
    talk: Talk, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else a turn that starts many children reads a long log as many times."""
    begun: list[int] = []
    read = attempts.read_turn_log

    def noting(*, lease: attempts.Lease, after: int) -> list[StoredEvent]:
        if lease.session_id == talk.session.pk:
            begun.append(after)
        return read(lease=lease, after=after)

    monkeypatch.setattr(attempts, "read_turn_log", noting)
    calls = {"call": [start({"say": "Fine."}) for _ in range(3)]}
    async with working(home):
        turn = await talk.script(calls, {"say": "Started."})
        await talk.ending(turn)
    first, *later = begun
    assert first == 0
    assert len(later) == 3
    assert all(later)
    assert later == sorted(later)


async def test_an_agent_is_told_that_a_title_was_cut(talk: Talk, home: Path) -> None:
    titles = ("Short", "x" * 130)
    calls = [start({"say": "Fine."}, title=title) for title in titles]
    async with working(home):
        await talk.ending(await talk.script({"call": calls}, {"say": "Started."}))
    short, long = await results(talk)
    assert (short["title"], "title_clipped" in short) == ("Short", False)
    assert (len(long["title"]), long["title_clipped"]) == (120, True)


async def test_a_private_agent_is_told_that_no_private_child_may_be_made_any_more(
    committed_cast: Cast, home: Path
) -> None:
    """Of a session that stays private although new ones are no longer allowed."""

    def private() -> Talk:
        allow_private(committed_cast, True)
        requested = RequestedSettings(model="demo/scripted")
        made = make_session(committed_cast, visibility=Visibility.PRIVATE, requested=requested)
        allow_private(committed_cast, False)
        return Talk(committed_cast, made)

    talk = await in_db_thread(private)
    async with working(home):
        turn = await talk.script({"call": [start({"say": "Never."})]}, {"say": "Then alone."})
        assert (await talk.ending(turn))["type"] == "turn.completed"
    (refused,) = await talk.events("agent.tool_result")
    assert refused["is_error"]
    assert "does not allow" in refused["content"][0]["text"]
    assert await talk.events("child.started") == []


def allow_private(cast: Cast, is_allowed: bool) -> None:
    cast.organization.allows_private_sessions = is_allowed
    cast.organization.save()
