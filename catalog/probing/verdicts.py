"""What came of trying a provider, as a word for programs and a sentence for people. No I/O."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

TRY_SECONDS = 8


class Outcome(StrEnum):
    """Stable words: the API answers with them."""

    WORKS = "works"
    SLOW = "slow"
    HOST_UNKNOWN = "host_unknown"
    ADDRESS_REFUSED = "address_refused"
    UNREACHABLE = "unreachable"
    TLS_FAILED = "tls_failed"
    WRONG_KEY = "wrong_key"
    WRONG_PATH = "wrong_path"
    REDIRECTED = "redirected"
    MODEL_UNKNOWN = "model_unknown"
    NO_QUOTA = "no_quota"
    RATE_LIMITED = "rate_limited"
    REQUEST_REFUSED = "request_refused"
    CLOSED = "closed"
    BROKEN = "broken"


SENTENCES = {
    Outcome.WORKS: "It works: {model} began to answer after {seconds} seconds.",
    Outcome.SLOW: "It did not begin to answer within {limit} seconds.",
    Outcome.HOST_UNKNOWN: "There is no such host: {host}. Look for a slip in the base URL.",
    Outcome.ADDRESS_REFUSED: "{reason}",
    Outcome.UNREACHABLE: "Nothing answers at {host}. Look at the host and port of the base URL.",
    Outcome.TLS_FAILED: "There is no secure connection to {host}: {reason}.",
    Outcome.WRONG_KEY: "The address is right, and the key was refused.",
    Outcome.WRONG_PATH: "{host} answers, but not with a model at this path. Look at the end of the "
    "base URL.",
    Outcome.REDIRECTED: "{host} redirects elsewhere. Write the address that it leads to.",
    Outcome.MODEL_UNKNOWN: "Address and key are right, and there is no model {model}.",
    Outcome.NO_QUOTA: "Address and key are right, and the account has no quota or credit left.",
    Outcome.RATE_LIMITED: "The address is right, and it takes no more requests at the moment.",
    Outcome.REQUEST_REFUSED: "The address is right, and it refused the request.",
    Outcome.CLOSED: "{host} closed the connection without an answer.",
    Outcome.BROKEN: "The host answers, and has a fault of its own.",
}

_TELL_THE_REASON_THEMSELVES = frozenset({Outcome.ADDRESS_REFUSED, Outcome.TLS_FAILED})


@dataclass(frozen=True, slots=True)
class Verdict:
    """`reason`: the words of the provider, or of TLS, redacted. `seconds`: until it began to
    answer.
    """

    outcome: Outcome
    host: str
    model: str
    seconds: float
    reason: str = ""

    @property
    def is_good(self) -> bool:
        return self.outcome is Outcome.WORKS

    @property
    def sentence(self) -> str:
        said = SENTENCES[self.outcome].format(
            model=self.model,
            host=self.host,
            seconds=f"{self.seconds:.1f}",
            limit=TRY_SECONDS,
            reason=self.reason,
        )
        if not self.reason or self.outcome in _TELL_THE_REASON_THEMSELVES:
            return said
        return f"{said} It said: {self.reason}"
