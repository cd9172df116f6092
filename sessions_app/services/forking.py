"""Fork: a new session that begins with another one's history, up to a message of it.

The source is read, and nothing is written to it: not even that it was forked, for its readers are
not those of the fork.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeVar
from uuid import UUID

from django.conf import settings
from django.db import models, transaction

from core.clock import now
from core.errors import Conflict, InvalidInput, NotFound
from core.ids import uuid7
from core.text import clip, has_visible
from orgs.access import Access
from orgs.roles import Action
from sessions_app import eventlog
from sessions_app.creation import tell_created
from sessions_app.domain.events import Draft
from sessions_app.domain.forking import MESSAGE_TYPES, Cut, cut_after_answer, cut_after_start
from sessions_app.domain.settings import PartialSettings
from sessions_app.domain.vocabulary import (
    AGENT_ORIGIN_TYPE,
    DEFAULT_ORIGIN_TYPE,
    AttemptStatus,
    TitleSource,
    TurnStatus,
    Visibility,
)
from sessions_app.eventlog import CopiedTurn, StoredEvent
from sessions_app.models import Attempt, ComposerDraft, PersonalState, Session, Turn, Wait
from sessions_app.selectors import get_session
from sessions_app.services.closing import closing_drafts
from sessions_app.services.model_settings import label_of
from sessions_app.services.sessions import created_draft, require_private_allowed
from sessions_app.services.validation import require_title
from sessions_app.wire import author_json

TITLE_SUFFIX = " (fork)"
Row = TypeVar("Row", bound=models.Model)


@dataclass(frozen=True, slots=True)
class ForkRequest:
    """`from_seq`: a message of the source, None for its newest. `include` False: the history ends
    before it, which must be a prompt; `keep_draft` then makes its text the person's draft.
    `title` None: the source's, marked as a fork.
    """

    from_seq: int | None = None
    include: bool = True
    keep_draft: bool = False
    title: str | None = None
    param: str = "from_seq"


@dataclass(frozen=True, slots=True)
class _Chosen:
    """The message from which is forked, and what of the log comes before the fork's own events.

    `attempt`: of the cut turn, the number of the attempt in whose midst the history ends.
    """

    cut: Cut
    message: StoredEvent | None = None
    attempt: int = 0

    @property
    def cut_turn_id(self) -> UUID | None:
        return self.message.turn_id if self.message and self.cut.is_within else None


@transaction.atomic
def fork_session(*, access: Access, session_id: UUID, fork: ForkRequest) -> Session:
    """A session of the caller's own, of the same kind as the source and as visible as that.

    A running source is forked as far as it has come: a turn in whose midst the history ends is
    closed in the fork. Raises NotFound, Forbidden, InvalidInput (`message_not_found`,
    `not_a_message`, `not_a_prompt`, `title_too_long`), Conflict `message_not_started`.
    """
    source = get_session(access=access, session_id=session_id)
    access.require(Action.SESSION_CREATE, source.workspace_id)
    if source.visibility == Visibility.PRIVATE:
        require_private_allowed(access=access, organization_id=source.organization_id)
    title = _title(source, fork)
    if not eventlog.hold_log(source.pk):
        raise NotFound
    chosen = _choose(source, fork)
    turns = _turns_until(source, chosen)
    session = _create(source, access, fork, chosen, turns)
    _begin_log(session, source, access, fork, chosen, title)
    if turns:
        _repeat_history(session, source, chosen, turns)
    _note_maker(session, access, fork, chosen)
    tell_created(session)
    return get_session(access=access, session_id=session.pk)


# ── Where the history ends ──
def _choose(source: Session, fork: ForkRequest) -> _Chosen:
    seq = fork.from_seq
    if seq is None:
        seq = eventlog.find_newest_message(source.pk)
        if seq is None:
            return _Chosen(Cut(0, is_within=False))
    found = eventlog.read_after(session_id=source.pk, after=max(seq - 1, 0), limit=1)
    if not found or found[0].seq != seq:
        raise InvalidInput(
            "message_not_found", "This session has no such message.", param=fork.param
        )
    message = found[0]
    if message.type not in MESSAGE_TYPES or message.turn_id is None:
        raise InvalidInput(
            "not_a_message",
            "Fork from a message: a user.message or an agent.message.",
            param=fork.param,
        )
    if message.type == "agent.message":
        if not fork.include:
            raise InvalidInput(
                "not_a_prompt", "Only the prompt of a turn can be left out.", param="include"
            )
        following = eventlog.find_following(
            session_id=source.pk, turn_id=message.turn_id, after=message.seq
        )
        return _Chosen(cut_after_answer(message.seq, following), message, message.attempt or 0)
    return _choose_prompt(source, fork, message, message.turn_id)


def _choose_prompt(
    source: Session, fork: ForkRequest, message: StoredEvent, turn_id: UUID
) -> _Chosen:
    """A prompt stands in the conversation where its turn began, not where it was sent."""
    turn = source.turns.get(pk=turn_id)
    following = eventlog.find_following(
        session_id=source.pk, turn_id=turn.pk, after=turn.started_seq or message.seq
    )
    begun_at = turn.started_seq or following.ending
    if begun_at is None or turn.status == TurnStatus.WITHDRAWN or _never_began(turn):
        raise Conflict(
            "message_not_started",
            "This prompt has not started, so it is no part of the conversation yet.",
            details={"turn_status": str(turn.status)},
        )
    if not fork.include:
        return _Chosen(Cut(begun_at - 1, is_within=False), message)
    return _Chosen(cut_after_start(begun_at, following), message)


def _never_began(turn: Turn) -> bool:
    """Ended in the queue; a turn that could not start has failed, and is shown."""
    return turn.started_seq is None and turn.status != TurnStatus.FAILED


def _turns_until(source: Session, chosen: _Chosen) -> list[Turn]:
    begun = eventlog.find_begun_turns(session_id=source.pk, through=chosen.cut.through)
    return list(source.turns.filter(pk__in=begun).order_by("number"))


# ── The fork ──
def _create(
    source: Session, access: Access, fork: ForkRequest, chosen: _Chosen, turns: list[Turn]
) -> Session:
    latest = _latest(turns)
    bound = PartialSettings.from_json(latest.settings if latest else None)
    binding = bound.over(PartialSettings.from_json(source.initial_settings))
    origin = source.origin
    if source.origin_type == AGENT_ORIGIN_TYPE:
        origin = {"type": DEFAULT_ORIGIN_TYPE}
    return Session.objects.create(
        organization_id=source.organization_id,
        workspace_id=source.workspace_id,
        agent_id=source.agent_id,
        agent_snapshot=source.agent_snapshot,
        maker_id=access.user_id,
        maker_key_id=None if access.user_id else access.principal.id,
        origin_type=origin["type"],
        origin=origin,
        visibility=source.visibility,
        agent_access=source.agent_access,
        memory_scope=source.memory_scope,
        end_user_source=source.end_user_source,
        end_user_id=source.end_user_id,
        forked_from_id=source.pk,
        forked_from_seq=chosen.message.seq if chosen.message else None,
        title_source=_title_source(source, fork),
        initial_settings=binding.to_json(),
        model_label=label_of(organization_id=source.organization_id, settings=binding),
    )


def _latest(turns: list[Turn]) -> Turn | None:
    """The turn that started last: it binds a session to its model."""
    started = [turn for turn in turns if turn.started_seq is not None]
    return max(started, key=lambda turn: turn.started_seq or 0, default=None)


def _title(source: Session, fork: ForkRequest) -> str:
    if fork.title is not None:
        return require_title(fork.title)
    if not source.title:
        return ""
    room = settings.TITLE_MAX_CHARACTERS - len(TITLE_SUFFIX)
    return clip(source.title.removesuffix(TITLE_SUFFIX), room) + TITLE_SUFFIX


def _title_source(source: Session, fork: ForkRequest) -> TitleSource:
    """Who gave the fork its title: an empty one was given by nobody, and one may be generated."""
    if fork.title is None:
        return TitleSource(source.title_source)
    return TitleSource.PERSON if has_visible(fork.title) else TitleSource.NONE


def _begin_log(
    session: Session,
    source: Session,
    access: Access,
    fork: ForkRequest,
    chosen: _Chosen,
    title: str,
) -> None:
    initial = PartialSettings.from_json(session.initial_settings)
    author = author_json(access)
    created = created_draft(
        session, author=author, title=title, metadata=source.metadata, initial=initial
    )
    forked = {
        "source_session_id": source.public_id,
        "source_seq": session.forked_from_seq,
        "included": fork.include and chosen.message is not None,
        "author": author,
    }
    drafts = [created, Draft("session.forked", forked)]
    eventlog.append(session_id=session.pk, drafts=drafts)


def _repeat_history(session: Session, source: Session, chosen: _Chosen, turns: list[Turn]) -> None:
    """The events, the rows that they tell of, and what closes a turn that the cut goes through."""
    copies = {
        turn.pk: CopiedTurn(turn.pk, uuid7(), number) for number, turn in enumerate(turns, start=1)
    }
    seqs = eventlog.copy_history(
        source_id=source.pk,
        target_id=session.pk,
        through=chosen.cut.through,
        turns=list(copies.values()),
    )
    made = [_turn(turn, session, chosen, copies, seqs) for turn in turns]
    Turn.objects.bulk_create(made)
    ended = _copy_attempts(session, chosen, copies)
    _copy_waits(session, copies, seqs)
    closing: list[Draft] = []
    if chosen.cut_turn_id is not None:
        cut = next(turn for turn in made if turn.pk == copies[chosen.cut_turn_id].new_id)
        closing = [
            *closing_drafts(cut, None),
            *ended,
            Draft("turn.cancelled", {"reason": "forked"}, turn_id=cut.pk),
        ]
    latest = _latest(made)
    is_answered = latest is not None and latest.status == TurnStatus.COMPLETED
    reason = {"type": "end_turn" if is_answered else "interrupted"}
    drafts = [*closing, Draft("session.status_idle", {"stop_reason": reason})]
    eventlog.append(session_id=session.pk, drafts=drafts, row={"turn_count": len(made)})


def _turn(
    turn: Turn,
    session: Session,
    chosen: _Chosen,
    copies: dict[UUID, CopiedTurn],
    seqs: dict[int, int],
) -> Turn:
    changes: dict[str, Any] = {
        "id": copies[turn.pk].new_id,
        "session_id": session.pk,
        "number": copies[turn.pk].number,
        "retry_of_id": copies[turn.retry_of_id].new_id if turn.retry_of_id in copies else None,
        "prompt_seq": seqs[turn.prompt_seq],
        "started_seq": seqs[turn.started_seq] if turn.started_seq else None,
    }
    if turn.pk == chosen.cut_turn_id:
        cut = {"status": TurnStatus.CANCELLED, "ended_at": now(), "error": None}
        changes |= {**cut, "attempt_count": chosen.attempt}
    return _copied(turn, changes)


def _copy_attempts(
    session: Session, chosen: _Chosen, copies: dict[UUID, CopiedTurn]
) -> list[Draft]:
    """All that the history tells of; the one in whose midst it ends, ends here: its draft."""
    made, ended = [], []
    for attempt in Attempt.objects.filter(turn_id__in=list(copies)).order_by("number"):
        turn_id = copies[attempt.turn_id].new_id
        changes: dict[str, Any] = {"id": uuid7(), "session_id": session.pk, "turn_id": turn_id}
        if attempt.turn_id == chosen.cut_turn_id:
            if attempt.number > chosen.attempt:
                continue
            if attempt.number == chosen.attempt:
                changes |= {"status": AttemptStatus.CANCELLED, "ended_at": now()}
                outcome = {"outcome": str(AttemptStatus.CANCELLED)}
                ended = [Draft("attempt.ended", outcome, turn_id=turn_id, attempt=attempt.number)]
        made.append(_copied(attempt, changes))
    Attempt.objects.bulk_create(made)
    return ended


def _copy_waits(session: Session, copies: dict[UUID, CopiedTurn], seqs: dict[int, int]) -> None:
    """Those whose asking is in the history. One that is still open is closed with its turn; what
    was allowed for the rest of the source is not allowed here.
    """
    made = []
    for wait in Wait.objects.filter(turn_id__in=list(copies), event_seq__in=list(seqs)):
        changes: dict[str, Any] = {
            "id": uuid7(),
            "session_id": session.pk,
            "turn_id": copies[wait.turn_id].new_id,
            "event_seq": seqs[wait.event_seq],
            "tool_use_seq": seqs[wait.tool_use_seq],
        }
        if wait.answer and "scope" in wait.answer:
            changes["answer"] = {**wait.answer, "scope": "once"}
        made.append(_copied(wait, changes))
    Wait.objects.bulk_create(made)


def _copied(row: Row, changes: dict[str, Any]) -> Row:
    values = {field.attname: getattr(row, field.attname) for field in row._meta.concrete_fields}
    return type(row)(**{**values, **changes})


def _note_maker(session: Session, access: Access, fork: ForkRequest, chosen: _Chosen) -> None:
    """Who forks follows the fork, and has read what is in it."""
    if access.user_id is None:
        return
    head = eventlog.head(session.pk)
    PersonalState.objects.create(
        session=session, user_id=access.user_id, follows=True, read_seq=head
    )
    if fork.keep_draft and not fork.include and chosen.message is not None:
        blocks = chosen.message.data["content"]
        ComposerDraft.objects.create(
            user_id=access.user_id,
            workspace_id=session.workspace_id,
            session=session,
            text="\n\n".join(block["text"] for block in blocks),
            revision=1,
        )
