"""Providers as the server itself makes them: no access is asked and nothing is audited. Who
administers an organization comes in by `catalog.services.connecting`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from django.db import transaction

from catalog.kinds import ProviderKind
from catalog.models import Model, Provider
from catalog.services.validation import end_of_key
from core.encryption import encrypt
from orgs.models import Organization


@dataclass(frozen=True, slots=True)
class NewModel:
    model_id: str
    display_name: str
    aliases: Sequence[str] = ()
    context_size: int | None = None
    efforts: Sequence[str] = ()
    is_default: bool = False


@transaction.atomic
def create_provider(
    *,
    organization: Organization,
    slug: str,
    kind: ProviderKind,
    name: str,
    models: Sequence[NewModel],
    base_url: str = "",
    api_key: str = "",
) -> Provider:
    provider = Provider(
        organization=organization, slug=slug, kind=kind, name=name, base_url=base_url
    )
    put_credentials(provider, api_key)
    provider.save()
    for model in models:
        Model.objects.create(
            provider=provider,
            model_id=model.model_id,
            display_name=model.display_name,
            aliases=list(model.aliases),
            context_size=model.context_size,
            efforts=list(model.efforts),
            is_default=model.is_default,
        )
    return provider


def create_demo_provider(*, organization: Organization) -> Provider:
    """Needs no network: an assistant to try things with, and a model that follows a script."""
    return create_provider(
        organization=organization,
        slug="demo",
        kind=ProviderKind.DEMO,
        name="Demo",
        models=[
            NewModel("assistant", "Demo assistant", context_size=32_000, is_default=True),
            NewModel("scripted", "Scripted demo", context_size=32_000),
        ],
    )


def set_credentials(*, provider: Provider, api_key: str) -> None:
    put_credentials(provider, api_key)
    provider.last_test = None
    provider.save(update_fields=["encrypted_credentials", "credentials_end", "last_test"])


def put_credentials(provider: Provider, api_key: str) -> None:
    """Into the row, which is not saved here."""
    provider.encrypted_credentials = encrypt(api_key) if api_key else ""
    provider.credentials_end = end_of_key(api_key)
