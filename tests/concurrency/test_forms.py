"""A form that makes something is sent twice at the same moment."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

from django.db import connections

from orgs.models import ApiKey
from tests.factories import Cast
from tests.orgs.test_owner_admin_pages import SECRET, Desk

COPIES = 4


def test_a_form_sent_several_times_at_once_makes_one_key(committed_cast: Cast) -> None:
    desks = [Desk(committed_cast) for _ in range(COPIES)]
    together = Barrier(COPIES)

    def send(desk: Desk) -> str:
        try:
            together.wait(10)
            form = {"name": "nightly", "reach": "write", "lifetime_days": "30", "once": "a1b2"}
            return desk.client.post(f"{desk.home}keys/new/", form).content.decode()
        finally:
            connections.close_all()

    with ThreadPoolExecutor(COPIES) as pool:
        answers = list(pool.map(send, desks))
    assert ApiKey.objects.filter(name="nightly").count() == 1
    assert sum(bool(SECRET.search(answer)) for answer in answers) == 1
