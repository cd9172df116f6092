"""Where the link of an invitation leads: one joins under the invited address, or not at all."""

from __future__ import annotations

from django.contrib.auth import login
from django.http import HttpRequest, HttpResponse, HttpResponseBase, HttpResponseRedirect
from django.shortcuts import render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods

from core.api.errors import problem_of
from core.api.reader import theme
from core.errors import Conflict, Forbidden, InvalidInput, NotFound
from orgs.models import Invitation, User
from orgs.principals import access_for_user
from orgs.selectors.invitations import find_invitation
from orgs.services.invitations import accept_as_member, accept_as_newcomer
from orgs.services.validation import NAME_MAX_CHARACTERS
from orgs.web.secrecy import without_address

HOME = "/"
_FIELDS = {"name", "password"}


@require_http_methods(["GET", "POST"])
@never_cache
def invitation(request: HttpRequest, token: str) -> HttpResponseBase:
    """A dead link says no more than that it is dead."""
    found = find_invitation(token=token)
    if found is None:
        return _dead(request)
    if request.method != "POST":
        return _page(request, found)
    try:
        if request.user.is_authenticated:
            accept_as_member(access=access_for_user(request.user), token=token)
        else:
            login(request, _newcomer(request, token))
    except NotFound:
        return _dead(request)
    except (Conflict, Forbidden, InvalidInput) as error:
        return _page(request, found, {error.param or "": error.message}, problem_of(error).status)
    return HttpResponseRedirect(HOME)


def _newcomer(request: HttpRequest, token: str) -> User:
    """Raises InvalidInput with the field at fault."""
    return accept_as_newcomer(
        token=token,
        name=request.POST.get("name", ""),
        password=request.POST.get("password", ""),
    )


def _page(
    request: HttpRequest,
    found: Invitation,
    problems: dict[str, str] | None = None,
    status: int = 200,
) -> HttpResponse:
    person = request.user if request.user.is_authenticated else None
    context = {
        "invitation": found,
        "person": person,
        "is_for_person": person and person.email.casefold() == found.email.casefold(),
        "has_login": User.objects.filter(email__iexact=found.email).exists(),
        "name": request.POST.get("name", "").replace("\x00", "")[:NAME_MAX_CHARACTERS],
        "name_problem": (problems or {}).get("name", ""),
        "password_problem": (problems or {}).get("password", ""),
        "problem": next((text for at, text in (problems or {}).items() if at not in _FIELDS), ""),
        "here": request.path,
        "theme": theme(request),
    }
    return without_address(render(request, "invitation.html", context, status=status))


def _dead(request: HttpRequest) -> HttpResponse:
    return render(request, "invitation.html", {"theme": theme(request)}, status=404)
