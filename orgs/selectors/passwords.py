"""Whose password a link sets. Service accounts have none."""

from __future__ import annotations

from django.contrib.auth.tokens import default_token_generator
from django.db.models import QuerySet

from core.ids import InvalidId, Prefix, decode_id
from orgs.models import User


def people() -> QuerySet[User]:
    return User.objects.filter(is_active=True, service_of__isnull=True)


def find_reset(*, person: str, token: str) -> User | None:
    """Whose password this link sets; None for a link that is used, old, or never was."""
    try:
        user = people().filter(pk=decode_id(Prefix.USER, person)).first()
    except InvalidId:
        return None
    return user if user is not None and default_token_generator.check_token(user, token) else None
