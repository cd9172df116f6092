"""Every status × every command is decided, the forbidden ones with their code."""

from __future__ import annotations

from pathlib import Path

import pytest

from core.errors import Conflict
from sessions_app.domain.turns import (
    ATTEMPT_TABLE,
    TURN_TABLE,
    AttemptCommand,
    Refused,
    TurnCommand,
    ended_attempt,
    next_status,
)
from sessions_app.domain.vocabulary import (
    STARTED_UNFINISHED,
    TERMINAL_TURN,
    AttemptStatus,
    TurnStatus,
)

PAIRS = [(status, command) for status in TurnStatus for command in TurnCommand]


@pytest.mark.parametrize(("status", "command"), PAIRS)
def test_each_pair_gives_a_status_or_a_code(status: TurnStatus, command: TurnCommand) -> None:
    decided = TURN_TABLE[status][command]
    if isinstance(decided, Refused):
        with pytest.raises(Conflict) as refused:
            next_status(status, command)
        assert refused.value.code == decided
        assert status in refused.value.message
    else:
        assert next_status(status, command) is decided


def test_nothing_leaves_a_terminal_status() -> None:
    for status in TERMINAL_TURN:
        assert set(TURN_TABLE[status].values()) == {Refused.ENDED}


def test_from_every_status_that_is_not_terminal_a_person_has_a_way_out() -> None:
    """BR-061."""
    for status in set(TurnStatus) - TERMINAL_TURN:
        assert next_status(status, TurnCommand.STOP) in TERMINAL_TURN


def test_a_started_turn_is_out_of_the_queues_reach() -> None:
    for status in STARTED_UNFINISHED:
        for command in (TurnCommand.WITHDRAW, TurnCommand.MOVE, TurnCommand.PROMOTE):
            assert TURN_TABLE[status][command] is Refused.STARTED


@pytest.mark.parametrize("command", AttemptCommand)
def test_an_attempt_ends_once(command: AttemptCommand) -> None:
    ended = ended_attempt(AttemptStatus.RUNNING, command)
    assert ended is not AttemptStatus.RUNNING
    with pytest.raises(Conflict, match="already ended"):
        ended_attempt(ended, command)


def test_every_end_of_an_attempt_has_its_command() -> None:
    assert {*ATTEMPT_TABLE.values(), AttemptStatus.RUNNING} == set(AttemptStatus)


def test_the_documentation_shows_these_tables() -> None:
    text = (Path(__file__).parents[2] / "docs" / "turns.md").read_text()
    assert turn_table() in text
    assert attempt_table() in text


def turn_table() -> str:
    def cell(decided: TurnStatus | Refused) -> str:
        return f"`{decided}`" if isinstance(decided, Refused) else f"**{decided}**"

    rows = [
        f"| {status} | {' | '.join(cell(TURN_TABLE[status][command]) for command in TurnCommand)} |"
        for status in TurnStatus
    ]
    return "\n".join([f"| status | {' | '.join(TurnCommand)} |", "|---" * 12 + "|", *rows])


def attempt_table() -> str:
    return "\n".join(f"| {command} | {outcome} |" for command, outcome in ATTEMPT_TABLE.items())
