"""What answers where no route is: the API's error body, with debugging on too."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.views.decorators.csrf import csrf_exempt

from core.api.errors import error_response
from core.errors import NotFound


@csrf_exempt
def no_such_route(request: HttpRequest) -> HttpResponse:
    return error_response(
        NotFound("no_such_route", "There is no such route; see /v1/openapi.json."), request
    )
