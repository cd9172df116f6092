"""HTTP to admitted addresses alone: see `core.outbound`."""

from __future__ import annotations

from collections.abc import Iterable

import httpx2

from core.outbound import Address, NoAddress, Place, admitted_addresses, resolve

# As many as openai's own client takes.
_LIMITS = httpx2.Limits(max_connections=1000, max_keepalive_connections=100)


class GuardedTransport(httpx2.AsyncBaseTransport):
    """Connects to admitted addresses alone. Proxies that the environment names are not used: they
    would resolve names by themselves.
    """

    def __init__(self, places: Iterable[Place]) -> None:
        self._places = tuple(places)
        self._inner = httpx2.AsyncHTTPTransport(limits=_LIMITS)

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        url, host = request.url, _ascii_host(request)
        timeout = request.extensions.get("timeout", {}).get("connect")
        port = url.port or (443 if url.scheme == "https" else 80)
        try:
            found = await resolve(host, within_seconds=timeout)
            addresses = admitted_addresses(
                scheme=url.scheme, host=host, port=port, addresses=found, places=self._places
            )
        except TimeoutError:
            raise httpx2.ConnectTimeout(f"{host} was not resolved in time.") from None
        except NoAddress as error:
            raise httpx2.ConnectError(str(error)) from error
        failure: httpx2.ConnectError | None = None
        for address in addresses:
            try:
                return await self._inner.handle_async_request(_pinned(request, address))
            except httpx2.ConnectError as error:
                failure = error
        assert failure is not None
        raise failure

    async def aclose(self) -> None:
        await self._inner.aclose()


def _pinned(request: httpx2.Request, address: Address) -> httpx2.Request:
    """To that address, under the name that was asked for: its header and its certificate."""
    return httpx2.Request(
        request.method,
        request.url.copy_with(host=str(address)),
        headers=request.headers,
        stream=request.stream,
        extensions={**request.extensions, "sni_hostname": _ascii_host(request)},
    )


def _ascii_host(request: httpx2.Request) -> str:
    return request.url.raw_host.decode("ascii")
