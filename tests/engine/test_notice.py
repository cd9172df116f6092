"""A provider is available while a worker lives that serves its kind."""

from __future__ import annotations

import time
from datetime import timedelta
from pathlib import Path
from uuid import uuid4

from django.db.models.functions import Now

from catalog.kinds import CONNECTABLE, ProviderKind, ProviderState
from catalog.models import LiveWorker, Provider
from catalog.selectors import served_kinds, state_of
from catalog.services.providers import create_provider, set_credentials
from catalog.services.workers import note_worker
from core.db import in_db_thread
from engine.providers.registry import KINDS
from tests.engine.conftest import working
from tests.factories import Cast


def test_owners_connect_what_workers_serve_and_nothing_else() -> None:
    assert set(CONNECTABLE) == set(KINDS) - {ProviderKind.DEMO}


async def test_a_worker_is_noticed_when_it_starts(committed_cast: Cast, home: Path) -> None:
    assert await in_db_thread(served_kinds) == frozenset()
    limit = time.monotonic() + 10
    async with working(home):
        while await in_db_thread(served_kinds) != frozenset(KINDS):
            assert time.monotonic() < limit


def test_a_silent_worker_is_none(cast: Cast) -> None:
    token = uuid4()
    note_worker(token=token, name="w", kinds=["demo"])
    note_worker(token=uuid4(), name="x" * 400, kinds=["openai_compatible"])
    assert served_kinds() == {"demo", "openai_compatible"}
    LiveWorker.objects.filter(token=token).update(seen_at=Now() - timedelta(seconds=21))
    assert served_kinds() == {"openai_compatible"}
    note_worker(token=token, name="w", kinds=["demo"])
    assert served_kinds() == {"demo", "openai_compatible"}
    LiveWorker.objects.update(seen_at=Now() - timedelta(hours=2))
    note_worker(token=token, name="w", kinds=["demo"])
    assert LiveWorker.objects.count() == 1


def test_what_is_missing_is_named(cast: Cast) -> None:
    demo = Provider.objects.get(organization=cast.organization)
    assert state_of(demo, {"demo"}) is ProviderState.AVAILABLE
    assert state_of(demo, set()) is ProviderState.NO_WORKER
    demo.is_enabled = False
    assert state_of(demo, {"demo"}) is ProviderState.DISABLED
    vendor = create_provider(
        organization=cast.organization,
        slug="vendor",
        kind=ProviderKind.OPENAI_COMPATIBLE,
        name="Vendor",
        models=[],
    )
    served = {"openai_compatible"}
    assert state_of(vendor, served) is ProviderState.NO_CREDENTIALS
    vendor.base_url = "https://models.example.test/v1"
    assert state_of(vendor, served) is ProviderState.AVAILABLE
    vendor.base_url = ""
    set_credentials(provider=vendor, api_key="a-long-enough-key-0042")
    assert state_of(vendor, served) is ProviderState.AVAILABLE
