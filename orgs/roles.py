"""Roles, scopes and actions, and what each role may do. Plain Python."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum


class OrganizationRole(StrEnum):
    OWNER = "owner"
    ADMIN = "admin"
    MEMBER = "member"


class WorkspaceRole(StrEnum):
    ADMINISTRATOR = "administrator"
    MEMBER = "member"
    VIEWER = "viewer"


class WorkspaceKind(StrEnum):
    SHARED = "shared"
    PERSONAL = "personal"


class Action(StrEnum):
    WORKSPACE_READ = "workspace.read"
    WORKSPACE_MANAGE = "workspace.manage"
    SESSION_READ = "session.read"
    SESSION_CREATE = "session.create"
    SESSION_CONTROL = "session.control"  # send, stop, answer, rename, move, archive, restore
    SESSION_ADMINISTER = "session.administer"  # cancel, remove, clear


class OrganizationAction(StrEnum):
    READ = "organization.read"  # its name, its shared workspaces by name
    INVENTORY = "organization.inventory"  # rows of sessions, never content
    MANAGE = "organization.manage"  # members, invitations, service accounts, keys, providers, audit
    OWN = "organization.own"  # who is an owner, and whether Only me is allowed


class Scope(StrEnum):
    """What an API key may do. `full` is a rule, not a list: actions to come are within it."""

    READ = "read"
    WRITE = "write"
    FULL = "full"


_READING = frozenset({Action.WORKSPACE_READ, Action.SESSION_READ})
_WORKING = _READING | {Action.SESSION_CREATE, Action.SESSION_CONTROL}

ROLE_ACTIONS: Mapping[WorkspaceRole, frozenset[Action]] = {
    WorkspaceRole.VIEWER: _READING,
    WorkspaceRole.MEMBER: _WORKING,
    WorkspaceRole.ADMINISTRATOR: frozenset(Action),
}
SCOPE_ACTIONS: Mapping[Scope, frozenset[Action]] = {
    Scope.READ: _READING,
    Scope.WRITE: _WORKING,
    Scope.FULL: frozenset(Action),
}
ORGANIZATION_ROLE_ACTIONS: Mapping[OrganizationRole, frozenset[OrganizationAction]] = {
    OrganizationRole.OWNER: frozenset(OrganizationAction),
    OrganizationRole.ADMIN: frozenset(OrganizationAction) - {OrganizationAction.OWN},
    OrganizationRole.MEMBER: frozenset({OrganizationAction.READ}),
}
_LOOKING = frozenset({OrganizationAction.READ, OrganizationAction.INVENTORY})
ORGANIZATION_SCOPE_ACTIONS: Mapping[Scope, frozenset[OrganizationAction]] = {
    Scope.READ: _LOOKING,
    Scope.WRITE: _LOOKING,
    Scope.FULL: frozenset(OrganizationAction),
}
# Who may do these at all may do everything to a session of their own.
OWN_SESSION_ACTIONS = frozenset(
    {Action.SESSION_READ, Action.SESSION_CONTROL, Action.SESSION_ADMINISTER}
)


def scope_that_allows(action: Action) -> Scope:
    """The narrowest scope with that action, for the refusal that names it."""
    return next(scope for scope in Scope if action in SCOPE_ACTIONS[scope])


def scope_that_manages(action: OrganizationAction) -> Scope:
    """The same for what concerns an organization as such."""
    return next(scope for scope in Scope if action in ORGANIZATION_SCOPE_ACTIONS[scope])


def actions_of_scopes(scopes: list[str]) -> frozenset[Action]:
    """Unknown scopes grant nothing."""
    named = frozenset(Action(scope) for scope in scopes if scope in set(Action))
    return named.union(*(SCOPE_ACTIONS[scope] for scope in _known(scopes)))


def organization_actions_of_scopes(scopes: list[str]) -> frozenset[OrganizationAction]:
    """Of a key of the organization; one of a workspace has none."""
    actions = set(OrganizationAction)
    named = frozenset(OrganizationAction(scope) for scope in scopes if scope in actions)
    return named.union(*(ORGANIZATION_SCOPE_ACTIONS[scope] for scope in _known(scopes)))


def is_scope(text: str) -> bool:
    """One of the three, or a single action."""
    return text in {*Scope, *Action, *OrganizationAction}


def _known(scopes: list[str]) -> list[Scope]:
    return [Scope(scope) for scope in scopes if scope in set(Scope)]
