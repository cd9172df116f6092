"""Turns that wait for people, with real workers: nobody is asked twice, nothing runs twice."""

from __future__ import annotations

import asyncio
import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from django.db import connection

from core.db import in_db_thread
from core.errors import Conflict
from sessions_app.domain.events import Draft
from sessions_app.models import Attempt, Session, Turn, Wait
from sessions_app.services import attempts
from sessions_app.services.waits import (
    Confirmation,
    QuestionReply,
    answer_question,
    confirm_call,
)
from tests.engine.conftest import Talk, probe_lines, text_of, working
from tests.engine.test_recovery import DeadWorker
from tests.factories import make_session


def asked(line: str) -> dict[str, Any]:
    return {"tool": "probe.append_asked", "args": {"line": line}}


def free(line: str, sleep_ms: int = 0) -> dict[str, Any]:
    return {"tool": "probe.append", "args": {"line": line, "sleep_ms": sleep_ms}}


def question(**changes: Any) -> dict[str, Any]:
    one = {"id": "name", "kind": "text", "text": "What is it called?"}
    return {"tool": "probe.ask", "args": {"questions": [one], **changes}}


async def open_ids(talk: Talk) -> list[str]:
    waits = await in_db_thread(lambda: list(Wait.objects.filter(status="open").order_by("pk")))
    return [wait.event_id for wait in waits]


async def decide(talk: Talk, tool_use_id: str, *, allow: bool = True, **fields: Any) -> None:
    access = await in_db_thread(talk.cast.access, "member")
    await in_db_thread(
        confirm_call,
        access=access,
        session_id=talk.session.pk,
        confirmation=Confirmation(tool_use_id, allow=allow, **fields),
    )


async def reply(talk: Talk, question_id: str, **fields: Any) -> None:
    access = await in_db_thread(talk.cast.access, "member")
    await in_db_thread(
        answer_question,
        access=access,
        session_id=talk.session.pk,
        reply=QuestionReply(question_id, **fields),
    )


async def suspended(talk: Talk, count: int = 1) -> list[str]:
    """Waits until the turn waits; the ids that the session's stop reason names."""
    await talk.until_type("turn.waiting", count)
    return list((await talk.events("session.status_idle"))[-1]["stop_reason"]["event_ids"])


async def test_an_approved_call_runs_once_and_the_same_turn_goes_on(talk: Talk, home: Path) -> None:
    """BR-080: the transcript before the answer stays as it was, the turn is the same."""
    async with working(home):
        turn = await talk.script({"say": "May I?", "call": [asked("one")]}, {"say": "Done."})
        (tool_use_id,) = await suspended(talk)
        before = await talk.events()
        assert probe_lines(home) == []
        session = await in_db_thread(Session.objects.get)
        assert (session.status, session.is_working) == ("idle", True)
        assert session.live_attempt_id is None
        await decide(talk, tool_use_id)
        assert (await talk.ending(turn))["type"] == "turn.completed"
    assert (await talk.events())[: len(before)] == before
    assert [e["type"] for e in before][-3:] == [
        "attempt.ended", "turn.waiting", "session.status_idle",
    ]  # fmt: skip
    assert [e["type"] for e in (await talk.events())[len(before) :]][:5] == [
        "user.tool_confirmation", "session.status_running", "attempt.started",
        "agent.tool_started", "agent.tool_result",
    ]  # fmt: skip
    assert {e["turn_id"] for e in await talk.events() if "turn_id" in e} == {turn}
    assert [e["step"] for e in await talk.events("step.checkpoint")] == [1, 2]
    assert probe_lines(home) == ["one"]
    statuses = await in_db_thread(
        lambda: list(Attempt.objects.order_by("number").values_list("status", flat=True))
    )
    assert statuses == ["waiting", "completed"]


async def test_a_denial_and_its_reason_are_told_to_the_model(talk: Talk, home: Path) -> None:
    """BR-076: the decision is stored with the call and is its result."""
    async with working(home):
        turn = await talk.script({"call": [asked("never")]}, {"say": "I see:"}, echo=True)
        (tool_use_id,) = await suspended(talk)
        await decide(talk, tool_use_id, allow=False, deny_message="Not on a Friday")
        assert (await talk.ending(turn))["type"] == "turn.completed"
    (result,) = await talk.events("agent.tool_result")
    assert (result["outcome"], result["tool_use_id"]) == ("denied", tool_use_id)
    assert "Denied by Chiara Novak" in await talk.answer()
    assert "Reason: Not on a Friday" in await talk.answer()
    assert probe_lines(home) == []
    assert await talk.events("agent.tool_started") == []


async def test_several_at_once_go_on_when_all_are_decided(talk: Talk, home: Path) -> None:
    async with working(home):
        turn = await talk.script(
            {"call": [asked("one"), free("free"), asked("two"), question()]},
            {"say": "So:"},
            echo=True,
        )
        one, two, name = await suspended(talk)
        assert probe_lines(home) == ["free"]
        await decide(talk, two)
        assert (await talk.events("session.status_idle"))[-1]["stop_reason"] == {
            "type": "requires_action",
            "event_ids": [one, name],
        }
        await reply(talk, name, answers={"name": {"text": "Tern"}})
        await asyncio.sleep(0.3)
        assert probe_lines(home) == ["free"]
        await decide(talk, one, allow=False)
        await talk.ending(turn)
    assert probe_lines(home) == ["free", "two"]
    told = (await talk.answer()).split("tool: ")[1:]
    assert [line.split(":")[0] for line in told] == [
        "probe.append_asked", "probe.append", "probe.append_asked", "probe.ask",
    ]  # fmt: skip
    assert "Denied" in told[0]
    assert "Tern" in told[3]


async def test_a_tool_allowed_for_the_session_asks_no_more(talk: Talk, home: Path) -> None:
    script = ({"call": [asked("one")]}, {"call": [asked("two")]}, {"say": "Done."})
    async with working(home):
        turn = await talk.script(*script)
        (tool_use_id,) = await suspended(talk)
        await decide(talk, tool_use_id, for_session=True)
        await talk.ending(turn)
        await talk.ending(await talk.script({"call": [asked("three")]}, {"say": "Again."}))
        other = Talk(talk.cast, await in_db_thread(lambda: make_session(talk.cast)))
        await in_db_thread(
            lambda: Session.objects.filter(pk=other.session.pk).update(
                initial_settings=talk.session.initial_settings
            )
        )
        await other.script({"call": [asked("four")]})
        await suspended(other)
    assert probe_lines(home) == ["one", "two", "three"]
    permissions = [e["evaluated_permission"] for e in await talk.events("agent.tool_use")]
    assert permissions == ["ask", "allow", "allow"]


async def test_nobody_is_asked_about_a_call_that_cannot_run(talk: Talk, home: Path) -> None:
    async with working(home):
        turn = await talk.script(
            {
                "call": [
                    {"tool": "probe.append_asked", "args": {"lines": "x"}},
                    question(questions=[]),
                    question(questions=[{"kind": "single_select", "text": "Which?"}]),
                    question(expires_in_seconds=40 * 86_400),
                ]
            },
            {"say": "Sorry."},
        )
        assert (await talk.ending(turn))["type"] == "turn.completed"
    results = await talk.events("agent.tool_result")
    assert [result["outcome"] for result in results] == ["error"] * 4
    assert "questions[0].options" in text_of(results[2])
    assert await talk.events("agent.question", "turn.waiting") == []


async def test_of_twenty_answers_at_once_one_wins(talk: Talk, home: Path) -> None:
    """BR-079: the first decision counts, whoever else decides in another process meanwhile."""
    async with working(home):
        turn = await talk.script({"call": [asked("one")]}, {"say": "Done."})
        (tool_use_id,) = await suspended(talk)
        access = await in_db_thread(talk.cast.access, "member")

        def answer(number: int) -> str:
            confirmation = Confirmation(tool_use_id, allow=number % 2 == 0)
            try:
                confirm_call(access=access, session_id=talk.session.pk, confirmation=confirmation)
            except Conflict as error:
                return error.code
            finally:
                connection.close()
            return "won"

        with ThreadPoolExecutor(20) as threads:
            work = [asyncio.wrap_future(threads.submit(answer, n)) for n in range(20)]
            answers = await asyncio.gather(*work)
        assert sorted(answers) == ["already_decided"] * 19 + ["won"]
        await talk.ending(turn)
    (confirmation,) = await talk.events("user.tool_confirmation")
    assert probe_lines(home) == (["one"] if confirmation["result"] == "allow" else [])


async def test_an_answer_while_another_call_still_runs_needs_no_wait(
    talk: Talk, home: Path
) -> None:
    async with working(home):
        turn = await talk.script(
            {"call": [asked("one"), question(), free("slow", 600)]}, {"say": "So:"}, echo=True
        )
        await talk.until_type("agent.question")
        approval, name = await open_ids(talk)
        await decide(talk, approval)
        await reply(talk, name, answers={"name": {"text": "Tern"}})
        assert probe_lines(home) == []
        await talk.ending(turn)
    assert probe_lines(home) == ["slow", "one"]
    assert await talk.events("turn.waiting") == []
    assert (await in_db_thread(Turn.objects.get)).attempt_count == 1
    assert "Tern" in await talk.answer()


async def test_a_wait_outlives_its_worker(talk: Talk, home: Path) -> None:
    """BR-079: another process takes the turn up when the answer comes."""
    turn = await talk.script({"call": [asked("one"), question()]}, {"say": "Done."})
    async with working(home):
        approval, name = await suspended(talk)
    await decide(talk, approval)
    async with working(home):
        await asyncio.sleep(0.3)
        assert probe_lines(home) == []
    await reply(talk, name, answers={"name": {"text": "Tern"}})
    async with working(home):
        assert (await talk.ending(turn))["type"] == "turn.completed"
    assert probe_lines(home) == ["one"]
    row = await in_db_thread(Turn.objects.get)
    assert (row.losses, row.attempt_count) == (0, 2)


class Doomed(DeadWorker):
    """Asked, and was killed at some point after the approval."""

    def ask(self, line: str) -> str:
        payload = {
            "name": "probe.append_asked",
            "input": {"line": line},
            "call_id": "call_1_1",
            "step": 1,
            "evaluated_permission": "ask",
            "repeatable": False,
        }
        attempts.record_ask(lease=self.lease, drafts=[Draft("agent.tool_use", payload)])
        return Wait.objects.get().event_id

    def allow(self, talk: Talk, tool_use_id: str) -> None:
        confirm_call(
            access=talk.cast.access("member"),
            session_id=talk.session.pk,
            confirmation=Confirmation(tool_use_id, allow=True),
        )

    def start(self, tool_use_id: str) -> None:
        self._record(Draft("agent.tool_started", {"tool_use_id": tool_use_id}))


async def killed_after_approval(talk: Talk, *, is_started: bool) -> str:
    turn = await talk.script({"call": [asked("one")]}, {"say": "So:"}, echo=True)

    def run() -> None:
        worker = Doomed()
        worker.checkpoint(1)
        worker.response(1)
        tool_use_id = worker.ask("one")
        worker.allow(talk, tool_use_id)
        if is_started:
            worker.start(tool_use_id)
        worker.die()

    await in_db_thread(run)
    return turn


async def test_killed_between_approval_and_result_the_call_is_not_repeated(
    talk: Talk, home: Path
) -> None:
    turn = await killed_after_approval(talk, is_started=True)
    async with working(home):
        assert (await talk.ending(turn))["type"] == "turn.completed"
    (result,) = await talk.events("agent.tool_result")
    assert result["outcome"] == "unknown"
    assert probe_lines(home) == []
    assert "Look at the present state" in await talk.answer()


async def test_killed_before_an_approved_call_began_it_runs_without_another_question(
    talk: Talk, home: Path
) -> None:
    turn = await killed_after_approval(talk, is_started=False)
    async with working(home):
        assert (await talk.ending(turn))["type"] == "turn.completed"
    assert probe_lines(home) == ["one"]
    assert len(await talk.events("user.tool_confirmation")) == 1


async def test_killed_while_a_call_is_undecided_the_turn_waits_on(talk: Talk, home: Path) -> None:
    turn = await talk.script({"call": [asked("one")]}, {"say": "Done."})

    def run() -> None:
        worker = Doomed()
        worker.checkpoint(1)
        worker.response(1)
        worker.ask("one")
        worker.die()

    await in_db_thread(run)
    async with working(home):
        (tool_use_id,) = await suspended(talk)
        await decide(talk, tool_use_id)
        await talk.ending(turn)
    assert probe_lines(home) == ["one"]


async def test_a_question_is_answered_in_mixed_kinds_and_in_part(talk: Talk, home: Path) -> None:
    questions = [
        {"id": "name", "kind": "text", "text": "Its name?"},
        {
            "id": "colour",
            "kind": "single_select",
            "text": "Which?",
            "options": [{"label": "Red", "description": "Warm"}, "Blue"],
        },
        {
            "id": "days",
            "kind": "multi_select",
            "text": "When?",
            "options": ["Monday", "Friday"],
            "allow_other": True,
        },
        {"id": "note", "kind": "text", "text": "Anything else?", "required": False},
    ]
    answers = {
        "name": {"text": "Tern"},
        "colour": {"selected": ["Blue"]},
        "days": {"selected": ["Friday"], "other": "Never"},
    }
    async with working(home):
        turn = await talk.script({"call": [question(questions=questions)]}, {"say": "So:"})
        (question_id,) = await suspended(talk)
        await reply(talk, question_id, answers=answers)
        await talk.ending(turn)
    (asked_event,) = await talk.events("agent.question")
    assert asked_event["id"] == question_id
    assert asked_event["expires_at"] is None
    (result,) = await talk.events("agent.tool_result")
    assert json.loads(text_of(result)) == {"answers": answers}
    assert result["tool_use_id"] == asked_event["tool_use_id"]
    (closed,) = await talk.events("agent.question_closed")
    assert (closed["outcome"], closed["question_id"]) == ("answered", question_id)


async def test_a_question_may_be_skipped_where_that_is_allowed(talk: Talk, home: Path) -> None:
    async with working(home):
        turn = await talk.script({"call": [question(allow_skip=True)]}, {"say": "So:"}, echo=True)
        (question_id,) = await suspended(talk)
        await reply(talk, question_id, skip=True)
        await talk.ending(turn)
    (closed,) = await talk.events("agent.question_closed")
    assert closed["outcome"] == "skipped"
    assert "skipped the question" in await talk.answer()


async def test_a_question_expires_as_it_said_and_the_turn_goes_on(talk: Talk, home: Path) -> None:
    """BR-078: no silent time-out: recorded as expired, told to the model, a late answer refused."""
    async with working(home):
        turn = await talk.script({"call": [question(expires_in_seconds=1)]}, {"say": "So:"})
        (question_id,) = await suspended(talk)
        assert (await talk.ending(turn))["type"] == "turn.completed"
    (asked_event,) = await talk.events("agent.question")
    (closed,) = await talk.events("agent.question_closed")
    assert closed["outcome"] == "expired"
    assert closed["created_at"] >= asked_event["expires_at"]
    (result,) = await talk.events("agent.tool_result")
    assert (result["outcome"], result["is_error"]) == ("expired", True)
    with pytest.raises(Conflict) as late:
        await reply(talk, question_id, answers={"name": {"text": "Late"}})
    assert late.value.code == "expired"


async def test_stop_ends_a_waiting_turn_and_closes_what_it_asked(talk: Talk, home: Path) -> None:
    async with working(home):
        turn = await talk.script({"call": [asked("one"), asked("two"), question()]}, {"say": "x"})
        _, two, _ = await suspended(talk)
        await decide(talk, two)
        await talk.stop()
        assert (await talk.ending(turn))["type"] == "turn.cancelled"
        await talk.ending(await talk.send("Next"))
    results = await talk.events("agent.tool_result")
    assert [result["outcome"] for result in results] == ["cancelled"] * 3
    (closed,) = await talk.events("agent.question_closed")
    assert closed["outcome"] == "cancelled"
    assert await open_ids(talk) == []
    assert probe_lines(home) == []
