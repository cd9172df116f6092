"""What a child session takes over from its parent: the same reach, or less. Never more."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TypeVar

from core.errors import Forbidden
from sessions_app.domain.vocabulary import AgentAccess, MemoryScope, Visibility

Scope = TypeVar("Scope", bound=StrEnum)


@dataclass(frozen=True, slots=True)
class Reach:
    """The frozen fields of a session that say who is concerned and how far its agent gets."""

    visibility: Visibility
    agent_access: AgentAccess
    memory_scope: MemoryScope
    end_user: tuple[str, str] | None


@dataclass(frozen=True, slots=True)
class Asked:
    """What a creation says of it; None: nothing."""

    visibility: Visibility | None = None
    agent_access: AgentAccess | None = None
    memory_scope: MemoryScope | None = None
    end_user: tuple[str, str] | None = None


def root_reach(asked: Asked) -> Reach:
    return Reach(
        asked.visibility or Visibility.WORKSPACE,
        asked.agent_access or AgentAccess.WORKSPACE,
        asked.memory_scope or MemoryScope.WORKSPACE,
        asked.end_user,
    )


def child_reach(parent: Reach, asked: Asked) -> Reach:
    """Raises Forbidden `wider_than_parent` or `differs_from_parent`, with the field's name.

    A private child of a shared parent is refused too: its result is printed in the parent.
    """
    _require_same(parent.visibility, asked.visibility, "visibility")
    _require_same(parent.end_user, asked.end_user, "end_user")
    return Reach(
        parent.visibility,
        _narrowed(parent.agent_access, asked.agent_access, "agent_access"),
        _narrowed(parent.memory_scope, asked.memory_scope, "memory_scope"),
        parent.end_user,
    )


def _narrowed(parent: Scope, asked: Scope | None, param: str) -> Scope:
    """The members of a scope stand in its enum from the narrowest to the widest."""
    if asked is None:
        return parent
    order = list(type(parent))
    if order.index(asked) > order.index(parent):
        raise Forbidden(
            "wider_than_parent",
            f"The parent session has {param} “{parent}”; a child has the same or less.",
            param=param,
        )
    return asked


def _require_same(parent: object, asked: object, param: str) -> None:
    if asked is not None and asked != parent:
        raise Forbidden(
            "differs_from_parent",
            f"A child session has the {param} of its parent; leave the field out.",
            param=param,
        )
