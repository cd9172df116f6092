"""Tool calls at the border: what a model wrote in, what a tool gave out, as facts for the log."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from datetime import timedelta
from typing import Any
from uuid import uuid4

import orjson

from core.clock import now, rfc3339
from core.text import make_storable, make_storable_json, redact
from engine.context import OpenCall
from engine.ports import (
    Asked,
    Effect,
    Fact,
    OutcomeUnknown,
    Tool,
    ToolCall,
    ToolContext,
    ToolOutput,
)

NAME_MAX_CHARACTERS = 128
BROKEN_ARGUMENTS = "invalid_json"
OUTCOME_UNKNOWN = (
    "What ran this call was lost before a result could be recorded, so it is not known whether the "
    "call took effect. Look at the present state before you repeat it."
)
_CALL_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")


def tidy_calls(calls: Sequence[ToolCall], *, max_bytes: int) -> list[ToolCall]:
    """The calls of one response with storable texts and an id each, no id twice."""
    tidy: list[ToolCall] = []
    seen: set[str] = set()
    for call in calls:
        call_id = call.call_id
        if not _CALL_ID.fullmatch(call_id) or call_id in seen:
            call_id = f"call_{uuid4().hex}"
        seen.add(call_id)
        name = make_storable(call.name)[:NAME_MAX_CHARACTERS]
        # One byte over the bound is kept, so that the call is still seen to be too large.
        tidy.append(ToolCall(call_id, name, _cut(make_storable(call.arguments), max_bytes + 1)))
    return tidy


def read_arguments(raw: str, *, max_bytes: int) -> tuple[dict[str, Any], str | None]:
    """The arguments as a JSON object, and what is wrong with them in words for the model."""
    if len(raw.encode()) > max_bytes:
        return {BROKEN_ARGUMENTS: _cut(raw, 1_000)}, f"The arguments exceed {max_bytes} bytes."
    try:
        value = _parse(raw.strip() or "{}")
    except (ValueError, TypeError, RecursionError):
        return {BROKEN_ARGUMENTS: raw}, "The arguments are not valid JSON. Send a JSON object."
    if not isinstance(value, dict):
        return {BROKEN_ARGUMENTS: raw}, "The arguments have to be a JSON object."
    return value, None


def _parse(raw: str) -> Any:
    try:
        value = orjson.loads(raw)
    except orjson.JSONDecodeError:
        # The standard parser also takes half a surrogate pair, which is replaced below.
        value = json.loads(raw, parse_constant=_refuse_constant)
    value = make_storable_json(value)
    orjson.dumps(value)
    return value


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def tool_use(
    call: ToolCall,
    following: Sequence[ToolCall],
    *,
    step: int,
    tool: Tool | None,
    allowed_tools: frozenset[str],
    max_bytes: int,
) -> Fact:
    """The record of a call about to run, or of one that people have to allow first.

    The first one of a response carries all that come after it, the others none. A call is in the
    log only once it is about to run, so that recovery can tell one that may have had its effect
    from one never begun.
    """
    arguments, problem = read_arguments(call.arguments, max_bytes=max_bytes)
    # Nobody is asked about a call that cannot run: the model is told what is wrong with it.
    is_sound = tool is not None and problem is None and tool.find_problem(arguments) is None
    asks = tool is not None and tool.spec.policy == "ask" and call.name not in allowed_tools
    payload: dict[str, Any] = {
        "name": call.name,
        "input": arguments,
        "call_id": call.call_id,
        "step": step,
        "evaluated_permission": "ask" if asks and is_sound else "allow",
        "repeatable": tool.spec.repeatable if tool else True,
    }
    if following:
        payload["pending_calls"] = [
            {"call_id": c.call_id, "name": c.name, "arguments": c.arguments} for c in following
        ]
    return Fact("agent.tool_use", payload)


def find_problem(
    call: OpenCall, tool: Tool | None, known: Sequence[str], allowed_tools: frozenset[str]
) -> str | None:
    """Why this call cannot be run at all, in words for the model."""
    if tool is None:
        names = ", ".join(known) or "none"
        return f"There is no tool named {call.name!r} here. Tools: {names}."
    if set(call.arguments) == {BROKEN_ARGUMENTS}:
        return "The arguments are not a JSON object within the size limit. Send a JSON object."
    if (problem := tool.find_problem(call.arguments)) is not None:
        return problem
    if tool.spec.policy == "ask" and not call.is_asked and call.name not in allowed_tools:
        # Its policy, or what it takes, changed since the call was recorded.
        return "This tool needs an approval, and nobody was asked. Call it again."
    return None


async def run_tool(
    tool: Tool, call: OpenCall, context: ToolContext
) -> ToolOutput | Asked | Effect | None:
    """Run the call. Whatever the tool raises becomes an error result; cancellation passes. None:
    nobody knows how it ended.
    """
    try:
        return await tool.run(call.arguments, context)
    except OutcomeUnknown:
        return None
    except Exception as error:  # a tool may raise anything; the turn goes on
        return ToolOutput(f"The tool failed: {type(error).__name__}: {redact(str(error))}", True)


def question(call: OpenCall, asked: Asked) -> Fact:
    """The record of what a call asks people; its result is their answer."""
    expires_at = None
    if asked.expires_in_seconds is not None:
        expires_at = rfc3339(now() + timedelta(seconds=asked.expires_in_seconds))
    payload = {
        "tool_use_id": call.tool_use_id,
        "questions": list(asked.questions),
        "allow_skip": asked.allow_skip,
        "expires_at": expires_at,
    }
    return Fact("agent.question", payload)


def tool_result(
    call: OpenCall, output: ToolOutput | None, *, duration_ms: int, max_bytes: int
) -> Fact:
    """The record of how a call ended; `output` None: nobody knows how it ended."""
    text = make_storable(output.text) if output else OUTCOME_UNKNOWN
    outcome = "unknown" if output is None else "error" if output.is_error else "ok"
    payload: dict[str, Any] = {
        "tool_use_id": call.tool_use_id,
        "call_id": call.call_id,
        "name": call.name,
        "is_error": outcome != "ok",
        "outcome": outcome,
        "duration_ms": duration_ms,
    }
    size = len(text.encode())
    if size > max_bytes:
        payload["truncated"] = {"bytes": size}
        text = _cut(text, max_bytes) + f"\n[The first {max_bytes} of {size} bytes are shown.]"
    payload["content"] = [{"type": "text", "text": text}]
    return Fact("agent.tool_result", payload)


def _cut(text: str, max_bytes: int) -> str:
    """At most so many bytes of UTF-8, never half a character."""
    encoded = text.encode()
    return text if len(encoded) <= max_bytes else encoded[:max_bytes].decode(errors="ignore")


def call_key(turn_id: str, call: OpenCall) -> str:
    """The same in every attempt: what a tool may use as its idempotency key."""
    return f"{turn_id}:{call.step}:{call.call_id}"
