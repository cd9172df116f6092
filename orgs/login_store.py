"""Where Django keeps `request.session`: in the rows of logins, found by a digest of the cookie.

A stolen copy of the table signs nobody in. A row keeps its id when its cookie's value is changed,
so that what is open under a login stays open.
"""

from __future__ import annotations

import hashlib
from datetime import timedelta
from types import SimpleNamespace
from typing import Any, cast
from uuid import UUID

from asgiref.sync import sync_to_async
from django.contrib import auth
from django.contrib.sessions.backends.base import CreateError, SessionBase, UpdateError
from django.db import IntegrityError, transaction

from core import whence
from core.bus import ring
from core.clock import now
from orgs.models import Login, User

LAST_USED_RESOLUTION = timedelta(minutes=1)


class SessionStore(SessionBase):
    login_id: UUID | None = None

    def load(self) -> dict[str, Any]:
        row = Login.objects.filter(digest=digest_of(self.session_key), expires_at__gt=now()).first()
        if row is None:
            # A value that we did not make is not taken over: nobody can choose another's cookie.
            self._session_key = None
            return {}
        _note_use(row)
        return self._take(row)

    def exists(self, session_key: str) -> bool:
        return Login.objects.filter(digest=digest_of(session_key)).exists()

    def create(self) -> None:
        while True:
            self._session_key = self._get_new_session_key()  # type: ignore[attr-defined]
            try:
                self.save(must_create=True)
            except CreateError:
                continue
            self.modified = True
            return

    def save(self, must_create: bool = False) -> None:
        """Raises UpdateError when the login was ended meanwhile: it does not come back."""
        if self.session_key is None:
            self.create()
            return
        data = self._get_session(no_load=must_create)  # type: ignore[attr-defined]
        fields = {
            "data": self.encode(data),
            "user_id": data.get(auth.SESSION_KEY),
            "expires_at": self.get_expiry_date(),
        }
        digest = digest_of(self.session_key)
        if must_create:
            came = whence.present()
            row = Login(
                digest=digest, address=came.address[:64], user_agent=came.user_agent, **fields
            )
            try:
                with transaction.atomic():
                    row.save(force_insert=True)
            except IntegrityError as error:
                raise CreateError from error
            self.login_id = row.pk
        elif not Login.objects.filter(digest=digest).update(**fields):
            raise UpdateError

    def delete(self, session_key: str | None = None) -> None:
        key = session_key or self.session_key
        if key is not None and Login.objects.filter(digest=digest_of(key)).delete()[0]:
            announce_ends()

    def cycle_key(self) -> None:
        """The same login under another value: whoever knows the old one has nothing."""
        data, old = self._session, self.session_key  # type: ignore[attr-defined]
        self._session_key = self._get_new_session_key()  # type: ignore[attr-defined]
        rows = Login.objects.filter(digest=digest_of(old)) if old else Login.objects.none()
        if not rows.update(digest=digest_of(self.session_key)):
            self.create()
        self._session_cache = data
        self.modified = True

    async def acycle_key(self) -> None:
        await sync_to_async(self.cycle_key)()

    def open_row(self, login_id: UUID) -> None:
        """Reads a login by its id, as somebody does who has no cookie."""
        row = Login.objects.filter(pk=login_id, expires_at__gt=now()).first()
        self._session_cache = {} if row is None else self._take(row)

    def find_id(self) -> UUID | None:
        """The row's; None where the cookie is good for nothing."""
        self.get(auth.SESSION_KEY)  # reads the row, if nothing has yet
        return self.login_id

    def _take(self, row: Login) -> dict[str, Any]:
        self.login_id = row.pk
        return cast("dict[str, Any]", self.decode(row.data))


def digest_of(session_key: str | None) -> str:
    return hashlib.sha256((session_key or "").encode()).hexdigest()


def signed_in_user(login_id: UUID) -> User | None:
    """By Django's own rules: the login exists, and its password has not changed since."""
    store = SessionStore()
    store.open_row(login_id)
    user = auth.get_user(cast("Any", SimpleNamespace(session=store)))
    return user if isinstance(user, User) and user.is_active else None


def announce_ends() -> None:
    """After the commit, whatever is open under a login that is no more looks again."""
    transaction.on_commit(lambda: ring("e"))


def _note_use(row: Login) -> None:
    """At most one write a minute, and none where no request is: a page that lies open is no use."""
    came, moment = whence.present(), now()
    if not came.request_id or row.last_used_at > moment - LAST_USED_RESOLUTION:
        return
    stale = Login.objects.filter(pk=row.pk, last_used_at__lte=moment - LAST_USED_RESOLUTION)
    stale.update(last_used_at=moment, address=came.address[:64])
