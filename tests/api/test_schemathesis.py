"""Generated requests, valid and broken, against the running server: never a 5xx.

Bounded: a few requests for each operation. The stream is left out, for it does not end.
"""

from __future__ import annotations

from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import content_type_conformance, response_schema_conformance

from tests.api.matrix_rows import MATRIX, STREAMS
from tests.journeys.server import Server

OPERATIONS = sorted(MATRIX.keys() - STREAMS - {("GET", "openapi.json")})
CHECKS = [not_a_server_error, content_type_conformance, response_schema_conformance]


@pytest.fixture(scope="module")
def api_document(running_server: Server) -> Any:
    return schemathesis.openapi.from_url(f"{running_server.url}/v1/openapi.json")


@pytest.mark.parametrize("mode", list(GenerationMode), ids=lambda mode: mode.value)
@pytest.mark.parametrize("operation", OPERATIONS, ids=" ".join)
def test_no_request_is_a_server_error(
    running_server: Server, api_document: Any, operation: tuple[str, str], mode: GenerationMode
) -> None:
    attack(running_server, api_document, operation, mode, examples=12)


@pytest.mark.proof
@pytest.mark.timeout(900)
@pytest.mark.parametrize("mode", list(GenerationMode), ids=lambda mode: mode.value)
@pytest.mark.parametrize("operation", OPERATIONS, ids=" ".join)
def test_many_requests_are_no_server_error(
    running_server: Server, api_document: Any, operation: tuple[str, str], mode: GenerationMode
) -> None:
    attack(running_server, api_document, operation, mode, examples=300)


def attack(
    server: Server, document: Any, operation: tuple[str, str], mode: GenerationMode, examples: int
) -> None:
    """`examples` requests to one operation, at a session that exists, by a key that may do all."""
    client = server.client()
    session_id = client.call("POST", "sessions", json={})["id"]
    path = "/v1/" + operation[1].replace("<str:", "{").replace(">", "}")
    found = document[path][operation[0]]

    @settings(
        max_examples=examples,
        deadline=None,
        derandomize=True,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=found.as_strategy(generation_mode=mode))
    def send(case: schemathesis.Case) -> None:
        if "session_id" in case.path_parameters:
            case.path_parameters["session_id"] = session_id
        case.call_and_validate(
            headers={"Authorization": f"Bearer {client.key}"},
            checks=CHECKS,
        )

    send()
