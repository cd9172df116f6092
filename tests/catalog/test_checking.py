"""Test connection, against servers that we did not write and some that misbehave."""

from __future__ import annotations

import json
import logging
import socket
import ssl
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from llmock.pytest_plugin import LLMock

from catalog.kinds import ProviderKind
from catalog.models import Model, Provider
from catalog.probing.answers import judge
from catalog.probing.verdicts import SENTENCES, Outcome, Verdict
from catalog.services import checking
from catalog.services.checking import TESTS_PER_MINUTE, check_connection
from catalog.services.connecting import ProviderChanges, update_provider
from catalog.services.providers import NewModel, create_provider, set_credentials
from core.errors import Conflict, Forbidden, NotFound, RateLimited, Unavailable
from tests.catalog.conftest import Answer, answering
from tests.factories import Cast

KEY = "local-key-that-no-pattern-knows-7731"
Serve = Callable[[Answer], str]


def store(
    cast: Cast,
    base_url: str,
    *,
    kind: ProviderKind = ProviderKind.OPENAI_COMPATIBLE,
    models: tuple[str, ...] = ("tide-1",),
    key: str = KEY,
) -> Provider:
    return create_provider(
        organization=cast.organization,
        slug=f"p-{uuid4().hex[:8]}",
        kind=kind,
        name="Local",
        models=[NewModel(model, model) for model in models],
        base_url=base_url,
        api_key=key,
    )


def check(cast: Cast, provider: Provider, who: str = "owner", **more: Any) -> Verdict:
    return check_connection(
        access=cast.access(who),
        organization_id=cast.organization.pk,
        provider_id=provider.pk,
        **more,
    )


def test_a_provider_that_works_says_so_and_is_remembered(cast: Cast, llmock: LLMock) -> None:
    provider = store(cast, llmock.base_url("openai"))
    verdict = check(cast, provider)
    assert verdict.outcome is Outcome.WORKS
    assert verdict.sentence.startswith("It works: tide-1 began to answer after ")
    sent = llmock.last_request
    assert (sent.method, sent.body["model"], sent.body["stream"]) == ("POST", "tide-1", True)
    assert len(llmock.requests) == 1
    provider.refresh_from_db()
    assert provider.last_test["outcome"] == "works"
    assert provider.last_test["text"] == verdict.sentence
    assert provider.last_test["model_id"] == "tide-1"


def test_anthropics_wire_is_spoken_too(cast: Cast, llmock: LLMock) -> None:
    provider = store(cast, llmock.base_url("anthropic"), kind=ProviderKind.ANTHROPIC)
    assert check(cast, provider).outcome is Outcome.WORKS
    assert llmock.last_request.path.endswith("/v1/messages")
    llmock.fail(401, provider="anthropic")
    assert check(cast, provider).outcome is Outcome.WRONG_KEY


@pytest.mark.parametrize(
    ("status", "outcome"),
    [
        (400, Outcome.REQUEST_REFUSED),
        (401, Outcome.WRONG_KEY),
        (403, Outcome.WRONG_KEY),
        (429, Outcome.RATE_LIMITED),
        (500, Outcome.BROKEN),
        (503, Outcome.BROKEN),
    ],
)
def test_statuses_are_told_in_a_sentence(
    cast: Cast, llmock: LLMock, status: int, outcome: Outcome
) -> None:
    llmock.fail(status, message="The tide is out.")
    verdict = check(cast, store(cast, llmock.base_url("openai")))
    assert verdict.outcome is outcome
    assert verdict.sentence.endswith("It said: The tide is out.")
    assert len(llmock.requests) == 1, "a test is not repeated behind anybody's back"


def test_a_wrong_path_is_named(cast: Cast, llmock: LLMock) -> None:
    verdict = check(cast, store(cast, f"{llmock.url}/nowhere/v9"))
    assert verdict.outcome is Outcome.WRONG_PATH
    assert "Look at the end of the base URL" in verdict.sentence


def test_a_model_that_is_not_known_is_named(cast: Cast, llmock: LLMock) -> None:
    llmock.fail(404, code="model_not_found", message="The model `tide-1` does not exist.")
    verdict = check(cast, store(cast, llmock.base_url("openai")))
    assert verdict.outcome is Outcome.MODEL_UNKNOWN
    assert "there is no model tide-1" in verdict.sentence


def test_a_slow_one_is_not_waited_for(
    cast: Cast, llmock: LLMock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("catalog.probing.probe.TRY_SECONDS", 0.5)
    llmock.delay(30)
    began = time.monotonic()
    verdict = check(cast, store(cast, llmock.base_url("openai")))
    assert verdict.outcome is Outcome.SLOW
    assert "did not begin to answer within" in verdict.sentence
    assert time.monotonic() - began < 5


def test_one_that_drips_is_not_waited_for(
    cast: Cast, serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each byte comes in time, and the answer never does."""
    monkeypatch.setattr("catalog.probing.probe.TRY_SECONDS", 0.5)
    done = threading.Event()

    def drip(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(200)
        handler.send_header("Content-Type", "text/event-stream")
        handler.end_headers()
        while not done.wait(0.05):
            try:
                handler.wfile.write(b":\n")
            except OSError:
                return

    verdict = check(cast, store(cast, serve(drip)))
    done.set()
    assert verdict.outcome is Outcome.SLOW


def test_nobody_at_the_port(cast: Cast) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    verdict = check(cast, store(cast, f"http://127.0.0.1:{port}/v1"))
    assert verdict.outcome is Outcome.UNREACHABLE
    assert f"Nothing answers at 127.0.0.1:{port}." in verdict.sentence


def test_no_such_host(cast: Cast, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("core.outbound._look_up", lambda _: [])
    verdict = check(cast, store(cast, "https://api.tide.invalid/v1"))
    assert verdict.outcome is Outcome.HOST_UNKNOWN
    assert "api.tide.invalid" in verdict.sentence


def test_a_private_address_is_not_asked(cast: Cast, llmock: LLMock, settings: Any) -> None:
    settings.PROVIDER_PRIVATE_HOSTS = []
    verdict = check(cast, store(cast, llmock.base_url("openai")))
    assert verdict.outcome is Outcome.ADDRESS_REFUSED
    assert "private network" in verdict.sentence
    assert llmock.requests == []


@pytest.fixture
def self_signed(tmp_path: Path) -> Iterator[int]:
    """The port of a server whose certificate nobody vouches for."""
    certificate, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-keyout", key,
         "-out", certificate, "-subj", "/CN=tide.test"],
        check=True,
        capture_output=True,
    )  # fmt: skip
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    listener = socket.create_server(("127.0.0.1", 0))

    def greet() -> None:
        try:
            peer, _ = listener.accept()
            with peer, context.wrap_socket(peer, server_side=True):
                raise AssertionError("the client took a certificate that is not good")
        except OSError:
            return

    thread = threading.Thread(target=greet)
    thread.start()
    yield listener.getsockname()[1]
    listener.close()
    thread.join(5)


def test_a_certificate_that_is_not_good(cast: Cast, self_signed: int) -> None:
    verdict = check(cast, store(cast, f"https://127.0.0.1:{self_signed}/v1"))
    assert verdict.outcome is Outcome.TLS_FAILED
    assert "self-signed certificate" in verdict.sentence


def test_a_server_without_tls(cast: Cast, llmock: LLMock) -> None:
    base_url = llmock.base_url("openai").replace("http://", "https://")
    verdict = check(cast, store(cast, base_url))
    assert verdict.outcome is Outcome.TLS_FAILED
    assert "it speaks no TLS" in verdict.sentence


def test_a_connection_that_ends_at_once(cast: Cast, serve: Serve) -> None:
    verdict = check(cast, store(cast, serve(lambda handler: None)))
    assert verdict.outcome is Outcome.CLOSED


def test_a_redirect_is_named_and_not_followed(cast: Cast, serve: Serve) -> None:
    verdict = check(cast, store(cast, serve(answering(307, b""))))
    assert verdict.outcome is Outcome.REDIRECTED


def test_a_page_in_place_of_a_model(cast: Cast, serve: Serve) -> None:
    verdict = check(cast, store(cast, serve(answering(200, b"<h1>Hi</h1>", "text/html"))))
    assert verdict.outcome is Outcome.WRONG_PATH
    assert "Hi" not in verdict.sentence


def test_an_endless_answer_is_read_up_to_a_bound(cast: Cast, serve: Serve) -> None:
    def flood(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(500)
        handler.end_headers()
        try:
            for _ in range(10_000):
                handler.wfile.write(b"tide " * 20_000)
        except OSError:
            return

    began = time.monotonic()
    verdict = check(cast, store(cast, serve(flood)))
    assert verdict.outcome is Outcome.BROKEN
    assert len(verdict.reason) <= 400
    assert time.monotonic() - began < 5


def test_what_it_says_is_redacted_before_it_is_cut(
    cast: Cast, serve: Serve, caplog: pytest.LogCaptureFixture
) -> None:
    """A hostile or careless server repeats what it was sent, wherever the cut falls."""
    told: list[str] = []

    def echo(handler: BaseHTTPRequestHandler) -> None:
        told.append(str(handler.headers["Authorization"]))
        message = "x" * (400 - 12 - len(told)) + f" {KEY} https://u:pass-word@host/ {told[-1]}"
        answering(401, json.dumps({"error": {"message": message}}).encode())(handler)

    provider = store(cast, serve(echo))
    with caplog.at_level(logging.DEBUG):
        for _ in range(5):
            verdict = check(cast, provider)
            assert KEY[:6] not in verdict.sentence
            assert "pass-word" not in verdict.sentence
    assert told == [f"Bearer {KEY}"] * 5
    provider.refresh_from_db()
    assert KEY not in json.dumps(provider.last_test)
    assert KEY not in caplog.text


def test_a_reason_that_cannot_be_stored_is_mended(cast: Cast, serve: Serve) -> None:
    body = b'{"error": {"message": "a\\u0000b \\ud800 c"}}'
    provider = store(cast, serve(answering(500, body)))
    verdict = check(cast, provider)
    assert verdict.reason == "a\ufffdb \ufffd c"
    provider.refresh_from_db()
    assert provider.last_test["outcome"] == "broken"


def test_the_default_model_is_asked_or_the_named_one(cast: Cast, llmock: LLMock) -> None:
    provider = store(cast, llmock.base_url("openai"), models=("a", "b", "c"))
    Model.objects.filter(provider=provider, model_id="a").update(is_enabled=False)
    assert check(cast, provider).model == "b"
    Model.objects.filter(provider=provider, model_id="c").update(is_default=True)
    assert check(cast, provider).model == "c"
    named = Model.objects.get(provider=provider, model_id="a")
    assert check(cast, provider, model_pk=named.pk).model == "a"
    theirs = Model.objects.filter(provider__organization=cast.other_organization).first()
    assert theirs is not None
    with pytest.raises(NotFound):
        check(cast, provider, model_pk=theirs.pk)


def test_without_a_model_or_for_the_demo_there_is_nothing_to_ask(cast: Cast) -> None:
    with pytest.raises(Conflict, match="no_models"):
        check(cast, store(cast, "http://127.0.0.1:9", models=()))
    with pytest.raises(Conflict, match="kind_not_supported"):
        check(cast, Provider.objects.get(organization=cast.organization, kind="demo"))


def test_only_who_administers_tests(cast: Cast, llmock: LLMock) -> None:
    provider = store(cast, llmock.base_url("openai"))
    for who in ("member", "viewer"):
        with pytest.raises(Forbidden):
            check(cast, provider, who)
    for who in ("outsider", "workspace_key"):
        with pytest.raises(NotFound):
            check(cast, provider, who)
    theirs = Provider.objects.get(organization=cast.other_organization)
    with pytest.raises(NotFound):
        check(cast, theirs)
    assert llmock.requests == []


def test_tests_are_few(cast: Cast, llmock: LLMock) -> None:
    provider = store(cast, llmock.base_url("openai"))
    for _ in range(TESTS_PER_MINUTE):
        check(cast, provider)
    with pytest.raises(RateLimited) as raised:
        check(cast, provider)
    assert 0 < raised.value.retry_after_seconds <= 60
    assert len(llmock.requests) == TESTS_PER_MINUTE


def test_no_more_than_some_at_the_same_moment(
    cast: Cast, llmock: LLMock, monkeypatch: pytest.MonkeyPatch
) -> None:
    slots = threading.BoundedSemaphore(1)
    monkeypatch.setattr(checking, "_slots", slots)
    provider = store(cast, llmock.base_url("openai"))
    with slots, pytest.raises(RateLimited):
        check(cast, provider)
    assert check(cast, provider).outcome is Outcome.WORKS


def test_a_verdict_on_what_is_no_more_is_not_kept(cast: Cast) -> None:
    """The key was replaced while the test ran."""
    tested = store(cast, "http://127.0.0.1:9/v1")
    set_credentials(provider=Provider.objects.get(pk=tested.pk), api_key="another-long-key-0042")
    checking._keep(tested, Verdict(Outcome.WRONG_KEY, "h", "m", 0.1))
    tested.refresh_from_db()
    assert tested.last_test is None


def test_a_key_that_cannot_be_read_is_named(cast: Cast, settings: Any, llmock: LLMock) -> None:
    provider = store(cast, llmock.base_url("openai"))
    settings.ENCRYPTION_KEYS = ["AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="]
    with pytest.raises(Unavailable, match="undecipherable_secret"):
        check(cast, provider)


def test_a_changed_key_is_used_at_once(cast: Cast, serve: Serve) -> None:
    told: list[str] = []

    def note(handler: BaseHTTPRequestHandler) -> None:
        told.append(str(handler.headers["Authorization"]))
        answering(200, b'{"choices": []}')(handler)

    provider = store(cast, serve(note))
    update_provider(
        access=cast.access("owner"),
        organization_id=cast.organization.pk,
        provider_id=provider.pk,
        changes=ProviderChanges(api_key="another-long-key-0042"),
    )
    assert check(cast, provider).outcome is Outcome.WORKS
    assert told == ["Bearer another-long-key-0042"]


def error(message: str, **more: Any) -> bytes:
    return json.dumps({"error": {"message": message, **more}}).encode()


@pytest.mark.parametrize(
    ("status", "body", "outcome"),
    [
        (404, error("The model `x` does not exist", code="model_not_found"), "model_unknown"),
        (404, error("model 'x' not found, try pulling it first"), "model_unknown"),
        (404, b'{"type":"error","error":{"type":"not_found_error","message":"model: x"}}',
         "model_unknown"),
        (400, error("x is not a valid model ID"), "model_unknown"),
        (400, error("Invalid model: x", type="invalid_model"), "model_unknown"),
        (404, error("Invalid URL (POST /v1/v1/chat/completions)"), "wrong_path"),
        (404, b'{"detail":"Not Found"}', "wrong_path"),
        (405, b"", "wrong_path"),
        (404, b"<html>", "wrong_path"),
        (402, b"{}", "no_quota"),
        (429, error("You exceeded", code="insufficient_quota"), "no_quota"),
        (429, error("Slow down"), "rate_limited"),
        (400, error("Bad"), "request_refused"),
        (422, b'{"detail": [{"msg": "x"}]}', "request_refused"),
        (599, b"[]", "broken"),
        (200, b'data: {"choices": []}\n\n', "works"),
        (200, b': hello\n\nevent: x\ndata: {"type": "message_start"}\n\n', "works"),
        (200, b'{"choices": [], "object": "chat.completion"}', "works"),
        (200, b'data: {"error": {"message": "No key", "code": 401}}\n\n', "wrong_key"),
        (200, b'data: {"error": {"message": "Oops"}}\n\n', "broken"),
        (200, b"data: [DONE]\n\n", "wrong_path"),
        (200, b"", "wrong_path"),
        (200, b"{}", "wrong_path"),
        (200, b"[" * 50_000, "wrong_path"),
        (204, b"", "wrong_path"),
        (301, b"", "redirected"),
    ],
)  # fmt: skip
def test_what_servers_say_is_understood(status: int, body: bytes, outcome: str) -> None:
    assert judge(status, "application/json", body)[0] == outcome


def test_every_outcome_has_its_sentence() -> None:
    assert set(SENTENCES) == set(Outcome)
    for outcome in Outcome:
        assert "{" not in Verdict(outcome, "host", "model", 1.25, "why").sentence
