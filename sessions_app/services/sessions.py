"""Sessions come to be and are configured."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from django.db import transaction

from catalog.models import Agent
from catalog.selectors import find_agent
from catalog.services import get_or_create_default_agent
from core.errors import Forbidden, InvalidInput, NotFound
from core.ids import Prefix, encode_id
from orgs.access import Access
from orgs.models import Organization
from orgs.roles import Action
from sessions_app import eventlog
from sessions_app.creation import tell_created
from sessions_app.domain.end_user import EndUser
from sessions_app.domain.events import Draft
from sessions_app.domain.inheritance import Asked, Reach, child_reach, root_reach
from sessions_app.domain.projection import preview
from sessions_app.domain.settings import PartialSettings
from sessions_app.domain.vocabulary import (
    AGENT_ORIGIN_TYPE,
    DEFAULT_ORIGIN_TYPE,
    AgentAccess,
    MemoryScope,
    TitleSource,
    Visibility,
)
from sessions_app.models import PersonalState, Session
from sessions_app.selectors import Lock, get_session
from sessions_app.services.children.starting import (
    AgentCall,
    hold_for_child,
    place_below,
    reach_of,
    settings_of,
    tell_parent,
    tools_below,
)
from sessions_app.services.model_settings import (
    RequestedSettings,
    effective_settings,
    label_of,
    resolve_request,
)
from sessions_app.services.turns import Prompt, submit_to
from sessions_app.services.validation import require_metadata, require_origin, require_title
from sessions_app.wire import author_json, end_user_json, model_json


@dataclass(frozen=True, slots=True)
class NewSession:
    """`agent` is an id, a name, or empty for the workspace's default; a child's default is its
    parent's. What is None of the frozen fields is the widest, or a child's parent's.
    """

    workspace_id: UUID
    parent_id: UUID | None = None
    agent: str = ""
    title: str = ""
    origin: Mapping[str, Any] | None = None
    visibility: Visibility | None = None
    agent_access: AgentAccess | None = None
    memory_scope: MemoryScope | None = None
    end_user: EndUser | None = None
    tools: Sequence[str] | None = None
    by_agent: AgentCall | None = None
    metadata: Mapping[str, str] = field(default_factory=dict)
    requested: RequestedSettings = field(default_factory=RequestedSettings)
    prompts: Sequence[Prompt] = ()

    @property
    def names_agent(self) -> bool:
        return self.agent not in {"", "default"}


@dataclass(frozen=True, slots=True)
class SessionChanges:
    """None leaves a field as it is; a metadata value of None drops its key."""

    title: str | None = None
    metadata: Mapping[str, str | None] | None = None
    requested: RequestedSettings | None = None


@transaction.atomic
def create_session(*, access: Access, new: NewSession) -> Session:
    """A session with its first prompts, or nothing. Everything resolves before anything is
    written. Raises NotFound, Forbidden, InvalidInput, Unprocessable.
    """
    grant = access.grants.get(new.workspace_id)
    if grant is None:
        raise NotFound("workspace_not_found", "There is no such workspace.", param="workspace_id")
    access.require(Action.SESSION_CREATE, new.workspace_id)
    title = require_title(new.title)
    metadata = require_metadata(new.metadata)
    parent = None
    if new.parent_id is not None:
        parent = hold_for_child(
            access=access, parent_id=new.parent_id, workspace_id=new.workspace_id
        )
    if Visibility.PRIVATE in {new.visibility, parent.visibility if parent else None}:
        require_private_allowed(access=access, organization_id=grant.organization_id)
    origin = _require_origin(new, parent)
    reach = _reach(new, parent)
    agent, snapshot = _agent(new, parent)
    requested = resolve_request(organization_id=grant.organization_id, requested=new.requested)
    initial = _initial_settings(new, requested, parent, snapshot)
    session = Session.objects.create(
        organization_id=grant.organization_id,
        workspace_id=new.workspace_id,
        agent=agent,
        agent_snapshot=snapshot,
        maker_id=access.user_id,
        maker_key_id=None if access.user_id else access.principal.id,
        origin_type=origin["type"],
        origin=origin,
        visibility=reach.visibility,
        agent_access=reach.agent_access,
        memory_scope=reach.memory_scope,
        end_user_source=reach.end_user[0] if reach.end_user else "",
        end_user_id=reach.end_user[1] if reach.end_user else "",
        title_source=_title_source(title, new),
        initial_settings=initial.to_json(),
        model_label=label_of(organization_id=grant.organization_id, settings=initial),
        **(place_below(parent) if parent else {}),
    )
    author = new.by_agent.author if new.by_agent else author_json(access)
    created = created_draft(session, author=author, title=title, metadata=metadata, initial=initial)
    eventlog.append(session_id=session.pk, drafts=[created])
    if access.user_id is not None and new.by_agent is None:
        PersonalState.objects.create(session=session, user_id=access.user_id, follows=True)
    if parent is not None:
        tell_parent(parent, session, _child_started(session, author, title, new), new.by_agent)
    _set_out(session, access, new.prompts)
    return get_session(access=access, session_id=session.pk)


def _require_origin(new: NewSession, parent: Session | None) -> dict[str, Any]:
    """A child's is its parent's unless it says otherwise: it is in the same partition."""
    if new.origin is None and parent is not None and parent.origin_type != AGENT_ORIGIN_TYPE:
        return dict(parent.origin)
    origin = require_origin(new.origin, DEFAULT_ORIGIN_TYPE)
    if origin["type"] == AGENT_ORIGIN_TYPE:
        raise InvalidInput(
            "reserved_origin", "This origin is kept for agents' own sessions.", param="origin.type"
        )
    return origin


def _set_out(session: Session, access: Access, prompts: Sequence[Prompt]) -> None:
    """Host code hears of it before it has its first prompt."""
    tell_created(session)
    for index, prompt in enumerate(prompts):
        param = f"initial_events[{index}]"
        session.refresh_from_db()
        submit_to(session, access=access, prompt=prompt, param=param)


@transaction.atomic
def update_session(*, access: Access, session_id: UUID, changes: SessionChanges) -> Session:
    """Title, metadata, model settings. A running turn takes the settings at its next checkpoint;
    with none running they are the next send's. What does not differ writes nothing.
    """
    session = get_session(access=access, session_id=session_id, lock=Lock.WITH_PARENT)
    access.require(Action.SESSION_CONTROL, session.workspace_id, maker_id=session.maker_id)
    changed: dict[str, Any] = {}
    row: dict[str, Any] = {}
    if changes.title is not None:
        title = require_title(changes.title)
        if title != session.title or session.title_source != TitleSource.PERSON:
            changed["title"] = title
            row["title_source"] = TitleSource.PERSON if title else TitleSource.NONE
    if changes.metadata is not None:
        merged = _merge(session.metadata, changes.metadata)
        if merged != session.metadata:
            changed["metadata"] = merged
    if changes.requested is not None:
        changed |= _change_settings(session, changes.requested, row)
    if changed:
        draft = Draft("session.updated", {"changes": changed})
        eventlog.append(session_id=session.pk, drafts=[draft], row=row)
    return get_session(access=access, session_id=session_id)


def _change_settings(
    session: Session, requested: RequestedSettings, row: dict[str, Any]
) -> dict[str, Any]:
    wanted = resolve_request(organization_id=session.organization_id, requested=requested)
    if wanted.is_empty:
        return {}
    column = "next_settings" if session.started_turn_id is None else "checkpoint_settings"
    present = PartialSettings.from_json(getattr(session, column))
    merged = wanted.over(present)
    if merged == present:
        return {}
    row[column] = merged.to_json()
    row["model_label"] = _effective_label(session, merged)
    return {"model_settings": merged.to_json(), "takes_effect": _when(column)}


def _effective_label(session: Session, change: PartialSettings) -> str:
    settings = effective_settings(session=session, change=change)
    if settings is None:
        return session.model_label
    named = PartialSettings((settings.provider_id, settings.model_id), settings.reasoning_effort)
    label = label_of(organization_id=session.organization_id, settings=named)
    return label or session.model_label


def _when(column: str) -> str:
    return "next_turn" if column == "next_settings" else "next_checkpoint"


def _reach(new: NewSession, parent: Session | None) -> Reach:
    end_user = (new.end_user.source, new.end_user.id) if new.end_user else None
    asked = Asked(new.visibility, new.agent_access, new.memory_scope, end_user)
    return child_reach(reach_of(parent), asked) if parent else root_reach(asked)


def _initial_settings(
    new: NewSession,
    requested: PartialSettings,
    parent: Session | None,
    snapshot: Mapping[str, Any],
) -> PartialSettings:
    """A child begins with what its parent uses, unless it names a model or an agent that has one:
    the agent that it takes over from the parent stands behind what the parent was switched to.
    """
    if parent is None or requested.model is not None:
        return requested
    own = PartialSettings.from_json(snapshot.get("settings"))
    if new.names_agent and own.model is not None:
        return requested
    return requested.over(settings_of(parent))


def _title_source(title: str, new: NewSession) -> TitleSource:
    if not title:
        return TitleSource.NONE
    return TitleSource.PERSON if new.by_agent is None else TitleSource.GENERATED


def created_draft(
    session: Session,
    *,
    author: Mapping[str, Any],
    title: str,
    metadata: Mapping[str, str],
    initial: PartialSettings,
) -> Draft:
    """What the log of a session that was just made begins with."""
    parent_id = encode_id(Prefix.SESSION, session.parent_id) if session.parent_id else None
    return Draft(
        "session.created",
        {
            "title": title,
            "workspace_id": encode_id(Prefix.WORKSPACE, session.workspace_id),
            "agent_id": session.agent_snapshot["id"],
            "parent_id": parent_id,
            "origin": session.origin,
            "visibility": str(session.visibility),
            "agent_access": str(session.agent_access),
            "memory_scope": str(session.memory_scope),
            "model": model_json(initial.to_json()),
            "metadata": dict(metadata),
            "author": dict(author),
            "end_user": end_user_json(session),
        },
    )


def _child_started(child: Session, author: Mapping[str, Any], title: str, new: NewSession) -> Draft:
    return Draft(
        "child.started",
        {
            "child_id": child.public_id,
            "title": title,
            "prompt_text": _words_of(new.prompts),
            "author": dict(author),
            "tool_use_id": new.by_agent.tool_use_id if new.by_agent else None,
        },
    )


def _words_of(prompts: Sequence[Prompt]) -> str:
    """The beginning of the first prompt; what is wrong with it is said when it is accepted."""
    if not prompts:
        return ""
    content = prompts[0].content
    return preview([{"type": "text", "text": content}] if isinstance(content, str) else content)


def _agent(new: NewSession, parent: Session | None) -> tuple[Agent | None, dict[str, Any]]:
    """The agent, and the snapshot of it that the session keeps."""
    if parent is not None and not new.names_agent:
        return parent.agent, {**parent.agent_snapshot, **tools_below(parent, None, new.tools)}
    agent = (
        find_agent(workspace_id=new.workspace_id, choice=new.agent)
        if new.names_agent
        else get_or_create_default_agent(workspace_id=new.workspace_id)
    )
    snapshot = snapshot_of(agent)
    if parent is not None:
        snapshot |= tools_below(parent, snapshot["tools"], new.tools)
    return agent, snapshot


def snapshot_of(agent: Agent) -> dict[str, Any]:
    model = (agent.model.provider.slug, agent.model.model_id) if agent.model else None
    settings = PartialSettings(model, agent.reasoning_effort or None, agent.speed)
    return {
        "type": "agent",
        "id": agent.public_id,
        "name": agent.name,
        "instructions": agent.instructions,
        "tools": agent.tools,
        "settings": settings.to_json(),
    }


def _merge(present: Mapping[str, str], patch: Mapping[str, str | None]) -> dict[str, str]:
    kept = {key: value for key, value in {**present, **patch}.items() if value is not None}
    return require_metadata(kept)


def require_private_allowed(*, access: Access, organization_id: UUID) -> None:
    """Before a session is made that only its maker sees. Raises Forbidden."""
    if access.user_id is None:
        raise Forbidden(
            "private_needs_a_person",
            "Only a signed-in person can create a session that only they see.",
            param="visibility",
        )
    if not Organization.objects.get(pk=organization_id).allows_private_sessions:
        raise Forbidden(
            "private_not_allowed",
            "Your organization does not allow “Only me” sessions; an owner can switch them on.",
            param="visibility",
        )
