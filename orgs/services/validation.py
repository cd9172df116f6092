"""What people may write into names and addresses."""

from __future__ import annotations

from django.core.exceptions import ValidationError
from django.core.validators import validate_email

from core.errors import InvalidInput
from core.text import is_storable

NAME_MAX_CHARACTERS = 100
EMAIL_MAX_CHARACTERS = 254


def require_name(name: str, *, param: str = "name") -> str:
    """Of an organization, a workspace, a key, a service account. Raises InvalidInput."""
    name = name.strip()
    if not name or len(name) > NAME_MAX_CHARACTERS or not is_storable(name):
        raise InvalidInput(
            "invalid_name", f"A name has 1 to {NAME_MAX_CHARACTERS} characters.", param=param
        )
    return name


def require_email(email: str, *, param: str = "email") -> str:
    """Raises InvalidInput `invalid_email`. The letters keep their case."""
    email = email.strip()
    try:
        validate_email(email)
    except ValidationError:
        email = ""
    if not email or len(email) > EMAIL_MAX_CHARACTERS:
        raise InvalidInput("invalid_email", "Write one e-mail address.", param=param)
    return email
