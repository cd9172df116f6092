"""The access epoch: a number per organization that every change of a grant moves."""

from __future__ import annotations

from uuid import UUID

from django.db import transaction
from django.db.models import F

from core.bus import ring
from orgs.models import Organization


def bump_access_epoch(*, organization_id: UUID) -> None:
    """Within the transaction of the change; open streams look again within two seconds."""
    rows = Organization.objects.filter(pk=organization_id)
    rows.update(access_epoch=F("access_epoch") + 1)
    transaction.on_commit(lambda: ring("e"))
