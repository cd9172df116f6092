"""From where the present request came. Set at the rim, read where something is written down.

No rule may depend on it: who may do what is in an access.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Whence:
    """`address` as the server sees it: behind a trusted proxy, the client's. Empty for a command
    on the server itself. `user_agent`: what the client calls itself; anybody may write anything.
    """

    address: str = ""
    request_id: str = ""
    user_agent: str = ""


_present: ContextVar[Whence] = ContextVar("whence", default=Whence())  # noqa: B039 (immutable)


def present() -> Whence:
    return _present.get()


@contextmanager
def coming_from(whence: Whence) -> Iterator[None]:
    token = _present.set(whence)
    try:
        yield
    finally:
        _present.reset(token)
