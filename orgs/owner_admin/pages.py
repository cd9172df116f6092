"""What every page stands in: the navigation, the reader, and pages of long lists."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from django.contrib import messages
from django.core.paginator import Page, Paginator
from django.db.models import Model, QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseBase, HttpResponseRedirect
from django.shortcuts import render

from core.api.reader import theme, zone
from core.errors import Conflict, DomainError, Forbidden, InvalidInput
from core.ids import Prefix, encode_id
from core.tries import Try, count_try, forget_try
from orgs.access import Access
from orgs.owner_admin.forms import PlainForm
from orgs.roles import OrganizationAction, OrganizationRole
from orgs.tenant import Tenant

ROWS_A_PAGE = 50
FORM_KEPT_SECONDS = 86_400
TOKEN_MAX_CHARACTERS = 64
Row = TypeVar("Row", bound=Model)
Result = TypeVar("Result")


def show(
    request: HttpRequest, tenant: Tenant, template: str, *, status: int = 200, **context: Any
) -> HttpResponse:
    """`section`, in the context: which row of the navigation is current."""
    role = tenant.access.organizations[tenant.id].role
    shared = {
        "tenant": tenant,
        "home": tenant.home,
        "organization": tenant.organization,
        "role": "its owner" if role is OrganizationRole.OWNER else "one of its admins",
        "others": [each for each in administered(tenant.access) if each["id"] != tenant.id],
        "person": request.user,
        "theme": theme(request),
        "zone": zone(request),
        "counts": {
            "members": tenant.people().count(),
            "invitations": tenant.open_invitations().count(),
            "service_accounts": tenant.service_accounts().count(),
        },
    }
    return render(request, f"owner/{template}", shared | context, status=status)


def administered(access: Access) -> list[dict[str, Any]]:
    """The organizations that this person owns or administers, and no other's name."""
    return [
        {
            "id": pk,
            "name": access.organizations[pk].name,
            "home": f"/owner/{encode_id(Prefix.ORGANIZATION, pk)}/",
        }
        for pk in access.organizations_with(OrganizationAction.MANAGE)
    ]


def ask(
    request: HttpRequest, tenant: Tenant, question: dict[str, Any], *, section: str
) -> HttpResponse:
    """`question`: title, text, word, back; and where it has fields, form."""
    form = question.get("form")
    status = 400 if form is not None and form.is_bound and form.errors else 200
    return show(request, tenant, "confirm.html", status=status, section=section, **question)


def page_of(request: HttpRequest, rows: QuerySet[Row]) -> Page[Row]:
    """The asked page; the nearest one where there is no such page."""
    return Paginator(rows, ROWS_A_PAGE).get_page(request.GET.get("page", "1")[:9])


def submit(form: PlainForm, act: Callable[[], Result]) -> Result | None:
    """What a service says no with stands at the form's field. NotFound remains one."""
    try:
        return act()
    except (InvalidInput, Conflict, Forbidden) as error:
        form.take(error)
        return None


def done(request: HttpRequest, to: str, text: str) -> HttpResponseBase:
    messages.success(request, text)
    return HttpResponseRedirect(to)


def refuse(request: HttpRequest, to: str, error: DomainError) -> HttpResponseBase:
    """Back to the page, which says why nothing changed."""
    messages.error(request, error.message)
    return HttpResponseRedirect(to)


class SentBefore(Exception):
    """This very form made something already."""


def make_once(request: HttpRequest, form: PlainForm, act: Callable[[], Result]) -> Result | None:
    """`submit`, and no second time for the same form, however often and at whatever moments it
    is sent: a reload must not make a second key, which nobody asked for, and cannot show the first
    one's secret again. Raises SentBefore.
    """
    claim = _claim(request)
    if claim.wait_seconds:
        raise SentBefore
    made = None
    try:
        made = submit(form, act)
    finally:
        if made is None:
            forget_try(claim)
    return made


def _claim(request: HttpRequest) -> Try:
    token = request.POST.get("once", "")[:TOKEN_MAX_CHARACTERS]
    limits = {f"form {token} of {request.user.pk}": 1} if token else {}
    return count_try(limits=limits, window_seconds=FORM_KEPT_SECONDS)
