"""Turns under control, on pages: pause, resume, retry, cancel, and the queue. Services decide."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponseBase
from django.shortcuts import render
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from core.api.paths import id_in_path
from core.errors import InvalidInput
from core.ids import Prefix, encode_id
from orgs.access import Access
from sessions_app.domain.vocabulary import SessionStatus, Visibility
from sessions_app.services.cancelling import Ends, cancel_session, preview_cancel
from sessions_app.services.holding import pause_session, resume_session
from sessions_app.services.queueing import (
    QueuedTurn,
    delete_queued,
    edit_queued,
    move_queued,
    promote_queued,
)
from sessions_app.services.retrying import retry_turn
from sessions_app.services.visibility import set_visibility
from sessions_app.web.naming import counted, display_title
from sessions_app.web.pages import find_session
from sessions_app.web.regions import session_context
from sessions_app.web.shell import (
    done,
    for_people,
    posted_number,
    shell,
    theme,
    wants_fragment,
    zone,
)
from sessions_app.web.strip import strip_context

QUEUE_PAGE_ROWS = 1_000


@require_POST
@for_people
def pause(request: HttpRequest, session: str, *, access: Access) -> HttpResponseBase:
    pause_session(access=access, session_id=find_session(access, session).pk)
    return done(request, f"/s/{session}/#end", paused=True)


@require_POST
@for_people
def resume(request: HttpRequest, session: str, *, access: Access) -> HttpResponseBase:
    resume_session(access=access, session_id=find_session(access, session).pk)
    return done(request, f"/s/{session}/#end", paused=False)


@require_POST
@for_people
def visibility(request: HttpRequest, session: str, *, access: Access) -> HttpResponseBase:
    chosen = request.POST.get("visibility", "")
    if chosen not in set(Visibility):
        raise InvalidInput("invalid_choice", "Use workspace or private.", param="visibility")
    row = find_session(access, session)
    set_visibility(access=access, session_id=row.pk, visibility=Visibility(chosen))
    return done(request, f"/s/{session}/", visibility=chosen)


@require_POST
@for_people
def retry(request: HttpRequest, session: str, *, access: Access) -> HttpResponseBase:
    """The failed turn that the form names, once more."""
    row = find_session(access, session)
    turn_id = id_in_path(Prefix.TURN, request.POST.get("turn", ""))
    receipt = retry_turn(access=access, session_id=row.pk, turn_id=turn_id)
    turn = encode_id(Prefix.TURN, receipt.turn_id) if receipt.turn_id else ""
    return done(request, f"/s/{session}/#end", turn=turn)


@require_http_methods(["GET", "POST"])
@for_people
def cancel(request: HttpRequest, session: str, *, access: Access) -> HttpResponseBase:
    """GET asks, and names what ends; POST does it."""
    row = find_session(access, session)
    if request.method == "POST":
        cancel_session(access=access, session_id=row.pk)
        return done(request, f"/s/{session}/", cancelled=True)
    context = {
        "theme": theme(request),
        "session_id": session,
        "title": display_title(row),
        "ends": _what_ends(preview_cancel(access=access, session_id=row.pk)),
        "is_over": row.status == SessionStatus.TERMINATED,
    }
    template = "parts/cancel.html" if wants_fragment(request) else "cancel.html"
    return render(request, template, context)


@require_GET
@for_people
def queue(request: HttpRequest, session: str, *, access: Access) -> HttpResponseBase:
    """The strip alone for the script; a page with the whole queue for a plain link."""
    row = find_session(access, session)
    context = session_context(session=row, access=access, zone=zone(request), names=["strip"])
    if wants_fragment(request):
        return render(request, "parts/strip.html", context)
    context |= shell(request, access, row.workspace_id) | {"screen": "new"}
    return render(request, "queue.html", context | strip_context(row, shown=QUEUE_PAGE_ROWS))


@require_POST
@for_people
def edit(request: HttpRequest, session: str, turn: str, *, access: Access) -> HttpResponseBase:
    """Out of the queue, into the composer. Sent from there it has its old place."""
    draft = edit_queued(access=access, queued=_queued(request, access, session, turn))
    return done(request, f"/s/{session}/#prompt", text=draft.text, revision=draft.revision)


@require_POST
@for_people
def move(request: HttpRequest, session: str, turn: str, *, access: Access) -> HttpResponseBase:
    queued = _queued(request, access, session, turn)
    position = posted_number(request, "position") or 0
    version = move_queued(access=access, queued=queued, position=position).version
    return done(request, f"/s/{session}/#end", version=version)


@require_POST
@for_people
def delete(request: HttpRequest, session: str, turn: str, *, access: Access) -> HttpResponseBase:
    queued = _queued(request, access, session, turn)
    version = delete_queued(access=access, queued=queued).version
    return done(request, f"/s/{session}/#end", version=version)


@require_POST
@for_people
def promote(request: HttpRequest, session: str, turn: str, *, access: Access) -> HttpResponseBase:
    """Send now: it takes the place of what runs."""
    queued = _queued(request, access, session, turn)
    version = promote_queued(access=access, queued=queued).version
    return done(request, f"/s/{session}/#end", version=version)


def _queued(request: HttpRequest, access: Access, session: str, turn: str) -> QueuedTurn:
    row = find_session(access, session)
    version = posted_number(request, "expected_version")
    if version is None:
        raise InvalidInput(
            "field_required", "Say which version of the queue you saw.", param="expected_version"
        )
    return QueuedTurn(row.pk, id_in_path(Prefix.TURN, turn), version)


def _what_ends(ends: Ends) -> list[str]:
    """Counted, in words: `turn 4, which has not ended`, `3 queued prompts`, …"""
    turn = [] if ends.turn is None else [f"turn {ends.turn}, which has not ended"]
    queued = [counted(ends.queued, "queued prompt")] if ends.queued else []
    below = [f"{counted(ends.below, 'child session')}, with all that runs there"]
    return [*turn, *queued, *(below if ends.below else [])]
