"""Who comes in: owners and admins of the organization in the address. Nobody else learns of it."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any
from urllib.parse import quote

from django.http import HttpRequest, HttpResponseBase, HttpResponseRedirect
from django.shortcuts import render
from django.views.decorators.cache import never_cache

from core.api.errors import problem_of
from core.api.reader import theme
from core.errors import DomainError, NotFound
from orgs.principals import access_for_user
from orgs.tenant import Tenant

View = Callable[..., HttpResponseBase]


def for_administrators(view: View) -> View:
    """The view gets the tenant in place of the organization's id."""

    @wraps(view)
    @never_cache
    def guarded(request: HttpRequest, *, organization: str, **ids: Any) -> HttpResponseBase:
        if not request.user.is_authenticated:
            return to_sign_in(request)
        try:
            tenant = Tenant.open(access_for_user(request.user), organization)
            return view(request, tenant, **ids)
        except DomainError as error:
            return refusal(request, error)

    return guarded


def to_sign_in(request: HttpRequest) -> HttpResponseBase:
    return HttpResponseRedirect(f"/sign-in/?next={quote(request.get_full_path())}")


def refusal(request: HttpRequest, error: DomainError) -> HttpResponseBase:
    if isinstance(error, NotFound):
        return render(request, "404.html", {"theme": theme(request)}, status=404)
    context = {"theme": theme(request), "message": error.message}
    return render(request, "refused.html", context, status=problem_of(error).status)
