"""Notes for each request from where it came."""

from __future__ import annotations

from contextlib import AbstractContextManager

from django.http import HttpRequest

from core.api.both_worlds import BothWorlds
from core.api.request_id import request_id_of
from core.whence import Whence, coming_from

USER_AGENT_MAX_CHARACTERS = 300


class WhenceMiddleware(BothWorlds):
    def surround(self, request: HttpRequest) -> AbstractContextManager[None]:
        return coming_from(_whence(request))


def _whence(request: HttpRequest) -> Whence:
    told = request.headers.get("user-agent", "")[:USER_AGENT_MAX_CHARACTERS]
    user_agent = "".join(each for each in told if each.isprintable())
    return Whence(request.META.get("REMOTE_ADDR", ""), request_id_of(request), user_agent)
