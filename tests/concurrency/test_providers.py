"""Two who administer change providers at the same moment: one default, one of each short name."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

from django.db import connection

from catalog.models import Model, Provider
from tests.api.client import Caller
from tests.factories import Cast

BODY = {"name": "Harbour", "base_url": "http://127.0.0.1:9/v1"}


def at_once(cast: Cast, sends: list[tuple[str, str, object]]) -> list[int]:
    """The statuses of these requests, by the owner and the admin in turn."""
    barrier = threading.Barrier(len(sends))
    callers = [Caller(cast, ("owner", "admin")[number % 2]) for number in range(len(sends))]

    def send(number: int) -> int:
        method, path, body = sends[number]
        try:
            barrier.wait()
            return int(callers[number].request(method, path, body).status_code)
        finally:
            connection.close()

    with ThreadPoolExecutor(len(sends)) as pool:
        return sorted(pool.map(send, range(len(sends))))


def test_of_the_same_short_name_there_is_one(committed_cast: Cast) -> None:
    path = f"/v1/organizations/{committed_cast.organization.public_id}/providers"
    asked = [("POST", path, {**BODY, "slug": "harbour"}) for _ in range(4)]
    assert at_once(committed_cast, list(asked)) == [201, 409, 409, 409]
    unnamed = [("POST", path, BODY) for _ in range(4)]
    assert at_once(committed_cast, list(unnamed)) == [201] * 4
    rows = Provider.objects.filter(organization=committed_cast.organization)
    assert len(set(rows.values_list("slug", flat=True))) == rows.count() == 6


def test_whatever_is_chosen_at_once_one_model_is_the_default(committed_cast: Cast) -> None:
    path = f"/v1/organizations/{committed_cast.organization.public_id}/providers"
    models = [{"model_id": f"m{number}"} for number in range(4)]
    made = Caller(committed_cast, "owner").post(path, {**BODY, "models": models}).json()
    here = f"{path}/{made['id']}/models"
    chosen = [("POST", f"{here}/{model['id']}", {"is_default": True}) for model in made["models"]]
    assert at_once(committed_cast, list(chosen)) == [200] * 4
    rows = Model.objects.filter(provider__organization=committed_cast.organization)
    assert rows.filter(is_default=True).count() == 1
    default = rows.get(is_default=True)
    others = [model["id"] for model in made["models"] if model["id"] != default.public_id]
    removed = [("DELETE", f"{here}/{name}", None) for name in (default.public_id, *others)]
    assert at_once(committed_cast, list(removed)) == [204, 204, 204, 409]
