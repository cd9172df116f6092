"""Who administers an organization connects providers, changes them, and removes them.

A key goes in and never comes out: audit lines and answers tell its last four characters at most.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from django.db import transaction
from django.utils.text import slugify

from catalog.kinds import CONNECTABLE, ProviderKind
from catalog.models import Agent, Provider
from catalog.services.defaults import keeping_a_default
from catalog.services.models import insert_model
from catalog.services.providers import put_credentials
from catalog.services.validation import (
    require_base_url,
    require_key,
    require_reachable,
    require_slug,
)
from core.errors import Conflict, InvalidInput, NotFound
from orgs.access import Access
from orgs.models import Organization
from orgs.models.audit import AuditAction
from orgs.roles import OrganizationAction
from orgs.services import audit
from orgs.services.holding import hold_organization
from orgs.services.validation import require_name

PROVIDERS_MAX = 50
_SLUG_TRIES = PROVIDERS_MAX + 1


@dataclass(frozen=True, slots=True)
class NewProvider:
    """`slug`: how sessions name it, for ever; empty: made from the name. `base_url` empty: the
    vendor's own. `models`: fields by name, each with `model_id` at least.
    """

    name: str
    kind: str = ProviderKind.OPENAI_COMPATIBLE
    slug: str = ""
    base_url: str = ""
    api_key: str = field(default="", repr=False)
    models: Sequence[Mapping[str, Any]] = ()


@dataclass(frozen=True, slots=True)
class ProviderChanges:
    """What is None stays. `api_key` empty: none any more."""

    name: str | None = None
    base_url: str | None = None
    api_key: str | None = field(default=None, repr=False)
    is_enabled: bool | None = None


def connect_provider(*, access: Access, organization_id: UUID, new: NewProvider) -> Provider:
    """Raises NotFound, Forbidden, InvalidInput, Conflict `slug_taken`, `too_many_providers`."""
    access.require_in(OrganizationAction.MANAGE, organization_id)
    if new.kind not in CONNECTABLE:
        raise InvalidInput(
            "kind_not_supported", f"Use one of {', '.join(CONNECTABLE)}.", param="kind"
        )
    base_url = require_base_url(new.base_url)
    require_reachable(base_url)
    return _connect(access, organization_id, new, base_url)


def update_provider(
    *, access: Access, organization_id: UUID, provider_id: UUID, changes: ProviderChanges
) -> Provider:
    """Raises NotFound, Forbidden, InvalidInput, Conflict `key_needed`, `default_needed`."""
    access.require_in(OrganizationAction.MANAGE, organization_id)
    base_url = None
    if changes.base_url is not None:
        base_url = require_base_url(changes.base_url)
        found = Provider.objects.filter(organization_id=organization_id, pk=provider_id).first()
        if found is not None and base_url != found.base_url:
            require_reachable(base_url)
    return _update(access, organization_id, provider_id, changes, base_url)


@transaction.atomic
def remove_provider(*, access: Access, organization_id: UUID, provider_id: UUID) -> None:
    """Agents that use its models go over to the organization's default. Raises NotFound, Forbidden,
    Conflict `default_needed`.
    """
    organization, access = hold_organization(
        access=access, organization_id=organization_id, action=OrganizationAction.MANAGE
    )
    provider = hold_provider(organization, provider_id)
    models = list(provider.models.order_by("model_id").values_list("model_id", flat=True))
    agents = Agent.objects.filter(model__provider=provider).count()
    target = target_of(provider)
    with keeping_a_default(organization_id):
        provider.delete()
    audit.record(
        access=access,
        organization_id=organization_id,
        action=AuditAction.PROVIDER_REMOVED,
        target=target,
        changes={"models": (models, []), "agents": (agents or None, None)},
    )


def hold_provider(organization: Organization, provider_id: UUID) -> Provider:
    """Of an organization that is held: nobody else changes its providers meanwhile."""
    found = Provider.objects.filter(organization=organization, pk=provider_id).first()
    if found is None:
        raise NotFound
    return found


def target_of(provider: Provider) -> audit.Target:
    return audit.Target("provider", provider.public_id, provider.name)


@transaction.atomic
def _connect(access: Access, organization_id: UUID, new: NewProvider, base_url: str) -> Provider:
    organization, access = hold_organization(
        access=access, organization_id=organization_id, action=OrganizationAction.MANAGE
    )
    if organization.providers.count() >= PROVIDERS_MAX:
        raise Conflict("too_many_providers", f"An organization has at most {PROVIDERS_MAX}.")
    name = require_name(new.name)
    provider = Provider(
        organization=organization,
        slug=_free_slug(organization, new.slug, name),
        kind=new.kind,
        name=name,
        base_url=base_url,
    )
    if new.api_key:
        put_credentials(provider, require_key(new.api_key))
    provider.save()
    audit.record(
        access=access,
        organization_id=organization_id,
        action=AuditAction.PROVIDER_CONNECTED,
        target=target_of(provider),
        changes={
            "kind": (None, provider.kind),
            "base_url": (None, base_url or None),
            "key_ends_with": (None, _told_end(provider)),
        },
    )
    for number, fields in enumerate(new.models):
        insert_model(provider, fields, access=access, at=f"models[{number}].")
    return provider


@transaction.atomic
def _update(
    access: Access,
    organization_id: UUID,
    provider_id: UUID,
    changes: ProviderChanges,
    base_url: str | None,
) -> Provider:
    organization, access = hold_organization(
        access=access, organization_id=organization_id, action=OrganizationAction.MANAGE
    )
    provider = hold_provider(organization, provider_id)
    _require_fits(provider, changes)
    if base_url is not None and changes.api_key is None:
        _require_same_place(provider, base_url)
    wanted = {
        "name": None if changes.name is None else require_name(changes.name),
        "base_url": base_url,
        "is_enabled": changes.is_enabled,
    }
    changed = {
        name: (getattr(provider, name), value)
        for name, value in wanted.items()
        if value is not None and value != getattr(provider, name)
    }
    if "base_url" in changed:
        changed["base_url"] = (provider.shown_base_url, changed["base_url"][1])
        provider.last_test = None
    for name, (_, value) in changed.items():
        setattr(provider, name, value)
    with keeping_a_default(organization_id):
        # Not the whole row: a test of the connection may note its outcome meanwhile.
        provider.save(update_fields=[*changed, *(["last_test"] if "base_url" in changed else [])])
    if changed:
        audit.record(
            access=access,
            organization_id=organization_id,
            action=AuditAction.PROVIDER_UPDATED,
            target=target_of(provider),
            changes=changed,
        )
    if changes.api_key is not None:
        _replace_key(access, provider, changes.api_key)
    return provider


def _replace_key(access: Access, provider: Provider, key: str) -> None:
    old = _told_end(provider)
    put_credentials(provider, require_key(key) if key else "")
    provider.last_test = None
    provider.save(update_fields=["encrypted_credentials", "credentials_end", "last_test"])
    audit.record(
        access=access,
        organization_id=provider.organization_id,
        action=AuditAction.PROVIDER_KEY_REPLACED,
        target=target_of(provider),
        changes={"key_ends_with": (old, _told_end(provider))},
    )


def _require_fits(provider: Provider, changes: ProviderChanges) -> None:
    if provider.kind == ProviderKind.DEMO and (changes.base_url or changes.api_key):
        raise InvalidInput("kind_not_supported", "The demo has neither an address nor a key.")


def _require_same_place(provider: Provider, base_url: str) -> None:
    """Whoever may change the address need not know the key: it is not sent to another server, nor
    to another path of the same one, which may be another customer's of a shared gateway.
    """
    if provider.encrypted_credentials and base_url != provider.base_url:
        raise Conflict(
            "key_needed",
            "Write the key again: the stored one is not sent to another address.",
            param="api_key",
        )


def _told_end(provider: Provider) -> str | None:
    if not provider.encrypted_credentials:
        return None
    return f"…{provider.credentials_end}"


def _free_slug(organization: Organization, asked: str, name: str) -> str:
    taken = set(organization.providers.values_list("slug", flat=True))
    if asked:
        if require_slug(asked) in taken:
            raise Conflict(
                "slug_taken", "Another provider has this short name; choose one.", param="slug"
            )
        return asked
    base = slugify(name)[:40].strip("-_") or "provider"
    tries = [base, *(f"{base}-{number}" for number in range(2, _SLUG_TRIES + 2))]
    return next(each for each in tries if each not in taken)
