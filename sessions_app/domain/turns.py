"""The state machines of turns and attempts: every status × every command is decided in a table.

`docs/turns.md` shows the tables, and a test holds them against these.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from core.errors import Conflict
from sessions_app.domain.vocabulary import TERMINAL_TURN, AttemptStatus, TurnStatus


class TurnCommand(StrEnum):
    CLAIM = "claim"  # a worker begins an attempt
    COMPLETE = "complete"
    FAIL = "fail"
    WAIT = "wait"  # for an answer, or for children
    LOSE = "lose"  # the lease ran out
    HAND_OVER = "hand_over"  # the worker stops in good order, or the session was paused
    STOP = "stop"  # a person or key ends it
    SUPERSEDE = "supersede"  # another prompt takes its place
    WITHDRAW = "withdraw"  # edited or deleted before it started
    MOVE = "move"
    PROMOTE = "promote"  # to the head of the queue, in place of the running turn


class AttemptCommand(StrEnum):
    COMPLETE = "complete"
    FAIL = "fail"
    WAIT = "wait"
    LOSE = "lose"
    HAND_OVER = "hand_over"
    STOP = "stop"
    SUPERSEDE = "supersede"


class Refused(StrEnum):
    """Why a command is forbidden: the codes of its Conflict."""

    NOT_STARTED = "turn_not_started"
    STARTED = "turn_started"
    NOT_RUNNING = "turn_not_running"
    ENDED = "turn_ended"


_S, _C, _R, _A = TurnStatus, TurnCommand, Refused, AttemptStatus

_STARTED: Mapping[TurnCommand, TurnStatus | Refused] = {
    _C.STOP: _S.CANCELLED,
    _C.SUPERSEDE: _S.SUPERSEDED,
    _C.FAIL: _S.FAILED,
    _C.WITHDRAW: _R.STARTED,
    _C.MOVE: _R.STARTED,
    _C.PROMOTE: _R.STARTED,
}
_AT_REST: Mapping[TurnCommand, TurnStatus | Refused] = {
    **_STARTED,
    _C.CLAIM: _S.RUNNING,
    _C.COMPLETE: _R.NOT_RUNNING,
    _C.WAIT: _R.NOT_RUNNING,
    _C.LOSE: _R.NOT_RUNNING,
    _C.HAND_OVER: _R.NOT_RUNNING,
}
TURN_TABLE: Mapping[TurnStatus, Mapping[TurnCommand, TurnStatus | Refused]] = {
    _S.QUEUED: {
        _C.CLAIM: _S.RUNNING,
        _C.COMPLETE: _R.NOT_STARTED,
        _C.FAIL: _S.FAILED,
        _C.WAIT: _R.NOT_STARTED,
        _C.LOSE: _R.NOT_STARTED,
        _C.HAND_OVER: _R.NOT_STARTED,
        _C.STOP: _S.CANCELLED,
        _C.SUPERSEDE: _R.NOT_STARTED,
        _C.WITHDRAW: _S.WITHDRAWN,
        _C.MOVE: _S.QUEUED,
        _C.PROMOTE: _S.QUEUED,
    },
    _S.RUNNING: {
        **_STARTED,
        _C.CLAIM: _R.STARTED,
        _C.COMPLETE: _S.COMPLETED,
        _C.WAIT: _S.WAITING,
        _C.LOSE: _S.RECOVERING,
        _C.HAND_OVER: _S.RECOVERING,
    },
    _S.WAITING: _AT_REST,
    _S.RECOVERING: _AT_REST,
    **{status: dict.fromkeys(_C, _R.ENDED) for status in sorted(TERMINAL_TURN)},
}
ATTEMPT_TABLE: Mapping[AttemptCommand, AttemptStatus] = {
    AttemptCommand.COMPLETE: _A.COMPLETED,
    AttemptCommand.FAIL: _A.FAILED,
    AttemptCommand.WAIT: _A.WAITING,
    AttemptCommand.LOSE: _A.LOST,
    AttemptCommand.HAND_OVER: _A.INTERRUPTED,
    AttemptCommand.STOP: _A.CANCELLED,
    AttemptCommand.SUPERSEDE: _A.SUPERSEDED,
}
_SENTENCES: Mapping[Refused, str] = {
    _R.NOT_STARTED: "This turn has not started yet; it is {status}.",
    _R.STARTED: "This turn has already started; it is {status}.",
    _R.NOT_RUNNING: "No attempt of this turn is at work; it is {status}.",
    _R.ENDED: "This turn has already ended as {status}.",
}


def next_status(status: TurnStatus, command: TurnCommand) -> TurnStatus:
    """Raises Conflict with the code that the table gives."""
    decided = TURN_TABLE[status][command]
    if isinstance(decided, TurnStatus):
        return decided
    raise Conflict(str(decided), _SENTENCES[decided].format(status=status))


def ended_attempt(status: AttemptStatus, command: AttemptCommand) -> AttemptStatus:
    """Only a running attempt can end. Raises Conflict `attempt_ended`."""
    if status != AttemptStatus.RUNNING:
        raise Conflict("attempt_ended", f"This attempt has already ended as {status}.")
    return ATTEMPT_TABLE[command]
