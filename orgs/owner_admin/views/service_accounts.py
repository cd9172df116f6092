"""Service accounts: they own keys and outlive people."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponseBase
from django.views.decorators.http import require_GET, require_http_methods

from orgs.owner_admin.forms import ServiceAccountForm
from orgs.owner_admin.pages import ask, done, page_of, show, submit
from orgs.roles import OrganizationRole
from orgs.services.service_accounts import create_service_account, remove_service_account
from orgs.tenant import Tenant


@require_GET
def service_accounts(request: HttpRequest, tenant: Tenant) -> HttpResponseBase:
    page = page_of(request, tenant.service_accounts())
    return show(request, tenant, "service_accounts.html", section="service-accounts", page=page)


@require_http_methods(["GET", "POST"])
def new(request: HttpRequest, tenant: Tenant) -> HttpResponseBase:
    form = ServiceAccountForm(tenant, request.POST or None, initial={"role": "member"})
    if request.method == "POST" and form.is_valid():
        account = submit(
            form,
            lambda: create_service_account(
                access=tenant.access,
                organization_id=tenant.id,
                name=form.cleaned_data["name"],
                role=OrganizationRole(form.cleaned_data["role"]),
            ),
        )
        if account is not None:
            to = f"{tenant.home}members/{account.public_id}/"
            return done(request, to, f"{account.name} is made. Say in which workspaces it works.")
    return show(
        request,
        tenant,
        "form.html",
        status=400 if form.errors else 200,
        section="service-accounts",
        form=form,
        title="New service account",
        text="Nobody signs in as one. It owns keys, which go on when people leave.",
        word="Make service account",
        back=f"{tenant.home}service-accounts/",
    )


@require_http_methods(["GET", "POST"])
def remove(request: HttpRequest, tenant: Tenant, user: str) -> HttpResponseBase:
    account = tenant.get_service_account(user)
    back = f"{tenant.home}service-accounts/"
    if request.method == "GET":
        live = tenant.keys().filter(created_by=account, revoked_at=None).count()
        question = {
            "title": f"Remove the service account {account.name}?",
            "text": f"Its keys, {live} at present, are revoked at once. "
            "Its name stays with what it did.",
            "word": "Remove",
            "back": back,
        }
        return ask(request, tenant, question, section="service-accounts")
    remove_service_account(access=tenant.access, organization_id=tenant.id, account_id=account.pk)
    return done(request, back, f"{account.name} was removed, and its keys were revoked.")
