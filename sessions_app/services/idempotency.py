"""A request that carries an idempotency key is done once, however often it is sent.

The key's row is inserted first, in the transaction of the effect: a twin that comes meanwhile
waits at the unique constraint until the first has committed or rolled back. So only successes are
kept, and a failure leaves the key free.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import orjson
from django.conf import settings
from django.db import connection, transaction

from core.clock import now
from core.errors import Conflict, InvalidInput, NotFound
from orgs.access import Access
from orgs.roles import Action
from sessions_app.models import IdempotencyRecord, Session
from sessions_app.selectors import get_session

HEADER = "Idempotency-Key"
KEY_MAX_CHARACTERS = 255
# ON CONFLICT waits for a transaction that holds the same key, and then sees its row.
CLAIM = """
INSERT INTO sessions_app_idempotencyrecord
    (principal, route, target, key, fingerprint, status, response, created_at)
VALUES (%s, %s, %s, %s, %s, 0, '', %s)
ON CONFLICT (principal, route, target, key) DO NOTHING
RETURNING id
"""
# Every so many keys, those that have expired are swept away: no key needs a chore of its own.
SWEEP_EVERY, SWEEP_AT_MOST = 50, 200
SWEEP = """
DELETE FROM sessions_app_idempotencyrecord WHERE id IN (
    SELECT id FROM sessions_app_idempotencyrecord
    WHERE created_at < %s ORDER BY created_at LIMIT %s FOR UPDATE SKIP LOCKED
)
"""


@dataclass(frozen=True, slots=True)
class KeyedRequest:
    """`route` and `target` (a public id, or empty) are the key's scope beside the principal.

    `key` empty: an ordinary request. `body` is what a repetition must send again.
    """

    route: str
    target: str
    key: str
    body: Any

    @property
    def fingerprint(self) -> str:
        canonical = orjson.dumps(self.body, option=orjson.OPT_SORT_KEYS, default=str)
        return hashlib.sha256(canonical).hexdigest()


@dataclass(frozen=True, slots=True)
class Answer:
    """`body` is finished JSON that tells of one session."""

    status: int
    body: str
    session_id: UUID
    replayed: bool = False


@transaction.atomic
def run_once(
    *,
    access: Access,
    request: KeyedRequest,
    operation: Callable[[], Answer],
    recheck: Callable[[Answer], None],
) -> Answer:
    """The answer of `operation`, or of the first request with this key.

    `recheck` raises where this access may not have that first answer any more. All that the
    operation writes is one transaction, also without a key. Raises InvalidInput
    `invalid_idempotency_key`, Conflict `idempotency_key_reused`, NotFound for a session that was
    deleted since.
    """
    if not request.key:
        return operation()
    _require_key(request.key)
    scope = {
        "principal": access.principal.public_id,
        "route": request.route,
        "target": request.target,
        "key": request.key,
    }
    IdempotencyRecord.objects.filter(**scope, created_at__lt=_oldest()).delete()
    with connection.cursor() as cursor:
        cursor.execute(CLAIM, [*scope.values(), request.fingerprint, now()])
        claimed = cursor.fetchone()
    if claimed is None:
        return _first_answer(scope, request.fingerprint, recheck)
    answer = operation()
    IdempotencyRecord.objects.filter(pk=claimed[0]).update(
        status=answer.status, response=answer.body, session_id=answer.session_id
    )
    if claimed[0] % SWEEP_EVERY == 0:
        # After the commit: its locks are no part of what others may wait for.
        transaction.on_commit(_sweep, robust=True)
    return answer


def forget_answers(session: Session) -> None:
    """Empties what was answered about a session that its holder deletes.

    The keys stay until they expire: a late repetition finds nothing, rather than creating again.
    """
    IdempotencyRecord.objects.filter(session_id=session.pk).update(response="")


def recheck_sent(*, access: Access, session_id: UUID) -> None:
    """What was sent is told again only to who may still send. Raises NotFound, Forbidden."""
    session = get_session(access=access, session_id=session_id)
    access.require(Action.SESSION_CONTROL, session.workspace_id, maker_id=session.maker_id)


def _sweep() -> None:
    with connection.cursor() as cursor:
        cursor.execute(SWEEP, [_oldest(), SWEEP_AT_MOST])


def _first_answer(
    scope: dict[str, str], fingerprint: str, recheck: Callable[[Answer], None]
) -> Answer:
    record = IdempotencyRecord.objects.get(**scope)
    if record.fingerprint != fingerprint:
        raise Conflict(
            "idempotency_key_reused",
            "This idempotency key was used for another request; use a new one.",
            param=HEADER,
        )
    if not record.response or record.session_id is None:
        raise NotFound
    answer = Answer(record.status, record.response, record.session_id, replayed=True)
    recheck(answer)
    return answer


def _require_key(key: str) -> None:
    if len(key) > KEY_MAX_CHARACTERS or not (key.isascii() and key.isprintable()):
        raise InvalidInput(
            "invalid_idempotency_key",
            f"An idempotency key has 1 to {KEY_MAX_CHARACTERS} printable ASCII characters.",
            param=HEADER,
        )


def _oldest() -> datetime:
    return now() - timedelta(hours=settings.IDEMPOTENCY_HOURS)
