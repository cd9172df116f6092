"""Lines of the audit log, each in the transaction of what it tells."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeAlias
from uuid import UUID

from core import whence
from core.clock import rfc3339
from orgs.access import Access, PrincipalKind
from orgs.models import ApiKey, Invitation, Organization, User, Workspace
from orgs.models.audit import ActorKind, AuditAction, AuditEntry

SERVER_NAME = "the server"
Changes = Mapping[str, tuple[Any, Any]]


@dataclass(frozen=True, slots=True)
class Operator:
    """Who is signed in at /admin/: has no access to the organization, and acts on its rows."""

    id: UUID
    name: str


# None: the server itself.
Actor: TypeAlias = Access | Operator | None


@dataclass(frozen=True, slots=True)
class Target:
    """What something was done to, under the name that it had then."""

    kind: str
    id: str
    name: str


def target_of(row: Organization | Workspace | User | ApiKey | Invitation) -> Target:
    name = row.name
    if isinstance(row, User) and not row.is_service_account:
        name = f"{row.name} <{row.email}>"
    return Target(row._meta.model_name or "", row.public_id, name)


def record(
    *,
    access: Actor,
    organization_id: UUID,
    action: AuditAction,
    target: Target,
    changes: Changes | None = None,
    workspace_id: UUID | None = None,
) -> AuditEntry:
    """`changes`: field → (old, new), JSON-ready."""
    kind, actor_id, name = _named(access)
    came = whence.present()
    return AuditEntry.objects.create(
        organization_id=organization_id,
        workspace_id=workspace_id,
        action=action,
        actor_kind=kind,
        actor_id=actor_id,
        actor_name=name,
        target_kind=target.kind,
        target_id=target.id,
        target_name=target.name[:300],
        changes={field: [old, new] for field, (old, new) in (changes or {}).items()},
        address=came.address[:64],
        request_id=came.request_id[:64],
    )


def time_of(moment: datetime | None) -> str | None:
    """To the second: what people read."""
    return rfc3339(moment.replace(microsecond=0)) if moment else None


def _named(actor: Actor) -> tuple[ActorKind, UUID | None, str]:
    if actor is None:
        return ActorKind.SERVER, None, SERVER_NAME
    if isinstance(actor, Operator):
        return ActorKind.OPERATOR, actor.id, actor.name
    is_person = actor.principal.kind is PrincipalKind.USER
    kind = ActorKind.USER if is_person else ActorKind.KEY
    return kind, actor.principal.id, actor.principal.name
