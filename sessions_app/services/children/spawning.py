"""An agent starts a child: on behalf of whoever's prompt its turn works on, as they may now."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from django.conf import settings

from core.errors import Forbidden
from core.text import clip
from orgs.access import Access, AgentReach
from orgs.principals import access_of
from orgs.roles import WorkspaceKind
from sessions_app.domain.vocabulary import AgentAccess, MemoryScope, Visibility
from sessions_app.models import Session, Turn
from sessions_app.services.children.starting import AgentCall
from sessions_app.services.model_settings import RequestedSettings
from sessions_app.services.sessions import NewSession, create_session
from sessions_app.services.turns import Prompt


@dataclass(frozen=True, slots=True)
class NewChild:
    """What the agent asks for; what it leaves out is the parent's."""

    prompt: str
    title: str = ""
    agent: str = ""
    requested: RequestedSettings = field(default_factory=RequestedSettings)
    tools: Sequence[str] | None = None
    agent_access: AgentAccess | None = None
    memory_scope: MemoryScope | None = None


def spawn_child(
    parent: Session, *, turn: Turn, attempt: int, tool_use_id: str, new: NewChild
) -> Session:
    """A child with its first prompt, for a live attempt that holds the parent.

    Raises what `create_session` does, Forbidden `initiator_gone`.
    """
    call = AgentCall(author_of(parent), turn.pk, attempt, tool_use_id)
    return create_session(
        access=agent_access(parent, turn=turn),
        new=NewSession(
            workspace_id=parent.workspace_id,
            parent_id=parent.pk,
            agent=new.agent,
            title=clip(new.title.strip(), settings.TITLE_MAX_CHARACTERS),
            requested=new.requested,
            tools=new.tools,
            agent_access=new.agent_access,
            memory_scope=new.memory_scope,
            prompts=[Prompt(new.prompt, by_agent=call.author)],
            by_agent=call,
        ),
    )


def agent_access(session: Session, *, turn: Turn) -> Access:
    """What the session's agent may do now: no more than the person or key behind its turn, and no
    further than the session allows. Raises Forbidden `initiator_gone`.
    """
    access = access_of(user_id=turn.author_id, key_id=turn.author_key_id)
    if access is None or session.workspace_id not in access.grants:
        raise Forbidden(
            "initiator_gone", "Whoever sent this turn's prompt may act here no more; stop here."
        )
    return access.as_agent(_reach(session, access))


def _reach(session: Session, access: Access) -> AgentReach:
    is_personal = access.grants[session.workspace_id].kind is WorkspaceKind.PERSONAL
    return AgentReach(
        workspace_id=session.workspace_id,
        root_id=session.root_id or session.pk,
        agent_access=session.agent_access,
        end_user=(session.end_user_source, session.end_user_id) if session.end_user_id else None,
        is_private=is_personal or session.visibility == Visibility.PRIVATE,
    )


def author_of(session: Session) -> dict[str, Any]:
    """The agent of a session, as the author of what it writes elsewhere."""
    name = session.agent_snapshot.get("name") or "Agent"
    return {"type": "agent", "id": session.public_id, "name": name}
