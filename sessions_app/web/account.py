"""A person's own page: who they are here, what is signed in as them, their password."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponseBase, HttpResponseRedirect
from django.shortcuts import render
from django.views.decorators.http import require_GET, require_POST

from core import whence
from core.api.paths import id_in_path
from core.errors import InvalidInput
from core.ids import Prefix
from orgs.access import Access
from orgs.login_store import SessionStore
from orgs.models import User
from orgs.selectors.logins import list_logins
from orgs.services.logins import end_login, end_logins
from orgs.services.passwords import change_password
from orgs.web import throttle
from orgs.web.devices import device_of
from sessions_app.web.leaving import places_of
from sessions_app.web.shell import for_people, theme, zone

# Whoever sits before it: counted apart from what strangers guess elsewhere.
OPEN_PAGE = "an open page"
NOTES = {
    "password": "Your password is changed. Everything else is signed out.",
    "ended": "That device is signed out.",
    "others": "Everything else is signed out.",
    "left": "You left.",
}


@require_GET
@for_people
def account(request: HttpRequest, *, access: Access) -> HttpResponseBase:
    return _page(request, access, note=NOTES.get(request.GET.get("done", ""), ""))


@require_POST
@for_people
def sign_out_one(request: HttpRequest, login: str, *, access: Access) -> HttpResponseBase:
    login_id = id_in_path(Prefix.LOGIN, login)
    is_this = login_id == _login(request).find_id()
    end_login(access=access, login_id=login_id)
    return HttpResponseRedirect("/sign-in/" if is_this else "/account/?done=ended")


@require_POST
@for_people
def sign_out_others(request: HttpRequest, *, access: Access) -> HttpResponseBase:
    end_logins(access=access, except_id=_login(request).find_id())
    return HttpResponseRedirect("/account/?done=others")


@require_POST
@for_people
def sign_out_everywhere(request: HttpRequest, *, access: Access) -> HttpResponseBase:
    end_logins(access=access)
    request.session.flush()
    return HttpResponseRedirect("/sign-in/")


@require_POST
@for_people
def password(request: HttpRequest, *, access: Access) -> HttpResponseBase:
    user = _person(request)
    source = (whence.present().address, OPEN_PAGE)
    made = throttle.try_password(user.email, *source)
    if wait := made.wait_seconds:
        problem = f"Too many wrong passwords. Try again in {max(1, round(wait / 60))} min."
        refused = InvalidInput("wrong_password", problem, param="current")
        response = _page(request, access, refused=refused, status=429)
        response.headers["Retry-After"] = str(wait)
        return response
    try:
        change_password(
            access=access,
            login=_login(request),
            current=request.POST.get("current", ""),
            new=request.POST.get("new", ""),
        )
    except InvalidInput as refused:
        if refused.param != "current":
            throttle.note_success(user.email, *source, made)
        return _page(request, access, refused=refused, status=400)
    throttle.note_success(user.email, *source, made)
    return HttpResponseRedirect("/account/?done=password")


def _page(
    request: HttpRequest,
    access: Access,
    *,
    note: str = "",
    refused: InvalidInput | None = None,
    status: int = 200,
) -> HttpResponseBase:
    present = _login(request).find_id()
    logins = [
        {"row": row, "device": device_of(row.user_agent), "is_this": row.pk == present}
        for row in list_logins(access=access)
    ]
    context = {
        "person": request.user,
        "logins": sorted(logins, key=lambda each: not each["is_this"]),
        "has_others": len(logins) > 1,
        "places": places_of(access),
        "note": note,
        "refused": refused,
        "theme": theme(request),
        "zone": zone(request),
    }
    return render(request, "account.html", context, status=status)


def _login(request: HttpRequest) -> SessionStore:
    assert isinstance(request.session, SessionStore)
    return request.session


def _person(request: HttpRequest) -> User:
    assert isinstance(request.user, User)
    return request.user
