"""The fixed words of sessions, turns and attempts."""

from __future__ import annotations

from enum import StrEnum


class SessionStatus(StrEnum):
    IDLE = "idle"
    RUNNING = "running"
    RESCHEDULING = "rescheduling"
    TERMINATED = "terminated"


class TurnStatus(StrEnum):
    QUEUED = "queued"
    RUNNING = "running"
    WAITING = "waiting"
    RECOVERING = "recovering"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"
    SUPERSEDED = "superseded"
    WITHDRAWN = "withdrawn"


class AttemptStatus(StrEnum):
    RUNNING = "running"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"
    SUPERSEDED = "superseded"
    WAITING = "waiting"
    INTERRUPTED = "interrupted"
    LOST = "lost"


class Visibility(StrEnum):
    WORKSPACE = "workspace"
    PRIVATE = "private"


class AgentAccess(StrEnum):
    """How far an agent may reach other session trees, narrowest first."""

    SESSION = "session"
    USER = "user"
    WORKSPACE = "workspace"


class MemoryScope(StrEnum):
    """Where an agent's memory is saved and read, narrowest first."""

    OFF = "off"
    SESSION = "session"
    USER = "user"
    WORKSPACE = "workspace"


class TitleSource(StrEnum):
    """Who named the session. A title set by a person is never replaced by a generated one."""

    NONE = ""
    PERSON = "person"
    GENERATED = "generated"


class TurnSource(StrEnum):
    HUMAN = "human"
    MACHINE = "machine"


class WaitKind(StrEnum):
    """What a turn may wait for."""

    APPROVAL = "approval"
    QUESTION = "question"
    CHILDREN = "children"


class WaitStatus(StrEnum):
    OPEN = "open"
    ANSWERED = "answered"
    EXPIRED = "expired"
    CANCELLED = "cancelled"


STARTED_UNFINISHED = frozenset({TurnStatus.RUNNING, TurnStatus.WAITING, TurnStatus.RECOVERING})
TERMINAL_TURN = frozenset(
    {
        TurnStatus.COMPLETED,
        TurnStatus.FAILED,
        TurnStatus.CANCELLED,
        TurnStatus.SUPERSEDED,
        TurnStatus.WITHDRAWN,
    }
)
DEFAULT_ORIGIN_TYPE = "work"
AGENT_ORIGIN_TYPE = "agent"
