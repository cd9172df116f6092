"""Mail that waits: how long for, how much of it, and what a process that ends does with it."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from queue import Empty
from typing import Any

import pytest
from django.core.mail import EmailMessage
from django.test import Client

from core import mail
from core.errors import Unavailable

ROOT = Path(__file__).parents[2]
SLOW_MAIL = """
import os, time, django
django.setup()
from django.core.mail import EmailMessage
from core.mail import send_later

EmailMessage.send = lambda *_: time.sleep(60)
for _ in range(20):
    send_later(lambda: EmailMessage(to=["iris@example.test"]))
print("ends")
"""


@pytest.fixture
def stuck(monkeypatch: pytest.MonkeyPatch) -> Iterator[threading.Semaphore]:
    """A mail server that takes what it gets, and says nothing. It counts what it took."""
    release, taken = threading.Event(), threading.Semaphore(0)

    def send(*_: Any) -> int:
        taken.release()
        return int(release.wait(30))

    monkeypatch.setattr(EmailMessage, "send", send)
    mail._queue.cache_clear()
    yield taken
    for lane in mail.Lane:
        waiting = mail._queue(lane)
        with suppress(Empty):
            while True:
                waiting.get_nowait()
    mail._queue.cache_clear()
    release.set()


def message() -> EmailMessage:
    return EmailMessage(to=["iris@example.test"])


def test_a_sender_waits_no_longer_than_it_said(stuck: threading.Semaphore) -> None:
    began = time.monotonic()
    assert not mail.send_within(message(), seconds=0.1)
    assert time.monotonic() - began < 5


def test_what_a_server_took_and_what_there_was_nothing_of(mailoutbox: list[Any]) -> None:
    assert mail.send_within(message(), seconds=10)
    assert [sent.to for sent in mailoutbox] == [["iris@example.test"]]


def test_no_more_waits_than_fits_and_the_page_says_so(stuck: threading.Semaphore, db: None) -> None:
    for _ in range(mail.THREADS):
        mail.send_later(message)
    for _ in range(mail.THREADS):
        assert stuck.acquire(timeout=10)
    for _ in range(mail.WAITING_MAX):
        mail.send_later(message)
    with pytest.raises(Unavailable):
        mail.send_later(message)
    answer = Client().post("/password-reset/", {"email": "iris@example.test"})
    assert answer.status_code == 503
    assert "Too much mail waits" in answer.content.decode()


def test_what_is_waited_for_keeps_nothing_else_from_leaving(stuck: threading.Semaphore) -> None:
    """Or who invites many people would keep all others from a new password."""
    for _ in range(mail.THREADS):
        assert not mail.send_within(message(), seconds=0.1)
        assert stuck.acquire(timeout=10)
    mail.send_later(message)
    assert stuck.acquire(timeout=10)


def test_a_process_that_ends_waits_for_no_mail() -> None:
    environment = {
        **os.environ,
        "DJANGO_SETTINGS_MODULE": "config.settings",
        "SEDERUNT_ENV": "test",
        "DATABASE_URL": "postgresql://nobody@127.0.0.1:1/none",
    }
    ended = subprocess.run(
        [sys.executable, "-c", SLOW_MAIL],
        cwd=ROOT,
        env=environment,
        timeout=30,
        check=True,
        capture_output=True,
        text=True,
    )
    assert ended.stdout.strip() == "ends"
