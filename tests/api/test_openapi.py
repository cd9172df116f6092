"""The OpenAPI document: fresh, valid, without warnings, and shown without scripts."""

from __future__ import annotations

import re
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.core.management import call_command
from django.test import Client

from sessions_app.api.openapi import document
from tests.api.matrix_rows import MATRIX

SNAPSHOT = Path(settings.BASE_DIR) / "docs" / "openapi.yaml"


def test_the_snapshot_is_fresh_and_valid() -> None:
    made = StringIO()
    call_command("spectacular", validate=True, fail_on_warn=True, stdout=made)
    message = "run: manage.py spectacular --validate --fail-on-warn --file docs/openapi.yaml"
    assert made.getvalue().strip() == SNAPSHOT.read_text().strip(), message


def test_the_document_has_every_route() -> None:
    described = {
        (method.upper(), re.sub(r"{\w+}", "<id>", path))
        for path, operations in document()["paths"].items()
        for method in operations
    }
    expected = {
        (method, "/v1/" + re.sub(r"<str:\w+>", "<id>", path)) for method, path in MATRIX
    } - {("GET", "/v1/openapi.json")}
    assert described == expected


@pytest.mark.django_db
def test_anyone_may_read_it(client: Any) -> None:
    response = client.get("/v1/openapi.json")
    assert response["content-type"] == "application/json"
    assert response.json()["openapi"].startswith("3.1")
    assert set(response.json()["components"]["securitySchemes"]) == {"bearer", "apiKey", "login"}


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE", "OPTIONS"])
def test_it_refuses_other_methods_as_the_api_does(method: str) -> None:
    response = Client(enforce_csrf_checks=True).generic(method, "/v1/openapi.json")
    assert response.status_code == 405
    assert response["allow"] == "GET, HEAD"
    assert response.json()["error"]["code"] == "method_not_allowed"


@pytest.mark.django_db
def test_the_page_shows_every_operation_and_runs_nothing(client: Any) -> None:
    page = client.get("/docs").content.decode()
    for operations in document()["paths"].values():
        for operation in operations.values():
            assert f'id="{operation["operationId"]}"' in page
    assert "<script" not in page
    assert "://" not in page.replace("http://testserver", "")
