"""What every page of the app stands in: who reads, where, and the sidebar."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any
from urllib.parse import quote
from uuid import UUID

from django.conf import settings
from django.contrib import messages
from django.http import (
    HttpRequest,
    HttpResponse,
    HttpResponseBase,
    HttpResponseRedirect,
    JsonResponse,
)
from django.shortcuts import render
from django.views.decorators.cache import never_cache

from core.api.errors import problem_of
from core.api.reader import theme, zone
from core.errors import DomainError, Forbidden, NotFound
from core.ids import Prefix, encode_id
from orgs.access import Access
from orgs.models import Organization
from orgs.principals import access_for_user
from orgs.roles import Action, OrganizationAction
from sessions_app.inbox import count_inbox
from sessions_app.web.sidebar import count_archived, list_groups

LAST_WORKSPACE_COOKIE = "last_workspace"
View = Callable[..., HttpResponseBase]


def for_people(view: View) -> View:
    """For signed-in people alone: others are asked to sign in. Refusals become pages or JSON."""

    @wraps(view)
    @never_cache
    def guarded(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        if not request.user.is_authenticated:
            if wants_json(request):
                return _json_error(401, "unauthenticated", "Sign in again.")
            return HttpResponseRedirect(f"/sign-in/?next={quote(request.get_full_path())}")
        access = access_for_user(request.user)
        try:
            return view(request, *args, access=access, **kwargs)
        except DomainError as error:
            return _refusal(request, error)

    return guarded


def wants_json(request: HttpRequest) -> bool:
    return "application/json" in request.headers.get("Accept", "")


def wants_fragment(request: HttpRequest) -> bool:
    return request.headers.get("X-Fragment") == "1"


def posted_number(request: HttpRequest, name: str) -> int | None:
    text = request.POST.get(name, "")
    return int(text) if text.isascii() and text.isdigit() and len(text) < 16 else None


def find_home(request: HttpRequest, access: Access) -> UUID | None:
    """The workspace that was open last, else a shared one, else any."""
    readable = access.workspaces_with(Action.SESSION_READ)
    last = request.COOKIES.get(LAST_WORKSPACE_COOKIE, "")
    shared = [pk for pk in readable if access.grants[pk].kind == "shared"]
    for pk in readable:
        if encode_id(Prefix.WORKSPACE, pk) == last:
            return pk
    return next(iter([*shared, *readable]), None)


def shell(request: HttpRequest, access: Access, workspace_id: UUID) -> dict[str, Any]:
    """The context of `page.html`. Raises NotFound for a workspace that one may not read."""
    if not access.may(Action.SESSION_READ, workspace_id):
        raise NotFound
    names = dict(
        Organization.objects.filter(
            pk__in={g.organization_id for g in access.grants.values()}
        ).values_list("pk", "name")
    )
    workspaces = [
        {
            "id": encode_id(Prefix.WORKSPACE, pk),
            "name": grant.name,
            "organization": names.get(grant.organization_id, ""),
            "is_current": pk == workspace_id,
        }
        for pk, grant in access.grants.items()
    ]
    return {
        "access": access,
        "person": request.user,
        "zone": zone(request),
        "workspace": next(w for w in workspaces if w["is_current"]),
        "workspaces": workspaces,
        "administered": administered(access),
        "may_create": access.may(Action.SESSION_CREATE, workspace_id),
        "groups": list_groups(access=access, workspace_id=workspace_id, zone=zone(request)),
        "archived_count": count_archived(access=access, workspace_id=workspace_id),
        "waiting_count": count_inbox(access=access),
        "theme": theme(request),
        "side": _opened(request, "side"),
        "drawer": _opened(request, "drawer"),
    }


def administered(access: Access) -> list[dict[str, str]]:
    """The organizations whose owner's pages this person may open."""
    return [
        {"id": encode_id(Prefix.ORGANIZATION, pk), "name": access.organizations[pk].name}
        for pk in access.organizations_with(OrganizationAction.MANAGE)
    ]


def remember_workspace(response: HttpResponse, workspace_id: UUID) -> HttpResponse:
    response.set_cookie(
        LAST_WORKSPACE_COOKIE,
        encode_id(Prefix.WORKSPACE, workspace_id),
        max_age=31_536_000,
        httponly=True,
        secure=settings.SESSION_COOKIE_SECURE,
        samesite="Lax",
    )
    return response


def done(request: HttpRequest, to: str, **values: Any) -> HttpResponseBase:
    """The answer to an act: JSON for the script, a redirect for a plain form."""
    if wants_json(request):
        return JsonResponse(values)
    return HttpResponseRedirect(to)


def _opened(request: HttpRequest, name: str) -> str:
    return "closed" if request.COOKIES.get(name) == "closed" else "open"


def _refusal(request: HttpRequest, error: DomainError) -> HttpResponseBase:
    status = problem_of(error).status
    if wants_json(request):
        return _json_error(status, error.code, error.message, error.details)
    if isinstance(error, NotFound):
        return render(request, "404.html", {"theme": theme(request)}, status=404)
    if isinstance(error, Forbidden) or request.method != "POST":
        context = {"theme": theme(request), "message": error.message}
        return render(request, "refused.html", context, status=status)
    messages.error(request, error.message)
    return HttpResponseRedirect(request.headers.get("Referer") or "/")


def _json_error(
    status: int, code: str, message: str, details: Mapping[str, Any] | None = None
) -> JsonResponse:
    body = {"error": {"code": code, "message": message, "details": dict(details or {})}}
    return JsonResponse(body, status=status)
