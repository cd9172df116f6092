"""A tool written as a function: its arguments are a model class, checked before it runs."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from engine.database import CONNECTION_ERRORS, Pauses, database_answers
from engine.logs import get_logger
from engine.ports import Asked, Effect, OutcomeUnknown, ToolContext, ToolOutput, ToolSpec

log = get_logger(__name__)
PROBLEMS_TOLD = 5
# Of one call, while the database answers.
REPEATS_MAX = 4


class Arguments(BaseModel):
    """The arguments of a tool: exactly the named fields, no guessing of types."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


A = TypeVar("A", bound=Arguments)
R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class FunctionTool(Generic[A]):
    spec: ToolSpec
    arguments: type[A]
    function: Callable[[A, ToolContext], Awaitable[ToolOutput | Asked | Effect]]
    # What the class of the arguments cannot say: a problem in words, or None.
    check: Callable[[A], str | None] | None = None

    def find_problem(self, arguments: Mapping[str, Any]) -> str | None:
        try:
            valid = self.arguments.model_validate(arguments)
        except ValidationError as error:
            found = error.errors(include_url=False, include_input=False)[:PROBLEMS_TOLD]
            told = "; ".join(
                f"{'.'.join(map(str, item['loc'])) or 'arguments'}: {item['msg']}" for item in found
            )
            return f"The arguments do not fit this tool. {told}"
        return self.check(valid) if self.check else None

    async def run(
        self, arguments: Mapping[str, Any], context: ToolContext
    ) -> ToolOutput | Asked | Effect:
        """An outage of our own database is no failure of the tool: it is waited out, and the call
        run again if that does no harm. What fails like this while the database answers, again and
        again, is one.
        """
        valid = self.arguments.model_validate(arguments)
        pauses = Pauses()
        repeats = 0
        while True:
            try:
                return await self.function(valid, context)
            except CONNECTION_ERRORS as error:
                log.warning("tool_met_outage", tool=self.spec.name, error=type(error).__name__)
                if not self.spec.repeatable:
                    raise OutcomeUnknown from error
                if repeats == REPEATS_MAX:
                    raise
            await pauses.wait()
            repeats += await database_answers()


def function_tool(
    name: str,
    arguments: type[A],
    function: Callable[[A, ToolContext], Awaitable[ToolOutput | Asked | Effect]],
    *,
    repeatable: bool,
    policy: Literal["allow", "ask"] = "allow",
    check: Callable[[A], str | None] | None = None,
) -> FunctionTool[A]:
    """The tool's description for the model is the function's docstring."""
    schema = arguments.model_json_schema()
    schema.pop("title", None)
    schema.pop("description", None)
    description = " ".join((function.__doc__ or "").split())
    return FunctionTool(
        ToolSpec(name, description, schema, repeatable, policy), arguments, function, check
    )


async def finish_in_thread(func: Callable[[], R]) -> R:
    """Blocking work that cannot be stopped half-way: a cancellation waits for its end."""
    work = asyncio.ensure_future(asyncio.to_thread(func))
    try:
        return await asyncio.shield(work)
    except asyncio.CancelledError:
        await asyncio.wait({work})
        raise
