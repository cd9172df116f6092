"""The connection that `settings.DATABASES` names as its engine.

In a failover a server may still answer and take no writes: it became a standby, or was told to
read only. psycopg files that under internal errors, next to mistakes of ours. Here it becomes what
it is, an OperationalError like any other outage, so that whoever waits for a lost server waits for
this one too. The connection is given up: another one may lead to the server that took over.
"""

from __future__ import annotations

from types import TracebackType

from django.db import OperationalError
from django.db.backends.postgresql import base
from django.db.utils import DatabaseErrorWrapper
from django.utils.functional import cached_property
from psycopg import errors

# The last two end a session in mid-transaction, by limits that only an operator can have set.
AWAY = (
    errors.ReadOnlySqlTransaction,
    errors.IdleInTransactionSessionTimeout,
    errors.TransactionTimeout,
)


class ErrorWrapper(DatabaseErrorWrapper):
    def __init__(self, wrapper: base.DatabaseWrapper) -> None:
        super().__init__(wrapper)
        self._wrapper = wrapper

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc_value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if not isinstance(exc_value, AWAY):
            super().__exit__(exc_type, exc_value, traceback)
            return
        self._wrapper.errors_occurred = True
        if self._wrapper.connection is not None:
            self._wrapper.connection.close()
        raise OperationalError(*exc_value.args) from exc_value


class DatabaseWrapper(base.DatabaseWrapper):
    @cached_property
    def wrap_database_errors(self) -> ErrorWrapper:
        return ErrorWrapper(self)
