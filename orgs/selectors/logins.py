"""A person's own logins: what is signed in as them. Nobody else sees them."""

from __future__ import annotations

from django.db.models import QuerySet

from core.clock import now
from orgs.access import Access
from orgs.models import Login


def list_logins(*, access: Access) -> list[Login]:
    """Those that are still good, the one used last first."""
    return list(
        own_logins(access=access).filter(expires_at__gt=now()).order_by("-last_used_at", "-pk")
    )


def own_logins(*, access: Access) -> QuerySet[Login]:
    """Expired ones, too."""
    return Login.objects.filter(user_id=access.user_id) if access.user_id else Login.objects.none()
