"""A person's own logins: what is signed in as them, and how to end it."""

from __future__ import annotations

from uuid import UUID

from django.db import transaction
from django.db.models import QuerySet

from core.clock import now
from core.errors import NotFound
from orgs.access import Access
from orgs.login_store import announce_ends
from orgs.models import Login

# Of one person. Whoever signs in more often ends the login that was unused for longest.
LOGINS_MAX = 50


def list_logins(*, access: Access) -> list[Login]:
    """Those that are still good, the one used last first. Nobody but the person sees them."""
    return list(_own(access).filter(expires_at__gt=now()).order_by("-last_used_at", "-pk"))


def end_login(*, access: Access, login_id: UUID) -> None:
    """Its pages, streams and sockets end within two seconds. Raises NotFound."""
    with transaction.atomic():
        if not _own(access).filter(pk=login_id).delete()[0]:
            raise NotFound
        announce_ends()


def end_logins(*, access: Access, except_id: UUID | None = None) -> int:
    """All of them, or all but one; returns how many ended."""
    with transaction.atomic():
        rows = _own(access)
        ended: int = (rows.exclude(pk=except_id) if except_id else rows).delete()[0]
        announce_ends()
    return ended


def trim_logins(*, access: Access) -> None:
    """After a sign-in: what expired is forgotten, and no list grows for ever."""
    kept = _own(access).filter(expires_at__gt=now()).order_by("-last_used_at", "-pk")[:LOGINS_MAX]
    if _own(access).exclude(pk__in=list(kept.values_list("pk", flat=True))).delete()[0]:
        announce_ends()


def _own(access: Access) -> QuerySet[Login]:
    return Login.objects.filter(user_id=access.user_id) if access.user_id else Login.objects.none()
