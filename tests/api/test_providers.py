"""Model providers over HTTP: connected, changed, tested, removed; their keys are never shown."""

from __future__ import annotations

import json
import logging
from typing import Any

import pytest
from llmock.pytest_plugin import LLMock

from catalog.models import Model, Provider
from catalog.services.checking import TESTS_PER_MINUTE
from catalog.services.workers import note_worker
from core.ids import uuid7
from orgs.models import AuditEntry
from tests.api.client import Caller, refusal
from tests.api.test_organizations import walk
from tests.factories import Cast, make_session

KEY = "local-key-that-no-pattern-knows-7731"
NEVER = "0" * 32


@pytest.fixture
def owner(cast: Cast) -> Caller:
    return Caller(cast, "owner")


@pytest.fixture
def path(cast: Cast) -> str:
    return f"/v1/organizations/{cast.organization.public_id}/providers"


def body(**fields: Any) -> dict[str, Any]:
    return {"name": "Harbour", "base_url": "http://127.0.0.1:9/v1", "api_key": KEY, **fields}


def connect(owner: Caller, path: str, **fields: Any) -> dict[str, Any]:
    answer = owner.post(path, body(**fields))
    assert answer.status_code == 201, answer.content
    return dict(answer.json())


def test_a_provider_lives_from_its_connection_to_its_removal(
    cast: Cast, owner: Caller, path: str, llmock: LLMock, caplog: pytest.LogCaptureFixture
) -> None:
    answers: list[str] = []

    def ask(method: str, where: str, sent: Any = None, status: int = 200) -> Any:
        answer = owner.request(method, where, sent)
        assert answer.status_code == status, answer.content
        answers.append(answer.content.decode() + str(dict(answer.items())))
        return answer.json() if answer.content else None

    with caplog.at_level(logging.DEBUG):
        model = {
            "model_id": "tide-1",
            "aliases": ["fast"],
            "context_size": 8_000,
            "efforts": ["high"],
            "input_price": "2.50",
            "output_price": 10,
        }
        made = ask("POST", path, body(base_url=llmock.base_url("openai"), models=[model]), 201)
        assert made["slug"] == "harbour"
        assert (made["has_key"], made["key_ends_with"]) == (True, "7731")
        assert made["state"] == "no_worker"
        (shown,) = made["models"]
        assert shown == {
            **model,
            "id": shown["id"],
            "type": "provider_model",
            "display_name": "tide-1",
            "input_price": "2.5",
            "output_price": "10",
            "is_enabled": True,
            "is_default": False,
        }
        here = f"{path}/{made['id']}"
        assert ask("GET", here) == made
        tested = ask("POST", f"{here}/test", {})
        assert (tested["outcome"], tested["model_id"]) == ("works", "tide-1")
        llmock.fail(401, message=f"Wrong key {KEY}.")
        tested = ask("POST", f"{here}/test", {"model_id": shown["id"]})
        assert tested["outcome"] == "wrong_key"
        assert tested["text"].endswith("It said: Wrong key [redacted].")
        assert ask("GET", here)["last_test"]["outcome"] == "wrong_key"
        note_worker(token=uuid7(), name="w", kinds=["openai_compatible"])
        assert ask("GET", here)["state"] == "available"
        changed = ask("POST", here, {"is_enabled": False, "api_key": "another-long-key-0042"})
        assert (changed["state"], changed["key_ends_with"]) == ("disabled", "0042")
        assert changed["last_test"] is None
        added = ask("POST", f"{here}/models", {"model_id": "tide-2"}, 201)
        there = f"{here}/models/{added['id']}"
        assert ask("POST", there, {"display_name": "Tide Two"})["display_name"] == "Tide Two"
        ask("DELETE", there, status=204)
        ask("DELETE", here, status=204)
        ask("GET", here, status=404)
    told = json.dumps(list(AuditEntry.objects.values_list("changes", "target_name")))
    for key in (KEY, "another-long-key-0042"):
        assert key not in "".join(answers)
        assert key not in told
        assert key not in caplog.text


def test_the_list_has_pages_and_no_other_tenant(cast: Cast, owner: Caller, path: str) -> None:
    for number in range(4):
        connect(owner, path, name=f"Harbour {number}")
    rows = walk(owner, path)
    assert sorted(row["name"] for row in rows) == ["Demo", *(f"Harbour {n}" for n in range(4))]


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"name": ""}, (400, "invalid_name", "name")),
        ({"name": 7}, (400, "invalid_type", "name")),
        ({"name": "a\x00"}, (400, "invalid_text", "name")),
        ({"name": "x" * 101}, (400, "invalid_name", "name")),
        ({"name": None}, (400, "field_null", "name")),
        ({"kind": "demo"}, (400, "invalid_choice", "kind")),
        ({"kind": ["openai_compatible"]}, (400, "invalid_choice", "kind")),
        ({"slug": "a/b"}, (400, "invalid_slug", "slug")),
        ({"base_url": "javascript:alert(1)"}, (400, "invalid_base_url", "base_url")),
        ({"base_url": "file:///etc/passwd"}, (400, "invalid_base_url", "base_url")),
        ({"base_url": "https://u:p@host.test"}, (400, "invalid_base_url", "base_url")),
        ({"base_url": "http://10.0.0.1/v1"}, (400, "address_refused", "base_url")),
        ({"base_url": "http://169.254.169.254/"}, (400, "address_refused", "base_url")),
        ({"base_url": {}}, (400, "invalid_type", "base_url")),
        ({"api_key": "a b"}, (400, "invalid_provider_key", "api_key")),
        ({"api_key": 12}, (400, "invalid_type", "api_key")),
        ({"api_key": "x" * 5_000}, (400, "too_long", "api_key")),
        ({"models": {}}, (400, "invalid_type", "models")),
        ({"models": [{}]}, (400, "field_required", "models[0].model_id")),
        ({"models": [7]}, (400, "invalid_value", "models[0]")),
        ({"models": [{"model_id": ""}]}, (400, "invalid_model", "models[0].model_id")),
        ({"models": [{"model_id": "a"}] * 2}, (409, "model_exists", "models[1].model_id")),
        ({"models": [{"model_id": "a", "input_price": True}]},
         (400, "invalid_type", "models[0].input_price")),
        ({"models": [{"model_id": "a", "input_price": -1}]},
         (400, "out_of_range", "models[0].input_price")),
        ({"models": [{"model_id": "a", "context_size": "8000"}]},
         (400, "invalid_type", "models[0].context_size")),
        ({"models": [{"model_id": "a", "context_size": 10**12}]},
         (400, "invalid_model", "models[0].context_size")),
        ({"models": [{"model_id": "a", "efforts": ["much"]}]},
         (400, "invalid_choice", "models[0].efforts[0]")),
        ({"credentials": "x"}, (400, "unknown_field", "credentials")),
    ],
)  # fmt: skip
def test_bad_input_is_refused_with_code_and_path_and_nothing_is_written(
    cast: Cast, owner: Caller, path: str, fields: dict[str, Any], expected: tuple[int, str, str]
) -> None:
    before = AuditEntry.objects.count()
    answer = owner.post(path, body(**fields))
    assert refusal(answer) == expected
    assert KEY not in answer.content.decode()
    assert Provider.objects.filter(organization=cast.organization).count() == 1
    assert AuditEntry.objects.count() == before


def test_half_a_surrogate_is_refused(cast: Cast, owner: Caller, path: str) -> None:
    sent = b'{"name": "a\\ud800", "base_url": "http://127.0.0.1:9"}'
    assert refusal(owner.post(path, sent))[1] in {"invalid_text", "invalid_json"}
    assert Provider.objects.filter(organization=cast.organization).count() == 1


def test_ids_that_name_nothing_here_are_404(cast: Cast, owner: Caller, path: str) -> None:
    made = connect(owner, path, models=[{"model_id": "tide-1"}])
    theirs = Provider.objects.get(organization=cast.other_organization)
    model = Model.objects.filter(provider=theirs).first()
    assert model is not None
    here = f"{path}/{made['id']}"
    gone = connect(owner, path, name="Gone")["id"]
    owner.delete(f"{path}/{gone}")
    for name in (theirs.public_id, f"prv_{NEVER}", gone, "prv_x", "%00", "x" * 3_000):
        for method, rest, sent in (
            ("GET", "", None),
            ("POST", "", {"name": "Mine"}),
            ("DELETE", "", None),
            ("POST", "/test", {}),
            ("POST", "/models", {"model_id": "x"}),
        ):
            answer = owner.request(method, f"{path}/{name}{rest}", sent)
            assert refusal(answer)[:2] == (404, "not_found"), (method, name, rest)
    for name in (model.public_id, f"mdl_{NEVER}", made["id"], "x"):
        for method, sent in (("POST", {"is_enabled": False}), ("DELETE", None)):
            answer = owner.request(method, f"{here}/models/{name}", sent)
            assert refusal(answer)[:2] == (404, "not_found"), (method, name)
    assert refusal(owner.post(f"{here}/test", {"model_id": model.public_id}))[0] == 404
    assert refusal(owner.post(f"{here}/test", {"model_id": "x"})) == (400, "invalid_id", "model_id")
    theirs.refresh_from_db()
    assert (theirs.name, theirs.is_enabled, theirs.models.count()) == ("Demo", True, 2)


def test_another_tenant_learns_nothing(cast: Cast, owner: Caller, path: str) -> None:
    made = connect(owner, path)
    outsider = Caller(cast, "outsider")
    never = outsider.get(f"/v1/organizations/org_{NEVER}/providers/prv_{NEVER}")
    answer = outsider.get(f"{path}/{made['id']}")
    assert refusal(answer) == refusal(never) == (404, "not_found", None)


def test_tests_are_limited(cast: Cast, owner: Caller, path: str) -> None:
    here = f"{path}/{connect(owner, path, models=[{'model_id': 'm'}])['id']}/test"
    for _ in range(TESTS_PER_MINUTE):
        assert owner.post(here, {}).json()["outcome"] == "unreachable"
    answer = Caller(cast, "admin").post(here, {})
    assert refusal(answer)[:2] == (429, "rate_limited")
    assert int(answer["retry-after"]) > 0


def test_the_default_cannot_be_taken_away(cast: Cast, owner: Caller, path: str) -> None:
    connect(owner, path, models=[{"model_id": "tide-1"}])
    demo = Provider.objects.get(organization=cast.organization, slug="demo")
    answer = owner.delete(f"{path}/{demo.public_id}")
    assert refusal(answer)[:2] == (409, "default_needed")
    assert owner.post(f"{path}/{demo.public_id}/test").json()["error"]["code"] == (
        "kind_not_supported"
    )


def test_sessions_use_what_was_connected(cast: Cast, owner: Caller, path: str) -> None:
    connect(owner, path, models=[{"model_id": "tide-1", "aliases": ["Fast one"]}])
    models = Caller(cast, "member").get("/v1/models").json()["data"]
    assert "harbour/tide-1" in {model["id"] for model in models}
    session = make_session(cast)
    sent = {"events": [{"type": "user.message", "content": "Hi", "model": "fast ONE"}]}
    answer = Caller(cast, "member").post(f"/v1/sessions/{session.public_id}/events", sent)
    assert answer.status_code == 202
