"""What is over is forgotten: a chore of the workers, in small pieces."""

from __future__ import annotations

from django.db.models import Q

from core.clock import now
from orgs.models import Invitation, Login

ROWS_A_RUN = 500  # of each kind: a run holds up no other chore


def sweep(*, limit: int = ROWS_A_RUN) -> int:
    """At most `limit` rows of each kind; returns how many there were."""
    return forget_ended_logins(limit=limit) + forget_dead_links(limit=limit)


def forget_ended_logins(*, limit: int) -> int:
    """Nobody is told: what was open under them ended by itself when they did."""
    ended = Login.objects.filter(expires_at__lte=now())
    oldest = list(ended.order_by("expires_at").values_list("pk", flat=True)[:limit])
    # Asked again, for a login may have been prolonged in between.
    count: int = ended.filter(pk__in=oldest).delete()[0]
    return count


def forget_dead_links(*, limit: int) -> int:
    """Of invitations that are accepted, revoked or too old the digest goes; the row stays, for
    owners to see.
    """
    is_over = Q(accepted_at__isnull=False) | Q(revoked_at__isnull=False) | Q(expires_at__lte=now())
    dead = Invitation.objects.filter(is_over, digest__isnull=False)
    found = list(dead.order_by("pk").values_list("pk", flat=True)[:limit])
    return Invitation.objects.filter(pk__in=found).update(digest=None)
