"""Guessing passwords is slow: failures are counted per account and per address, successes not."""

from __future__ import annotations

from core.tries import Try, count_try, forget_all, forget_try, network_of

FAILURES_PER_ACCOUNT = 8
FAILURES_PER_ADDRESS = 40
WINDOW_SECONDS = 300
# Mails with a link to a new password, whether or not the address is known here.
RESETS_PER_ACCOUNT = 3
RESETS_PER_ADDRESS = 20
RESET_WINDOW_SECONDS = 3_600


def try_password(email: str, address: str) -> Try:
    """Counts as a failure until `note_success`."""
    limits = {
        _account(email): FAILURES_PER_ACCOUNT,
        f"password from {network_of(address)}": FAILURES_PER_ADDRESS,
    }
    return count_try(limits=limits, window_seconds=WINDOW_SECONDS)


def note_success(email: str, made: Try) -> None:
    forget_try(made)
    forget_all(_account(email))


def try_reset(email: str, address: str) -> Try:
    limits = {
        f"reset of {email.casefold()}": RESETS_PER_ACCOUNT,
        f"reset from {network_of(address)}": RESETS_PER_ADDRESS,
    }
    return count_try(limits=limits, window_seconds=RESET_WINDOW_SECONDS)


def _account(email: str) -> str:
    return f"password of {email.casefold()}"
