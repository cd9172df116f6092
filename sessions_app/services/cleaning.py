"""Cleaning an archive: all that is archived in a workspace goes for good, by its number."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from uuid import UUID

from django.db import transaction
from django.db.models import Q

from core.errors import Conflict, NotFound
from core.ids import Prefix, encode_id
from orgs.access import Access
from orgs.models.audit import AuditAction
from orgs.roles import Action
from orgs.services import audit
from sessions_app.domain.vocabulary import AGENT_ORIGIN_TYPE
from sessions_app.models import Session
from sessions_app.querysets import SessionQuerySet
from sessions_app.selectors import Lock, get_session
from sessions_app.services.archiving import count_shared, erase_tree
from sessions_app.services.holding import lock_tree

# Trees erased by one transaction: others wait for a locked session no longer than that takes.
BATCH = 20


def count_cleanable(*, access: Access, workspace_id: UUID) -> int:
    """How many sessions `clean_archive` would erase. Raises NotFound, Forbidden."""
    return _cleanable(access, workspace_id).count()


def clean_archive(*, access: Access, workspace_id: UUID, confirm: int) -> list[UUID]:
    """Erases every archived session of the workspace that the caller may remove, whatever its
    partition, with all below it; gives the ids of those that were. One that is restored meanwhile
    stays. Holds no more than a batch at a time: what was erased stays so when it breaks off.

    Raises NotFound, Forbidden, Conflict `count_changed` with the present number.
    """
    found = list(_cleanable(access, workspace_id).order_by("id").values_list("pk", "parent_id"))
    if len(found) != confirm:
        raise Conflict(
            "count_changed",
            f"The archive has {len(found)} sessions by now; confirm that number.",
            param="confirm",
            details={"count": len(found)},
        )
    ids = {pk for pk, _ in found}
    tops = iter([pk for pk, parent_id in found if parent_id not in ids])
    removed: list[UUID] = []
    while batch := list(islice(tops, BATCH)):
        removed += _erase(access, workspace_id, batch)
    return removed


def _cleanable(access: Access, workspace_id: UUID) -> SessionQuerySet:
    if not access.may(Action.SESSION_READ, workspace_id):
        raise NotFound
    access.require(Action.SESSION_CONTROL, workspace_id)
    archived = Session.objects.visible_to(access).filter(
        workspace_id=workspace_id, archived_at__isnull=False
    )
    archived = archived.exclude(origin_type=AGENT_ORIGIN_TYPE)
    if access.may(Action.SESSION_ADMINISTER, workspace_id):
        return archived
    if access.user_id is None:
        access.require(Action.SESSION_ADMINISTER, workspace_id)
    own = list(archived.filter(maker_id=access.user_id).values_list("pk", flat=True))
    return archived.filter(Q(pk__in=own) | Q(ancestor_ids__overlap=own))


@transaction.atomic
def _erase(access: Access, workspace_id: UUID, tops: Sequence[UUID]) -> list[UUID]:
    removed: list[UUID] = []
    shared, organization_id = 0, access.grants[workspace_id].organization_id
    for session_id in tops:
        try:
            session = get_session(access=access, session_id=session_id, lock=Lock.WITH_PARENT)
        except NotFound:
            continue
        if session.archived_at is None:
            continue
        below = lock_tree(session)
        removed += [session.pk, *(each.pk for each in below)]
        shared += count_shared([session, *below])
        erase_tree(session, below, access=access)
    if shared:
        audit.record(
            access=access,
            organization_id=organization_id,
            workspace_id=workspace_id,
            action=AuditAction.ARCHIVE_CLEANED,
            target=_target(access, workspace_id),
            changes={"sessions": (shared, 0)},
        )
    return removed


def _target(access: Access, workspace_id: UUID) -> audit.Target:
    name = access.grants[workspace_id].name
    return audit.Target("workspace", encode_id(Prefix.WORKSPACE, workspace_id), name)
