"""A line of the audit log says who did what to whom, from where, and stays."""

from __future__ import annotations

import pytest
from django.db import IntegrityError, transaction

from core.whence import Whence, coming_from
from orgs.models import AuditEntry
from orgs.models.audit import AuditAction
from orgs.roles import OrganizationRole
from orgs.services.members import set_organization_role
from tests.factories import Cast


def promote(cast: Cast, by: str) -> AuditEntry:
    set_organization_role(
        access=cast.access(by),
        organization_id=cast.organization.pk,
        user_id=cast.member.pk,
        role=OrganizationRole.ADMIN,
    )
    return AuditEntry.objects.filter(action=AuditAction.MEMBER_ROLE_CHANGED).latest("at")


def test_a_line_says_who_did_what_to_whom_and_from_where(cast: Cast) -> None:
    with coming_from(Whence("203.0.113.9", "req_1")):
        line = promote(cast, "owner")
    assert (line.actor_kind, line.actor_id, line.actor_name) == (
        "user",
        cast.owner.pk,
        "Ada Moreau",
    )
    assert (line.target_kind, line.target_id) == ("user", cast.member.public_id)
    assert line.target_name == f"Chiara Novak <{cast.member.email}>"
    assert line.changes == {"role": ["member", "admin"]}
    assert (line.address, line.request_id) == ("203.0.113.9", "req_1")
    assert line.organization_id == cast.organization.pk


def test_a_key_acts_under_its_own_name_and_the_server_under_none_of_a_person(cast: Cast) -> None:
    line = promote(cast, "organization_key")
    assert (line.actor_kind, line.actor_id) == ("key", cast.organization_key.row.pk)
    by_server = AuditEntry.objects.filter(action=AuditAction.MEMBER_ADDED).latest("at")
    assert (by_server.actor_kind, by_server.actor_id, by_server.address) == ("server", None, "")


def test_an_organization_begins_with_a_line(cast: Cast) -> None:
    line = AuditEntry.objects.filter(organization_id=cast.organization.pk).earliest("at")
    assert line.action == AuditAction.ORGANIZATION_CREATED
    assert line.changes == {"owner": [None, f"Ada Moreau <{cast.owner.email}>"]}


def test_a_line_cannot_be_changed_or_removed(cast: Cast) -> None:
    line = promote(cast, "owner")
    with pytest.raises(IntegrityError, match="append-only"), transaction.atomic():
        AuditEntry.objects.filter(pk=line.pk).update(actor_name="Nobody")
    with pytest.raises(IntegrityError, match="append-only"), transaction.atomic():
        line.delete()


def test_a_line_outlives_whom_it_tells_of(cast: Cast) -> None:
    line = promote(cast, "owner")
    cast.member.delete()
    line.refresh_from_db()
    assert line.target_name.startswith("Chiara Novak")


def test_a_change_that_fails_leaves_no_line(cast: Cast) -> None:
    """It is in the transaction of the change, whichever of the two fails."""
    before = AuditEntry.objects.count()

    @transaction.atomic
    def change() -> None:
        promote(cast, "owner")
        raise RuntimeError

    with pytest.raises(RuntimeError):
        change()
    assert AuditEntry.objects.count() == before
