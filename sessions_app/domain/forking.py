"""Which part of a log is history that a fork repeats, and where that history may end."""

from __future__ import annotations

from dataclasses import dataclass

from sessions_app.domain.events import EVENT_TYPES

# How the source stood, and what it asked of people: a fork stands by itself and asks nothing.
# Of all other types a fork repeats what belongs to a turn, and the results of child sessions.
# These two tell how a turn went on.
_TOLD_OF_TURNS = frozenset({"session.status_running", "session.status_rescheduled"})
STATE_TYPES = (
    frozenset(name for name in EVENT_TYPES if name.startswith("session."))
    | {"turn.waiting", "turn.edited", "queue.changed"}
) - _TOLD_OF_TURNS
MESSAGE_TYPES = frozenset({"user.message", "agent.message"})
SAID_TYPES = frozenset(name for name in EVENT_TYPES if name.startswith("agent."))
BEGINNING_TYPES = frozenset({"turn.started", "turn.failed"})  # a turn may fail before it starts
ENDING_TYPES = frozenset({"turn.completed", "turn.failed", "turn.cancelled", "turn.superseded"})


@dataclass(frozen=True, slots=True)
class Following:
    """What comes in the chosen message's turn after it: seqs, None for what does not come."""

    said: int | None = None
    usage: int | None = None
    ending: int | None = None


@dataclass(frozen=True, slots=True)
class Cut:
    """History up to the seq `through`. `is_within`: it ends in the midst of a turn."""

    through: int
    is_within: bool


def cut_after_answer(seq: int, following: Following) -> Cut:
    """The cut behind an answer at `seq`, which is in an attempt.

    The last of its turn is taken with the turn's end. Else the usage that follows an answer belongs
    to it: only with that is the response complete, and what the model reads again.
    """
    if whole := _whole_turn(following):
        return whole
    usage = following.usage
    is_own = usage is not None and (following.said is None or usage < following.said)
    return Cut(usage if usage is not None and is_own else seq, is_within=True)


def cut_after_start(seq: int, following: Following) -> Cut:
    """The cut behind the start of a turn, at `seq`, before its first attempt.

    A turn in which nothing was said is taken with its end.
    """
    return _whole_turn(following) or Cut(seq, is_within=True)


def _whole_turn(following: Following) -> Cut | None:
    if following.said is None and following.ending is not None:
        return Cut(following.ending, is_within=False)
    return None
