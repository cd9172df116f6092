"""Workers say that they live, and what they serve. Nobody's rights are asked: they are ours."""

from __future__ import annotations

from collections.abc import Collection
from datetime import timedelta
from uuid import UUID

from django.db import transaction
from django.db.models.functions import Now

from catalog.models import LiveWorker

NOTICE_SECONDS = 5.0
_KEPT_FOR = timedelta(hours=1)


@transaction.atomic
def note_worker(*, token: UUID, name: str, kinds: Collection[str]) -> None:
    LiveWorker.objects.update_or_create(
        token=token, defaults={"name": name[:300], "kinds": sorted(kinds), "seen_at": Now()}
    )
    LiveWorker.objects.filter(seen_at__lt=Now() - _KEPT_FOR).delete()
