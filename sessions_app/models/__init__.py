from sessions_app.models.event import Event
from sessions_app.models.folder import FoldedGroup, Folder
from sessions_app.models.hold import WorkspaceHold
from sessions_app.models.idempotency import IdempotencyRecord
from sessions_app.models.personal import ComposerDraft, PersonalState
from sessions_app.models.session import Session
from sessions_app.models.turn import QUEUE_ORDER, Attempt, Turn
from sessions_app.models.wait import Wait

__all__ = [
    "QUEUE_ORDER",
    "Attempt",
    "ComposerDraft",
    "Event",
    "FoldedGroup",
    "Folder",
    "IdempotencyRecord",
    "PersonalState",
    "Session",
    "Turn",
    "Wait",
    "WorkspaceHold",
]
