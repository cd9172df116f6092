"""The shapes of bodies about providers and models. Rules are in services."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from catalog.kinds import CONNECTABLE, ProviderKind, ReasoningEffort
from catalog.services.models import MODELS_MAX
from catalog.services.validation import ALIASES_MAX, PRICE_DECIMALS
from core.api.fields import Flag, PublicId, StrictSerializer, Text, Whole
from core.ids import Prefix

PRICE_HELP = "Per million tokens, in a currency of your own."


class Price(serializers.DecimalField):
    """A number, or its text: JSON's numbers are not exact."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(max_digits=12, decimal_places=PRICE_DECIMALS, min_value=0, **kwargs)

    def to_internal_value(self, data: Any) -> Any:
        if isinstance(data, bool) or not isinstance(data, str | int | float):
            raise serializers.ValidationError("Use a number.", code="invalid_type")
        return super().to_internal_value(data)


class UpdateModel(StrictSerializer):
    display_name = Text(max_length=1_000, required=False, help_text="Empty: the id.")
    aliases = serializers.ListField(
        child=Text(max_length=1_000), max_length=ALIASES_MAX, required=False
    )
    context_size = Whole(
        min_value=1, required=False, allow_null=True, help_text="Tokens it can read."
    )
    efforts = serializers.ListField(
        child=serializers.ChoiceField(
            choices=[(each.value, each.value) for each in ReasoningEffort]
        ),
        max_length=len(ReasoningEffort),
        required=False,
    )
    input_price = Price(required=False, allow_null=True, help_text=PRICE_HELP)
    output_price = Price(required=False, allow_null=True, help_text=PRICE_HELP)
    is_enabled = Flag(required=False)
    is_default = Flag(
        required=False, help_text="What sessions use where nothing else says; one has it."
    )


class AddModel(UpdateModel):
    model_id = Text(max_length=1_000, help_text="As the provider knows it.")


class ConnectProvider(StrictSerializer):
    name = Text(max_length=1_000)
    kind = serializers.ChoiceField(
        choices=[(kind.value, kind.value) for kind in CONNECTABLE],
        default=ProviderKind.OPENAI_COMPATIBLE.value,
    )
    slug = Text(
        max_length=1_000,
        default="",
        help_text="How sessions name it, for ever: `slug/model`. Left out: made from the name.",
    )
    base_url = Text(
        max_length=4_000,
        default="",
        help_text="Ends before `/chat/completions`. Left out: the vendor's own.",
    )
    api_key = Text(
        max_length=4_000, default="", write_only=True, help_text="Stored encrypted, never shown."
    )
    models = serializers.ListField(child=AddModel(), max_length=MODELS_MAX, required=False)


class UpdateProvider(StrictSerializer):
    name = Text(max_length=1_000, required=False)
    base_url = Text(max_length=4_000, required=False)
    api_key = Text(
        max_length=4_000,
        required=False,
        write_only=True,
        help_text="Takes the place of the stored one; empty: none any more.",
    )
    is_enabled = Flag(required=False)


class TestProvider(StrictSerializer):
    model_id = PublicId(
        Prefix.MODEL, required=False, help_text="`mdl_…`; left out: the default, or the first."
    )
