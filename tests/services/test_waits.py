"""Waits in their rows: opened with the event that asks, decided once, closed with the turn."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from core.clock import now
from core.errors import Conflict, DomainError, Forbidden, InvalidInput, NotFound
from core.ids import event_id
from sessions_app import eventlog
from sessions_app.domain.events import Draft
from sessions_app.domain.questions import parse_questions
from sessions_app.domain.vocabulary import Visibility
from sessions_app.inbox import list_inbox, list_pending
from sessions_app.listing import SessionQuery, list_sessions
from sessions_app.models import Session, Turn, Wait
from sessions_app.selectors import get_session
from sessions_app.services import attempts
from sessions_app.services.archiving import archive_session, delete_session
from sessions_app.services.attempts import Completed, Failed, Lease, LeaseLost
from sessions_app.services.holding import pause_session, resume_session
from sessions_app.services.interruption import interrupt_session
from sessions_app.services.settling import expire_waits
from sessions_app.services.verification import verify_session
from sessions_app.services.waits import (
    Confirmation,
    QuestionReply,
    answer_question,
    confirm_call,
)
from sessions_app.wire import row_json
from tests.factories import Cast, claim, make_session, send

MODEL = {"provider_id": "demo", "model_id": "scripted"}
QUESTIONS = [
    question.to_json()
    for question in parse_questions([{"id": "name", "kind": "text", "text": "Its name?"}])
]


class Asking:
    """A session of which a turn runs and asks."""

    def __init__(self, cast: Cast, session: Session | None = None) -> None:
        self.cast = cast
        self.session = session or make_session(cast)
        maker = "member" if self.session.maker_id == cast.member.pk else "second_member"
        send(cast, self.session, by=maker)
        self.lease: Lease = claim().lease
        usage = {"input_tokens": 1, "output_tokens": 1, "model": MODEL, "step": 1}
        attempts.record(lease=self.lease, drafts=[Draft("model.usage", usage)])

    def approval(self, name: str = "probe.append_asked") -> str:
        payload = {
            "name": name,
            "input": {"line": "x"},
            "call_id": "call_1",
            "step": 1,
            "evaluated_permission": "ask",
            "repeatable": False,
        }
        seqs = attempts.record_ask(lease=self.lease, drafts=[Draft("agent.tool_use", payload)])
        return event_id(self.session.pk, seqs[0])

    def question(self, *, allow_skip: bool = False, expires_in: float | None = None) -> str:
        use = {
            "name": "probe.ask",
            "input": {},
            "call_id": "call_2",
            "step": 1,
            "evaluated_permission": "allow",
            "repeatable": True,
        }
        seqs = attempts.record(lease=self.lease, drafts=[Draft("agent.tool_use", use)])
        expires_at = None
        if expires_in is not None:
            expires_at = (now() + timedelta(seconds=expires_in)).isoformat()
        payload = {
            "tool_use_id": event_id(self.session.pk, seqs[0]),
            "questions": QUESTIONS,
            "allow_skip": allow_skip,
            "expires_at": expires_at,
        }
        asked = attempts.record_ask(lease=self.lease, drafts=[Draft("agent.question", payload)])
        return event_id(self.session.pk, asked[0])

    def suspend(self) -> bool:
        return attempts.suspend_turn(lease=self.lease)

    def confirm(self, tool_use_id: str, *, by: str = "member", **fields: Any) -> None:
        fields.setdefault("allow", True)
        confirm_call(
            access=self.cast.access(by),
            session_id=self.session.pk,
            confirmation=Confirmation(tool_use_id, **fields),
        )

    def reply(self, question_id: str, *, by: str = "member", **fields: Any) -> None:
        answer_question(
            access=self.cast.access(by),
            session_id=self.session.pk,
            reply=QuestionReply(question_id, **fields),
        )

    def row(self) -> dict[str, Any]:
        access = self.cast.access("member")
        return row_json(get_session(access=access, session_id=self.session.pk))

    def newest(self, *types: str) -> dict[str, Any]:
        events = eventlog.read_after(
            session_id=self.session.pk, after=0, limit=1_000, types=types or None
        )
        return events[-1].data


@pytest.fixture
def asking(cast: Cast) -> Asking:
    return Asking(cast)


def refused(call: Any, *arguments: Any, **fields: Any) -> DomainError:
    with pytest.raises(DomainError) as error:
        call(*arguments, **fields)
    return error.value


def test_a_wait_can_be_decided_as_soon_as_its_event_is_there(asking: Asking) -> None:
    tool_use_id = asking.approval()
    assert asking.row()["waiting"] == 1
    asking.confirm(tool_use_id)
    assert asking.row()["waiting"] == 0
    assert asking.suspend() is False
    assert verify_session(session_id=asking.session.pk) == []


def test_a_waiting_session_says_for_what_and_holds_no_worker(asking: Asking) -> None:
    ids = [asking.approval(), asking.question()]
    assert asking.suspend() is True
    session = get_session(access=asking.cast.access("member"), session_id=asking.session.pk)
    assert session.stop_reason == {"type": "requires_action", "event_ids": ids}
    assert (session.status, session.is_working, session.ready_at) == ("idle", True, None)
    assert row_json(session)["waiting"] == 2
    assert attempts.claim_turn(worker="w", token=asking.lease.token) is None
    with pytest.raises(LeaseLost):
        attempts.finish_turn(lease=asking.lease, outcome=Completed())
    assert verify_session(session_id=session.pk) == []


def test_the_last_decision_lets_the_same_turn_go_on(asking: Asking) -> None:
    first, second = asking.approval(), asking.question()
    asking.suspend()
    asking.confirm(first)
    assert attempts.claim_turn(worker="w", token=asking.lease.token) is None
    asking.reply(second, answers={"name": {"text": "Tern"}})
    assert asking.newest()["type"] == "session.status_running"
    again = claim().lease
    assert (again.turn_id, again.attempt) == (asking.lease.turn_id, 2)
    assert verify_session(session_id=asking.session.pk) == []


def test_the_second_answer_is_refused_and_told_the_first(asking: Asking) -> None:
    """BR-074: one request object; whoever comes second sees what was decided."""
    approval, question = asking.approval(), asking.question()
    asking.confirm(approval, allow=False, deny_message="No", by="second_member")
    asking.reply(question, answers={"name": {"text": "Tern"}})
    late = refused(asking.confirm, approval)
    assert (type(late), late.code) == (Conflict, "already_decided")
    assert late.details["answer"] == {"result": "deny", "scope": "once", "deny_message": "No"}
    assert refused(asking.reply, question, answers={}).code == "already_decided"
    wait = Wait.objects.get(kind="approval")
    assert (wait.decided_by, wait.status) == (asking.cast.second_member, "answered")


def test_a_prompt_replaces_the_wait_and_decides_nothing(asking: Asking) -> None:
    """BR-076: typing “approve” is a prompt. What was queued before it comes after it."""
    send(asking.cast, asking.session, "Queued while it ran")
    approval, question = asking.approval(), asking.question()
    asking.suspend()
    send(asking.cast, asking.session, "approve")
    assert set(Wait.objects.values_list("status", flat=True)) == {"cancelled"}
    assert refused(asking.confirm, approval).code == "wait_closed"
    assert refused(asking.reply, question, answers={}).code == "wait_closed"
    turns = dict(asking.session.turns.values_list("preview_text", "status"))
    assert turns["approve"] == turns["Queued while it ran"] == "queued"
    assert "superseded" in turns.values()
    assert Turn.objects.get(pk=claim().lease.turn_id).preview_text == "approve"
    assert verify_session(session_id=asking.session.pk) == []


def test_answers_while_paused_are_taken_and_held(asking: Asking) -> None:
    approval = asking.approval()
    asking.suspend()
    access = asking.cast.access("member")
    pause_session(access=access, session_id=asking.session.pk)
    asking.confirm(approval)
    assert asking.newest()["stop_reason"] == {"type": "paused"}
    assert attempts.claim_turn(worker="w", token=asking.lease.token) is None
    resume_session(access=access, session_id=asking.session.pk)
    assert claim().lease.turn_id == asking.lease.turn_id
    assert verify_session(session_id=asking.session.pk) == []


def test_a_resume_leaves_what_still_waits_waiting(asking: Asking) -> None:
    approval = asking.approval()
    asking.suspend()
    access = asking.cast.access("member")
    pause_session(access=access, session_id=asking.session.pk)
    resume_session(access=access, session_id=asking.session.pk)
    assert attempts.claim_turn(worker="w", token=asking.lease.token) is None
    asking.confirm(approval)
    assert claim().lease.turn_id == asking.lease.turn_id


def test_what_nothing_asks_for_is_named(asking: Asking) -> None:
    approval, question = asking.approval(), asking.question()
    other = Asking(asking.cast).approval()
    for odd in ("", "x", "evt_1_2", approval + "9", question, other, "evt_\x00_1"):
        error = refused(asking.confirm, odd)
        assert (type(error), error.code) == (InvalidInput, "unknown_tool_use"), odd
    assert refused(asking.reply, approval).code == "unknown_question"
    assert Wait.objects.filter(status="open").count() == 3


@pytest.mark.parametrize(
    ("fields", "code", "param"),
    [
        ({"allow": True, "deny_message": "x"}, "invalid_confirmation", "deny_message"),
        ({"allow": False, "for_session": True}, "invalid_confirmation", "scope"),
        ({"allow": False, "deny_message": "\x00"}, "invalid_text", "deny_message"),
        ({"allow": False, "deny_message": "\ud800"}, "invalid_text", "deny_message"),
        ({"allow": False, "deny_message": "x" * 10_001}, "too_long", "deny_message"),
    ],
)
def test_odd_confirmations_are_refused(
    asking: Asking, fields: dict[str, Any], code: str, param: str
) -> None:
    error = refused(asking.confirm, asking.approval(), **fields)
    assert (error.code, error.param) == (code, param)
    assert Wait.objects.get().status == "open"


def test_odd_replies_are_refused_with_their_path(asking: Asking) -> None:
    question = asking.question()
    for fields, code, param in [
        ({}, "answer_required", "answers.name"),
        ({"answers": []}, "invalid_answer", "answers"),
        ({"answers": {"name": {"text": "\x00"}}}, "invalid_text", "answers.name.text"),
        ({"skip": True}, "not_skippable", "skip"),
    ]:
        error = refused(asking.reply, question, **fields)
        assert (error.code, error.param) == (code, param)
    skippable = asking.question(allow_skip=True)
    answers = {"name": {"text": "x"}}
    assert refused(asking.reply, skippable, answers=answers, skip=True).code == "invalid_answer"


def test_who_may_not_control_decides_nothing(asking: Asking) -> None:
    approval, question = asking.approval(), asking.question()
    for name in ("viewer", "read_only_key"):
        assert type(refused(asking.confirm, approval, by=name)) is Forbidden
        assert type(refused(asking.reply, question, by=name)) is Forbidden
    assert type(refused(asking.confirm, approval, by="outsider")) is NotFound
    assert type(refused(asking.reply, question, by="outsider")) is NotFound
    asking.confirm(approval, by="workspace_key")
    asking.reply(question, answers={"name": {"text": "x"}}, by="organization_key")
    wait = Wait.objects.get(kind="approval")
    assert (wait.decided_by, wait.decided_by_key) == (None, asking.cast.workspace_key.row)


def test_an_expired_question_is_closed_once_and_a_late_answer_refused(asking: Asking) -> None:
    """BR-078: also in the moment before it is closed."""
    question, approval = asking.question(expires_in=-1), asking.approval()
    answers = {"name": {"text": "Late"}}
    assert refused(asking.reply, question, answers=answers).code == "expired"
    asking.suspend()
    assert expire_waits() == 1
    assert expire_waits() == 0
    assert refused(asking.reply, question, answers=answers).code == "expired"
    assert asking.newest("agent.question_closed")["outcome"] == "expired"
    assert asking.newest("agent.tool_result")["outcome"] == "expired"
    assert asking.newest()["stop_reason"]["event_ids"] == [approval]
    asking.confirm(approval)
    assert claim().lease.turn_id == asking.lease.turn_id


def test_a_question_without_an_expiry_and_one_still_open_stay(asking: Asking) -> None:
    asking.question()
    asking.question(expires_in=60)
    assert expire_waits() == 0
    assert Wait.objects.filter(status="open").count() == 2


@pytest.mark.parametrize("is_suspended", [True, False])
def test_stop_closes_waits_with_their_turn(asking: Asking, is_suspended: bool) -> None:
    approval, question = asking.approval(), asking.question()
    if is_suspended:
        asking.suspend()
    interrupt_session(access=asking.cast.access("member"), session_id=asking.session.pk)
    assert set(Wait.objects.values_list("status", flat=True)) == {"cancelled"}
    assert asking.newest("agent.question_closed")["outcome"] == "cancelled"
    assert asking.newest("agent.tool_result")["outcome"] == "cancelled"
    assert refused(asking.confirm, approval).code == "wait_closed"
    assert refused(asking.reply, question, answers={}).code == "wait_closed"
    row = asking.row()
    assert (row["waiting"], row["working"], row["status"]) == (0, False, "idle")
    assert verify_session(session_id=asking.session.pk) == []


def test_a_failing_turn_closes_its_waits(asking: Asking) -> None:
    asking.approval()
    attempts.finish_turn(lease=asking.lease, outcome=Failed("internal_error", "It broke."))
    assert Wait.objects.get().status == "cancelled"
    assert asking.newest("agent.tool_result")["outcome"] == "cancelled"


def test_a_waiting_session_is_archived_and_deleted_like_a_working_one(asking: Asking) -> None:
    asking.approval()
    asking.suspend()
    access, pk = asking.cast.access("member"), asking.session.pk
    assert refused(archive_session, access=access, session_id=pk).code == "target_working"
    assert refused(delete_session, access=access, session_id=pk).code == "target_working"
    archive_session(access=access, session_id=pk, stop=True)
    assert Wait.objects.get().status == "cancelled"
    delete_session(access=access, session_id=pk)
    assert not Wait.objects.exists()


def test_the_inbox_has_what_one_sees_and_may_control(cast: Cast) -> None:
    cast.organization.allows_private_sessions = True
    cast.organization.save()
    shared = Asking(cast).approval()
    hidden = make_session(cast, by="second_member", visibility=Visibility.PRIVATE)
    private = Asking(cast, hidden).approval()

    def inbox(name: str) -> list[str]:
        return [wait.event_id for wait in list_inbox(access=cast.access(name)).rows]

    for name in ("owner", "member", "workspace_key", "organization_key"):
        assert inbox(name) == [shared], name
    assert inbox("second_member") == [shared, private]
    for name in ("viewer", "read_only_key", "outsider"):
        assert inbox(name) == [], name


def test_the_inbox_pages_and_lists_count_in_a_fixed_number_of_queries(cast: Cast) -> None:
    ids = [Asking(cast).approval() for _ in range(5)]
    access = cast.access("member")
    with CaptureQueriesContext(
        connection,
    ) as queries:
        first = list_inbox(access=access, limit=2)
        assert [wait.session.title for wait in first.rows] == ["", ""]
    assert len(queries) == 1
    second = list_inbox(access=access, limit=2, page=first.next_page or "")
    last = list_inbox(access=access, limit=2, page=second.next_page or "")
    found = [wait.event_id for page in (first, second, last) for wait in page.rows]
    assert (found, last.next_page) == (ids, None)
    newest = list_inbox(access=access, limit=5, descending=True)
    assert [wait.event_id for wait in newest.rows] == ids[::-1]
    with CaptureQueriesContext(connection) as queries:
        rows = list_sessions(access=access, query=SessionQuery(cast.workspace.pk)).rows
        assert [row_json(row)["waiting"] for row in rows] == [1] * 5
    assert len(queries) == 1


def test_pending_has_the_open_ones_of_one_session(asking: Asking) -> None:
    approval, question = asking.approval(), asking.question()
    Asking(asking.cast).approval()
    access = asking.cast.access("viewer")
    found = list_pending(access=access, session_id=asking.session.pk)
    assert [wait.event_id for wait in found.rows] == [approval, question]
    asking.confirm(approval)
    assert len(list_pending(access=access, session_id=asking.session.pk).rows) == 1
    with pytest.raises(NotFound):
        list_pending(access=asking.cast.access("outsider"), session_id=asking.session.pk)


def test_a_page_of_the_inbox_is_bounded_in_bytes(asking: Asking, settings: Any) -> None:
    ids = [asking.approval() for _ in range(3)]
    settings.PAGE_MAX_BYTES = 10
    access = asking.cast.access("member")
    first = list_inbox(access=access)
    second = list_inbox(access=access, page=first.next_page or "")
    assert [wait.event_id for wait in (*first.rows, *second.rows)] == ids[:2]


def test_verification_sees_a_wait_that_log_and_rows_tell_differently(asking: Asking) -> None:
    asking.approval()
    assert verify_session(session_id=asking.session.pk) == []
    Wait.objects.update(status="answered")
    (problem,) = verify_session(session_id=asking.session.pk)
    assert "the wait of event" in problem
