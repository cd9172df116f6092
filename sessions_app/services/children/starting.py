"""What a parent allows its new child: whether there may be one more, and what it takes over."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db.models import F

from core.errors import Conflict, Forbidden, InvalidInput, NotFound
from orgs.access import Access
from orgs.roles import Action
from sessions_app import eventlog
from sessions_app.domain.events import Draft
from sessions_app.domain.inheritance import Reach
from sessions_app.domain.settings import PartialSettings
from sessions_app.domain.vocabulary import AgentAccess, MemoryScope, SessionStatus, Visibility
from sessions_app.models import Session
from sessions_app.selectors import Lock, get_session


@dataclass(frozen=True, slots=True)
class AgentCall:
    """The call by which an agent starts a child: `author` {type, id, name} is the agent."""

    author: dict[str, Any]
    turn_id: UUID
    attempt: int
    tool_use_id: str


def hold_for_child(*, access: Access, parent_id: UUID, workspace_id: UUID) -> Session:
    """The parent, held so that a cancel above sees either no child or this one. Held alone: an
    agent's call holds it already, and its own parent could not be locked before it any more.

    Raises NotFound, Forbidden, InvalidInput `workspace_differs`, Conflict `session_archived`,
    `session_terminated`, `too_deep`, `too_many_children`.
    """
    try:
        parent = get_session(access=access, session_id=parent_id, lock=Lock.ALONE)
    except NotFound:
        raise NotFound(
            "parent_not_found", "There is no such parent session.", param="parent_id"
        ) from None
    access.require(Action.SESSION_CONTROL, parent.workspace_id, maker_id=parent.maker_id)
    if parent.workspace_id != workspace_id:
        raise InvalidInput(
            "workspace_differs",
            "A child session is in the workspace of its parent; leave the field out.",
            param="workspace_id",
        )
    _require_open(parent)
    _require_room(parent)
    return parent


def reach_of(parent: Session) -> Reach:
    end_user = (parent.end_user_source, parent.end_user_id) if parent.end_user_id else None
    return Reach(
        Visibility(parent.visibility),
        AgentAccess(parent.agent_access),
        MemoryScope(parent.memory_scope),
        end_user,
    )


def place_below(parent: Session) -> dict[str, Any]:
    """The columns of a new child that say where it stands."""
    return {
        "parent_id": parent.pk,
        "depth": parent.depth + 1,
        "root_id": parent.root_id or parent.pk,
        "ancestor_ids": [*parent.ancestor_ids, parent.pk],
    }


def settings_of(parent: Session) -> PartialSettings:
    """What the parent's turns use now, else what it began with."""
    return PartialSettings.from_json(parent.model_settings or parent.initial_settings)


def tools_below(
    parent: Session, agents_own: Sequence[str] | None, asked: Sequence[str] | None
) -> dict[str, Any]:
    """What a child's snapshot of its agent says of tools: the parent's, or fewer. Below a parent
    that has the default ones a list is bounded by those, which are known when a turn starts: they
    change with time, and with the model. Raises Forbidden `wider_than_parent`.
    """
    above = parent.agent_snapshot
    tools = _narrowed(above.get("tools"), agents_own, asked)
    is_bounded = above.get("tools") is None or above.get("tools_within_default", False)
    if tools is None or not is_bounded:
        return {"tools": tools}
    return {"tools": tools, "tools_within_default": True}


def _narrowed(
    inherited: list[str] | None, agents_own: Sequence[str] | None, asked: Sequence[str] | None
) -> list[str] | None:
    """None: the default ones."""
    if inherited is None:
        chosen = asked if asked is not None else agents_own
        return None if chosen is None else list(chosen)
    if asked is None:
        return [name for name in inherited if agents_own is None or name in agents_own]
    if missing := [name for name in asked if name not in inherited]:
        raise Forbidden(
            "wider_than_parent",
            f"The parent session has no tool {', '.join(missing)[:200]}; a child has the same "
            "or fewer.",
            param="tools",
        )
    return list(asked)


def tell_parent(parent: Session, child: Session, started: Draft, call: AgentCall | None) -> None:
    """The fact in the parent's log that there is a child now."""
    eventlog.append(
        session_id=parent.pk,
        drafts=[started],
        turn_id=call.turn_id if call else None,
        attempt=call.attempt if call else None,
    )


def _require_open(parent: Session) -> None:
    if parent.status == SessionStatus.TERMINATED:
        raise Conflict(
            "session_terminated", "The parent session was cancelled and takes no more work."
        )
    if parent.archived_at is not None:
        raise Conflict("session_archived", "The parent session is archived; restore it first.")


def _require_room(parent: Session) -> None:
    if parent.depth >= settings.CHILD_MAX_DEPTH:
        raise Conflict(
            "too_deep",
            f"Child sessions go {settings.CHILD_MAX_DEPTH} levels deep at most; "
            "do this work in the session itself.",
        )
    busy = parent.children.filter(turn_count__gt=F("reported_turns"), archived_at__isnull=True)
    live = busy.count()
    if live >= settings.CHILDREN_MAX_LIVE:
        raise Conflict(
            "too_many_children",
            f"At most {settings.CHILDREN_MAX_LIVE} child sessions of one session have work at "
            "the same time; wait for some of them.",
        )
