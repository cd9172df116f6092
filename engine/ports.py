"""What the step loop needs from the world, as plain Python: no Django, no provider package.

The loop stands between four ports: a `Provider` streams one model response, a `Tool` does one
call, a `TurnLog` reads and writes the durable log of the turn under its lease, a `Clock` waits.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Literal, Protocol, TypeAlias

# ------------------------------------------------------------------------------ what happened


@dataclass(frozen=True, slots=True)
class Fact:
    """An event not yet in the log: its type and its payload as JSON values."""

    type: str
    payload: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class LogEvent:
    """An event of the session's log; `body` is the whole wire form, envelope included."""

    seq: int
    type: str
    turn_id: str | None
    body: Mapping[str, Any]


class Fenced(Exception):
    """The attempt is no longer the live one: it may write nothing and has to stop."""


# ------------------------------------------------------------- history, neutral to the provider


@dataclass(frozen=True, slots=True)
class UserText:
    text: str


@dataclass(frozen=True, slots=True)
class CallMade:
    """A tool call of a past response; `arguments` is a JSON object."""

    call_id: str
    name: str
    arguments: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class AgentReply:
    """One past model response. `thinking` is there only if the present provider wrote it."""

    text: str
    thinking: str = ""
    calls: tuple[CallMade, ...] = ()
    interrupted: bool = False


@dataclass(frozen=True, slots=True)
class ToolReturn:
    """Follows the reply that made the call: every call in a history has exactly one."""

    call_id: str
    name: str
    text: str
    is_error: bool = False


HistoryItem: TypeAlias = UserText | AgentReply | ToolReturn


# -------------------------------------------------------------------------------- the provider


@dataclass(frozen=True, slots=True)
class ModelChoice:
    """Which model answers a step; `provider_id` is the provider's slug in its organization."""

    provider_id: str
    model_id: str
    reasoning_effort: str | None = None
    speed: str = "standard"


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """What a model is told about a tool and what recovery may do with it.

    `name` has dots; a provider whose wire refuses them translates both ways. `parameters` is a
    JSON schema. `repeatable`: running it twice does no more than once (it only reads, or it takes
    the call id as its idempotency key).
    """

    name: str
    description: str
    parameters: Mapping[str, Any]
    repeatable: bool
    policy: Literal["allow", "ask"] = "allow"


@dataclass(frozen=True, slots=True)
class TurnPosition:
    """Where the turn stands, counted from its log over all attempts.

    `responses`: complete model responses; `failures`: provider failures that led to a retry;
    `recent_failures`: those since the last complete response.
    """

    responses: int = 0
    failures: int = 0
    recent_failures: int = 0


@dataclass(frozen=True, slots=True)
class ModelRequest:
    model: ModelChoice
    instructions: str
    history: tuple[HistoryItem, ...]
    tools: tuple[ToolSpec, ...]
    position: TurnPosition


@dataclass(frozen=True, slots=True)
class TextDelta:
    text: str


@dataclass(frozen=True, slots=True)
class ThinkingDelta:
    text: str


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call as the model wrote it: `arguments` is raw text and may be no JSON at all."""

    call_id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class Usage:
    input_tokens: int
    output_tokens: int


@dataclass(frozen=True, slots=True)
class Finish:
    """The response is complete. A stream that ends without it was cut off and does not count."""

    reason: str


StreamPart: TypeAlias = TextDelta | ThinkingDelta | ToolCall | Usage | Finish


class ProviderError(Exception):
    """A model request failed.

    `code` is one of `engine.failures.SENTENCES`; `reason` is the provider's own words, already
    redacted and cut; `retry_after` in seconds, if the provider named it.
    """

    def __init__(
        self,
        code: str,
        reason: str = "",
        *,
        retryable: bool,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(code)
        self.code = code
        self.reason = reason
        self.retryable = retryable
        self.retry_after = retry_after


class Provider(Protocol):
    def stream(self, request: ModelRequest) -> AsyncGenerator[StreamPart, None]:
        """One response. Raises ProviderError; closing the generator ends the request at once."""

    async def aclose(self) -> None: ...


# ----------------------------------------------------------------------------------- the tools


@dataclass(frozen=True, slots=True)
class ToolContext:
    """For whom a call runs. `call_key` is the same in every attempt: an idempotency key;
    `tool_use_id` is the event that records the call.
    """

    session_id: str
    turn_id: str
    call_id: str
    call_key: str
    tool_use_id: str = ""


@dataclass(frozen=True, slots=True)
class ToolOutput:
    text: str
    is_error: bool = False


@dataclass(frozen=True, slots=True)
class Asked:
    """A tool's questions for people, instead of an output; their answers become its result.

    `questions` as `sessions_app.domain.questions` writes them.
    """

    questions: tuple[Mapping[str, Any], ...]
    allow_skip: bool = False
    expires_in_seconds: int | None = None


@dataclass(frozen=True, slots=True)
class Effect:
    """A change of our own database, instead of an output: it is committed together with what the
    log says of the call, or not at all. `do` is called with what the turn log gives it: the held
    session and its turn; `call` and `attempt` by name. It returns the draft that the log gets.
    """

    do: Callable[..., Any]


class OutcomeUnknown(Exception):
    """What a tool works on was lost in mid-call, so nobody knows whether the call took effect."""


class Tool(Protocol):
    @property
    def spec(self) -> ToolSpec: ...

    def find_problem(self, arguments: Mapping[str, Any]) -> str | None:
        """What is wrong with the arguments, in words for the model; None if nothing is."""

    async def run(
        self, arguments: Mapping[str, Any], context: ToolContext
    ) -> ToolOutput | Asked | Effect:
        """Do it. After cancellation it must have stopped for good when it returns. Raises
        OutcomeUnknown; anything else that it raises is told to the model as its failure.
        """


class ToolBox(Protocol):
    def offered(self, model: ModelChoice) -> Sequence[ToolSpec]: ...

    def find(self, name: str, model: ModelChoice) -> Tool | None:
        """The tool, if it is offered to this model."""


class Providers(Protocol):
    async def connect(self, model: ModelChoice) -> Provider:
        """The provider that serves the model. Raises ProviderError."""


# ------------------------------------------------------------------------------------- the log


class DeltaKind(StrEnum):
    THINKING = "agent.thinking_delta"
    MESSAGE = "agent.message_delta"


class TurnLog(Protocol):
    """The durable side of one attempt. Every method but `read` raises Fenced when it is stale."""

    async def read(self, after: int = 0) -> Sequence[LogEvent]:
        """What a model's context is made from, beyond the seq `after`."""

    async def open_step(self, step: int) -> ModelChoice:
        """The checkpoint before a model request: the settings in force from here on."""

    async def delta(self, kind: DeltaKind, message_id: str, text: str) -> None:
        """Returns at once, the text is written with the next flush; waits only when full."""

    async def record(self, facts: Sequence[Fact]) -> Sequence[LogEvent]:
        """Write all or none, after the deltas given before; returns them as they are logged."""

    async def apply(self, effect: Effect, context: ToolContext, name: str) -> None:
        """Do it once for this call of the tool `name`, whatever outages say; then `read` again."""

    async def suspend(self) -> bool:
        """The turn waits for people or children and this attempt is over; False: nothing is open
        any more.
        """

    async def settle(self) -> None:
        """Returns when every delta given so far is in the log."""

    async def mark_rescheduling(self, code: str, reason: str, retry_after_seconds: float) -> None:
        """The turn waits for its provider. `reason`: the provider's own words, redacted."""

    async def mark_running(self) -> None: ...


class Clock(Protocol):
    def monotonic(self) -> float: ...

    async def sleep(self, seconds: float) -> None: ...


# ------------------------------------------------------------------------------- how it ends


@dataclass(frozen=True, slots=True)
class Completed:
    """The model answered without asking for a tool."""


@dataclass(frozen=True, slots=True)
class Failed:
    code: str
    message: str


@dataclass(frozen=True, slots=True)
class HandedOver:
    """The worker is stopping; the next attempt goes on from the log."""


@dataclass(frozen=True, slots=True)
class Waiting:
    """Only people or children can go on with it. `suspend` has ended the attempt."""


Outcome: TypeAlias = Completed | Failed | HandedOver | Waiting


class Tenure:
    """Whether the turn is surely still this attempt's. In doubt nothing may begin, nor go on, that
    another attempt might do a second time.
    """

    def __init__(self) -> None:
        self._sure = asyncio.Event()
        self._sure.set()
        self._doubted = asyncio.Event()

    @property
    def is_sure(self) -> bool:
        return self._sure.is_set()

    def doubt(self) -> None:
        self._sure.clear()
        self._doubted.set()

    def confirm(self) -> None:
        self._doubted.clear()
        self._sure.set()

    async def until_sure(self) -> None:
        await self._sure.wait()

    async def until_doubted(self) -> None:
        await self._doubted.wait()


@dataclass(frozen=True, slots=True)
class TurnTask:
    """What the loop is asked to do. `stop` set: end at the next place that loses nothing."""

    session_id: str
    turn_id: str
    instructions: str
    stop: asyncio.Event = field(default_factory=asyncio.Event)
    tenure: Tenure = field(default_factory=Tenure)
