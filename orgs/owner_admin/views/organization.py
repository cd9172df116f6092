"""Which organization, and its settings."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponseBase, HttpResponseRedirect
from django.shortcuts import render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from core.api.reader import theme
from core.errors import InvalidInput, NotFound
from orgs.models.audit import AuditAction
from orgs.owner_admin.forms import NameForm
from orgs.owner_admin.guard import refusal, to_sign_in
from orgs.owner_admin.pages import administered, done, show, submit
from orgs.principals import access_for_user
from orgs.selectors.audit import AuditQuery, list_audit
from orgs.services.organizations import update_organization
from orgs.tenant import Tenant


@require_GET
@never_cache
def choose(request: HttpRequest) -> HttpResponseBase:
    """Straight to the only organization that one administers; else the choice."""
    if not request.user.is_authenticated:
        return to_sign_in(request)
    known = administered(access_for_user(request.user))
    if not known:
        return refusal(request, NotFound())
    if len(known) == 1:
        return HttpResponseRedirect(known[0]["home"])
    context = {"organizations": known, "theme": theme(request)}
    return render(request, "owner/choose.html", context)


@require_GET
def home(request: HttpRequest, tenant: Tenant) -> HttpResponseBase:
    return HttpResponseRedirect(f"{tenant.home}members/")


@require_http_methods(["GET", "POST"])
def settings_(request: HttpRequest, tenant: Tenant) -> HttpResponseBase:
    form = NameForm(request.POST or None, initial={"name": tenant.organization.name})
    if request.method == "POST" and form.is_valid():
        changed = submit(
            form,
            lambda: update_organization(
                access=tenant.access, organization_id=tenant.id, name=form.cleaned_data["name"]
            ),
        )
        if changed is not None:
            return done(request, f"{tenant.home}settings/", "Saved.")
    query = AuditQuery(action=AuditAction.ORGANIZATION_UPDATED)
    lines = list_audit(access=tenant.access, organization_id=tenant.id, query=query)
    return show(
        request,
        tenant,
        "settings.html",
        status=400 if form.errors else 200,
        section="settings",
        form=form,
        switched=lines.filter(changes__has_key="allows_private_sessions").first(),
    )


@require_POST
def switch_only_me(request: HttpRequest, tenant: Tenant) -> HttpResponseBase:
    """Set, not toggled: a page that is behind cannot switch it the wrong way."""
    wanted = {"on": True, "off": False}.get(request.POST.get("allow", ""))
    if wanted is None:
        raise InvalidInput("invalid_value", "Say on or off.", param="allow")
    update_organization(
        access=tenant.access, organization_id=tenant.id, allows_private_sessions=wanted
    )
    text = "Members may create Only me sessions." if wanted else "No new Only me sessions."
    return done(request, f"{tenant.home}settings/", text)
