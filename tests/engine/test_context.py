"""The fold from the log to what a model is sent, and to where the turn stands."""

from __future__ import annotations

from typing import Any

import pytest

from engine import context
from engine.context import CUT, LEFT_OUT, NO_RESULT, TEXT_MAX_CHARACTERS, TurnState, fold
from engine.ports import AgentReply, CallMade, HistoryItem, LogEvent, ToolReturn, UserText

DEMO = {"provider_id": "demo", "model_id": "scripted"}


class Log:
    """Writes events as the services do, for one session."""

    def __init__(self) -> None:
        self.events: list[LogEvent] = []

    def add(self, kind: str, turn: str | None = "t1", **payload: Any) -> str:
        seq = len(self.events) + 1
        body = {**payload, "id": f"e{seq}", "seq": seq, "type": kind}
        self.events.append(LogEvent(seq, kind, turn, body))
        return f"e{seq}"

    def prompt(self, text: str, turn: str = "t1", *, start: bool = True) -> None:
        self.add("user.message", turn, content=block(text))
        if start:
            self.add("turn.started", turn)
            self.add("attempt.started", turn)

    def response(self, text: str = "", turn: str = "t1", thinking: str = "", **model: str) -> None:
        named = {**DEMO, **model}
        self.add("step.checkpoint", turn, step=1, model=named)
        if thinking:
            self.add("agent.thinking", turn, text=thinking)
        if text:
            self.add("agent.message", turn, content=block(text), model=named)
        self.add("model.usage", turn, model=named, step=1)

    def call(self, name: str, turn: str = "t1", **more: Any) -> str:
        return self.add(
            "agent.tool_use", turn, name=name, input={"n": 1}, call_id=f"c_{name}", step=1, **more
        )

    def result(
        self, tool_use_id: str, text: str, turn: str = "t1", *, is_error: bool = False
    ) -> None:
        self.add(
            "agent.tool_result",
            turn,
            tool_use_id=tool_use_id,
            content=block(text),
            is_error=is_error,
        )

    def history(self, turn: str = "t1", provider: str = "demo") -> list[HistoryItem]:
        return list(fold(self.events, turn_id=turn, provider_id=provider)[0])

    def state(self, turn: str = "t1") -> TurnState:
        return fold(self.events, turn_id=turn, provider_id="demo")[1]


def block(text: str) -> list[dict[str, str]]:
    return [{"type": "text", "text": text}]


def test_a_conversation_becomes_its_history() -> None:
    log = Log()
    log.prompt("Hello")
    log.response("Hi")
    log.add("turn.completed")
    log.prompt("And now?", "t2")
    assert log.history("t2") == [UserText("Hello"), AgentReply("Hi"), UserText("And now?")]
    assert log.state("t2").step == 1


def test_a_queued_prompt_is_not_sent_before_its_turn() -> None:
    log = Log()
    log.prompt("First")
    log.prompt("Second", "t2", start=False)
    log.response("One")
    assert log.history("t1") == [UserText("First"), AgentReply("One")]
    log.add("turn.started", "t2")
    assert log.history("t2")[-1] == UserText("Second")


def test_a_call_and_its_result_belong_together() -> None:
    log = Log()
    log.prompt("Go")
    log.response("Looking")
    used = log.call("probe.lookup")
    log.result(used, "3")
    seq = int(used[1:])
    assert log.history()[1:] == [
        AgentReply("Looking", calls=(CallMade(f"call_{seq}", "probe.lookup", {"n": 1}),)),
        ToolReturn(f"call_{seq}", "probe.lookup", "3"),
    ]
    state = log.state()
    assert (state.open_calls, state.is_answered, state.step) == ((), False, 2)


def test_an_abandoned_call_gets_an_answer_for_the_provider() -> None:
    log = Log()
    log.prompt("Go")
    log.response()
    log.call("probe.append")
    log.add("turn.cancelled")
    log.prompt("Again", "t2")
    assert log.history("t2")[2] == ToolReturn("call_6", "probe.append", NO_RESULT, True)


def test_a_call_without_result_is_open_and_those_after_it_are_pending() -> None:
    log = Log()
    log.prompt("Go")
    log.response()
    following = [{"call_id": "c_b", "name": "b", "arguments": "{}"}]
    first = log.call("a", pending_calls=following)
    assert [call.tool_use_id for call in log.state().open_calls] == [first]
    assert [call.name for call in log.state().pending_calls] == ["b"]
    log.result(first, "done")
    assert (log.state().open_calls, len(log.state().pending_calls)) == ((), 1)
    second = log.call("b")
    assert [call.tool_use_id for call in log.state().open_calls] == [second]
    assert log.state().pending_calls == ()
    log.result(second, "done")
    assert not log.state().is_answered


def test_only_the_first_call_names_those_to_come_and_each_leaves_the_list_as_it_begins() -> None:
    log = Log()
    log.prompt("Go")
    following = [{"call_id": f"c_{name}", "name": name, "arguments": "{}"} for name in "bc"]
    for _step in (1, 2):  # a model may give its calls the same ids in each of its responses
        log.response()
        for name, left in (("a", "bc"), ("b", "c"), ("c", "")):
            used = log.call(name, **({"pending_calls": following} if name == "a" else {}))
            assert "".join(call.name for call in log.state().pending_calls) == left
            log.result(used, "done")
    assert log.state().open_calls == ()


def test_a_log_in_which_each_call_names_those_after_it_folds_to_the_same() -> None:
    log = Log()
    log.prompt("Go")
    log.response()
    b, c = ({"call_id": f"c_{name}", "name": name, "arguments": "{}"} for name in "bc")
    for name, pending in (("a", [b, c]), ("b", [c]), ("c", [])):
        log.call(name, pending_calls=pending)
        assert [call.name for call in log.state().pending_calls] == [p["name"] for p in pending]


def test_a_response_that_asks_for_nothing_answers_the_turn() -> None:
    log = Log()
    log.prompt("Go")
    log.response("Done")
    assert log.state().is_answered


def test_text_without_a_seal_is_left_out() -> None:
    log = Log()
    log.prompt("Go")
    log.add("step.checkpoint", step=1)
    log.add("agent.thinking", text="half a thought")
    log.add("attempt.ended", outcome="lost")
    log.add("attempt.started")
    log.response("Whole")
    assert log.history() == [UserText("Go"), AgentReply("Whole")]


def test_an_interrupted_answer_is_part_of_the_history_and_no_response() -> None:
    log = Log()
    log.prompt("Go")
    log.add("step.checkpoint", step=1)
    log.add("agent.message", content=block("Half an ans"), model=DEMO, interrupted=True)
    log.add("turn.cancelled")
    log.prompt("Go on", "t2")
    assert log.history("t2")[1] == AgentReply("Half an ans", interrupted=True)
    assert log.state("t1").position.responses == 0


def test_thinking_of_another_provider_is_stripped() -> None:
    log = Log()
    log.prompt("Go")
    log.response("Done", thinking="Hm")
    assert log.history(provider="demo")[1] == AgentReply("Done", thinking="Hm")
    assert log.history(provider="openai")[1] == AgentReply("Done")


def test_provider_failures_are_counted_and_lost_workers_are_not() -> None:
    log = Log()
    log.prompt("Go")
    log.add("session.status_rescheduled", reason={"code": "provider_overloaded"})
    log.add("session.status_rescheduled", reason={"code": "worker_lost"})
    log.response()
    log.call("a")
    log.add("session.status_rescheduled", reason={"code": "provider_rate_limited"})
    position = log.state().position
    assert (position.responses, position.failures, position.recent_failures) == (1, 2, 1)


def test_cleared_payloads_fold_to_nothing() -> None:
    log = Log()
    log.add("user.message")
    log.add("turn.started")
    log.add("agent.message")
    log.add("model.usage")
    log.add("agent.tool_use")
    log.add("agent.tool_result")
    assert [item.text for item in log.history() if isinstance(item, UserText)] == [""]


def test_the_oldest_turns_are_left_out_when_there_are_too_many(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(context, "HISTORY_MAX_CHARACTERS", 100)
    log = Log()
    for number in range(5):
        log.prompt(f"{number}" * 30, f"t{number}")
        log.response("ok", f"t{number}")
    history = log.history("t4")
    assert history[0] == UserText(LEFT_OUT)
    assert history[-2:] == [UserText("4" * 30), AgentReply("ok")]
    assert len(history) < 8


def told_children(count: int, characters: int, **fields: Any) -> str:
    """What the turn after so many results begins with."""
    log = Log()
    for number in range(count):
        text = f"Answer {number}. " + "x" * characters
        result = {"child_id": f"ses_{number}", "title": f"Part {number}", "status": "completed"}
        log.add("child.result", None, **{**result, "text": text, **fields})
    log.prompt("And?")
    first, second = log.history()
    assert second == UserText("And?")
    return first.text


def test_results_of_children_are_told_whole_while_they_fit() -> None:
    told = told_children(2, 16_000)
    assert "ses_1 “Part 1”, completed:\nAnswer 1. " + "x" * 16_000 in told
    assert CUT not in told


def test_however_many_results_came_each_is_named_and_what_was_cut_says_so() -> None:
    told = told_children(32, 16_000)
    assert len(told) <= TEXT_MAX_CHARACTERS
    for number in range(32):
        assert f"ses_{number} “Part {number}”, completed:\nAnswer {number}. x" in told
    assert told.count(CUT) == 32


def test_of_too_many_results_the_newest_are_told_and_how_many_there_were() -> None:
    told = told_children(3_000, 16_000, title="é" * 120)
    assert len(told) <= TEXT_MAX_CHARACTERS
    assert "ses_2999" in told
    assert "[2750 earlier results are not shown here]" in told
    assert told.count("Answer ") == 250


def test_a_result_that_was_cut_when_it_came_says_so() -> None:
    assert told_children(1, 10, truncated={"characters": 20_000}).endswith("xxx" + CUT)
    assert told_children(1, 0, text="", error={"message": "No credit."}, status="failed").endswith(
        "failed:\nNo credit."
    )
