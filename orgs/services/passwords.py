"""A person's password: changed by who knows it, or set anew by who reads their mail.

Either way everything else that is signed in as them ends. Service accounts have none.
"""

from __future__ import annotations

from django.conf import settings
from django.contrib import auth
from django.contrib.auth.password_validation import validate_password
from django.contrib.auth.tokens import default_token_generator
from django.core.exceptions import ValidationError
from django.core.mail import EmailMessage
from django.db import transaction
from django.template.loader import render_to_string

from core.errors import InvalidInput, NotFound
from core.text import is_storable
from orgs.access import Access
from orgs.login_store import SessionStore, announce_ends
from orgs.models import Login, User
from orgs.selectors.passwords import find_reset, people

PASSWORD_MAX_CHARACTERS = 1_000


def require_password(password: str, *, user: User | None = None, param: str = "password") -> str:
    """One that is good enough. Raises InvalidInput `weak_password`, which says what is wrong."""
    if len(password) > PASSWORD_MAX_CHARACTERS or not is_storable(password):
        raise InvalidInput(
            "weak_password",
            f"A password has at most {PASSWORD_MAX_CHARACTERS:,} characters.",
            param=param,
        )
    try:
        validate_password(password, user)
    except ValidationError as error:
        raise InvalidInput("weak_password", " ".join(error.messages), param=param) from None
    return password


def change_password(*, access: Access, login: SessionStore, current: str, new: str) -> None:
    """The present login goes on under a new cookie value; all others end.

    Raises NotFound for who is no person, InvalidInput `wrong_password` or `weak_password`.
    """
    kept = login.find_id()
    if access.user_id is None or kept is None:
        raise NotFound
    with transaction.atomic():
        user = people().select_for_update(no_key=True).filter(pk=access.user_id).first()
        if user is None:
            raise NotFound
        if len(current) > PASSWORD_MAX_CHARACTERS or not user.check_password(current):
            raise InvalidInput(
                "wrong_password", "That is not your present password.", param="current"
            )
        _set(user, require_password(new, user=user, param="new"))
        Login.objects.filter(user=user).exclude(pk=kept).delete()
        # With the password, or the next request would find a login of the old one, and end it.
        login.cycle_key()
        login[auth.HASH_SESSION_KEY] = user.get_session_auth_hash()
        login.save()
        announce_ends()


def make_reset_mail(*, email: str, origin: str) -> EmailMessage | None:
    """With a link that is good for an hour and for one new password; None where nobody signs in
    with this address. `origin`: of our own pages, as in `https://sederunt.example`.
    """
    user = people().filter(email__iexact=email).first()
    if user is None or not user.has_usable_password():
        return None
    token = default_token_generator.make_token(user)
    context = {
        "name": user.name,
        "link": f"{origin}/password-reset/{user.public_id}/{token}/",
        "minutes": settings.PASSWORD_RESET_TIMEOUT // 60,
    }
    text = render_to_string("mail/password_reset.txt", context)
    return EmailMessage("A new password for Sederunt", text, to=[user.email])


def reset_password(*, person: str, token: str, new: str) -> User:
    """Raises NotFound for a dead link, InvalidInput `weak_password` (the link stays good)."""
    with transaction.atomic():
        found = find_reset(person=person, token=token)
        if found is None:
            raise NotFound
        # Of two uses at once the second finds another password, and so a dead link.
        user = User.objects.select_for_update(no_key=True).get(pk=found.pk)
        if not default_token_generator.check_token(user, token):
            raise NotFound
        _set(user, require_password(new, user=user, param="new"))
        Login.objects.filter(user=user).delete()
        announce_ends()
    return user


def _set(user: User, password: str) -> None:
    user.set_password(password)
    user.save(update_fields=["password"])
