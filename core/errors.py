"""What the domain may say no with. Only `core.api.errors` knows which HTTP status that is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


class DomainError(Exception):
    """The request could not be done.

    `code` is stable and snake_case, `message` one sentence for a person that says what would be
    right, `param` the path of the field at fault (`events[0].content`), `details` JSON.
    """

    default_code = "invalid_request"

    def __init__(
        self,
        code: str = "",
        message: str = "",
        *,
        param: str | None = None,
        details: Mapping[str, Any] | None = None,
    ) -> None:
        self.code = code or self.default_code
        self.message = message or (type(self).__doc__ or "").strip().split("\n")[0]
        self.param = param
        self.details: Mapping[str, Any] = details or {}
        super().__init__(f"{self.code}: {self.message}")


class InvalidInput(DomainError):
    """The request is not valid."""

    default_code = "invalid_request"


class Unauthenticated(DomainError):
    """Sign in, or send an API key that is valid."""

    default_code = "unauthenticated"


class Forbidden(DomainError):
    """You may see this, but you may not do that."""

    default_code = "forbidden"


class NotFound(DomainError):
    """There is nothing here that you may see."""

    default_code = "not_found"


class Conflict(DomainError):
    """The present state does not allow this."""

    default_code = "conflict"


class TooLarge(DomainError):
    """The request is larger than allowed."""

    default_code = "too_large"


class Unprocessable(DomainError):
    """The request was understood, but what it names cannot be used."""

    default_code = "unprocessable"


class RateLimited(DomainError):
    """Too many requests; wait before the next one."""

    default_code = "rate_limited"

    def __init__(self, retry_after_seconds: int, message: str = "") -> None:
        super().__init__(message=message)
        self.retry_after_seconds = retry_after_seconds


class Unavailable(DomainError):
    """The server cannot do this at the moment; try again shortly."""

    default_code = "unavailable"
