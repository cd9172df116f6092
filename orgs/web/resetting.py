"""A new password for who forgot theirs: ask for a link, follow it, choose.

Whether an address is known shows in no answer, and in no time that an answer takes.
"""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest, HttpResponse, HttpResponseBase, HttpResponseRedirect
from django.shortcuts import render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods

from core import whence
from core.api.origin import origin_of
from core.api.reader import theme
from core.errors import InvalidInput, NotFound, Unavailable
from core.mail import has_mail_server, send_later
from orgs.selectors.passwords import find_reset
from orgs.services.passwords import make_reset_mail, reset_password
from orgs.web import throttle
from orgs.web.secrecy import without_address
from orgs.web.views import posted_email


@require_http_methods(["GET", "POST"])
@never_cache
def ask(request: HttpRequest) -> HttpResponseBase:
    context: dict[str, Any] = {"theme": theme(request)}
    if request.method == "GET":
        return render(request, "password_reset.html", context)
    email = posted_email(request)
    if wait := throttle.try_reset(email, whence.present().address).wait_seconds:
        problem = "You asked for many links. The newest one is in your mail; else try again later."
        context |= {"email": email, "problem": problem}
        response = render(request, "password_reset.html", context, status=429)
        response["Retry-After"] = str(wait)
        return response
    origin = origin_of(request)
    context |= {"email": email, "has_mail_server": has_mail_server()}
    try:
        # Whether somebody signs in with it is looked up there, not here.
        send_later(lambda: make_reset_mail(email=email, origin=origin))
    except Unavailable as error:
        return render(
            request, "password_reset.html", {**context, "problem": error.message}, status=503
        )
    return render(request, "password_reset.html", {**context, "is_sent": True})


@require_http_methods(["GET", "POST"])
@never_cache
def choose(request: HttpRequest, person: str, token: str) -> HttpResponseBase:
    user = find_reset(person=person, token=token)
    if user is None:
        return _form(request, status=404)
    if request.method == "GET":
        return _form(request, email=user.email)
    try:
        reset_password(person=person, token=token, new=request.POST.get("new", ""))
    except NotFound:
        return _form(request, status=404)
    except InvalidInput as problem:
        return _form(request, email=user.email, problem=problem.message, status=400)
    request.session.flush()
    return HttpResponseRedirect("/sign-in/?renewed")


def _form(
    request: HttpRequest, *, email: str = "", problem: str = "", status: int = 200
) -> HttpResponse:
    """Without an address: the link is dead."""
    context = {"theme": theme(request), "email": email, "problem": problem}
    response = render(request, "password_new.html", context, status=status)
    return without_address(response)
