"""The view that all REST routes inherit: limits, and pieces that every action needs."""

from __future__ import annotations

from functools import cache
from typing import Any

from django.conf import settings
from django.http import HttpRequest
from rest_framework.negotiation import BaseContentNegotiation
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from core.errors import RateLimited
from core.rate_limit import Decision, RateLimiter, spend


class AlwaysJson(BaseContentNegotiation):
    """Answers are JSON whatever `Accept` says: a refusal to answer helps nobody."""

    def select_parser(self, request: Request, parsers: Any) -> Any:
        sent = request.content_type.partition(";")[0].strip().lower()
        return next((parser for parser in parsers if parser.media_type == sent), None)

    def select_renderer(self, request: Request, renderers: Any, format_suffix: Any = None) -> Any:
        return renderers[0], renderers[0].media_type


class ApiView(APIView):
    # Counts each authenticated request against its principal's limit, and says so. (No docstring:
    # it would be the description of every operation.)
    content_negotiation_class = AlwaysJson
    decision: Decision | None = None

    def initialize_request(self, request: HttpRequest, *args: Any, **kwargs: Any) -> Request:
        """REST framework takes a body whose length is not declared (chunked) for an empty one."""
        if not request.META.get("CONTENT_LENGTH"):
            request.META["CONTENT_LENGTH"] = str(len(request.body))
        return super().initialize_request(request, *args, **kwargs)

    def check_throttles(self, request: Request) -> None:
        self.decision = limiter().take(str(request.user.pk))
        if not self.decision.is_admitted:
            raise RateLimited(self.decision.retry_after_seconds)

    def finalize_response(
        self, request: Request, response: Any, *args: Any, **kwargs: Any
    ) -> Response:
        final = super().finalize_response(request, response, *args, **kwargs)
        for name, value in (self.decision.headers if self.decision else {}).items():
            final.headers[name] = value
        return final


@cache
def limiter() -> RateLimiter:
    return RateLimiter(settings.RATE_LIMIT_PER_MINUTE, spend=spend)
