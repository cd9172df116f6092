"""API keys. A secret is in one answer alone, the one that makes it, and nowhere else."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.http import HttpRequest, HttpResponseBase
from django.views.decorators.http import require_GET, require_http_methods

from core.clock import now
from orgs.models import ApiKey
from orgs.owner_admin.forms import KeyForm, RotationForm
from orgs.owner_admin.pages import (
    ask,
    done,
    note_sent,
    page_of,
    show,
    submit,
    was_sent_before,
)
from orgs.services.keys import create_key, revoke_key, rotate_key
from orgs.tenant import Tenant

SOON = timedelta(days=30)
SHOWN = "That key was made, and its text was shown. It cannot be shown again: make another one."


@require_GET
def keys(request: HttpRequest, tenant: Tenant) -> HttpResponseBase:
    return _list(request, tenant)


@require_http_methods(["GET", "POST"])
def new(request: HttpRequest, tenant: Tenant) -> HttpResponseBase:
    form = KeyForm(tenant, request.POST or None)
    if request.method == "POST" and was_sent_before(request):
        return done(request, f"{tenant.home}keys/", SHOWN)
    if request.method == "POST" and form.is_valid():
        made = submit(
            form,
            lambda: create_key(access=tenant.access, organization_id=tenant.id, new=form.wanted()),
        )
        if made is not None:
            note_sent(request)
            return _list(request, tenant, *made)
    return show(
        request,
        tenant,
        "form.html",
        status=400 if form.errors else 200,
        section="keys",
        form=form,
        title="New API key",
        text="Its text is shown once; we keep a digest.",
        word="Make key",
        back=f"{tenant.home}keys/",
    )


@require_http_methods(["GET", "POST"])
def rotate(request: HttpRequest, tenant: Tenant, key: str) -> HttpResponseBase:
    row = tenant.get_key(key)
    form = RotationForm(request.POST or None, initial={"overlap": "86400"})
    if request.method == "POST" and was_sent_before(request):
        return done(request, f"{tenant.home}keys/", SHOWN)
    if request.method == "POST" and form.is_valid():
        overlap = form.cleaned_data["overlap"]
        made = submit(
            form,
            lambda: rotate_key(access=tenant.access, key_id=row.pk, overlap_seconds=overlap),
        )
        if made is not None:
            note_sent(request)
            return _list(request, tenant, *made)
    question = {
        "title": f"Rotate {row.name}?",
        "text": "A new key with the same name, owner and scopes takes its place. "
        "The new text is shown once.",
        "word": "Rotate",
        "back": f"{tenant.home}keys/",
        "is_safe": True,
        "form": form,
    }
    return ask(request, tenant, question, section="keys")


@require_http_methods(["GET", "POST"])
def revoke(request: HttpRequest, tenant: Tenant, key: str) -> HttpResponseBase:
    row = tenant.get_key(key)
    back = f"{tenant.home}keys/"
    if request.method == "GET":
        question = {
            "title": f"Revoke {row.name}?",
            "text": f"{row.prefix}… stops working at once, and its open streams end. "
            "This cannot be undone.",
            "word": "Revoke",
            "back": back,
        }
        return ask(request, tenant, question, section="keys")
    revoke_key(access=tenant.access, key_id=row.pk)
    return done(request, back, f"{row.name} is revoked.")


def _list(
    request: HttpRequest, tenant: Tenant, made: ApiKey | None = None, secret: str = ""
) -> HttpResponseBase:
    """With a secret, it is the answer to what made it, without a redirect: so it is stored
    nowhere, and is gone with the page.
    """
    page = page_of(request, tenant.keys())
    context: dict[str, Any] = {"page": page, "now": now(), "soon": now() + SOON}
    if made is not None:
        context["made"] = made
        context["shown"] = {"name": f"{made.name} is ready", "text": secret, "what": "key"}
    return show(request, tenant, "keys.html", section="keys", **context)
