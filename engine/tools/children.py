"""Tools with which an agent delegates to child sessions. Each is one transaction of our own."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from catalog.kinds import ReasoningEffort
from engine.ports import Effect, Tool, ToolContext
from engine.tools.base import Arguments, function_tool
from sessions_app.domain.events import Draft
from sessions_app.domain.vocabulary import AgentAccess, MemoryScope
from sessions_app.models import Session, Turn
from sessions_app.services.calls import Call
from sessions_app.services.children.awaiting import NAMED_MAX, child_result, wait_for_children
from sessions_app.services.children.spawning import NewChild, spawn_child
from sessions_app.services.model_settings import RequestedSettings

# Stands in the tool's own schema, which the model is shown: a constant, not a setting.
TIMEOUT_MAX_SECONDS = 30 * 24 * 3_600


class StartChild(Arguments):
    prompt: str = Field(description="The whole task: the child sees nothing of this session.")
    title: str = Field(default="", description="A few words; longer ones are cut.")
    agent: str = Field(default="", description="Another agent of the workspace, by name or id.")
    model: str = Field(default="", description="Another model than this session's.")
    reasoning_effort: str | None = Field(
        default=None, description=f"One of {', '.join(effort.value for effort in ReasoningEffort)}."
    )
    tools: list[str] | None = Field(
        default=None, max_length=NAMED_MAX, description="Fewer tools than this session has."
    )
    agent_access: str | None = Field(default=None, description="Narrower than this session's.")
    memory_scope: str | None = Field(default=None, description="Narrower than this session's.")


class WaitChildren(Arguments):
    session_ids: list[str] | None = Field(
        default=None,
        min_length=1,
        max_length=NAMED_MAX,
        description="Which child sessions; all that have work if it is left out.",
    )
    timeout_seconds: int | None = Field(
        default=None,
        ge=1,
        le=TIMEOUT_MAX_SECONDS,
        description="Go on then, with the results that are there.",
    )


class AskResult(Arguments):
    session_id: str


def delegation_tools() -> list[Tool]:
    async def start(arguments: StartChild, context: ToolContext) -> Effect:
        """Starts a child session that works on its own, beside this one. Returns at once with its
        id; that it was accepted does not say that it has begun. Its result comes with your next
        prompt, or by session.wait_children."""

        def do(parent: Session, turn: Turn, *, call: Call, attempt: int) -> Draft:
            child = spawn_child(
                parent,
                turn=turn,
                attempt=attempt,
                tool_use_id=call.tool_use_id,
                new=_new_child(arguments),
            )
            return call.result(_accepted(child, arguments))

        return Effect(do)

    async def wait(arguments: WaitChildren, context: ToolContext) -> Effect:
        """Waits until child sessions have their results, and returns them. A child that waits for
        a person is not finished. Waiting costs nothing; do not poll instead."""

        def do(parent: Session, turn: Turn, *, call: Call, attempt: int) -> Draft:
            return wait_for_children(
                parent,
                turn=turn,
                call=call,
                named=arguments.session_ids,
                timeout_seconds=arguments.timeout_seconds,
            )

        return Effect(do)

    async def result(arguments: AskResult, context: ToolContext) -> Effect:
        """Says what became of one child session, without waiting for it."""

        def do(parent: Session, turn: Turn, *, call: Call, attempt: int) -> Draft:
            return child_result(parent, call=call, named=arguments.session_id)

        return Effect(do)

    return [
        function_tool(
            "session.start_child", StartChild, start, repeatable=True, check=_find_problem
        ),
        function_tool("session.wait_children", WaitChildren, wait, repeatable=True),
        function_tool("session.result", AskResult, result, repeatable=True),
    ]


def _accepted(child: Session, arguments: StartChild) -> dict[str, Any]:
    told = {"session_id": child.public_id, "title": child.title, "accepted": True}
    return told | ({"title_clipped": True} if child.title != arguments.title.strip() else {})


def _find_problem(arguments: StartChild) -> str | None:
    scopes: dict[str, Any] = {"agent_access": AgentAccess, "memory_scope": MemoryScope}
    for name, kind in scopes.items():
        value = getattr(arguments, name)
        if value is not None and value not in list(kind):
            return f"The arguments do not fit this tool. {name}: use one of {', '.join(kind)}."
    return None


def _new_child(arguments: StartChild) -> NewChild:
    return NewChild(
        prompt=arguments.prompt,
        title=arguments.title,
        agent=arguments.agent,
        requested=RequestedSettings(
            model=arguments.model, reasoning_effort=arguments.reasoning_effort
        ),
        tools=arguments.tools,
        agent_access=AgentAccess(arguments.agent_access) if arguments.agent_access else None,
        memory_scope=MemoryScope(arguments.memory_scope) if arguments.memory_scope else None,
    )
