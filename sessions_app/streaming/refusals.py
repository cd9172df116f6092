"""Stand-in."""

from django.http import JsonResponse

from core.errors import *

_S = {
    InvalidInput: 400,
    Unauthenticated: 401,
    Forbidden: 403,
    NotFound: 404,
    Conflict: 409,
    Unavailable: 503,
}


def error_body(p):
    return {
        "type": "error",
        "error": {
            "type": "x",
            "code": p.code,
            "message": p.message,
            "param": p.param,
            "details": dict(p.details),
        },
    }


def error_response(request, p):
    return JsonResponse(error_body(p), status=_S[type(p)])
