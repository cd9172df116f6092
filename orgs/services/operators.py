"""What operators do at /admin/, told in the log of the organization that it concerns.

Its rows change through services where these have more to do than to save a row. Whoever calls has
asked whether an operator may, and holds the organization.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from datetime import datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

from django.db.models import Field, Model

from core.text import clip, redact
from orgs.models import OrganizationMembership, WorkspaceMembership
from orgs.models.audit import AuditAction
from orgs.services import audit
from orgs.services.epochs import bump_access_epoch
from orgs.services.members import take_out
from orgs.services.workspaces import take_out_of_workspace

VALUE_MAX_CHARACTERS = 200


def remove_member(*, operator: audit.Operator, membership: OrganizationMembership) -> None:
    """As if an owner did; the last owner, too. A service account ends with its membership."""
    account = membership.user
    if not account.is_service_account:
        take_out(operator, membership, AuditAction.MEMBER_REMOVED)
        return
    account.is_active = False
    account.save(update_fields=["is_active"])
    take_out(operator, membership, AuditAction.SERVICE_ACCOUNT_REMOVED)


def remove_workspace_member(*, operator: audit.Operator, place: WorkspaceMembership) -> None:
    take_out_of_workspace(operator, place)


def move_epochs(organization_ids: Iterable[UUID]) -> None:
    for organization_id in sorted(organization_ids):
        bump_access_epoch(organization_id=organization_id)


def fields_among(row: Model, names: Collection[str]) -> list[Field[Any, Any]]:
    """The columns that a form has: what it does not show is not told either."""
    columns = [field for field in row._meta.concrete_fields if not field.primary_key]
    return [field for field in columns if field.name in names]


def facts(row: Model, fields: Iterable[Field[Any, Any]]) -> dict[str, Any]:
    """Field → its value, JSON-ready; of another row, its name."""
    return {field.name: _told(getattr(row, field.name)) for field in fields}


def differences(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, tuple[Any, Any]]:
    """Of a new row, all that says something."""
    names = [*before, *(name for name in after if name not in before)]
    empty: tuple[Any, ...] = (None, "", [], False)
    return {
        name: (before.get(name), after.get(name))
        for name in names
        if before.get(name) != after.get(name) and (before or after.get(name) not in empty)
    }


def _told(value: Any) -> Any:
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, Decimal):
        return f"{value.normalize():f}"
    if isinstance(value, datetime):
        return audit.time_of(value)
    if isinstance(value, list):
        return [_told(each) for each in value]
    return clip(redact(str(value)), VALUE_MAX_CHARACTERS)
