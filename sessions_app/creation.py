"""What host code in this process does whenever a session comes to be."""

from __future__ import annotations

import inspect
import logging
from collections.abc import Awaitable, Callable
from itertools import count

from asgiref.sync import async_to_sync
from django.db import transaction

from sessions_app.models import Session

logger = logging.getLogger(__name__)
Hook = Callable[[Session], None] | Callable[[Session], Awaitable[None]]

_hooks: dict[int, Hook] = {}
_numbers = count()


def on_created(hook: Hook) -> Callable[[], None]:
    """Call `hook` with each session that this process makes: forks, agents' creations and agents'
    own sessions too; not when one is restored. Returns what ends that.

    It runs within the creating transaction, when the session has its log and before its first
    prompt, and is awaited. Its own failure is logged and harms nothing; what it wrote is undone.
    """
    number = next(_numbers)
    _hooks[number] = hook

    def unsubscribe() -> None:
        _hooks.pop(number, None)

    return unsubscribe


def tell_created(session: Session) -> None:
    """Inside the transaction that made it."""
    for hook in list(_hooks.values()):
        try:
            with transaction.atomic():
                _run(hook, session)
        except Exception:
            logger.exception("session.on_created_failed session=%s", session.public_id)


def _run(hook: Hook, session: Session) -> None:
    if inspect.iscoroutinefunction(hook):
        async_to_sync(hook)(session)
    else:
        hook(session)
