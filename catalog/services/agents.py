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
    """Every workspace has one; two first sessions at once make one.

    Where an operator left none, the one that has the default's name becomes it again.
    """
    found = Agent.objects.filter(workspace_id=workspace_id, is_default=True).first()
    if found is not None:
        return found
    agent, _ = Agent.objects.get_or_create(
        workspace_id=workspace_id,
        name=DEFAULT_NAME,
        defaults={"is_default": True, "instructions": DEFAULT_INSTRUCTIONS},
    )
    if not agent.is_default:
        agent.is_default = True
        agent.save(update_fields=["is_default"])
    return agent
