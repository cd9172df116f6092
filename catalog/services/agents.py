"""Agents come to be."""

from __future__ import annotations

from uuid import UUID

from catalog.models import Agent

DEFAULT_NAME = "Assistant"
DEFAULT_INSTRUCTIONS = (
    "You are a careful assistant who works with a team. Answer in plain words, say what you did "
    "and what you are unsure of."
)


def get_or_create_default_agent(*, workspace_id: UUID) -> Agent:
    """Every workspace has one; two first sessions at once make one."""
    agent, _ = Agent.objects.get_or_create(
        workspace_id=workspace_id,
        is_default=True,
        defaults={"name": DEFAULT_NAME, "instructions": DEFAULT_INSTRUCTIONS},
    )
    return agent
