"""The models that a provider offers: added, changed and removed by who administers."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Any
from uuid import UUID

from django.db import transaction

from catalog.models import Agent, Model, Provider
from catalog.selectors import find_default_model
from catalog.services.defaults import keeping_a_default, make_default
from catalog.services.validation import clean_model
from core.errors import Conflict, InvalidInput, NotFound
from orgs.access import Access
from orgs.models.audit import AuditAction
from orgs.roles import OrganizationAction
from orgs.services import audit
from orgs.services.holding import hold_organization

MODELS_MAX = 200
_DEFAULTS: Mapping[str, Any] = {
    "aliases": [], "context_size": None, "efforts": [], "input_price": None, "output_price": None,
    "is_enabled": True, "is_default": False,
}  # fmt: skip


@transaction.atomic
def add_model(
    *, access: Access, organization_id: UUID, provider_id: UUID, fields: Mapping[str, Any]
) -> Model:
    """Raises NotFound, Forbidden, InvalidInput, Conflict `model_exists`, `too_many_models`."""
    provider, access = _hold(access, organization_id, provider_id)
    return insert_model(provider, fields, access=access)


@transaction.atomic
def update_model(
    *,
    access: Access,
    organization_id: UUID,
    provider_id: UUID,
    model_pk: UUID,
    fields: Mapping[str, Any],
) -> Model:
    """What is not among `fields` stays; its id at the provider stays for ever. A name left empty is
    the id. Raises NotFound,
    Forbidden, InvalidInput, Conflict `default_needed`.
    """
    provider, access = _hold(access, organization_id, provider_id)
    model = _get_model(provider, model_pk)
    wanted = {name: value for name, value in fields.items() if name != "model_id"}
    if wanted.get("display_name") == "":
        wanted["display_name"] = model.model_id
    cleaned = clean_model(wanted)
    changed = {
        name: (getattr(model, name), value)
        for name, value in cleaned.items()
        if value != getattr(model, name)
    }
    if not changed:
        return model
    for name, (_, value) in changed.items():
        setattr(model, name, value)
    with keeping_a_default(organization_id):
        model.save(update_fields=list(changed))
        if changed.get("is_default", (None, False))[1]:
            make_default(model, organization_id)
    _note(access, model, AuditAction.MODEL_UPDATED, changed)
    return model


@transaction.atomic
def remove_model(
    *, access: Access, organization_id: UUID, provider_id: UUID, model_pk: UUID
) -> None:
    """Agents that use it go over to the organization's default. Raises NotFound, Forbidden,
    Conflict `default_needed`.
    """
    provider, access = _hold(access, organization_id, provider_id)
    model = _get_model(provider, model_pk)
    agents = Agent.objects.filter(model=model).count()
    _note(access, model, AuditAction.MODEL_REMOVED, {"agents": (agents or None, None)})
    with keeping_a_default(organization_id):
        model.delete()


def insert_model(
    provider: Provider, fields: Mapping[str, Any], *, access: Access, at: str = ""
) -> Model:
    """Into a provider whose organization is held, by an access that was asked. `at`: the path of
    the fields, for errors. The first model of an organization becomes its default.
    """
    if "model_id" not in fields:
        raise InvalidInput("field_required", "A model has an id.", param=f"{at}model_id")
    model_id = fields["model_id"]
    named = {"model_id": model_id, "display_name": model_id, **_DEFAULTS, **_given(fields)}
    cleaned = clean_model(named, at=at)
    if provider.models.filter(model_id=cleaned["model_id"]).exists():
        raise Conflict(
            "model_exists", "The provider has a model of that id already.", param=f"{at}model_id"
        )
    if provider.models.count() >= MODELS_MAX:
        raise Conflict("too_many_models", f"A provider has at most {MODELS_MAX} models.")
    organization_id = provider.organization_id
    is_first = find_default_model(organization_id=organization_id) is None
    model = Model.objects.create(provider=provider, **cleaned)
    if model.is_default or (is_first and model.is_enabled):
        make_default(model, organization_id)
    told = {name: (None, getattr(model, name)) for name in ("display_name", "is_default")}
    _note(access, model, AuditAction.MODEL_ADDED, told)
    return model


def _given(fields: Mapping[str, Any]) -> dict[str, Any]:
    """A display name left empty is the id."""
    return {k: v for k, v in fields.items() if k != "display_name" or v}


def _hold(access: Access, organization_id: UUID, provider_id: UUID) -> tuple[Provider, Access]:
    organization, access = hold_organization(
        access=access, organization_id=organization_id, action=OrganizationAction.MANAGE
    )
    provider = organization.providers.filter(pk=provider_id).first()
    if provider is None:
        raise NotFound
    return provider, access


def _get_model(provider: Provider, model_pk: UUID) -> Model:
    found = provider.models.filter(pk=model_pk).first()
    if found is None:
        raise NotFound
    return found


def _note(
    access: Access, model: Model, action: AuditAction, changes: Mapping[str, tuple[Any, Any]]
) -> None:
    name = f"{model.provider.name}: {model.display_name}"
    audit.record(
        access=access,
        organization_id=model.provider.organization_id,
        action=action,
        target=audit.Target("model", model.public_id, name),
        changes={field: (_plain(old), _plain(new)) for field, (old, new) in changes.items()},
    )


def _plain(value: Any) -> Any:
    return f"{value.normalize():f}" if isinstance(value, Decimal) else value
