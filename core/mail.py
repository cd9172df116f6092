"""Mail leaves on threads of its own: no request waits for a mail server, and none shows by its
length whether there was anything to send.

What waits here is lost when the process ends: whoever waits for a mail can ask for another.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from smtplib import SMTPException
from typing import Final

from django.core.mail import EmailMessage
from django.db import close_old_connections, connection

from core.errors import Unavailable

logger = logging.getLogger(__name__)

_THREADS: Final = 2
WAITING_MAX: Final = 200
_executor = ThreadPoolExecutor(_THREADS, thread_name_prefix="mail")
_places = threading.BoundedSemaphore(WAITING_MAX)


def send_later(make: Callable[[], EmailMessage | None]) -> None:
    """`make` runs there too, and may ask the database; None: there is nothing to send.

    Raises Unavailable when too much waits already.
    """
    if not _places.acquire(blocking=False):
        raise Unavailable
    _executor.submit(_send, make)


def _send(make: Callable[[], EmailMessage | None]) -> None:
    try:
        message = make()
        if message is not None:
            message.send()
    except (SMTPException, OSError) as error:
        # Its text may name the person; the kind says what to look at.
        logger.error("mail.not_sent error=%s", type(error).__name__)
    except Exception:
        logger.exception("mail.failed")
    finally:
        _places.release()
        if not connection.in_atomic_block:
            close_old_connections()
