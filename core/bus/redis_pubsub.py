"""Hints over Redis pub/sub: the same promises as NOTIFY, for installations that have a Redis."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any, Final

import redis
import redis.asyncio
from redis.asyncio.retry import Retry as AsyncRetry
from redis.backoff import NoBackoff
from redis.retry import Retry

from core.bus.hints import CHANNEL
from core.bus.transport import Way

_SEND_TIMEOUT: Final = 5.0  # seconds
# Seconds of silence after which the listener asks the server whether it is still there.
_PROBE: Final = 5.0
_BATCH_MAX: Final = 1_000


class RedisSender:
    def __init__(self, url: str) -> None:
        self.url = url
        self._client = redis.Redis.from_url(
            url,
            socket_timeout=_SEND_TIMEOUT,
            socket_connect_timeout=_SEND_TIMEOUT,
            retry=Retry(NoBackoff(), 0),
        )

    def send(self, payloads: Sequence[str]) -> None:
        with self._client.pipeline(transaction=False) as pipeline:
            for payload in payloads:
                pipeline.publish(CHANNEL, payload)
            pipeline.execute()

    def close(self) -> None:
        self._client.close()


class RedisReceiver:
    def __init__(self, pubsub: Any) -> None:
        self._pubsub = pubsub

    async def batches(self) -> AsyncIterator[Sequence[str]]:
        is_asked = False
        while True:
            message = await self._pubsub.get_message(timeout=_PROBE)
            if message is None:
                if is_asked:
                    raise ConnectionError("Redis answered no ping.")
                await self._pubsub.ping()
                is_asked = True
                continue
            is_asked = False
            payloads = [message]
            while len(payloads) < _BATCH_MAX:
                more = await self._pubsub.get_message(timeout=0)
                if more is None:
                    break
                payloads.append(more)
            if any(each["type"] == "subscribe" for each in payloads):
                # The client library subscribed anew by itself: what rang in between is lost.
                raise ConnectionError("The Redis link was replaced.")
            texts = [each["data"] for each in payloads if each["type"] == "message"]
            if texts:
                yield texts


@asynccontextmanager
async def open_link(url: str) -> AsyncIterator[RedisReceiver]:
    tcp = {} if url.startswith("unix:") else {"socket_keepalive": True}
    client = redis.asyncio.Redis.from_url(
        url,
        decode_responses=True,
        # redis-py gives every socket a timeout by default; a listener waits as long as it takes.
        socket_timeout=None,
        socket_connect_timeout=_SEND_TIMEOUT,
        retry=AsyncRetry(NoBackoff(), 0),
        **tcp,
    )
    pubsub = client.pubsub()
    try:
        await pubsub.subscribe(CHANNEL)
        confirmation = await pubsub.get_message(timeout=_SEND_TIMEOUT)
        if confirmation is None or confirmation["type"] != "subscribe":
            raise ConnectionError("Redis confirmed no subscription.")
        yield RedisReceiver(pubsub)
    finally:
        await pubsub.aclose()
        await client.aclose()


WAY: Final = Way(RedisSender, open_link, (OSError, redis.RedisError))
