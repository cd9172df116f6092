"""Model providers: connected, changed, tested, switched off and removed."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime
from typing import Any

from django.http import HttpRequest, HttpResponseBase
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from catalog.kinds import ProviderKind
from catalog.models import Agent, Provider
from catalog.owner_admin.forms import ConnectForm, NameOnlyForm, ProviderForm, plain_price
from catalog.owner_admin.words import STATE_WORDS
from catalog.selectors import get_provider, list_providers, served_kinds, state_of
from catalog.services.checking import check_connection
from catalog.services.connecting import (
    ProviderChanges,
    connect_provider,
    remove_provider,
    update_provider,
)
from core.api.paths import id_in_path
from core.errors import Conflict, InvalidInput, RateLimited, Unavailable
from core.ids import Prefix
from orgs.owner_admin.pages import ask, done, page_of, refuse, show, submit
from orgs.tenant import Tenant

SECTION = "providers"


def home_of(tenant: Tenant, provider: Provider | None = None) -> str:
    home = f"{tenant.home}providers/"
    return home if provider is None else f"{home}{provider.public_id}/"


def find(tenant: Tenant, public_id: str) -> Provider:
    """Raises NotFound."""
    pk = id_in_path(Prefix.PROVIDER, public_id)
    return get_provider(access=tenant.access, organization_id=tenant.id, provider_id=pk)


@require_GET
def providers(request: HttpRequest, tenant: Tenant) -> HttpResponseBase:
    page = page_of(request, list_providers(access=tenant.access, organization_id=tenant.id))
    served = served_kinds()
    rows = [_shown(provider, served) for provider in page]
    return show(request, tenant, "providers.html", section=SECTION, page=page, rows=rows)


@require_http_methods(["GET", "POST"])
def new(request: HttpRequest, tenant: Tenant) -> HttpResponseBase:
    form = ConnectForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        made = submit(
            form,
            lambda: connect_provider(
                access=tenant.access, organization_id=tenant.id, new=form.wanted()
            ),
        )
        if made is not None:
            text = f"{made.name} is connected. Test the connection before somebody needs it."
            return done(request, home_of(tenant, made), text)
    return show(
        request,
        tenant,
        "form.html",
        status=400 if form.errors else 200,
        section=SECTION,
        form=form,
        title="Connect a provider",
        text="Any server that speaks OpenAI's chat completions: OpenAI itself, most other vendors, "
        "or one of your own.",
        word="Connect",
        back=home_of(tenant),
    )


@require_GET
def provider(request: HttpRequest, tenant: Tenant, provider: str) -> HttpResponseBase:
    row = find(tenant, provider)
    return show(
        request,
        tenant,
        "provider.html",
        section=SECTION,
        provider=row,
        shown=_shown(row, served_kinds()),
        is_demo=row.kind == ProviderKind.DEMO,
        models=[
            {
                "row": model,
                "input_price": plain_price(model.input_price),
                "output_price": plain_price(model.output_price),
            }
            for model in row.models.all()
        ],
    )


@require_http_methods(["GET", "POST"])
def edit(request: HttpRequest, tenant: Tenant, provider: str) -> HttpResponseBase:
    row = find(tenant, provider)
    kind = NameOnlyForm if row.kind == ProviderKind.DEMO else ProviderForm
    form = kind(row, request.POST or None)
    if request.method == "POST" and form.is_valid():
        changed = submit(form, lambda: _update(tenant, row, form.wanted()))
        if changed is not None:
            return done(request, home_of(tenant, row), "Saved.")
    return show(
        request,
        tenant,
        "form.html",
        status=400 if form.errors else 200,
        section=SECTION,
        form=form,
        title=f"Change {row.name}",
        text="What runs goes on. The next request of a session takes what is stored then.",
        word="Save",
        back=home_of(tenant, row),
    )


@require_POST
def switch(request: HttpRequest, tenant: Tenant, provider: str) -> HttpResponseBase:
    """Set, not toggled: a page that is behind cannot switch it the wrong way."""
    row = find(tenant, provider)
    wanted = {"on": True, "off": False}.get(request.POST.get("enabled", ""))
    if wanted is None:
        raise InvalidInput("invalid_value", "Say on or off.", param="enabled")
    try:
        _update(tenant, row, ProviderChanges(is_enabled=wanted))
    except Conflict as error:
        return refuse(request, home_of(tenant, row), error)
    text = f"{row.name} is switched {'on' if wanted else 'off'}."
    return done(request, home_of(tenant, row), text)


@require_POST
def test(request: HttpRequest, tenant: Tenant, provider: str) -> HttpResponseBase:
    """The verdict is kept with the provider, and its page tells it."""
    row = find(tenant, provider)
    try:
        check_connection(access=tenant.access, organization_id=tenant.id, provider_id=row.pk)
    except (Conflict, RateLimited, Unavailable) as error:
        return refuse(request, home_of(tenant, row), error)
    return done(request, home_of(tenant, row), "Tested. What came of it stands below.")


@require_http_methods(["GET", "POST"])
def remove(request: HttpRequest, tenant: Tenant, provider: str) -> HttpResponseBase:
    row = find(tenant, provider)
    if request.method == "GET":
        question = {
            "title": f"Remove {row.name}?",
            "text": _what_goes(row),
            "word": "Remove",
            "back": home_of(tenant, row),
        }
        return ask(request, tenant, question, section=SECTION)
    try:
        remove_provider(access=tenant.access, organization_id=tenant.id, provider_id=row.pk)
    except Conflict as error:
        return refuse(request, home_of(tenant, row), error)
    return done(request, home_of(tenant), f"{row.name} was removed, and its key with it.")


def _update(tenant: Tenant, row: Provider, changes: ProviderChanges) -> Provider:
    return update_provider(
        access=tenant.access, organization_id=tenant.id, provider_id=row.pk, changes=changes
    )


def _what_goes(row: Provider) -> str:
    models = row.models.count()
    agents = Agent.objects.filter(model__provider=row).count()
    stored = "The stored key goes" if row.encrypted_credentials else "It goes"
    return (
        f"{stored}, with its models, {models} at present. Agents that use them, {agents} at "
        "present, go over to the default model; sessions that used one have to choose another for "
        "their next prompt. What was said stays."
    )


def _shown(row: Provider, served: Collection[str]) -> dict[str, Any]:
    return {
        "row": row,
        "state": STATE_WORDS[state_of(row, served)],
        "address": row.shown_base_url,
        "models": len(row.models.all()),
        "has_enabled_model": any(model.is_enabled for model in row.models.all()),
        "key": bool(row.encrypted_credentials),
        "test": row.last_test,
        "tested_at": datetime.fromisoformat(row.last_test["at"]) if row.last_test else None,
    }
