"""Forms about providers and models. A stored key is never in one."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Any, ClassVar

from django import forms

from catalog.kinds import OPENAI_BASE_URL, ReasoningEffort
from catalog.models import Model, Provider
from catalog.services.connecting import NewProvider, ProviderChanges
from catalog.services.validation import (
    BASE_URL_MAX_CHARACTERS,
    KEY_MAX_CHARACTERS,
    MODEL_NAME_MAX_CHARACTERS,
    PRICE_DECIMALS,
)
from core.errors import DomainError
from orgs.owner_admin.forms import PlainForm, name_field

MODELS_TEXT_MAX_CHARACTERS = 20_000
FLAGS = [
    ("is_enabled", "Sessions can use it"),
    ("is_default", "Sessions use it where nothing else says"),
]


def url_field() -> forms.CharField:
    return forms.CharField(
        label="Base URL",
        required=False,
        max_length=BASE_URL_MAX_CHARACTERS,
        widget=forms.URLInput(attrs={"placeholder": OPENAI_BASE_URL, "autocomplete": "off"}),
        help_text="What stands before /chat/completions. Left empty: OpenAI's own.",
    )


def key_field(help_text: str) -> forms.CharField:
    return forms.CharField(
        label="API key",
        required=False,
        max_length=KEY_MAX_CHARACTERS,
        widget=forms.PasswordInput(attrs={"autocomplete": "new-password"}),
        help_text=help_text,
    )


class ConnectForm(PlainForm):
    name = name_field(help_text="How people will read it, such as “OpenAI” or “Our own models”.")
    base_url = url_field()
    api_key = key_field("Stored encrypted. Nobody can read it here again.")
    models = forms.CharField(
        label="Models",
        max_length=MODELS_TEXT_MAX_CHARACTERS,
        widget=forms.Textarea(attrs={"rows": 3, "spellcheck": "false"}),
        help_text="One id a line, as the provider knows them, such as gpt-5-mini.",
    )
    slug = forms.CharField(
        label="Short name",
        required=False,
        max_length=50,
        help_text="Software names a model by it: short-name/model. It stays for ever. Left empty, "
        "it is made from the name.",
    )

    def take(self, error: DomainError) -> None:
        if (error.param or "").startswith("models["):
            self.add_error("models", error.message)
        else:
            super().take(error)

    def wanted(self) -> NewProvider:
        data = self.cleaned_data
        ids = dict.fromkeys(line.strip() for line in data["models"].splitlines() if line.strip())
        return NewProvider(
            name=data["name"],
            slug=data["slug"],
            base_url=data["base_url"],
            api_key=data["api_key"],
            models=[{"model_id": model_id} for model_id in ids],
        )


class ProviderForm(PlainForm):
    name = name_field()
    base_url = url_field()
    api_key = key_field("")

    def __init__(self, provider: Provider, *args: Any, **kwargs: Any) -> None:
        kwargs.setdefault("initial", {"name": provider.name, "base_url": provider.shown_base_url})
        super().__init__(*args, **kwargs)
        self.fields["api_key"].help_text = (
            "Left empty, the stored one stays. Another base URL wants it again."
            if provider.encrypted_credentials
            else "None is stored. It will be stored encrypted."
        )

    def wanted(self) -> ProviderChanges:
        data = self.cleaned_data
        return ProviderChanges(
            name=data["name"], base_url=data["base_url"], api_key=data["api_key"] or None
        )


class NameOnlyForm(PlainForm):
    """Of the demo, which has neither address nor key."""

    name = name_field()

    def __init__(self, provider: Provider, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, initial={"name": provider.name}, **kwargs)

    def wanted(self) -> ProviderChanges:
        return ProviderChanges(name=self.cleaned_data["name"])


class ModelForm(PlainForm):
    """`places`: two flags stand in one field."""

    places: ClassVar = {"default_needed": "flags"}
    model_id = forms.CharField(
        label="Id",
        max_length=MODEL_NAME_MAX_CHARACTERS,
        help_text="As the provider knows it.",
        widget=forms.TextInput(attrs={"spellcheck": "false", "autocomplete": "off"}),
    )
    display_name = forms.CharField(
        label="Name",
        required=False,
        max_length=MODEL_NAME_MAX_CHARACTERS,
        help_text="How people read it. Left empty: the id.",
    )
    aliases = forms.CharField(
        label="Also called",
        required=False,
        max_length=MODELS_TEXT_MAX_CHARACTERS,
        help_text="Other names to choose it by, with commas between.",
    )
    context_size = forms.IntegerField(
        label="Context, in tokens", required=False, min_value=1, help_text="How much it can read."
    )
    input_price = forms.DecimalField(label="Price of a million tokens read", required=False)
    output_price = forms.DecimalField(label="Price of a million tokens written", required=False)
    efforts = forms.MultipleChoiceField(
        label="Reasoning efforts that it knows",
        required=False,
        widget=forms.CheckboxSelectMultiple,
        choices=[(effort.value, effort.value) for effort in ReasoningEffort],
    )
    flags = forms.MultipleChoiceField(
        label="Use", required=False, widget=forms.CheckboxSelectMultiple, choices=FLAGS
    )

    def __init__(self, model: Model | None, *args: Any, **kwargs: Any) -> None:
        kwargs.setdefault("initial", _initial(model) if model else {"flags": ["is_enabled"]})
        super().__init__(*args, **kwargs)
        for name in ("input_price", "output_price"):
            self.fields[name].widget.attrs.update({"min": "0", "step": f"1e-{PRICE_DECIMALS}"})
        if model is not None:
            del self.fields["model_id"]

    def wanted(self) -> dict[str, Any]:
        data = dict(self.cleaned_data)
        flags = data.pop("flags")
        names = (name.strip() for name in data["aliases"].split(","))
        return {
            **data,
            "aliases": [name for name in names if name],
            **{flag: flag in flags for flag, _ in FLAGS},
        }


def _initial(model: Model) -> Mapping[str, Any]:
    return {
        "display_name": model.display_name,
        "aliases": ", ".join(model.aliases),
        "context_size": model.context_size,
        "input_price": plain_price(model.input_price),
        "output_price": plain_price(model.output_price),
        "efforts": model.efforts,
        "flags": [flag for flag, _ in FLAGS if getattr(model, flag)],
    }


def plain_price(value: Decimal | None) -> str:
    return "" if value is None else f"{value.normalize():f}"
