"""Who sees a session. `querysets.visible_to` says the same in SQL; a test holds them equal."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from orgs.access import Access, AgentReach
from orgs.roles import Action
from sessions_app.domain.vocabulary import AgentAccess, Visibility


@dataclass(frozen=True, slots=True)
class SessionFacts:
    """`root_id`: of the tree that it is in, its own where it is the root."""

    workspace_id: UUID
    visibility: Visibility
    maker_id: UUID | None
    root_id: UUID
    agent_access: AgentAccess = AgentAccess.WORKSPACE
    end_user: tuple[str, str] | None = None


def admits(access: Access, facts: SessionFacts) -> bool:
    """A private session is its maker's alone, and no key's; without a maker it is nobody's."""
    if not access.may(Action.SESSION_READ, facts.workspace_id):
        return False
    is_shared = facts.visibility is Visibility.WORKSPACE
    if not is_shared and (access.user_id is None or facts.maker_id != access.user_id):
        return False
    return access.agent is None or reaches(access.agent, facts)


def reaches(agent: AgentReach, facts: SessionFacts) -> bool:
    """Whether an agent gets as far as that session. Its own tree always; of others what both sides
    allow. A private one only from where nobody else reads.
    """
    if facts.root_id == agent.root_id:
        return True
    if facts.visibility is Visibility.PRIVATE and not agent.is_private:
        return False
    own, other = AgentAccess(agent.agent_access), facts.agent_access
    if AgentAccess.SESSION in {own, other}:
        return False
    if own is other is AgentAccess.WORKSPACE:
        return True
    return facts.end_user is not None and facts.end_user == agent.end_user
