"""A fork begins with exactly what its source said up to a message, and stands by itself."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from catalog.models import Model
from core.errors import Conflict, Forbidden, InvalidInput, NotFound, Unprocessable
from core.ids import Prefix, encode_id, event_id, parse_event_id
from engine.context import fold
from engine.ports import LogEvent
from sessions_app import eventlog
from sessions_app.domain.events import DELTA_TYPES, Draft
from sessions_app.domain.vocabulary import Visibility
from sessions_app.listing import SessionQuery, list_sessions
from sessions_app.models import ComposerDraft, Session, Turn, Wait
from sessions_app.selectors import get_session
from sessions_app.services import attempts
from sessions_app.services.archiving import archive_session, delete_session
from sessions_app.services.attempts import Completed, Failed
from sessions_app.services.cancelling import cancel_session
from sessions_app.services.forking import ForkRequest, fork_session
from sessions_app.services.holding import pause_session
from sessions_app.services.interruption import interrupt_session
from sessions_app.services.model_settings import RequestedSettings
from sessions_app.services.retrying import retry_turn
from sessions_app.services.sessions import SessionChanges, update_session
from sessions_app.services.verification import verify_session
from sessions_app.wire import session_json
from tests.factories import WORKER_TOKEN, Cast, claim, delta, make_session, message, send
from tests.services.test_waits import Asking

USAGE = {
    "input_tokens": 10,
    "output_tokens": 5,
    "model": {"provider_id": "demo", "model_id": "scripted"},
    "step": 1,
}


def log(session: Session, through: int = 2**62) -> list[dict[str, Any]]:
    found = eventlog.read_after(session_id=session.pk, after=0, limit=20_000)
    return [event.data for event in found if event.seq <= through]


def say(lease: attempts.Lease, text: str, number: int = 0) -> int:
    """A whole response; the seq of its message."""
    message_id = f"msg_{number:032x}"
    attempts.open_step(lease=lease, step=number + 1)
    attempts.record(lease=lease, drafts=[delta(part, message_id) for part in text])
    drafts = [message(text, message_id), Draft("model.usage", USAGE)]
    return attempts.record(lease=lease, drafts=drafts)[0]


def talk(cast: Cast, session: Session, prompt: str, answer: str) -> tuple[int, int]:
    """One whole turn; the seqs of its prompt and its answer."""
    receipt = send(cast, session, prompt)
    lease = claim().lease
    answered = say(lease, answer)
    attempts.finish_turn(lease=lease, outcome=Completed())
    assert receipt.seq is not None
    return receipt.seq, answered


def fork(
    cast: Cast, session: Session, seq: int | None = None, *, by: str = "member", **fields: Any
) -> Session:
    """Whatever it was made from, its log and its rows tell the same story, and it is at rest."""
    request = ForkRequest(seq, **fields)
    before = log(session)
    made = fork_session(access=cast.access(by), session_id=session.pk, fork=request)
    assert log(session) == before
    assert verify_session(session_id=made.pk) == []
    events = log(made)
    assert [event["seq"] for event in events] == list(range(1, len(events) + 1))
    assert [event["type"] for event in events][:2] == ["session.created", "session.forked"]
    assert made.turn_count == made.turns.count()
    assert not made.is_working
    assert not made.turns.filter(status__in=["queued", "running", "waiting", "recovering"]).exists()
    assert not made.attempts.filter(status="running").exists()
    assert not made.waits.filter(status="open").exists()
    for own_id in references(events):
        assert parse_event_id(own_id)[0] == made.pk
    return made


def references(events: list[dict[str, Any]]) -> Iterator[str]:
    for event in events:
        for name in ("tool_use_id", "question_id"):
            if name in event:
                yield event[name]


def history(events: list[dict[str, Any]]) -> str:
    """What the next turn's model would read; calls are named by their order."""
    logged = [LogEvent(e["seq"], e["type"], e.get("turn_id"), e) for e in events]
    items, _ = fold(logged, turn_id="trn_next", provider_id="demo")
    text = repr(items)
    calls = dict.fromkeys(f"call_{e['seq']}'" for e in events if e["type"] == "agent.tool_use")
    for place, call in enumerate(calls):
        text = text.replace(call, f"call number {place}'")
    return text


def said(session: Session) -> list[str]:
    return [
        event["content"][0]["text"]
        for event in log(session)
        if event["type"] in {"user.message", "agent.message"}
    ]


# ── The exact prefix ──
@pytest.mark.slow
def test_a_fork_repeats_up_to_and_including_the_message_with_its_times(cast: Cast) -> None:
    """BR-135, in a session of 300 messages: from the first, a middle and the last."""
    source = make_session(cast, title="Harbour survey")
    pairs = [talk(cast, source, f"prompt {n}", f"answer {n}") for n in range(150)]
    source.refresh_from_db()
    spoken = said(source)
    times = {e["seq"]: e["created_at"] for e in log(source)}
    for count, seq in ((1, pairs[0][0]), (150, pairs[74][1]), (300, pairs[149][1])):
        made = fork(cast, source, seq)
        assert said(made) == spoken[:count]
        assert (made.message_count, made.preview_text) == (count, spoken[count - 1])
        copied = [e for e in log(made) if e["type"] in {"user.message", "agent.message"}]
        original = [e for e in log(source) if e["type"] in {"user.message", "agent.message"}]
        for ours, theirs in zip(copied, original, strict=False):
            own = {"id", "seq", "session_id", "turn_id"}
            assert {k: v for k, v in ours.items() if k not in own} == {
                k: v for k, v in theirs.items() if k not in own
            }
            assert ours["created_at"] == times[theirs["seq"]]
    assert history(log(fork(cast, source))) == history(log(source))


def test_deltas_that_a_whole_text_repeats_are_not_copied_and_abandoned_text_is(cast: Cast) -> None:
    source = make_session(cast)
    send(cast, source)
    lease = claim().lease
    attempts.open_step(lease=lease, step=1)
    attempts.record(lease=lease, drafts=[delta("Lost ", "msg_" + "e" * 32)])
    attempts.hand_over(lease=lease)
    lease = claim().lease
    seq = say(lease, "Whole")
    attempts.finish_turn(lease=lease, outcome=Completed())
    made = fork(cast, source, seq)
    deltas = [event["text"] for event in log(made) if event["type"] in DELTA_TYPES]
    assert deltas == ["Lost "]
    assert list(made.attempts.order_by("number").values_list("number", "status")) == [
        (1, "interrupted"),
        (2, "completed"),
    ]


def test_prompts_stand_where_their_turns_began(cast: Cast) -> None:
    """The second was sent while the first ran: it is no part of what the first answer ends."""
    source = make_session(cast)
    first = send(cast, source, "one")
    lease = claim().lease
    second = send(cast, source, "two")
    answered = say(lease, "answer one")
    assert (first.seq or 0) < (second.seq or 0) < answered
    assert said(fork(cast, source, answered)) == ["one", "answer one"]
    with pytest.raises(Conflict) as refused:
        fork(cast, source, second.seq)
    assert refused.value.code == "message_not_started"
    attempts.finish_turn(lease=lease, outcome=Completed())
    claim()
    assert said(fork(cast, source, first.seq)) == ["one"]
    assert sorted(said(fork(cast, source, second.seq))) == ["answer one", "one", "two"]
    assert history(log(fork(cast, source, second.seq))).endswith("UserText(text='two'))")


def test_a_prompt_whose_first_response_only_calls_ends_before_that_response(cast: Cast) -> None:
    source = make_session(cast)
    asking = Asking(cast, source)
    asking.approval()
    asking.suspend()
    prompt = asking.newest("user.message")
    made = fork(cast, source, prompt["seq"])
    assert said(made) == ["Hello"]
    assert made.attempts.count() == 0
    assert [event["type"] for event in log(made)][-3:] == [
        "turn.started",
        "turn.cancelled",
        "session.status_idle",
    ]


def test_a_prompt_can_be_left_out_and_be_ones_draft(cast: Cast) -> None:
    source = make_session(cast)
    talk(cast, source, "one", "answer one")
    prompt, _ = talk(cast, source, "two", "answer two")
    made = fork(cast, source, prompt, include=False, keep_draft=True)
    assert said(made) == ["one", "answer one"]
    draft = ComposerDraft.objects.get(session=made)
    assert (draft.user_id, draft.text, draft.revision) == (cast.member.pk, "two", 1)
    assert made.stop_reason == {"type": "end_turn"}


def test_before_the_first_prompt_nothing_is_left(cast: Cast) -> None:
    source = make_session(cast)
    prompt, _ = talk(cast, source, "one", "answer one")
    made = fork(cast, source, prompt, include=False)
    assert said(made) == []
    assert (made.turn_count, made.message_count, made.stop_reason) == (0, 0, None)
    empty = fork(cast, make_session(cast))
    assert log(empty)[1]["source_seq"] is None


def test_a_fork_from_the_midst_of_a_running_turn_closes_it(cast: Cast) -> None:
    """A running source forks what it has finished; the open call after the message is not in it."""
    source = make_session(cast)
    asking = Asking(cast, source)
    seq = say(asking.lease, "May I?", 1)
    asking.approval()
    asking.suspend()
    for chosen in (seq, None):
        made = fork(cast, source, chosen)
        assert said(made) == ["Hello", "May I?"]
        assert log(made)[-2]["type"] == "turn.cancelled"
        assert log(made)[-2]["reason"] == "forked"
        assert made.stop_reason == {"type": "interrupted"}
        assert made.waits.count() == 0
        assert history(log(made)) == history(log(source, seq + 1))
    assert Wait.objects.get(session=source).status == "open"
    assert get_session(access=cast.access("member"), session_id=source.pk).is_working


def test_calls_approvals_and_questions_are_repeated_decided(cast: Cast) -> None:
    """An allowance for the rest of the source is none in the fork: its tools ask again."""
    source = make_session(cast)
    asking = Asking(cast, source)
    use = asking.approval()
    asked = asking.question()
    asking.confirm(use, for_session=True)
    asking.reply(asked, answers={"name": {"text": "Ada"}})
    started = Draft("agent.tool_started", {"tool_use_id": use})
    result = {"tool_use_id": use, "call_id": "call_1", "name": "probe.append_asked"}
    result |= {"content": [{"type": "text", "text": "ok"}], "is_error": False, "outcome": "ok"}
    attempts.record(lease=asking.lease, drafts=[started, Draft("agent.tool_result", result)])
    seq = say(asking.lease, "Done.", 1)
    attempts.finish_turn(lease=asking.lease, outcome=Completed())
    made = fork(cast, source, seq)
    assert history(log(made)) == history(log(source))
    by_type = {event["type"]: event for event in log(made)}
    confirmed = by_type["user.tool_confirmation"]
    assert confirmed["scope"] == "once"
    assert by_type["user.question_response"]["question_id"] == by_type["agent.question"]["id"]
    waits = list(made.waits.order_by("event_seq"))
    assert [wait.status for wait in waits] == ["answered", "answered"]
    assert waits[0].tool_use_id == confirmed["tool_use_id"]
    assert (waits[0].answer or {})["scope"] == "once"
    logged = [LogEvent(e["seq"], e["type"], e.get("turn_id"), e) for e in log(made)]
    _, state = fold(logged, turn_id="trn_next", provider_id="demo")
    assert state.allowed_tools == frozenset()


def test_a_stopped_answer_is_a_message_like_any_other(cast: Cast) -> None:
    source = make_session(cast)
    send(cast, source)
    lease = claim().lease
    attempts.open_step(lease=lease, step=1)
    attempts.record(lease=lease, drafts=[delta("Half a thou")])
    interrupt_session(access=cast.access("member"), session_id=source.pk)
    made = fork(cast, source)
    assert said(made) == ["Hello", "Half a thou"]
    assert made.turns.get().status == "cancelled"
    assert log(made)[-2]["type"] == "turn.cancelled"
    assert "reason" not in log(made)[-2]
    assert history(log(made)) == history(log(source))


def test_a_failed_turn_and_its_retry_refer_to_each_other_in_the_fork(cast: Cast) -> None:
    source = make_session(cast)
    send(cast, source, "one")
    attempts.finish_turn(lease=claim().lease, outcome=Failed("provider_down", "It is down."))
    retry_turn(access=cast.access("member"), session_id=source.pk)
    lease = claim().lease
    seq = say(lease, "answer one")
    attempts.finish_turn(lease=lease, outcome=Completed())
    made = fork(cast, source, seq)
    failed, retried = made.turns.order_by("number")
    assert retried.retry_of_id == failed.pk
    queued = [event for event in log(made) if event["type"] == "turn.queued"]
    assert queued[1]["retry_of"] == failed.public_id
    first = fork(cast, source, 2)
    assert first.turns.get().status == "failed"


def test_turns_are_numbered_anew_without_those_that_never_began(cast: Cast) -> None:
    source = make_session(cast)
    talk(cast, source, "one", "answer one")
    send(cast, source, "two")
    lease = claim().lease
    send(cast, source, "withdrawn")
    say(lease, "answer two")
    archive_session(access=cast.access("member"), session_id=source.pk, stop=True)
    made = fork(cast, source)
    assert said(made) == ["one", "answer one", "two", "answer two"]
    assert list(made.turns.order_by("number").values_list("number", flat=True)) == [1, 2]
    numbers = [e["number"] for e in log(made) if e["type"] == "turn.started"]
    assert numbers == [1, 2]
    assert made.archived_at is None


def test_a_prompt_that_could_not_start_is_shown_as_failed(cast: Cast) -> None:
    """BR-017: what was switched off is refused where a turn starts, in a fork as elsewhere."""
    source = make_session(cast, requested=RequestedSettings(model="demo/scripted"))
    talk(cast, source, "one", "answer one")
    receipt = send(cast, source, "two")
    Model.objects.filter(model_id="scripted").update(is_enabled=False)
    assert attempts.claim_turn(worker="test", token=WORKER_TOKEN) is None
    made = fork(cast, source, receipt.seq)
    assert said(made) == ["one", "answer one", "two"]
    assert made.turns.get(number=2).status == "failed"
    assert said(fork(cast, source, receipt.seq, include=False)) == ["one", "answer one"]
    with pytest.raises(Unprocessable) as refused:
        send(cast, made, "three")
    assert refused.value.code == "model_unavailable"


# ── What it is ──
def test_a_fork_is_an_ordinary_session_with_the_source_s_frozen_fields(cast: Cast) -> None:
    source = make_session(
        cast,
        title="Harbour survey",
        metadata={"team": "north"},
        origin={"type": "atlas", "sheet": 7},
        requested=RequestedSettings(model="demo/scripted", reasoning_effort="high"),
    )
    _, seq = talk(cast, source, "one", "answer one")
    made = fork(cast, source, seq, by="second_member")
    assert made.maker_id == cast.second_member.pk
    for name in (
        "organization_id",
        "workspace_id",
        "agent_snapshot",
        "origin",
        "origin_type",
        "agent_access",
        "memory_scope",
        "visibility",
        "metadata",
        "model_label",
    ):
        assert getattr(made, name) == getattr(
            get_session(access=cast.access("member"), session_id=source.pk), name
        ), name
    assert made.title == "Harbour survey (fork)"
    assert made.initial_settings["model_id"] == "scripted"
    assert made.initial_settings["reasoning_effort"] == "high"
    assert session_json(made)["forked_from"] == {"session_id": source.public_id, "seq": seq}
    forked = log(made)[1]
    assert forked["source_session_id"] == source.public_id
    assert (forked["source_seq"], forked["included"]) == (seq, True)
    assert forked["author"]["name"] == cast.second_member.name
    assert fork(cast, made).title == "Harbour survey (fork)"
    assert fork(cast, source, title="Another way").title == "Another way"


def test_an_empty_title_was_given_by_nobody(cast: Cast) -> None:
    """Else none would ever be generated."""
    source = make_session(cast, title="Harbour survey")
    talk(cast, source, "one", "answer one")
    assert fork(cast, source).title_source == "person"
    assert fork(cast, source, title="Another way").title_source == "person"
    unnamed = fork(cast, source, title=" ")
    assert (unnamed.title, unnamed.title_source) == ("", "")


def test_settings_are_those_of_the_point_it_was_forked_from(cast: Cast) -> None:
    source = make_session(cast, requested=RequestedSettings(model="demo/scripted"))
    _, first = talk(cast, source, "one", "answer one")
    changes = SessionChanges(requested=RequestedSettings(model="demo/assistant"))
    update_session(access=cast.access("member"), session_id=source.pk, changes=changes)
    _, second = talk(cast, source, "two", "answer two")
    assert fork(cast, source, first).initial_settings["model_id"] == "scripted"
    assert fork(cast, source, second).initial_settings["model_id"] == "assistant"


def test_a_fork_goes_on_by_itself(cast: Cast) -> None:
    source = make_session(cast)
    _, seq = talk(cast, source, "one", "answer one")
    made = fork(cast, source, seq)
    talk(cast, made, "another two", "another answer")
    assert said(source) == ["one", "answer one"]
    assert said(made) == ["one", "answer one", "another two", "another answer"]
    assert verify_session(session_id=made.pk) == []
    assert [turn.number for turn in made.turns.order_by("number")] == [1, 2]
    grandchild = fork(cast, made)
    assert said(grandchild) == said(made)
    assert [e["type"] for e in log(grandchild)].count("session.forked") == 1


def test_what_the_source_used_is_not_counted_again(cast: Cast) -> None:
    source = make_session(cast)
    talk(cast, source, "one", "answer one")
    made = fork(cast, source)
    assert eventlog.sum_usage(made.pk) == []
    talk(cast, made, "two", "answer two")
    assert eventlog.sum_usage(made.pk) == [eventlog.TurnUsage(10, 5)]


@pytest.mark.parametrize("state", ["paused", "archived", "terminated"])
def test_a_source_at_rest_can_be_forked_and_its_state_is_not_copied(cast: Cast, state: str) -> None:
    source = make_session(cast)
    _, seq = talk(cast, source, "one", "answer one")
    command = {"paused": pause_session, "archived": archive_session, "terminated": cancel_session}
    by = "owner" if state == "terminated" else "member"
    command[state](access=cast.access(by), session_id=source.pk)
    made = fork(cast, source, seq)
    assert (made.status, made.archived_at, made.paused_at) == ("idle", None, None)
    assert said(made) == ["one", "answer one"]
    talk(cast, made, "two", "answer two")


# ── Who may ──
def test_a_private_session_is_forked_by_its_maker_alone_and_stays_private(cast: Cast) -> None:
    cast.organization.allows_private_sessions = True
    cast.organization.save()
    source = make_session(cast, visibility=Visibility.PRIVATE)
    _, seq = talk(cast, source, "one", "answer one")
    made = fork(cast, source, seq)
    assert (made.visibility, made.maker_id) == (Visibility.PRIVATE, cast.member.pk)
    for name in ("owner", "admin", "second_member", "workspace_key", "organization_key"):
        for session in (source, made):
            with pytest.raises(NotFound):
                fork(cast, session, by=name)
    cast.organization.allows_private_sessions = False
    cast.organization.save()
    with pytest.raises(Forbidden) as refused:
        fork(cast, source, seq)
    assert refused.value.code == "private_not_allowed"


def test_who_may_only_read_forks_nothing(cast: Cast) -> None:
    source = make_session(cast)
    for name in ("viewer", "read_only_key"):
        with pytest.raises(Forbidden):
            fork(cast, source, by=name)
    with pytest.raises(NotFound):
        fork(cast, source, by="outsider")


def test_the_link_shows_only_while_the_source_is_visible(cast: Cast) -> None:
    source = make_session(cast)
    made = fork(cast, source)

    def link(name: str) -> Any:
        session = get_session(access=cast.access(name), session_id=made.pk)
        return session_json(session)["forked_from"]

    def forks(name: str) -> list[Any]:
        query = SessionQuery(workspace_id=cast.workspace.pk, forked_from_id=source.pk)
        return [row.pk for row in list_sessions(access=cast.access(name), query=query).rows]

    assert link("second_member") == {"session_id": source.public_id, "seq": None}
    assert forks("second_member") == [made.pk]
    query = SessionQuery(workspace_id=cast.workspace.pk)
    listed = list_sessions(access=cast.access("second_member"), query=query).rows
    assert {row.pk: session_json(row)["forked_from"] for row in listed} == {
        made.pk: link("second_member"),
        source.pk: None,
    }
    Session.objects.filter(pk=source.pk).update(visibility=Visibility.PRIVATE)
    assert link("second_member") is None
    assert forks("second_member") == []
    assert link("member") is not None
    assert forks("member") == [made.pk]


def test_a_fork_outlives_its_source(cast: Cast) -> None:
    source = make_session(cast)
    _, seq = talk(cast, source, "one", "answer one")
    made = fork(cast, source, seq)
    delete_session(access=cast.access("member"), session_id=source.pk)
    again = get_session(access=cast.access("member"), session_id=made.pk)
    assert said(again) == ["one", "answer one"]
    assert session_json(again)["forked_from"] is None
    assert verify_session(session_id=made.pk) == []


# ── What is refused ──
@pytest.mark.parametrize(
    ("seq", "include", "code", "param"),
    [
        (1, True, "not_a_message", "from_seq"),
        (3, True, "not_a_message", "from_seq"),
        (9_999, True, "message_not_found", "from_seq"),
        (2**62, True, "message_not_found", "from_seq"),
        (None, False, "not_a_prompt", "include"),
    ],
)
def test_only_messages_are_forked_from(
    cast: Cast, seq: int | None, include: bool, code: str, param: str
) -> None:
    source = make_session(cast)
    talk(cast, source, "one", "answer one")
    with pytest.raises(InvalidInput) as refused:
        fork(cast, source, seq, include=include)
    assert (refused.value.code, refused.value.param) == (code, param)
    assert Session.objects.count() == 1


# ── However long ──
def call_much(cast: Cast, session: Session, calls: int) -> None:
    """One turn with many calls, appended by the hundreds."""
    send(cast, session)
    lease = claim().lease
    say(lease, "I look.")
    seq = eventlog.head(session.pk)
    for _ in range(calls // 100):
        drafts: list[Draft] = []
        for number in range(100):
            use = {"name": "probe", "input": {}, "call_id": "c", "step": 1, "repeatable": True}
            use_id = event_id(session.pk, seq + len(drafts) + 1)
            result = {"tool_use_id": use_id, "call_id": "c", "name": "probe", "is_error": False}
            result |= {"content": [{"type": "text", "text": str(number)}], "outcome": "ok"}
            drafts += [
                Draft("agent.tool_use", {**use, "evaluated_permission": "allow"}),
                Draft("agent.tool_result", result),
            ]
        seq = attempts.record(lease=lease, drafts=drafts)[-1]
    say(lease, "Done.", 1)
    attempts.finish_turn(lease=lease, outcome=Completed())


@pytest.mark.slow
def test_ten_thousand_events_fork_as_a_few_do_whatever_the_planner_expects(cast: Cast) -> None:
    """Statistics from many short sessions let it expect a row or two."""

    def measure(source: Session) -> tuple[int, float]:
        access = cast.access("member")
        began = time.monotonic()
        with CaptureQueriesContext(connection) as queries:
            made = fork_session(access=access, session_id=source.pk, fork=ForkRequest())
        taken = time.monotonic() - began
        deltas = len("I look." + "Done.")
        assert made.head_seq == eventlog.head(source.pk) + 1 - deltas
        assert verify_session(session_id=made.pk) == []
        return len(queries), taken

    for _ in range(200):
        make_session(cast)
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE sessions_app_event")
    short, long = make_session(cast), make_session(cast)
    call_much(cast, short, 100)
    call_much(cast, long, 5_000)
    assert eventlog.head(long.pk) > 10_000
    (few, _), (many, seconds) = measure(short), measure(long)
    assert many == few <= 32
    assert seconds < 5


def test_the_public_id_of_a_turn_is_never_shared(cast: Cast) -> None:
    source = make_session(cast)
    _, seq = talk(cast, source, "one", "answer one")
    made = fork(cast, source, seq)
    mine = {event["turn_id"] for event in log(made) if "turn_id" in event}
    assert mine == {encode_id(Prefix.TURN, pk) for pk in made.turns.values_list("pk", flat=True)}
    assert not mine & {turn.public_id for turn in Turn.objects.filter(session=source)}
