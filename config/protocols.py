"""HTTP by Django, sockets by Channels, and an orderly end for both."""

from __future__ import annotations

from typing import Any

from asgiref.sync import sync_to_async
from channels.routing import ProtocolTypeRouter, URLRouter
from django.conf import settings
from django.core.handlers.asgi import ASGIHandler
from django.urls import path, re_path

from core import bus
from core.api.body_limit import BodyLimit
from core.api.client_address import ClientAddress
from sessions_app.streaming.draining import drain_on_signals
from sessions_app.streaming.handoff import HandoffApplication
from sessions_app.streaming.hub import current_hub
from sessions_app.streaming.socket import NoSuchSocket, SessionSocket


class Application:
    """The protocols, and what surrounds them: the hub's start, the drain, the end.

    A server without the lifespan protocol (daphne) gets the drain with its first request.
    """

    def __init__(self) -> None:
        self._has_begun = False
        # Django's `path` is typed for views; Channels takes applications in their place.
        session_socket: Any = SessionSocket.as_asgi()
        no_such_socket: Any = NoSuchSocket.as_asgi()
        routes: list[Any] = [path("v1/ws", session_socket), re_path("", no_such_socket)]
        http = BodyLimit(HandoffApplication(ASGIHandler()), settings.DATA_UPLOAD_MAX_MEMORY_SIZE)
        protocols = {"http": http, "websocket": URLRouter(routes)}
        self._protocols = ClientAddress(ProtocolTypeRouter(protocols), settings.TRUSTED_PROXIES)

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        if scope["type"] == "lifespan":
            await self._live(receive, send)
            return
        self._begin()
        await self._protocols(scope, receive, send)

    def _begin(self) -> None:
        if not self._has_begun:
            self._has_begun = True
            drain_on_signals(current_hub())

    async def _live(self, receive: Any, send: Any) -> None:
        await receive()
        self._begin()
        current_hub().start()
        await send({"type": "lifespan.startup.complete"})
        await receive()
        await current_hub().close()
        await sync_to_async(bus.close, thread_sensitive=False)()
        await send({"type": "lifespan.shutdown.complete"})
