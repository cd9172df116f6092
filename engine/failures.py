"""What a person reads when a model request failed: one sentence from a table, then the reason."""

from __future__ import annotations

from collections.abc import Iterable
from http import HTTPStatus

from core.text import clean_reason
from engine.ports import ProviderError

SENTENCES = {
    "provider_overloaded": "The model provider is overloaded.",
    "provider_rate_limited": "The model provider's rate limit was reached.",
    "provider_quota_exceeded": "The account at the model provider has no quota or credit left.",
    "provider_unavailable": "The model provider is unavailable.",
    "provider_timeout": "The model provider did not answer in time.",
    "provider_auth_failed": "The model provider refused the stored credentials.",
    "provider_model_not_found": "The model provider does not know this model.",
    "provider_bad_request": "The model provider refused the request.",
    "provider_context_exceeded": "The conversation is longer than this model can read.",
    "provider_broken_stream": "The model's answer broke off before it was complete.",
    "provider_refused": "The model provider withheld the answer.",
    "provider_misconfigured": "This model cannot be used as it is configured.",
    "too_many_steps": "The turn was ended because it took too many steps.",
    "too_many_calls": "The model asked for more tool calls at once than one answer may hold.",
    "internal_error": "The turn was ended by an error in Sederunt.",
}
RETRYABLE = frozenset(
    {
        "provider_overloaded",
        "provider_rate_limited",
        "provider_unavailable",
        "provider_timeout",
        "provider_broken_stream",
    }
)
_BY_STATUS = {
    HTTPStatus.UNAUTHORIZED: "provider_auth_failed",
    HTTPStatus.PAYMENT_REQUIRED: "provider_quota_exceeded",
    HTTPStatus.FORBIDDEN: "provider_auth_failed",
    HTTPStatus.NOT_FOUND: "provider_model_not_found",
    HTTPStatus.REQUEST_TIMEOUT: "provider_timeout",
    HTTPStatus.TOO_MANY_REQUESTS: "provider_rate_limited",
    HTTPStatus.SERVICE_UNAVAILABLE: "provider_overloaded",
    HTTPStatus.GATEWAY_TIMEOUT: "provider_timeout",
    529: "provider_overloaded",
}


def provider_error(
    code: str,
    reason: str = "",
    *,
    retry_after: float | None = None,
    secrets: Iterable[str] = (),
) -> ProviderError:
    return ProviderError(
        code,
        clean_reason(reason, secrets),
        retryable=code in RETRYABLE,
        retry_after=retry_after,
    )


def error_from_status(
    status: int,
    reason: str = "",
    *,
    retry_after: float | None = None,
    secrets: Iterable[str] = (),
) -> ProviderError:
    """The error that an HTTP status of a provider means."""
    fallback = "provider_unavailable" if status >= 500 else "provider_bad_request"
    code = _BY_STATUS.get(status, fallback)
    return provider_error(code, reason, retry_after=retry_after, secrets=secrets)


def describe(code: str, reason: str = "") -> str:
    """The sentence of the table, plus the reason where the provider gave one."""
    sentence = SENTENCES.get(code, SENTENCES["internal_error"])
    return f"{sentence} It said: {reason}" if reason else sentence
