"""One body for every refusal, whatever part of the server said no."""

from __future__ import annotations

import logging
from typing import Any

import orjson
import pytest
from django.core.exceptions import PermissionDenied, RequestDataTooBig, SuspiciousOperation
from django.db import OperationalError
from django.http import Http404, HttpRequest
from django.test import Client, RequestFactory
from rest_framework import exceptions

from core import errors
from core.api.errors import error_response, problem_of, server_error
from core.api.json import MAX_DEPTH
from core.rate_limit import BUCKETS_MAX, RateLimiter
from tests.api.client import Caller, refusal

TABLE: list[tuple[Exception, int, str, str]] = [
    (errors.InvalidInput("bad"), 400, "invalid_request_error", "bad"),
    (errors.Unauthenticated(), 401, "authentication_error", "unauthenticated"),
    (errors.Forbidden(), 403, "permission_error", "forbidden"),
    (errors.NotFound(), 404, "not_found_error", "not_found"),
    (errors.Conflict("stale_version"), 409, "invalid_request_error", "stale_version"),
    (errors.TooLarge(), 413, "invalid_request_error", "too_large"),
    (errors.Unprocessable("model_unavailable"), 422, "invalid_request_error", "model_unavailable"),
    (errors.RateLimited(7), 429, "rate_limit_error", "rate_limited"),
    (errors.Unavailable(), 503, "overloaded_error", "unavailable"),
    (exceptions.NotAuthenticated(), 401, "authentication_error", "unauthenticated"),
    (exceptions.PermissionDenied(), 403, "permission_error", "forbidden"),
    (exceptions.NotFound(), 404, "not_found_error", "not_found"),
    (exceptions.ParseError(), 400, "invalid_request_error", "invalid_json"),
    (exceptions.MethodNotAllowed("PUT"), 405, "invalid_request_error", "method_not_allowed"),
    (
        exceptions.UnsupportedMediaType("a/b"),
        415,
        "invalid_request_error",
        "unsupported_media_type",
    ),
    (exceptions.Throttled(3), 429, "rate_limit_error", "rate_limited"),
    (exceptions.ValidationError({"a": ["no"]}), 400, "invalid_request_error", "invalid_value"),
    (Http404(), 404, "not_found_error", "not_found"),
    (PermissionDenied(), 403, "permission_error", "forbidden"),
    (RequestDataTooBig(), 413, "invalid_request_error", "body_too_large"),
    (SuspiciousOperation(), 400, "invalid_request_error", "invalid_request"),
    (OperationalError("password=hunter2"), 503, "overloaded_error", "unavailable"),
    (RuntimeError("hunter2"), 500, "api_error", "internal_error"),
]


@pytest.mark.parametrize(
    ("error", "status", "kind", "code"), TABLE, ids=lambda value: type(value).__name__
)
def test_every_error_has_the_one_body(
    error: Exception, status: int, kind: str, code: str, rf: RequestFactory
) -> None:
    response = error_response(error, rf.get("/v1/sessions"))
    body = orjson.loads(response.content)
    assert response.status_code == status
    assert (body["type"], body["error"]["type"], body["error"]["code"]) == ("error", kind, code)
    assert body["error"]["details"]["error_code"] == code
    assert body["request_id"]
    assert b"hunter2" not in response.content
    assert ("x-should-retry" in response.headers) is (status == 409)
    assert ("www-authenticate" in response.headers) is (status == 401)
    assert ("retry-after" in response.headers) is (status in {429, 503})


def test_every_kind_of_domain_error_has_a_status() -> None:
    for kind in errors.DomainError.__subclasses__():
        error = kind(1) if kind is errors.RateLimited else kind()
        assert problem_of(error).status < 600


def test_all_faults_of_a_body_are_told_with_their_paths(key: Caller) -> None:
    response = key.post("/v1/sessions", {"title": 1, "speed": "warp"})
    found = response.json()["error"]["details"]["errors"]
    assert {(item["param"], item["code"]) for item in found} == {
        ("title", "invalid_type"),
        ("speed", "invalid_choice"),
    }


def deep(levels: int) -> bytes:
    return b'{"origin":' + b'{"a":' * levels + b"1" + b"}" * levels + b"}"


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (b"{", (400, "invalid_json", None)),
        (b"[]", (400, "invalid_json", None)),
        (b'"text"', (400, "invalid_json", None)),
        (b"null", (400, "invalid_json", None)),
        (b'{"title": "\xff"}', (400, "invalid_json", None)),
        (b'{"title": "a\x00b"}', (400, "invalid_json", None)),
        (b'{"title": NaN}', (400, "invalid_json", None)),
        (b'{"title": -Infinity}', (400, "invalid_json", None)),
        (b'{"title": "\\u0000"}', (400, "invalid_text", "title")),
        (b'{"title": "\\ud800"}', (400, "invalid_text", "title")),
        (b'{"metadata": {"\\udc00": "x"}}', (400, "invalid_text", "metadata.�")),
        (b'{"title": "a", "title": "b"}', (400, "duplicate_field", "title")),
        (b'{"metadata": {"k": "a", "k": "b"}}', (400, "duplicate_field", "metadata.k")),
        (b'{"origin": {"type": "a", "n": 1e999}}', (400, "number_out_of_range", "origin.n")),
        (
            b'{"origin": {"type": "a", "n": 9223372036854775808}}',
            (400, "number_out_of_range", "origin.n"),
        ),
        (b'{"title": 1' + b"0" * 5000 + b"}", (400, "number_out_of_range", None)),
        (b'{"title": ' + b"[" * 100_000, (400, "json_too_deep", None)),
        (b'{"title":"' + b"x" * 2_200_000 + b'"}', (413, "body_too_large", None)),
    ],
    ids=lambda value: repr(value[:30]) if isinstance(value, bytes) else "",
)
def test_bad_json_is_refused(
    key: Caller, body: bytes, expected: tuple[int, str, str | None]
) -> None:
    assert refusal(key.post("/v1/sessions", body)) == expected


def test_depth_is_bounded(key: Caller) -> None:
    assert refusal(key.post("/v1/sessions", deep(MAX_DEPTH)))[1] == "json_too_deep"
    assert refusal(key.post("/v1/sessions", deep(MAX_DEPTH - 2)))[1] == "invalid_origin"


def test_a_body_that_is_no_json_is_refused(cast: Any, key: Caller) -> None:
    bearer = {"authorization": f"Bearer {cast.workspace_key.secret}"}
    for kind in (
        "text/plain",
        "application/x-www-form-urlencoded",
        "multipart/form-data; boundary=x",
    ):
        response = Client().generic("POST", "/v1/sessions", b"a=1", kind, headers=bearer)
        assert refusal(response) == (415, "unsupported_media_type", None)


def test_answers_are_json_whatever_a_client_accepts(key: Caller) -> None:
    for accepted in ("text/html", "application/xml", "nonsense"):
        response = key.get("/v1/workspaces", accept=accepted)
        assert (response.status_code, response["content-type"]) == (200, "application/json")


def test_routes_that_are_not_there_answer_in_json(key: Caller, caller: Any) -> None:
    for response in (
        key.get("/v1/nothing"),
        key.post("/v1/sessions/ses_1/dance", {}),
        caller().get("/v1/"),
    ):
        assert refusal(response) == (404, "no_such_route", None)
    assert refusal(key.request("PATCH", "/v1/sessions"))[:2] == (405, "method_not_allowed")


def test_a_crash_outside_of_the_framework_answers_in_json(rf: RequestFactory) -> None:
    response = server_error(rf.get("/v1/sessions"))
    assert response.status_code == 500
    assert orjson.loads(response.content)["error"]["type"] == "api_error"  # type: ignore[attr-defined]


def test_an_unexpected_error_is_noted_and_not_shown(
    key: Caller, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(**_: Any) -> None:
        raise RuntimeError("hunter2")

    monkeypatch.setattr("sessions_app.api.sessions.get_session", fail)
    with caplog.at_level(logging.ERROR):
        response = key.get("/v1/sessions/ses_" + "0" * 32)
    assert refusal(response) == (500, "internal_error", None)
    assert b"hunter2" not in response.content
    assert any(record.exc_info for record in caplog.records)


@pytest.mark.parametrize(
    ("sent", "is_kept"),
    [
        ("trace-1234", True),
        ("short", False),
        ("a b" * 10, False),
        ("x" * 65, False),
        ("<b>bold</b>", False),
    ],
)
def test_a_request_id_is_taken_only_where_it_is_harmless(
    key: Caller, sent: str, is_kept: bool
) -> None:
    response = key.get("/v1/workspaces", x_request_id=sent)
    assert (response["request-id"] == sent) is is_kept
    assert response["x-request-id"] == response["request-id"]


def test_limits_are_told_and_kept(caller: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    small = RateLimiter(2)
    monkeypatch.setattr("core.api.views.limiter", lambda: small)
    member = caller("member")
    first, second, third = (member.get("/v1/workspaces") for _ in range(3))
    assert (first["x-ratelimit-limit"], first["x-ratelimit-remaining"]) == ("2", "1")
    assert second["x-ratelimit-remaining"] == "0"
    assert refusal(third) == (429, "rate_limited", None)
    assert 1 <= int(third["retry-after"]) <= 30
    assert int(third["x-ratelimit-reset"]) <= 60
    assert caller("owner").get("/v1/workspaces").status_code == 200


def test_a_bucket_fills_with_time_and_memory_is_bounded() -> None:
    moment = [0.0]
    limiter = RateLimiter(60, clock=lambda: moment[0])
    assert all(limiter.take("a").is_admitted for _ in range(60))
    refused = limiter.take("a")
    assert (refused.is_admitted, refused.retry_after_seconds) == (False, 1)
    moment[0] = 1.0
    assert limiter.take("a").is_admitted
    assert not limiter.take("a").is_admitted
    for number in range(BUCKETS_MAX + 10):
        limiter.take(f"key {number}")
    assert len(limiter._buckets) == BUCKETS_MAX


def test_handlers_serve_pages_outside_of_the_api(rf: RequestFactory) -> None:
    from core.api import errors as handlers

    request: HttpRequest = rf.get("/elsewhere")
    for response in (
        handlers.bad_request(request, SuspiciousOperation()),
        handlers.permission_denied(request, PermissionDenied()),
        handlers.page_not_found(request, Http404()),
        handlers.server_error(request),
    ):
        assert response["content-type"].startswith("text/html")


def fail_outside_of_any_view(error: Exception, request: HttpRequest) -> Any:
    """As middleware does: the handler of status 500 is called while the error is handled."""
    try:
        raise error
    except type(error):
        return server_error(request)


def test_a_database_that_is_away_is_no_fault_of_ours_wherever_it_shows(rf: RequestFactory) -> None:
    error = OperationalError("password=hunter2")
    answer = fail_outside_of_any_view(error, rf.get("/v1/sessions"))
    assert orjson.loads(answer.content)["error"]["type"] == "overloaded_error"
    page = fail_outside_of_any_view(error, rf.get("/inbox/"))
    assert "The database does not answer" in page.content.decode()
    for each in (answer, page):
        assert (each.status_code, int(each["retry-after"]) > 0) == (503, True)
        assert b"hunter2" not in each.content
    assert fail_outside_of_any_view(KeyError("x"), rf.get("/v1/sessions")).status_code == 500
