"""From the log to what a model is sent, and to where a turn stands. Nothing here is remembered.

The same fold serves the next step of a running attempt and the first step of an attempt that goes
on after a dead one: whatever is not in the log did not happen.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from core.text import clip
from engine.ports import (
    AgentReply,
    CallMade,
    HistoryItem,
    LogEvent,
    ModelChoice,
    ToolCall,
    ToolReturn,
    TurnPosition,
    UserText,
)

TEXT_MAX_CHARACTERS = 200_000
HISTORY_MAX_CHARACTERS = 800_000
LEFT_OUT = "[Earlier messages of this session are not shown here.]"
CHILD_RESULTS = "[Results of child sessions, which came in since the last turn]"
CHILDREN_TOLD_MAX = 250  # so that each has some hundred characters
ASK_FOR_THEM = "Ask for each with its session id."
CUT = " [cut; the whole text is in the child session]"
NO_RESULT = "This call was abandoned before it had a result. Look before you repeat it."


@dataclass(frozen=True, slots=True)
class OpenCall:
    """A call in the log without its result: it may have had its effect, or not.

    `is_asked`: it needed an approval. `waits`: for that, or for the answer to its question.
    `is_started`: it was approved, and its run began.
    """

    tool_use_id: str
    call_id: str
    name: str
    arguments: Mapping[str, Any]
    step: int
    is_asked: bool = False
    waits: bool = False
    is_started: bool = False


@dataclass(frozen=True, slots=True)
class TurnState:
    """Where the turn stands.

    `open_calls` have no result; `pending_calls` were asked for by the last response and not begun;
    `is_answered`: the last response asked for nothing, so the turn is complete; `asked_by`: the
    model of the last response; `allowed_tools` need no approval in this session any more.
    """

    position: TurnPosition
    open_calls: tuple[OpenCall, ...]
    pending_calls: tuple[ToolCall, ...]
    is_answered: bool
    asked_by: ModelChoice | None
    allowed_tools: frozenset[str] = frozenset()

    @property
    def runnable_call(self) -> OpenCall | None:
        """The next open call that waits for nobody."""
        return next((call for call in self.open_calls if not call.waits), None)

    @property
    def is_waiting(self) -> bool:
        """Nothing is left to do before people have decided."""
        return bool(self.open_calls) and not (self.runnable_call or self.pending_calls)

    @property
    def step(self) -> int:
        """The number of the step whose model request comes next."""
        return self.position.responses + 1


@dataclass(slots=True)
class _Call:
    tool_use_id: str
    call_id: str
    made: CallMade
    step: int
    is_asked: bool = False
    waits: bool = False
    is_started: bool = False
    result: ToolReturn | None = None


@dataclass(slots=True)
class _Response:
    text: str
    thinking: str
    calls: list[_Call] = field(default_factory=list)
    pending: list[ToolCall] = field(default_factory=list)
    interrupted: bool = False
    model: ModelChoice | None = None


@dataclass(slots=True)
class _Turn:
    prompts: list[str] = field(default_factory=list)
    # Of child sessions, come since the turn before; no call has told them.
    child_results: list[Mapping[str, Any]] = field(default_factory=list)
    responses: list[_Response] = field(default_factory=list)
    complete: int = 0
    failures: int = 0
    recent_failures: int = 0
    # What the present response has sealed so far, until its `model.usage` closes it.
    text: str = ""
    thinking: str = ""


def fold(
    events: Iterable[LogEvent], *, turn_id: str, provider_id: str
) -> tuple[tuple[HistoryItem, ...], TurnState]:
    """The history to send and the state of turn `turn_id`; events in the order of `seq`."""
    prompts: dict[str, list[str]] = {}
    turns: dict[str, _Turn] = {}
    allowed: set[str] = set()
    untold: dict[str, Mapping[str, Any]] = {}
    for event in events:
        if event.type == "child.result":
            untold[str(event.body.get("id"))] = event.body
            continue
        if event.turn_id is None:
            continue
        if event.type == "user.message":
            prompts.setdefault(event.turn_id, []).append(_text_of(event.body))
        elif event.type == "turn.started":
            turns.setdefault(event.turn_id, _Turn()).child_results = list(untold.values())
            untold.clear()
        elif event.type == "user.tool_confirmation" and event.body.get("scope") == "session":
            allowed.add(str(event.body.get("tool_name")))
            _decide_call(turns.get(event.turn_id, _Turn()), event.body)
        elif (turn := turns.get(event.turn_id)) is not None:
            for told in event.body.get("child_result_ids") or ():
                untold.pop(told, None)
            _apply(turn, event, provider_id)
    current = turns.setdefault(turn_id, _Turn())
    for key, turn in turns.items():
        turn.prompts = prompts.get(key, [])
    return _history(turns, turn_id), _state(current, frozenset(allowed))


def _apply(turn: _Turn, event: LogEvent, provider_id: str) -> None:
    body = event.body
    match event.type:
        case "step.checkpoint" | "attempt.started":
            turn.text = turn.thinking = ""
        case "agent.thinking":
            turn.thinking = str(body.get("text", ""))
        case "agent.message" if body.get("interrupted"):
            turn.responses.append(_Response(_text_of(body), "", interrupted=True))
        case "agent.message":
            turn.text = _text_of(body)
        case "model.usage":
            named = body.get("model") or {}
            model = ModelChoice(str(named.get("provider_id")), str(named.get("model_id")))
            thinking = turn.thinking if model.provider_id == provider_id else ""
            turn.responses.append(_Response(turn.text, thinking, model=model))
            turn.text = turn.thinking = ""
            turn.complete += 1
            turn.recent_failures = 0
        case "agent.tool_use":
            _begin_call(turn, body)
        case "user.tool_confirmation":
            _decide_call(turn, body)
        case "agent.tool_started" | "agent.question" | "child.awaited":
            _mark_call(turn, event.type, body)
        case "agent.tool_result":
            _end_call(turn, body)
        case "session.status_rescheduled":
            # Rescheduled after a lost worker is not the provider's doing.
            if str((body.get("reason") or {}).get("code", "")).startswith("provider_"):
                turn.failures += 1
                turn.recent_failures += 1


def _begin_call(turn: _Turn, body: Mapping[str, Any]) -> None:
    if not turn.responses or turn.responses[-1].interrupted:
        turn.responses.append(_Response("", ""))
    response = turn.responses[-1]
    call_id = str(body.get("call_id", ""))
    arguments = body.get("input")
    # Models repeat their call ids from turn to turn, and some providers refuse that in a history.
    made = CallMade(
        f"call_{body.get('seq', 0)}",
        str(body.get("name", "")),
        arguments if isinstance(arguments, dict) else {},
    )
    is_asked = body.get("evaluated_permission") == "ask"
    response.calls.append(
        _Call(
            str(body.get("id", "")),
            call_id,
            made,
            int(body.get("step") or 0),
            is_asked,
            waits=is_asked,
        )
    )
    if len(response.calls) == 1:
        response.pending = [
            ToolCall(
                str(pending.get("call_id", "")),
                str(pending.get("name", "")),
                str(pending.get("arguments", "")),
            )
            for pending in body.get("pending_calls") or ()
        ]
    elif response.pending and response.pending[0].call_id == call_id:
        # They begin in their order; an id alone would not tell, for models repeat theirs.
        del response.pending[0]


def _find_call(turn: _Turn, body: Mapping[str, Any]) -> _Call | None:
    """The call that an event is about."""
    tool_use_id = body.get("tool_use_id")
    for response in reversed(turn.responses):
        for call in response.calls:
            if call.tool_use_id == tool_use_id:
                return call
    return None


def _decide_call(turn: _Turn, body: Mapping[str, Any]) -> None:
    """Allowed: it may run. A denied one has its result at the same moment."""
    if (call := _find_call(turn, body)) is not None and body.get("result") == "allow":
        call.waits = False


def _mark_call(turn: _Turn, kind: str, body: Mapping[str, Any]) -> None:
    if (call := _find_call(turn, body)) is None:
        return
    if kind == "agent.tool_started":
        call.is_started = True
    else:
        call.waits = True


def _end_call(turn: _Turn, body: Mapping[str, Any]) -> None:
    if (call := _find_call(turn, body)) is not None:
        is_error = bool(body.get("is_error"))
        call.result = ToolReturn(call.made.call_id, call.made.name, _text_of(body), is_error)


def _state(turn: _Turn, allowed: frozenset[str]) -> TurnState:
    open_calls = [
        OpenCall(
            call.tool_use_id,
            call.call_id,
            call.made.name,
            call.made.arguments,
            call.step,
            call.is_asked,
            call.waits,
            call.is_started,
        )
        for response in turn.responses
        for call in response.calls
        if call.result is None
    ]
    complete = [response for response in turn.responses if not response.interrupted]
    last = complete[-1] if complete else None
    return TurnState(
        position=TurnPosition(turn.complete, turn.failures, turn.recent_failures),
        open_calls=tuple(open_calls),
        pending_calls=tuple(last.pending) if last else (),
        is_answered=last is not None and not last.calls and not last.pending,
        asked_by=last.model if last else None,
        allowed_tools=allowed,
    )


def _history(turns: Mapping[str, _Turn], turn_id: str) -> tuple[HistoryItem, ...]:
    """The newest turns that fit, the present one always whole."""
    current = list(_items(turns[turn_id]))
    room = HISTORY_MAX_CHARACTERS - _size(current)
    kept: list[list[HistoryItem]] = [current]
    earlier = [turn for key, turn in turns.items() if key != turn_id]
    for turn in reversed(earlier):
        items = list(_items(turn))
        room -= _size(items)
        if room < 0:
            kept.append([UserText(LEFT_OUT)])
            break
        kept.append(items)
    return tuple(item for items in reversed(kept) for item in items)


def _told_children(results: Sequence[Mapping[str, Any]]) -> str:
    """All that came in together, in one text: each child by name, its words as far as they fit.
    Of too many the newest, and how many there are beside them.
    """
    newest = results[-CHILDREN_TOLD_MAX:]
    parts = [_told_child(result) for result in newest]
    if left_out := len(results) - len(newest):
        parts.insert(0, (f"[{left_out} earlier results are not shown here]", ASK_FOR_THEM))
    room = TEXT_MAX_CHARACTERS - len(CHILD_RESULTS)
    if sum(_taken(head) + len(said) for head, said in parts) > room:
        parts = [_within(room // len(parts), head, said) for head, said in parts]
    return "\n\n".join([CHILD_RESULTS, *(f"{head}\n{said}" for head, said in parts)])


def _told_child(result: Mapping[str, Any]) -> tuple[str, str]:
    """Its heading, and what it said."""
    error = (result.get("error") or {}).get("message", "")
    said = str(result.get("text") or "") or error or "(no text)"
    title = f" “{result['title']}”" if result.get("title") else ""
    mark = CUT if result.get("truncated") else ""
    return f"{result.get('child_id')}{title}, {result.get('status')}:", said + mark


def _taken(head: str) -> int:
    """Characters of a part beside what was said."""
    return len(f"\n\n{head}\n{CUT}")


def _within(room: int, head: str, said: str) -> tuple[str, str]:
    room -= _taken(head)
    return head, said if len(said) <= room else clip(said, max(room, 1)) + CUT


def _items(turn: _Turn) -> Iterable[HistoryItem]:
    if turn.child_results:
        yield UserText(_told_children(turn.child_results))
    for prompt in turn.prompts:
        yield UserText(clip(prompt, TEXT_MAX_CHARACTERS))
    for response in turn.responses:
        if not (response.text or response.calls):
            continue
        yield AgentReply(
            text=clip(response.text, TEXT_MAX_CHARACTERS),
            thinking=clip(response.thinking, TEXT_MAX_CHARACTERS),
            calls=tuple(call.made for call in response.calls),
            interrupted=response.interrupted,
        )
        for call in response.calls:
            # Real providers refuse a history in which a call has no answer.
            yield call.result or ToolReturn(call.made.call_id, call.made.name, NO_RESULT, True)


def _size(items: Sequence[HistoryItem]) -> int:
    total = 0
    for item in items:
        total += len(item.text)
        if isinstance(item, AgentReply):
            total += len(item.thinking) + sum(len(str(call.arguments)) for call in item.calls)
    return total


def _text_of(body: Mapping[str, Any]) -> str:
    """The text of a `content` list; empty where the content was cleared."""
    content = body.get("content")
    if isinstance(content, str):
        return content
    blocks = content if isinstance(content, list) else []
    return "\n\n".join(
        str(block.get("text", "")) for block in blocks if block.get("type") == "text"
    )
