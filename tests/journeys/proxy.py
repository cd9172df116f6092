"""A TCP proxy before PostgreSQL that can hold what passes, and lose answers.

It understands nothing of the protocol but where statements stand in it as text.
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from urllib.parse import parse_qs, urlsplit

CHUNK = 65_536


class Proxy:
    """`url` leads to the same database as `upstream`, by way of this proxy."""

    def __init__(self, upstream: str) -> None:
        parts = urlsplit(upstream)
        query = parse_qs(parts.query)
        host = query.get("host", [parts.hostname or ""])[0]
        port = parts.port or int(query.get("port", ["5432"])[0])
        self._address: str | tuple[str, int] = (
            f"{host}/.s.PGSQL.{port}" if host.startswith("/") else (host, port)
        )
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._open: set[socket.socket] = set()
        self._may_pass = threading.Event()
        self._may_pass.set()
        # Of what a client sends: whether the answer to it is lost, and the connection with it.
        self.loses: Callable[[bytes], bool] = lambda sent: False
        self.lost = 0
        login = parts.netloc.rpartition("@")[0]
        self.url = f"postgresql://{login}@127.0.0.1:{self._listener.getsockname()[1]}{parts.path}"
        threading.Thread(target=self._accept, daemon=True).start()

    def hold(self) -> None:
        """Connections stay open, and nothing passes either way."""
        self._may_pass.clear()

    def release(self) -> None:
        self._may_pass.set()

    def close(self) -> None:
        self.release()
        self._listener.close()
        for each in list(self._open):
            _close(each)

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:  # closed
                return
            family = socket.AF_UNIX if isinstance(self._address, str) else socket.AF_INET
            server = socket.socket(family)
            try:
                server.connect(self._address)
            except OSError:  # the server is down: so is the way to it
                _close(client)
                continue
            self._open |= {client, server}
            for arguments in ((client, server, True), (server, client, False)):
                threading.Thread(target=self._pump, args=arguments, daemon=True).start()

    def _pump(self, source: socket.socket, target: socket.socket, is_asking: bool) -> None:
        with suppress(OSError):
            while data := source.recv(CHUNK):
                self._may_pass.wait()
                if is_asking and self.loses(data):
                    self.lost += 1
                    self._lose(data, source, target)
                    break
                target.sendall(data)
        for each in (source, target):
            self._open.discard(each)
            _close(each)

    def _lose(self, data: bytes, client: socket.socket, server: socket.socket) -> None:
        """The client hears no more; the server has answered, so it has done what was asked."""
        _close(client)
        server.sendall(data)
        # The other pump reads the answer, cannot hand it on, and closes both.
        threading.Event().wait(0.2)


def _close(each: socket.socket) -> None:
    with suppress(OSError):
        each.shutdown(socket.SHUT_RDWR)
    each.close()
