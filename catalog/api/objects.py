"""What the API shows of providers and their models: for the answers and for their description."""

from __future__ import annotations

from collections.abc import Collection
from decimal import Decimal
from typing import Any

from rest_framework import serializers

from catalog.kinds import ProviderState
from catalog.models import Model, Provider
from catalog.probing.verdicts import Outcome, Verdict
from catalog.selectors import state_of
from core.api.pagination import PageObject
from core.clock import rfc3339


def _kind(name: str) -> serializers.ChoiceField:
    return serializers.ChoiceField(choices=[(name, name)])


class ProviderModelObject(serializers.Serializer[Any]):
    id = serializers.CharField()
    type = _kind("provider_model")
    model_id = serializers.CharField(help_text="As the provider knows it.")
    display_name = serializers.CharField()
    aliases = serializers.ListField(child=serializers.CharField())
    context_size = serializers.IntegerField(allow_null=True)
    efforts = serializers.ListField(child=serializers.CharField())
    input_price = serializers.CharField(allow_null=True, help_text="Per million tokens.")
    output_price = serializers.CharField(allow_null=True, help_text="Per million tokens.")
    is_enabled = serializers.BooleanField()
    is_default = serializers.BooleanField()


class ProviderObject(serializers.Serializer[Any]):
    id = serializers.CharField()
    type = _kind("provider")
    slug = serializers.CharField(help_text="How sessions name it: `slug/model`.")
    kind = serializers.CharField()
    name = serializers.CharField()
    base_url = serializers.CharField(allow_null=True, help_text="Null: the vendor's own.")
    has_key = serializers.BooleanField()
    key_ends_with = serializers.CharField(allow_null=True, help_text="Null for short keys too.")
    is_enabled = serializers.BooleanField()
    state = serializers.ChoiceField(
        choices=[(state.value, state.value) for state in ProviderState],
        help_text="`available`, or what is missing before sessions can use it.",
    )
    models = ProviderModelObject(many=True)
    last_test = serializers.JSONField(
        help_text="{outcome, text, model_id, at} of the address and key stored now, or null."
    )
    created_at = serializers.DateTimeField()


class ProviderPageObject(PageObject):
    data = ProviderObject(many=True)  # type: ignore[assignment]


class ProviderTestObject(serializers.Serializer[Any]):
    type = _kind("provider_test")
    outcome = serializers.ChoiceField(
        choices=[(outcome.value, outcome.value) for outcome in Outcome]
    )
    text = serializers.CharField(help_text="One sentence, and the provider's own words, redacted.")
    model_id = serializers.CharField(help_text="The model that was asked.")
    seconds = serializers.FloatField(help_text="Until it began to answer, or the test ended.")


def provider_json(provider: Provider, served: Collection[str]) -> dict[str, Any]:
    return {
        "id": provider.public_id,
        "type": "provider",
        "slug": provider.slug,
        "kind": provider.kind,
        "name": provider.name,
        "base_url": provider.shown_base_url or None,
        "has_key": bool(provider.encrypted_credentials),
        "key_ends_with": provider.credentials_end or None,
        "is_enabled": provider.is_enabled,
        "state": state_of(provider, served),
        "models": [model_json(model) for model in provider.models.all()],
        "last_test": provider.last_test,
        "created_at": rfc3339(provider.created_at),
    }


def model_json(model: Model) -> dict[str, Any]:
    return {
        "id": model.public_id,
        "type": "provider_model",
        "model_id": model.model_id,
        "display_name": model.display_name,
        "aliases": model.aliases,
        "context_size": model.context_size,
        "efforts": model.efforts,
        "input_price": _price(model.input_price),
        "output_price": _price(model.output_price),
        "is_enabled": model.is_enabled,
        "is_default": model.is_default,
    }


def verdict_json(verdict: Verdict) -> dict[str, Any]:
    return {
        "type": "provider_test",
        "outcome": verdict.outcome,
        "text": verdict.sentence,
        "model_id": verdict.model,
        "seconds": round(verdict.seconds, 3),
    }


def _price(value: Decimal | None) -> str | None:
    return None if value is None else f"{value.normalize():f}"
