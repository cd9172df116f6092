"""One form in, one button out."""

from __future__ import annotations

from django.contrib.auth import authenticate, login, logout
from django.http import HttpRequest, HttpResponseBase, HttpResponseRedirect
from django.shortcuts import render
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST

from orgs.principals import access_for_user
from orgs.services.logins import trim_logins
from orgs.web.throttle import FailureThrottle

throttle = FailureThrottle()


@require_http_methods(["GET", "POST"])
@never_cache
def sign_in(request: HttpRequest) -> HttpResponseBase:
    if request.method == "POST":
        return _try(request)
    if request.user.is_authenticated:
        return HttpResponseRedirect(_next(request, request.GET.get("next", "")))
    return _form(request, next_=request.GET.get("next", ""))


@require_POST
@never_cache
def sign_out(request: HttpRequest) -> HttpResponseBase:
    """This login ends, and with it what its other tabs have open."""
    logout(request)
    return HttpResponseRedirect("/sign-in/")


def _try(request: HttpRequest) -> HttpResponseBase:
    email = request.POST.get("email", "").strip()[:254]
    password = request.POST.get("password", "")
    next_ = request.POST.get("next", "")
    address = request.META.get("REMOTE_ADDR", "")
    if wait := throttle.wait_seconds(email, address):
        problem = f"Too many wrong passwords. Try again in {max(1, round(wait / 60))} min."
        return _form(request, email, next_, problem, status=429, retry_after=wait)
    storable = "\x00" not in email and "\x00" not in password
    user = authenticate(request, username=email, password=password) if storable else None
    if user is None:
        throttle.note_failure(email, address)
        return _form(request, email, next_, "That e-mail and password do not belong together.", 401)
    throttle.forget(email)
    # Always a login of its own, under a value that nobody knew before.
    request.session.flush()
    login(request, user)
    request.session.save()
    trim_logins(access=access_for_user(user))
    return HttpResponseRedirect(_next(request, next_))


def _form(
    request: HttpRequest,
    email: str = "",
    next_: str = "",
    problem: str = "",
    status: int = 200,
    retry_after: int = 0,
) -> HttpResponseBase:
    chosen = request.COOKIES.get("theme", "")
    context = {
        "email": email.replace("\x00", ""),
        "next": next_,
        "problem": problem,
        "theme": chosen if chosen in {"light", "dark"} else "system",
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
