"""Reads of the catalogue: which model a choice means, and how a worker reaches it."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from datetime import timedelta
from uuid import UUID

from django.db.models import Prefetch, Q, QuerySet
from django.db.models.functions import Now

from catalog.kinds import ModelRef, ProviderConnection, ProviderKind, ProviderState
from catalog.models import Agent, LiveWorker, Model, Provider
from core.encryption import decrypt
from core.errors import NotFound, Unprocessable
from core.ids import InvalidId, Prefix, decode_id
from orgs.access import Access
from orgs.roles import OrganizationAction

# A worker that says nothing for this long is taken for dead; it speaks several times in between.
LIVE_FOR = timedelta(seconds=20)
NEEDS_CREDENTIALS = frozenset({ProviderKind.ANTHROPIC, ProviderKind.GOOGLE})


def list_models(*, organization_id: UUID) -> QuerySet[Model]:
    """Enabled models of enabled providers."""
    return (
        Model.objects.filter(
            provider__organization_id=organization_id,
            provider__is_enabled=True,
            is_enabled=True,
        )
        .select_related("provider")
        .order_by("provider__name", "display_name", "pk")
    )


def resolve_model(*, organization_id: UUID, choice: str, provider_id: str = "") -> ModelRef:
    """The model that `provider/model`, an id, alias or display name means; case does not matter
    for the last two.

    Raises Unprocessable `model_unavailable` or `model_ambiguous`, the latter with candidates.
    """
    models = list(list_models(organization_id=organization_id))
    if provider_id:
        models = [m for m in models if provider_id in {m.provider.slug, m.provider.name}]
    exact = [m for m in models if choice in {m.model_id, f"{m.provider.slug}/{m.model_id}"}]
    wanted = choice.casefold()
    found = exact or [m for m in models if wanted in map(str.casefold, _names(m))]
    if not found:
        raise Unprocessable(
            "model_unavailable",
            f"No available model is called “{choice[:100]}”.",
            param="model",
            details={"available": [model_ref(m).full_id for m in models]},
        )
    if len(found) > 1:
        raise Unprocessable(
            "model_ambiguous",
            f"Several models are called “{choice[:100]}”; name one by provider/model.",
            param="model",
            details={"candidates": [model_ref(m).full_id for m in found]},
        )
    return model_ref(found[0])


def find_default_model(*, organization_id: UUID) -> ModelRef | None:
    model = list_models(organization_id=organization_id).filter(is_default=True).first()
    return model_ref(model) if model else None


def find_model(*, organization_id: UUID, provider_id: str, model_id: str) -> ModelRef | None:
    """By canonical ids alone, available or not: for labels of turns that ran."""
    model = (
        Model.objects.select_related("provider")
        .filter(
            provider__organization_id=organization_id,
            provider__slug=provider_id,
            model_id=model_id,
        )
        .first()
    )
    return model_ref(model) if model else None


def find_available_model(
    *, organization_id: UUID, provider_id: str, model_id: str
) -> ModelRef | None:
    """By canonical ids, if it may be used now."""
    models = list_models(organization_id=organization_id)
    model = models.filter(provider__slug=provider_id, model_id=model_id).first()
    return model_ref(model) if model else None


def find_agent(*, workspace_id: UUID, choice: str) -> Agent:
    """By id or name. Raises NotFound, with the parameter named."""
    agent = Agent.objects.filter(_called(choice), workspace_id=workspace_id).first()
    if agent is None:
        raise NotFound("agent_not_found", "This workspace has no such agent.", param="agent")
    return agent


def provider_connection(*, organization_id: UUID, provider_id: str) -> ProviderConnection:
    """For workers alone. Raises Unprocessable `model_unavailable`, also for lost credentials."""
    provider = Provider.objects.filter(
        organization_id=organization_id, slug=provider_id, is_enabled=True
    ).first()
    if provider is None:
        raise Unprocessable(
            "model_unavailable", "The model's provider was removed or switched off."
        )
    if lacks_credentials(provider):
        raise Unprocessable("model_unavailable", "The model's provider has no credentials.")
    secret = decrypt(provider.encrypted_credentials) if provider.encrypted_credentials else ""
    return ProviderConnection(ProviderKind(provider.kind), provider.base_url, secret)


def list_providers(*, access: Access, organization_id: UUID) -> QuerySet[Provider]:
    """For who administers the organization. Raises NotFound, Forbidden."""
    access.require_in(OrganizationAction.MANAGE, organization_id)
    rows = Provider.objects.filter(organization_id=organization_id).order_by("name", "pk")
    return rows.prefetch_related(
        Prefetch("models", Model.objects.order_by("display_name", "model_id", "pk"))
    )


def get_provider(*, access: Access, organization_id: UUID, provider_id: UUID) -> Provider:
    rows = list_providers(access=access, organization_id=organization_id)
    found = rows.filter(pk=provider_id).first()
    if found is None:
        raise NotFound
    return found


def served_kinds() -> frozenset[str]:
    """Of the workers that live now."""
    alive = LiveWorker.objects.filter(seen_at__gt=Now() - LIVE_FOR)
    return frozenset(kind for kinds in alive.values_list("kinds", flat=True) for kind in kinds)


def state_of(provider: Provider, served: Collection[str]) -> ProviderState:
    if not provider.is_enabled:
        return ProviderState.DISABLED
    if lacks_credentials(provider):
        return ProviderState.NO_CREDENTIALS
    return ProviderState.AVAILABLE if provider.kind in served else ProviderState.NO_WORKER


def lacks_credentials(provider: Provider) -> bool:
    """A server of one's own may want none; those of the vendors all do."""
    is_vendors = provider.kind == ProviderKind.OPENAI_COMPATIBLE and not provider.base_url
    wants = is_vendors or provider.kind in NEEDS_CREDENTIALS
    return wants and not provider.encrypted_credentials


def model_ref(model: Model) -> ModelRef:
    provider = model.provider
    return ModelRef(provider.slug, model.model_id, model.display_name, provider.name)


def _called(choice: str) -> Q:
    try:
        return Q(name=choice) | Q(pk=decode_id(Prefix.AGENT, choice))
    except InvalidId:
        return Q(name=choice)


def _names(model: Model) -> Iterable[str]:
    yield model.display_name
    yield from model.aliases
