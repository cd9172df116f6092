"""The payload of each event type, as frozen classes: field names, and what may be left out.

Ids inside payloads are in their public form (`ses_…`), text is as sent.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Json = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Nothing:
    """The type says it all."""


@dataclass(frozen=True, slots=True)
class SessionCreated:
    """`author` made it; `end_user` is {source, id} of a product's own user."""

    title: str
    workspace_id: str
    agent_id: str
    parent_id: str | None
    origin: Json
    visibility: str
    agent_access: str
    memory_scope: str
    model: Json | None
    metadata: Json
    # Always written; logs from before these were added lack them.
    author: Json | None = None
    end_user: Json | None = None


@dataclass(frozen=True, slots=True)
class SessionForked:
    """`source_seq`: the message of the source that was chosen, null where there was none;
    `included`: the history goes up to it and with it, else up to just before it.
    """

    source_session_id: str
    source_seq: int | None
    included: bool
    author: Json


@dataclass(frozen=True, slots=True)
class SessionUpdated:
    """`changes`: the fields that changed, with their new values."""

    changes: Json


@dataclass(frozen=True, slots=True)
class StatusRescheduled:
    """`reason` is {code, message}; `retry_at` RFC 3339 where it is known."""

    reason: Json
    retry_at: str | None = None


@dataclass(frozen=True, slots=True)
class StatusIdle:
    """`stop_reason` is {type, …}."""

    stop_reason: Json


@dataclass(frozen=True, slots=True)
class Error:
    """`error` is {code, message}: a sentence from a fixed table, and the provider's redacted."""

    error: Json


@dataclass(frozen=True, slots=True)
class UserMessage:
    """`content` is blocks {type: text, text}; `author` {type, id, name}."""

    content: Sequence[Json]
    delivery: str
    author: Json
    input: str = "text"
    model: Json | None = None
    reasoning_effort: str | None = None
    speed: str | None = None


@dataclass(frozen=True, slots=True)
class UserInterrupt:
    author: Json


@dataclass(frozen=True, slots=True)
class By:
    """Who did it."""

    author: Json


@dataclass(frozen=True, slots=True)
class VisibilityChanged:
    """`visibility`: workspace or private, from here on; `author` decided it."""

    visibility: str
    author: Json


@dataclass(frozen=True, slots=True)
class Held:
    """`place`: the id of the session or workspace at which it was said; `author` who said it."""

    place: str
    author: Json


@dataclass(frozen=True, slots=True)
class ToolConfirmation:
    """`result` allow or deny; `scope` once, or session: this tool asks no more in this session."""

    tool_use_id: str
    tool_name: str
    result: str
    author: Json
    scope: str = "once"
    deny_message: str | None = None


@dataclass(frozen=True, slots=True)
class QuestionResponse:
    """`question_id` is the id of the agent.question event; `answers` by the questions' own ids."""

    question_id: str
    tool_use_id: str
    answers: Json
    skip: bool
    author: Json


@dataclass(frozen=True, slots=True)
class TurnQueued:
    """`retry_of`: the failed turn whose prompt this is again."""

    number: int
    held: bool
    retry_of: str | None = None


@dataclass(frozen=True, slots=True)
class TurnCancelled:
    """`reason`: empty for Stop and Cancel; forked, where the history of a fork ends in a turn."""

    reason: str = ""


@dataclass(frozen=True, slots=True)
class TurnSuperseded:
    """`by`: the turn that takes its place."""

    by: str


@dataclass(frozen=True, slots=True)
class TurnWithdrawn:
    """`reason`: edited, deleted or archived."""

    reason: str
    author: Json


@dataclass(frozen=True, slots=True)
class TurnEdited:
    """The new wording of a prompt that was taken out of the queue, at its old place."""

    replaces: str


@dataclass(frozen=True, slots=True)
class QueueChanged:
    """`change`: moved or promoted; `position` of the turn afterwards, from 1."""

    version: int
    change: str
    position: int
    author: Json


@dataclass(frozen=True, slots=True)
class TurnStarted:
    """`model` is {provider_id, model_id, variant, display_name}; `model_reason` who chose it."""

    number: int
    model: Json
    reasoning_effort: str | None
    speed: str
    model_reason: str


@dataclass(frozen=True, slots=True)
class TurnRecovering:
    """`reason`: worker_lost, worker_stopped or paused; `losses` in a row so far."""

    reason: str
    losses: int


@dataclass(frozen=True, slots=True)
class TurnWaiting:
    """`event_ids`: the events that ask people, as in the stop reason of the session; `child_ids`:
    the child sessions whose results it waits for, each once.
    """

    event_ids: Sequence[str]
    child_ids: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class AttemptEnded:
    outcome: str


@dataclass(frozen=True, slots=True)
class StepCheckpoint:
    step: int
    directory: str | None
    model: Json


@dataclass(frozen=True, slots=True)
class Delta:
    message_id: str
    text: str


@dataclass(frozen=True, slots=True)
class Thinking:
    message_id: str
    text: str
    duration_ms: int
    model: Json | None = None


@dataclass(frozen=True, slots=True)
class AgentMessage:
    """`interrupted`: the text ends where someone stopped it."""

    message_id: str
    content: Sequence[Json]
    model: Json
    interrupted: bool = False


@dataclass(frozen=True, slots=True)
class ToolUse:
    """`call_id` is the model's own; `repeatable`: safe to run again after a crash.

    A call is recorded when it is about to run. `pending_calls`, with the first call of a response
    alone: those that come after it, as {call_id, name, arguments}, so that a crash between two
    loses none.
    """

    name: str
    input: Json
    call_id: str
    step: int
    evaluated_permission: str
    repeatable: bool
    pending_calls: Sequence[Json] = ()


@dataclass(frozen=True, slots=True)
class ToolStarted:
    """An approved call begins to run: from here on its effect may have happened."""

    tool_use_id: str


@dataclass(frozen=True, slots=True)
class Question:
    """`questions` as `domain.questions` writes them; `expires_at` RFC 3339."""

    tool_use_id: str
    questions: Sequence[Json]
    allow_skip: bool
    expires_at: str | None = None


@dataclass(frozen=True, slots=True)
class QuestionClosed:
    """`outcome`: answered, skipped, expired or cancelled."""

    question_id: str
    tool_use_id: str
    outcome: str


@dataclass(frozen=True, slots=True)
class ToolResult:
    """`tool_use_id` is the id of the agent.tool_use event.

    `outcome`: ok, error, unknown; denied or expired by whom it waited for; cancelled, not run.
    `child_result_ids`: the child.result events that it tells the model.
    """

    tool_use_id: str
    call_id: str
    name: str
    content: Sequence[Json]
    is_error: bool
    outcome: str
    duration_ms: int | None = None
    truncated: Json | None = None
    child_result_ids: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class ChildStarted:
    """`prompt_text`: the beginning of its first prompt; `tool_use_id`: the call that started it,
    None where a person or key did.
    """

    child_id: str
    title: str
    prompt_text: str
    author: Json
    tool_use_id: str | None = None


@dataclass(frozen=True, slots=True)
class ChildAwaited:
    """A call waits for the results of these child sessions; `expires_at` RFC 3339."""

    tool_use_id: str
    child_ids: Sequence[str]
    expires_at: str | None = None


@dataclass(frozen=True, slots=True)
class ChildResult:
    """What a child session came to: the outcome of its last turn, once its queue was empty.

    `status` completed, failed or cancelled; `text` its final message, cut to
    CHILD_RESULT_MAX_CHARACTERS; `child_turn_id` and `number` the turn, by its id and
    by its place among the child's turns. It belongs to no turn of the parent.
    """

    child_id: str
    title: str
    child_turn_id: str
    number: int
    status: str
    text: str
    error: Json | None = None
    truncated: Json | None = None


@dataclass(frozen=True, slots=True)
class ModelUsage:
    input_tokens: int
    output_tokens: int
    model: Json
    step: int
