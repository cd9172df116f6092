"""The models of a provider, each on a page of its own."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponseBase
from django.views.decorators.http import require_http_methods

from catalog.models import Agent, Model, Provider
from catalog.owner_admin.forms import ModelForm
from catalog.owner_admin.providers import SECTION, find, home_of
from catalog.services.models import add_model, remove_model, update_model
from core.api.paths import id_in_path
from core.errors import Conflict, NotFound
from core.ids import Prefix
from orgs.owner_admin.pages import ask, done, refuse, show, submit
from orgs.tenant import Tenant


@require_http_methods(["GET", "POST"])
def new(request: HttpRequest, tenant: Tenant, provider: str) -> HttpResponseBase:
    row = find(tenant, provider)
    form = ModelForm(None, request.POST or None)
    if request.method == "POST" and form.is_valid():
        made = submit(
            form,
            lambda: add_model(
                access=tenant.access,
                organization_id=tenant.id,
                provider_id=row.pk,
                fields=form.wanted(),
            ),
        )
        if made is not None:
            return done(request, home_of(tenant, row), f"{made.display_name} is added.")
    return _form(request, tenant, row, form, title=f"Add a model of {row.name}", word="Add model")


@require_http_methods(["GET", "POST"])
def edit(request: HttpRequest, tenant: Tenant, provider: str, model: str) -> HttpResponseBase:
    row = find(tenant, provider)
    found = _find(row, model)
    form = ModelForm(found, request.POST or None)
    if request.method == "POST" and form.is_valid():
        changed = submit(
            form,
            lambda: update_model(
                access=tenant.access,
                organization_id=tenant.id,
                provider_id=row.pk,
                model_pk=found.pk,
                fields=form.wanted(),
            ),
        )
        if changed is not None:
            return done(request, home_of(tenant, row), "Saved.")
    return _form(request, tenant, row, form, title=found.display_name, word="Save", model=found)


@require_http_methods(["GET", "POST"])
def remove(request: HttpRequest, tenant: Tenant, provider: str, model: str) -> HttpResponseBase:
    row = find(tenant, provider)
    found = _find(row, model)
    if request.method == "GET":
        agents = Agent.objects.filter(model=found).count()
        question = {
            "title": f"Remove {found.display_name}?",
            "text": f"Agents that use it, {agents} at present, go over to the default model; "
            "sessions that used it have to choose another for their next prompt.",
            "word": "Remove",
            "back": home_of(tenant, row),
        }
        return ask(request, tenant, question, section=SECTION)
    try:
        remove_model(
            access=tenant.access,
            organization_id=tenant.id,
            provider_id=row.pk,
            model_pk=found.pk,
        )
    except Conflict as error:
        return refuse(request, home_of(tenant, row), error)
    return done(request, home_of(tenant, row), f"{found.display_name} was removed.")


def _find(row: Provider, public_id: str) -> Model:
    found = row.models.filter(pk=id_in_path(Prefix.MODEL, public_id)).first()
    if found is None:
        raise NotFound
    return found


def _form(
    request: HttpRequest,
    tenant: Tenant,
    row: Provider,
    form: ModelForm,
    *,
    title: str,
    word: str,
    model: Model | None = None,
) -> HttpResponseBase:
    text = f"{row.name} knows it as {model.model_id}." if model else "One that the provider offers."
    return show(
        request,
        tenant,
        "form.html",
        status=400 if form.errors else 200,
        section=SECTION,
        form=form,
        title=title,
        text=text,
        word=word,
        back=home_of(tenant, row),
    )
