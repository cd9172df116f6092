"""One smallest request to a model, as a worker would send it, up to the first words of its answer.

It goes through the same guard as the workers' requests, follows no redirect, and reads no more than
it needs. It raises nothing: whatever happens is a verdict.
"""

from __future__ import annotations

import asyncio
import ssl
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import httpx2

from catalog.kinds import OPENAI_BASE_URL, ProviderConnection, ProviderKind
from catalog.probing.answers import first_event, judge
from catalog.probing.verdicts import TRY_SECONDS, Outcome, Verdict
from core.outbound import AddressRefused, Place, cause_of
from core.outbound_http import GuardedTransport
from core.text import clean_reason

READ_MAX_BYTES = 65_536
ANTHROPIC_BASE_URL = "https://api.anthropic.com"
MESSAGES = [{"role": "user", "content": "Say “ok”, and nothing else."}]


@dataclass(frozen=True, slots=True)
class _Asked:
    url: str
    headers: Mapping[str, str]
    body: Mapping[str, Any]


def may_probe(kind: ProviderKind) -> bool:
    return kind in _ASKING


async def probe(
    *, connection: ProviderConnection, model_id: str, places: Iterable[Place]
) -> Verdict:
    asked = _ASKING[connection.kind](connection, model_id)
    host = httpx2.URL(asked.url).netloc.decode("ascii")
    began = time.monotonic()
    outcome, words = await _try(asked, places)
    seconds = time.monotonic() - began
    secrets = (connection.api_key,) if connection.api_key else ()
    return Verdict(outcome, host, model_id, seconds, clean_reason(words, secrets))


async def _try(asked: _Asked, places: Iterable[Place]) -> tuple[Outcome, str]:
    try:
        async with asyncio.timeout(TRY_SECONDS):
            return await _send(asked, places)
    except (TimeoutError, httpx2.TimeoutException):
        return Outcome.SLOW, ""
    except httpx2.ConnectError as error:
        return _no_connection(error)
    except httpx2.HTTPError:
        return Outcome.CLOSED, ""


async def _send(asked: _Asked, places: Iterable[Place]) -> tuple[Outcome, str]:
    client = httpx2.AsyncClient(
        transport=GuardedTransport(places), timeout=TRY_SECONDS, follow_redirects=False
    )
    headers = {"accept-encoding": "identity", **asked.headers}
    async with (
        client,
        client.stream("POST", asked.url, headers=headers, json=asked.body) as response,
    ):
        body = await _beginning(response)
        return judge(response.status_code, response.headers.get("content-type", ""), body)


async def _beginning(response: httpx2.Response) -> bytes:
    """Up to the first event of a stream; of anything else all, within the bound."""
    body = b""
    async for chunk in response.aiter_raw():
        body += chunk
        if len(body) > READ_MAX_BYTES or (response.is_success and first_event(body) is not None):
            break
    return body[:READ_MAX_BYTES]


def _no_connection(error: BaseException) -> tuple[Outcome, str]:
    no_address = cause_of(error)
    if isinstance(no_address, AddressRefused):
        return Outcome.ADDRESS_REFUSED, str(no_address)
    if no_address is not None:
        return Outcome.HOST_UNKNOWN, ""
    for cause in _causes(error):
        if isinstance(cause, ssl.SSLCertVerificationError):
            return Outcome.TLS_FAILED, cause.verify_message
        if isinstance(cause, ssl.SSLError):
            return Outcome.TLS_FAILED, "it speaks no TLS"
    return Outcome.UNREACHABLE, ""


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


def _ask_openai(connection: ProviderConnection, model_id: str) -> _Asked:
    """No bound on the answer's length: models differ in how it is called, and it is cut off."""
    base = (connection.base_url or OPENAI_BASE_URL).rstrip("/")
    headers = {"authorization": f"Bearer {connection.api_key or 'none'}"}
    body = {"model": model_id, "messages": MESSAGES, "stream": True}
    return _Asked(f"{base}/chat/completions", headers, body)


def _ask_anthropic(connection: ProviderConnection, model_id: str) -> _Asked:
    base = (connection.base_url or ANTHROPIC_BASE_URL).rstrip("/")
    headers = {"x-api-key": connection.api_key, "anthropic-version": "2023-06-01"}
    body = {"model": model_id, "messages": MESSAGES, "stream": True, "max_tokens": 16}
    return _Asked(f"{base}/v1/messages", headers, body)


_ASKING = {
    ProviderKind.OPENAI_COMPATIBLE: _ask_openai,
    ProviderKind.ANTHROPIC: _ask_anthropic,
}
