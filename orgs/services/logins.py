"""A person's own logins end."""

from __future__ import annotations

from uuid import UUID

from django.db import transaction

from core.errors import NotFound
from orgs.access import Access
from orgs.login_store import announce_ends
from orgs.selectors.logins import list_logins, own_logins

# Of one person. Whoever signs in more often ends the login that was unused for longest.
LOGINS_MAX = 50


def end_login(*, access: Access, login_id: UUID) -> None:
    """Its pages, streams and sockets end within two seconds. Raises NotFound."""
    with transaction.atomic():
        if not own_logins(access=access).filter(pk=login_id).delete()[0]:
            raise NotFound
        announce_ends()


def end_logins(*, access: Access, except_id: UUID | None = None) -> int:
    """All of them, or all but one; returns how many ended."""
    with transaction.atomic():
        rows = own_logins(access=access)
        ended: int = (rows.exclude(pk=except_id) if except_id else rows).delete()[0]
        announce_ends()
    return ended


def trim_logins(*, access: Access) -> None:
    """After a sign-in: what expired is forgotten, and no list grows for ever."""
    kept = [login.pk for login in list_logins(access=access)[:LOGINS_MAX]]
    if own_logins(access=access).exclude(pk__in=kept).delete()[0]:
        announce_ends()
