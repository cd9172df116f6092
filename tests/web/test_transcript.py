"""The log, folded into what people read."""

from __future__ import annotations

from typing import Any

import orjson

from sessions_app.domain.events import EVENT_TYPES
from sessions_app.eventlog import StoredEvent
from sessions_app.web.items import Item
from sessions_app.web.transcript import _HANDLERS, SILENT_TYPES, Transcript

ADA = {"type": "user", "id": "usr_1", "name": "Ada Moreau"}
MODEL = {"provider_id": "demo", "model_id": "assistant", "display_name": "Demo assistant"}


class Log:
    """Events as they come from the log, numbered."""

    def __init__(self) -> None:
        self.events: list[StoredEvent] = []

    def add(self, kind: str, turn: str = "trn_1", **payload: Any) -> str:
        seq = len(self.events) + 1
        data = {
            "id": f"evt_1_{seq}",
            "type": kind,
            "seq": seq,
            "created_at": f"2026-05-01T09:{seq // 60:02}:{seq % 60:02}Z",
            "turn_id": turn,
            **payload,
        }
        self.events.append(StoredEvent(seq, kind, None, 1, orjson.dumps(data).decode()))
        return str(data["id"])

    def prompt(self, text: str, turn: str = "trn_1", number: int = 1) -> None:
        self.add("user.message", turn, content=[{"type": "text", "text": text}], author=ADA)
        self.add("turn.queued", turn, number=number, held=False)

    def start(self, turn: str = "trn_1", number: int = 1) -> None:
        self.add("turn.started", turn, number=number, model=MODEL)
        self.add("attempt.started", turn)

    def step(self, step: int = 1, turn: str = "trn_1") -> None:
        self.add("step.checkpoint", turn, step=step, model=MODEL)

    def delta(self, text: str, message: str = "msg_1", turn: str = "trn_1") -> None:
        self.add("agent.message_delta", turn, message_id=message, text=text)

    def message(self, text: str, message: str = "msg_1", turn: str = "trn_1", **more: Any) -> None:
        content = [{"type": "text", "text": text}]
        self.add("agent.message", turn, message_id=message, content=content, **more)

    def call(self, name: str = "probe.lookup", turn: str = "trn_1") -> str:
        return self.add("agent.tool_use", turn, name=name, input={"path": "a.txt"})

    def result(self, call: str, outcome: str = "ok", turn: str = "trn_1") -> None:
        content = [{"type": "text", "text": "done"}]
        self.add(
            "agent.tool_result",
            turn,
            tool_use_id=call,
            content=content,
            outcome=outcome,
            duration_ms=200,
        )

    def fold(self) -> list[Item]:
        transcript = Transcript()
        transcript.add_all(self.events)
        return transcript.items


def shown(items: list[Item]) -> list[tuple[str, str]]:
    return [(item.type, item.text) for item in items]


def test_a_turn_is_a_prompt_and_its_answer() -> None:
    log = Log()
    log.prompt("Why?")
    log.start()
    log.step()
    log.delta("Be")
    log.delta("cause.")
    log.message("Because.")
    log.add("turn.completed")
    assert shown(log.fold()) == [("user.message", "Why?"), ("agent.message", "Because.")]


def test_a_prompt_behind_a_running_turn_stands_where_its_own_turn_starts() -> None:
    log = Log()
    log.prompt("first")
    log.start()
    log.prompt("second", "trn_2", 2)
    log.message("answer to first")
    log.add("turn.completed")
    log.start("trn_2", 2)
    log.message("answer to second", "msg_2", "trn_2")
    texts = [item.text for item in log.fold()]
    assert texts == ["first", "answer to first", "second", "answer to second"]


def test_of_prompts_that_no_worker_has_taken_only_the_first_stands_in_the_history() -> None:
    log = Log()
    log.prompt("first")
    log.prompt("second", "trn_2", 2)
    log.prompt("third", "trn_3", 3)
    assert [item.text for item in log.fold()] == ["first"]
    log.start()
    log.add("turn.completed")
    log.start("trn_2", 2)
    assert [item.text for item in log.fold()] == ["first", "second"]


def test_a_withdrawn_prompt_is_not_in_the_history() -> None:
    log = Log()
    log.prompt("first")
    log.start()
    log.prompt("never", "trn_2", 2)
    log.add("turn.withdrawn", "trn_2")
    log.add("turn.completed")
    assert [item.text for item in log.fold()] == ["first"]


def test_text_that_a_lost_worker_left_is_folded_away_and_the_note_says_when_it_went_on() -> None:
    log = Log()
    log.prompt("go")
    log.start()
    log.step()
    log.delta("Half an ans", "msg_lost")
    log.add("attempt.ended", outcome="lost")
    log.add("turn.recovering", reason="worker_lost", losses=1)
    log.add("attempt.started")
    log.step()
    log.delta("The whole answer.", "msg_2")
    log.message("The whole answer.", "msg_2")
    items = log.fold()
    assert [item.type for item in items] == [
        "user.message",
        "agent.message",
        "turn.recovering",
        "agent.message",
    ]
    assert items[1].is_abandoned
    assert items[2].facts["resumed_at"] is not None
    assert not items[3].is_abandoned


def test_a_wait_for_the_provider_says_why_until_it_is_over() -> None:
    log = Log()
    log.prompt("go")
    log.start()
    log.step()
    log.delta("Half an ans", "msg_cut")
    reason = {"code": "provider_overloaded", "message": "It is overloaded. It said: No capacity."}
    log.add("session.status_rescheduled", reason=reason, retry_at="2026-05-01T09:00:30Z")
    note = log.fold()[-1]
    assert note.type == "session.status_rescheduled"
    assert note.facts["message"] == reason["message"]
    assert note.facts["retry_at"].isoformat() == "2026-05-01T09:00:30+00:00"
    assert not note.facts["is_over"]
    log.add("session.status_running")
    assert log.fold()[-1].facts["is_over"]


def test_a_wait_for_a_worker_is_told_by_the_recovery_alone() -> None:
    log = Log()
    log.prompt("go")
    log.start()
    log.add("turn.recovering", reason="worker_lost", losses=1)
    log.add("session.status_rescheduled", reason={"code": "worker_lost", "message": "Lost."})
    assert [item.type for item in log.fold()] == ["user.message", "turn.recovering"]


def test_a_text_that_still_grows_is_open() -> None:
    log = Log()
    log.prompt("go")
    log.start()
    log.step()
    log.delta("So ")
    log.delta("far")
    assert log.fold()[-1].is_open
    assert log.fold()[-1].text == "So far"


def test_deltas_after_the_final_message_add_nothing() -> None:
    log = Log()
    log.prompt("go")
    log.start()
    log.message("Done.")
    log.delta("Done.")
    assert log.fold()[-1].text == "Done."


def test_calls_next_to_each_other_share_a_box_and_find_their_results() -> None:
    log = Log()
    log.prompt("go")
    log.start()
    log.step()
    first, second = log.call(), log.call("probe.append")
    log.result(first)
    log.result(second, "unknown")
    log.step(2)
    third = log.call()
    log.result(third, "error")
    box = log.fold()[-1]
    assert [call.outcome for call in box.calls] == ["ok", "unknown", "error"]


def test_stopping_says_by_whom() -> None:
    log = Log()
    log.prompt("go")
    log.start()
    log.delta("Half")
    log.add("user.interrupt", author=ADA)
    log.message("Half", interrupted=True)
    log.add("turn.cancelled")
    items = log.fold()
    assert items[-1].facts["by"] == "Ada Moreau"
    assert items[-2].is_interrupted


def test_a_failed_turn_shows_its_error_once() -> None:
    log = Log()
    log.prompt("go")
    log.start()
    error = {"code": "provider_bad_request", "message": "The provider refused."}
    log.add("session.error", error=error)
    log.add("turn.failed", error=error)
    failed = [item for item in log.fold() if item.type == "turn.failed"]
    assert [item.facts["number"] for item in failed] == [1]


def test_an_event_of_a_newer_server_is_shown_as_unknown() -> None:
    log = Log()
    log.add("agent.danced", steps=3)
    assert log.fold()[0].facts["type"] == "agent.danced"


def test_every_event_type_has_a_place() -> None:
    assert set(EVENT_TYPES) - set(_HANDLERS) - SILENT_TYPES == set()
    assert SILENT_TYPES - set(EVENT_TYPES) == set()


def test_what_a_stream_changes_one_by_one_is_what_a_page_folds_at_once() -> None:
    log = Log()
    log.prompt("go")
    log.start()
    log.step()
    log.delta("a")
    log.result(log.call())
    log.message("a")
    live = Transcript()
    for event in log.events:
        live.add(event)
        live.forget_closed()
    assert [item.key for item in live.items] == [item.key for item in log.fold()]


def test_a_prompt_held_by_a_pause_stands_in_the_history_when_its_turn_starts() -> None:
    log = Log()
    log.add("session.paused", "", author=ADA, place="ses_1")
    log.add("user.message", content=[{"type": "text", "text": "held"}], author=ADA)
    log.add("turn.queued", number=1, held=True)
    assert [item.type for item in log.fold()] == ["session.paused"]
    log.add("session.resumed", "", author=ADA, place="ses_1")
    log.start()
    kinds = [item.type for item in log.fold()]
    assert kinds == ["session.paused", "session.resumed", "user.message"]


def test_a_pause_takes_a_prompt_that_no_worker_has_taken_back_into_the_queue() -> None:
    log = Log()
    log.prompt("not yet")
    log.add("session.paused", "", author=ADA, place="ses_1")
    assert [item.type for item in log.fold()] == ["session.paused"]


def test_behind_a_queue_a_new_prompt_is_not_in_the_history_although_nothing_runs() -> None:
    log = Log()
    log.prompt("first")
    log.start()
    log.prompt("second", "trn_2", 2)
    log.add("turn.completed")
    log.prompt("third", "trn_3", 3)
    assert [item.text for item in log.fold()] == ["first"]


def test_queued_prompts_that_end_with_their_session_leave_no_notes() -> None:
    log = Log()
    log.prompt("first")
    log.start()
    log.prompt("second", "trn_2", 2)
    log.add("turn.cancelled")
    log.add("turn.cancelled", "trn_2")
    assert [item.type for item in log.fold()] == ["user.message", "turn.cancelled"]


def failing(log: Log, turn: str, number: int) -> None:
    log.prompt("go", turn, number)
    log.start(turn, number)
    log.add("turn.failed", turn, error={"code": "provider_error", "message": "No."})


def retryable(items: list[Item]) -> list[str]:
    return [item.turn for item in items if item.facts.get("may_retry")]


def test_only_the_newest_failed_turn_may_be_retried_and_only_once() -> None:
    log = Log()
    failing(log, "trn_1", 1)
    failing(log, "trn_2", 2)
    assert retryable(log.fold()) == ["trn_2"]
    log.add("turn.queued", "trn_3", number=3, held=False, retry_of="trn_2")
    assert retryable(log.fold()) == []
