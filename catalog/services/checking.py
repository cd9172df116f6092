"""Test connection: what is wrong with a provider as it is stored, in one sentence."""

from __future__ import annotations

import asyncio
import threading
from importlib import import_module
from uuid import UUID

from django.conf import settings
from django.db import close_old_connections, connection

from catalog.kinds import ProviderConnection, ProviderKind
from catalog.models import Model, Provider
from catalog.probing.verdicts import TRY_SECONDS, Verdict
from catalog.selectors import get_provider
from core.clock import now, rfc3339
from core.encryption import decrypt
from core.errors import Conflict, NotFound, RateLimited
from core.tries import count_try
from orgs.access import Access

# Of one organization: enough to mend a slip, too few to look around with.
TESTS_PER_MINUTE = 10
WINDOW_SECONDS = 60
# In one process, each on a thread of its own: a slow server must not keep others from being served.
_slots = threading.BoundedSemaphore(4)
_TESTABLE = frozenset({ProviderKind.OPENAI_COMPATIBLE, ProviderKind.ANTHROPIC})


def check_connection(
    *, access: Access, organization_id: UUID, provider_id: UUID, model_pk: UUID | None = None
) -> Verdict:
    """Asks one model for a word: the named one, else the default, else the first that is enabled.
    Takes TRY_SECONDS at most, and holds no transaction meanwhile.

    Raises NotFound, Forbidden, Conflict `no_models`, `kind_not_supported`, RateLimited, Unavailable
    for a key that cannot be deciphered.
    """
    provider = get_provider(access=access, organization_id=organization_id, provider_id=provider_id)
    kind = ProviderKind(provider.kind)
    if kind not in _TESTABLE:
        raise Conflict("kind_not_supported", "There is no connection to test for this kind.")
    model = _choose(provider, model_pk)
    _count(organization_id)
    secret = decrypt(provider.encrypted_credentials) if provider.encrypted_credentials else ""
    verdict = _ask(ProviderConnection(kind, provider.base_url, secret), model.model_id)
    _keep(provider, verdict)
    return verdict


def _choose(provider: Provider, model_pk: UUID | None) -> Model:
    models = list(provider.models.all())
    if model_pk is not None:
        named = next((each for each in models if each.pk == model_pk), None)
        if named is None:
            raise NotFound
        return named
    enabled = [each for each in models if each.is_enabled]
    if not enabled:
        raise Conflict("no_models", "Add a model first: a test asks one for a word.")
    return next((each for each in enabled if each.is_default), enabled[0])


def _count(organization_id: UUID) -> None:
    limits = {f"provider-test:{organization_id.hex}": TESTS_PER_MINUTE}
    wait = count_try(limits=limits, window_seconds=WINDOW_SECONDS).wait_seconds
    if wait:
        raise RateLimited(wait, f"That were many tests; the next one may be in {wait} seconds.")


def _ask(place: ProviderConnection, model_id: str) -> Verdict:
    if not _slots.acquire(blocking=False):
        raise RateLimited(TRY_SECONDS, "Other tests are running; try again in some seconds.")
    try:
        if not connection.in_atomic_block:
            close_old_connections()  # others may have ours while we wait for a stranger
        # Its HTTP client would delay each start of a process, and few processes ever test.
        probe = import_module("catalog.probing.probe").probe
        trying = probe(connection=place, model_id=model_id, places=settings.PROVIDER_PRIVATE_HOSTS)
        verdict: Verdict = asyncio.run(trying)
        return verdict
    finally:
        _slots.release()


def _keep(provider: Provider, verdict: Verdict) -> None:
    """Unless address or key were changed meanwhile: then it tells of something that is no more."""
    Provider.objects.filter(
        pk=provider.pk,
        base_url=provider.base_url,
        encrypted_credentials=provider.encrypted_credentials,
    ).update(
        last_test={
            "outcome": verdict.outcome.value,
            "text": verdict.sentence,
            "model_id": verdict.model,
            "at": rfc3339(now()),
        }
    )
