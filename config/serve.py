"""One web process: uvicorn on a listening socket that the supervisor opened and several share."""

from __future__ import annotations

import argparse
import socket

import uvicorn

# An open stream never ends by itself: after this long a stopping process closes it.
GRACEFUL_SHUTDOWN_SECONDS = 3


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--fd", type=int, required=True, help="the listening socket")
    arguments = parser.parse_args()
    # Not uvicorn's own --fd: that takes every socket for a Unix one and leaves Nagle's delay on.
    listener = socket.socket(fileno=arguments.fd)
    config = uvicorn.Config(
        "config.asgi:application",
        log_config=None,  # Django's logging says where lines go
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=GRACEFUL_SHUTDOWN_SECONDS,
    )
    uvicorn.Server(config).run(sockets=[listener])


if __name__ == "__main__":
    main()
