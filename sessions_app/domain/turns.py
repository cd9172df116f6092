"""The state machine of a turn: every status × every command is decided in one table."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from core.errors import Conflict
from sessions_app.domain.vocabulary import TERMINAL_TURN, TurnStatus


class TurnCommand(StrEnum):
    CLAIM = "claim"  # a worker begins an attempt
    COMPLETE = "complete"
    FAIL = "fail"
    STOP = "stop"  # a person or key ends it
    LOSE = "lose"  # the lease ran out
    WITHDRAW = "withdraw"  # taken out of the queue before it started
    HAND_OVER = "hand_over"  # the worker stops in good order
    WAIT = "wait"  # only people can go on with it


_S, _C = TurnStatus, TurnCommand

TRANSITIONS: Mapping[tuple[TurnStatus, TurnCommand], TurnStatus] = {
    (_S.QUEUED, _C.CLAIM): _S.RUNNING,
    (_S.QUEUED, _C.FAIL): _S.FAILED,
    (_S.QUEUED, _C.WITHDRAW): _S.WITHDRAWN,
    (_S.RECOVERING, _C.CLAIM): _S.RUNNING,
    (_S.RECOVERING, _C.FAIL): _S.FAILED,
    (_S.RECOVERING, _C.STOP): _S.CANCELLED,
    (_S.RUNNING, _C.COMPLETE): _S.COMPLETED,
    (_S.RUNNING, _C.FAIL): _S.FAILED,
    (_S.RUNNING, _C.STOP): _S.CANCELLED,
    (_S.RUNNING, _C.LOSE): _S.RECOVERING,
    (_S.RUNNING, _C.HAND_OVER): _S.RECOVERING,
    (_S.RUNNING, _C.WAIT): _S.WAITING,
    (_S.WAITING, _C.CLAIM): _S.RUNNING,
    (_S.WAITING, _C.FAIL): _S.FAILED,
    (_S.WAITING, _C.STOP): _S.CANCELLED,
}


def next_status(status: TurnStatus, command: TurnCommand) -> TurnStatus:
    """Raises Conflict: `turn_ended` after a terminal status, else `turn_not_<status needed>`."""
    try:
        return TRANSITIONS[status, command]
    except KeyError:
        raise refusal(status, command) from None


def refusal(status: TurnStatus, command: TurnCommand) -> Conflict:
    if status in TERMINAL_TURN:
        return Conflict("turn_ended", f"This turn has already ended as {status}.")
    return Conflict("turn_state", f"A turn that is {status} cannot {command.replace('_', ' ')}.")
