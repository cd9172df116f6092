"""A caller of the API in tests: the real stack below HTTP, as one member of the cast."""

from __future__ import annotations

from typing import Any

import orjson
from django.test import Client

from orgs.models import User
from tests.factories import Cast, Key

PEOPLE = ("owner", "admin", "member", "second_member", "viewer", "outsider")


class Caller:
    """Speaks JSON. `name` is a field of the cast, or empty for nobody."""

    def __init__(self, cast: Cast, name: str = "", **headers: str) -> None:
        self._client = Client(raise_request_exception=False)
        self._headers = dict(headers)
        actor = getattr(cast, name) if name else None
        if isinstance(actor, User):
            self._client.force_login(actor)
        elif isinstance(actor, Key):
            self._headers["authorization"] = f"Bearer {actor.secret}"

    def request(self, method: str, path: str, body: Any = None, **headers: str) -> Any:
        """`body`: JSON-ready, or bytes as they are."""
        content = body if isinstance(body, bytes) else b"" if body is None else orjson.dumps(body)
        return self._client.generic(
            method,
            path,
            content,
            content_type="application/json",
            headers={**self._headers, **{k.replace("_", "-"): v for k, v in headers.items()}},
        )

    def get(self, path: str, **headers: str) -> Any:
        return self.request("GET", path, **headers)

    def post(self, path: str, body: Any = None, **headers: str) -> Any:
        return self.request("POST", path, body, **headers)

    def put(self, path: str, body: Any = None, **headers: str) -> Any:
        return self.request("PUT", path, body, **headers)

    def delete(self, path: str, **headers: str) -> Any:
        return self.request("DELETE", path, **headers)


def refusal(response: Any) -> tuple[int, str, str | None]:
    """Status, code and path of an error; checks that the body is the one of all errors."""
    body = response.json()
    assert body.keys() == {"type", "error", "request_id"}, body
    error = body["error"]
    assert error.keys() == {"type", "code", "message", "param", "details"}
    assert body["type"] == "error"
    assert error["details"]["error_code"] == error["code"]
    assert body["request_id"] == response["request-id"] == response["x-request-id"]
    assert error["message"]
    return response.status_code, error["code"], error["param"]
