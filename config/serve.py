"""One web process: uvicorn on a listening socket that the supervisor opened and several share."""

from __future__ import annotations

import argparse
import socket

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

# An open stream never ends by itself: after this long a stopping process closes it.
GRACEFUL_SHUTDOWN_SECONDS = 3
# A client that vanished without a word (no FIN) is noticed after this long; so is one that reads
# nothing for so long that all buffers are full. It comes back with its position.
DEAD_CLIENT_SECONDS = 30
# Twice what a socket accepts: an honest mistake is told, a flood is cut off.
SOCKET_MESSAGE_MAX_BYTES = 131_072
# The line of a request and its headers, beside what came with their first bytes: the parser itself
# has no bound, and keeps all of it in memory.
HEAD_MAX_BYTES = 65_536


class BoundedHttp(HttpToolsProtocol):
    """Refuses a request whose head does not end."""

    _head_bytes: int | None = None

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._head_bytes = 0

    def on_headers_complete(self) -> None:
        super().on_headers_complete()
        self._head_bytes = None

    def data_received(self, data: bytes) -> None:
        if self._head_bytes is not None:
            self._head_bytes += len(data)
            if self._head_bytes > HEAD_MAX_BYTES:
                self.send_400_response("The address and headers of this request are too long.")
                return
        super().data_received(data)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--fd", type=int, required=True, help="the listening socket")
    arguments = parser.parse_args()
    # Not uvicorn's own --fd: that takes every socket for a Unix one and leaves Nagle's delay on.
    listener = socket.socket(fileno=arguments.fd)
    _notice_dead_clients(listener)
    config = uvicorn.Config(
        "config.asgi:application",
        log_config=None,  # Django's logging says where lines go
        http=BoundedHttp,
        access_log=False,
        server_header=False,
        proxy_headers=False,  # TRUSTED_PROXIES says whom to believe, under any server
        timeout_graceful_shutdown=GRACEFUL_SHUTDOWN_SECONDS,
        ws_max_size=SOCKET_MESSAGE_MAX_BYTES,
        # One frame goes to many followers: deflating it for each costs more than it saves.
        ws_per_message_deflate=False,
        ws_ping_interval=DEAD_CLIENT_SECONDS / 2,
        ws_ping_timeout=DEAD_CLIENT_SECONDS / 2,
    )
    uvicorn.Server(config).run(sockets=[listener])


def _notice_dead_clients(listener: socket.socket) -> None:
    """Accepted connections inherit these. The names exist on Linux; elsewhere the pings remain."""
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    seconds = {
        "TCP_KEEPIDLE": DEAD_CLIENT_SECONDS // 2,
        "TCP_KEEPINTVL": 5,
        "TCP_USER_TIMEOUT": DEAD_CLIENT_SECONDS * 1000,  # this one in milliseconds
    }
    for name, value in seconds.items():
        if listener.family != socket.AF_UNIX and (option := getattr(socket, name, None)):
            listener.setsockopt(socket.IPPROTO_TCP, option, value)


if __name__ == "__main__":
    main()
