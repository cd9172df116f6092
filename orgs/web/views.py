"""One form in, one button out."""

from __future__ import annotations

from django.contrib.auth import authenticate, login, logout
from django.http import HttpRequest, HttpResponseBase, HttpResponseRedirect
from django.shortcuts import render
from django.utils.http import url_has_allowed_host_and_scheme, urlencode
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST

from core import whence
from core.api.reader import theme
from core.text import is_storable
from orgs.principals import access_for_user
from orgs.services.logins import trim_logins
from orgs.services.passwords import PASSWORD_MAX_CHARACTERS
from orgs.web import throttle
from orgs.web.known_devices import known_device, remember_device

EMAIL_MAX_CHARACTERS = 254


@require_http_methods(["GET", "POST"])
@never_cache
def sign_in(request: HttpRequest) -> HttpResponseBase:
    if request.method == "POST":
        return _try(request)
    if request.user.is_authenticated:
        return HttpResponseRedirect(_next(request, request.GET.get("next", "")))
    note = "Your new password is set. Sign in with it." if "renewed" in request.GET else ""
    return _form(request, next_=request.GET.get("next", ""), note=note)


@require_POST
@never_cache
def sign_out(request: HttpRequest) -> HttpResponseBase:
    """This login ends, and with it what its other tabs have open."""
    logout(request)
    return HttpResponseRedirect("/sign-in/")


@never_cache
def operators_sign_in(request: HttpRequest) -> HttpResponseBase:
    """There is one door, and it counts wrong passwords."""
    if request.user.is_authenticated:
        return HttpResponseRedirect("/")  # no operator: the administration sent them here
    wanted = _next(request, request.GET.get("next", "/admin/"))
    return HttpResponseRedirect(f"/sign-in/?{urlencode({'next': wanted})}")


@never_cache
def own_password(request: HttpRequest) -> HttpResponseBase:
    return HttpResponseRedirect("/account/")


def posted_email(request: HttpRequest) -> str:
    return request.POST.get("email", "").strip()[:EMAIL_MAX_CHARACTERS].replace("\x00", "")


def _try(request: HttpRequest) -> HttpResponseBase:
    email = posted_email(request)
    password = request.POST.get("password", "")
    next_ = request.POST.get("next", "")
    source = (whence.present().address, known_device(request, email))
    made = throttle.try_password(email, *source)
    if wait := made.wait_seconds:
        problem = f"Too many wrong passwords. Try again in {max(1, round(wait / 60))} min."
        return _form(request, email, next_, problem, status=429, retry_after=wait)
    may_be_one = len(password) <= PASSWORD_MAX_CHARACTERS and is_storable(email + password)
    user = authenticate(request, username=email, password=password) if may_be_one else None
    if user is None:
        return _form(request, email, next_, "That e-mail and password do not belong together.", 401)
    throttle.note_success(email, *source, made)
    # Always a login of its own, under a value that nobody knew before.
    request.session.flush()
    login(request, user)
    request.session.save()
    trim_logins(access=access_for_user(user))
    response = HttpResponseRedirect(_next(request, next_))
    remember_device(request, response, email)
    return response


def _form(
    request: HttpRequest,
    email: str = "",
    next_: str = "",
    problem: str = "",
    status: int = 200,
    retry_after: int = 0,
    note: str = "",
) -> HttpResponseBase:
    context = {
        "email": email,
        "next": next_,
        "problem": problem,
        "note": note,
        "theme": theme(request),
    }
    response = render(request, "sign_in.html", context, status=status)
    if retry_after:
        response["Retry-After"] = str(retry_after)
    return response


def _next(request: HttpRequest, wanted: str) -> str:
    """Only within this server."""
    safe = url_has_allowed_host_and_scheme(
        wanted, allowed_hosts={request.get_host()}, require_https=request.is_secure()
    )
    return wanted if safe else "/"
