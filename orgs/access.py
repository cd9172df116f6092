"""Access is a value: what a principal may do, computed once, immutable, only ever narrowed.

It is granted only in `orgs.principals`. It filters only through `visible_to(access)`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from types import MappingProxyType
from uuid import UUID

from core.errors import Forbidden, NotFound
from core.ids import Prefix, encode_id
from orgs.roles import (
    OWN_SESSION_ACTIONS,
    Action,
    OrganizationAction,
    OrganizationRole,
    Scope,
    WorkspaceKind,
    WorkspaceRole,
    scope_that_allows,
    scope_that_manages,
)


class PrincipalKind(StrEnum):
    USER = "user"
    KEY = "key"


@dataclass(frozen=True, slots=True)
class Principal:
    """Who acts. `user_id` is the person behind a login; None for a key."""

    kind: PrincipalKind
    id: UUID
    name: str
    user_id: UUID | None

    @property
    def public_id(self) -> str:
        prefix = Prefix.USER if self.kind is PrincipalKind.USER else Prefix.KEY
        return encode_id(prefix, self.id)


@dataclass(frozen=True, slots=True)
class WorkspaceGrant:
    """What may be done in one workspace. `role` is None where a key's scopes alone decide."""

    organization_id: UUID
    kind: WorkspaceKind
    name: str
    role: WorkspaceRole | None
    actions: frozenset[Action]


@dataclass(frozen=True, slots=True)
class OrganizationGrant:
    """What may be done in an organization as such. `role` is None for a key."""

    name: str
    role: OrganizationRole | None
    actions: frozenset[OrganizationAction]


@dataclass(frozen=True, slots=True)
class AgentReach:
    """What bounds an agent at work beside its initiator's own sight: it is in one tree, and its
    session says how far it may look beyond. `agent_access`: session, user or workspace;
    `end_user`: {source, id} as a pair; `is_private`: what it writes only one person reads.
    """

    workspace_id: UUID
    root_id: UUID
    agent_access: str
    end_user: tuple[str, str] | None
    is_private: bool


@dataclass(frozen=True, slots=True)
class Access:
    """`epochs` says of which state of each organization's grants this access was computed;
    `expires_at` when it ends by itself, which moves no epoch.
    """

    principal: Principal
    grants: Mapping[UUID, WorkspaceGrant] = field(default_factory=dict)
    default_workspace_id: UUID | None = None
    epochs: Mapping[UUID, int] = field(default_factory=dict)
    organizations: Mapping[UUID, OrganizationGrant] = field(default_factory=dict)
    expires_at: datetime | None = None
    agent: AgentReach | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "grants", MappingProxyType(dict(self.grants)))
        object.__setattr__(self, "epochs", MappingProxyType(dict(self.epochs)))
        object.__setattr__(self, "organizations", MappingProxyType(dict(self.organizations)))

    @property
    def user_id(self) -> UUID | None:
        return self.principal.user_id

    def workspaces_with(self, action: Action) -> list[UUID]:
        return [pk for pk, grant in self.grants.items() if action in grant.actions]

    def may(self, action: Action, workspace_id: UUID, *, maker_id: UUID | None = None) -> bool:
        """`maker_id`: who made the session at hand; its maker may do everything to it."""
        grant = self.grants.get(workspace_id)
        if grant is None:
            return False
        if action in grant.actions:
            return True
        is_own = maker_id is not None and maker_id == self.user_id
        works_here = Action.SESSION_CONTROL in grant.actions
        return is_own and works_here and action in OWN_SESSION_ACTIONS

    def require(self, action: Action, workspace_id: UUID, *, maker_id: UUID | None = None) -> None:
        """Raises Forbidden, which names the scope that a key lacks."""
        if self.may(action, workspace_id, maker_id=maker_id):
            return
        if self.principal.kind is PrincipalKind.KEY:
            raise _missing_scope(action, scope_that_allows(action), self._granted(workspace_id))
        raise Forbidden(
            "missing_role",
            "Your role in this workspace does not allow that; ask one of its administrators.",
            details={"action": str(action)},
        )

    def organizations_with(self, action: OrganizationAction) -> list[UUID]:
        return [pk for pk in self.organizations if self.may_in(action, pk)]

    def may_in(self, action: OrganizationAction, organization_id: UUID) -> bool:
        grant = self.organizations.get(organization_id)
        return grant is not None and action in grant.actions

    def require_in(self, action: OrganizationAction, organization_id: UUID) -> None:
        """Raises NotFound where one does not belong, Forbidden where one's role is too low, or the
        key lacks the scope, which it names.
        """
        if organization_id not in self.organizations:
            raise NotFound
        if not self.may_in(action, organization_id):
            if self.principal.kind is PrincipalKind.KEY:
                granted = sorted(self.organizations[organization_id].actions)
                raise _missing_scope(action, scope_that_manages(action), granted)
            who = "an owner" if action is OrganizationAction.OWN else "an owner or admin"
            raise Forbidden(
                "missing_role",
                f"Only {who} of the organization may do that.",
                details={"action": str(action)},
            )

    def _granted(self, workspace_id: UUID) -> list[str]:
        grant = self.grants.get(workspace_id)
        return sorted(grant.actions) if grant else []

    def as_agent(self, reach: AgentReach) -> Access:
        """Of an agent that works for this principal: in its own workspace, and no further than its
        session allows. Never wider.
        """
        return replace(self.narrow(workspaces={reach.workspace_id}), agent=reach)

    def narrow(
        self,
        *,
        workspaces: Collection[UUID] | None = None,
        actions: Collection[Action] | None = None,
    ) -> Access:
        """The same principal with at most these workspaces and actions, and nothing of any
        organization as such. Never wider.
        """
        kept = {
            pk: replace(grant, actions=grant.actions & frozenset(actions))
            if actions is not None
            else grant
            for pk, grant in self.grants.items()
            if workspaces is None or pk in workspaces
        }
        default = self.default_workspace_id if self.default_workspace_id in kept else None
        return replace(self, grants=kept, default_workspace_id=default, organizations={})


def _missing_scope(
    action: Action | OrganizationAction, scope: Scope, granted: Sequence[str]
) -> Forbidden:
    return Forbidden(
        "missing_scope",
        f"This key may not do that; it needs the scope “{scope}”, and its maker the role for it.",
        details={
            "required_scope": str(scope),
            "action": str(action),
            "granted_actions": list(granted),
        },
    )
