"""Mail leaves on threads of its own: no request waits for a mail server for longer than it says,
and none shows by its length whether there was anything to send.

What waits here is lost when the process ends, which waits for no mail either: whoever misses one
can ask for another.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from concurrent.futures import Future
from enum import StrEnum
from functools import cache
from queue import Full, Queue
from smtplib import SMTPException
from typing import Final

from django.conf import settings
from django.core.mail import EmailMessage
from django.db import close_old_connections, connection

from core.errors import Unavailable

logger = logging.getLogger(__name__)

Make = Callable[[], EmailMessage | None]
THREADS: Final = 2  # of each lane
WAITING_MAX: Final = 200


class Lane(StrEnum):
    """What waits in one keeps nothing in the other from leaving."""

    LATER = "later"
    WAITED_FOR = "waited-for"


def has_mail_server() -> bool:
    """Without one, mail stands in the server's log."""
    return not settings.EMAIL_BACKEND.endswith(".console.EmailBackend")


def send_later(make: Make) -> None:
    """`make` runs there too, and may ask the database; None: there is nothing to send.

    Raises Unavailable when too much waits already.
    """
    _hand_over(Lane.LATER, make)


def send_within(message: EmailMessage, *, seconds: float) -> bool:
    """Whether a mail server took it in this time. One that takes it later does so unseen."""
    try:
        return _hand_over(Lane.WAITED_FOR, lambda: message).result(seconds)
    except (TimeoutError, Unavailable):
        return False


def _hand_over(lane: Lane, make: Make) -> Future[bool]:
    sent: Future[bool] = Future()
    try:
        _queue(lane).put_nowait((make, sent))
    except Full:
        raise Unavailable(
            message="Too much mail waits to be sent. Try again in a minute."
        ) from None
    return sent


@cache
def _queue(lane: Lane) -> Queue[tuple[Make, Future[bool]]]:
    """With its threads, which begin with the first mail: a process may fork before."""
    waiting: Queue[tuple[Make, Future[bool]]] = Queue(WAITING_MAX)
    for number in range(THREADS):
        threading.Thread(
            target=_work, args=[waiting], name=f"mail-{lane}-{number}", daemon=True
        ).start()
    return waiting


def _work(waiting: Queue[tuple[Make, Future[bool]]]) -> None:
    while True:
        make, sent = waiting.get()
        sent.set_result(_send(make))


def _send(make: Make) -> bool:
    try:
        message = make()
        return message is not None and message.send() == 1
    except (SMTPException, OSError) as error:
        # Its text may name the person; the kind says what to look at.
        logger.error("mail.not_sent error=%s", type(error).__name__)
    except Exception:
        logger.exception("mail.failed")
    finally:
        if not connection.in_atomic_block:
            close_old_connections()
    return False
