"""Guessing passwords is slow: failures are counted, successes not.

What strangers guess locks out strangers. An account is locked for one network, and only by very
many guesses for all; not for the browsers in which its person signed in before, each of which has
a count of its own.
"""

from __future__ import annotations

from core.tries import Try, count_try, forget_all, forget_try, network_of

FAILURES_PER_SOURCE = 8  # of one account, from one network or one known device
FAILURES_PER_NETWORK = 40  # of whatever account
FAILURES_PER_ACCOUNT = 200  # from whatever network
WINDOW_SECONDS = 300
# Mails with a link to a new password, whether or not the address is known here.
RESETS_PER_ACCOUNT = 3
RESETS_PER_ADDRESS = 20
RESET_WINDOW_SECONDS = 3_600


def try_password(email: str, address: str, device: str = "") -> Try:
    """Counts as a failure until `note_success`. `device`: a known one of this account."""
    if device:
        limits = {_at_source(email, f"on {device}"): FAILURES_PER_SOURCE}
    else:
        network = network_of(address)
        limits = {
            _at_source(email, f"from {network}"): FAILURES_PER_SOURCE,
            f"passwords from {network}": FAILURES_PER_NETWORK,
            f"password of {email.casefold()}": FAILURES_PER_ACCOUNT,
        }
    return count_try(limits=limits, window_seconds=WINDOW_SECONDS)


def note_success(email: str, address: str, device: str, made: Try) -> None:
    """What was tried wrongly from there before counts no more either."""
    forget_try(made)
    forget_all(_at_source(email, f"on {device}" if device else f"from {network_of(address)}"))


def try_reset(email: str, address: str) -> Try:
    limits = {
        f"reset of {email.casefold()}": RESETS_PER_ACCOUNT,
        f"reset from {network_of(address)}": RESETS_PER_ADDRESS,
    }
    return count_try(limits=limits, window_seconds=RESET_WINDOW_SECONDS)


def _at_source(email: str, source: str) -> str:
    return f"password of {email.casefold()} {source}"
