"""What people do on pages: plain forms, which the scripts send too. Services do the work."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import orjson
from django.http import HttpRequest, HttpResponseBase, JsonResponse
from django.views.decorators.http import require_GET, require_POST

from core.api.paths import id_in_path
from core.clock import rfc3339
from core.errors import InvalidInput
from core.ids import Prefix, encode_id
from core.text import has_visible
from orgs.access import Access
from sessions_app import selectors
from sessions_app.domain.vocabulary import Visibility
from sessions_app.services.archiving import archive_session, unarchive_session
from sessions_app.services.composer_drafts import consume_workspace_draft, get_draft, save_draft
from sessions_app.services.idempotency import Answer, KeyedRequest, recheck_sent, run_once
from sessions_app.services.interruption import interrupt_session
from sessions_app.services.personal import mark_read, set_pinned
from sessions_app.services.sessions import (
    NewSession,
    SessionChanges,
    create_session,
    update_session,
)
from sessions_app.services.turns import Prompt, submit_prompt
from sessions_app.streaming.positions import parse_position
from sessions_app.tree import count_archived_below
from sessions_app.web.live import LiveRenderer
from sessions_app.web.pages import find_session
from sessions_app.web.shell import done, for_people, posted_number

LIVE_EVENTS = 500


@require_POST
@for_people
def begin(request: HttpRequest, workspace: str, *, access: Access) -> HttpResponseBase:
    """A new session with its first prompt."""
    workspace_id = id_in_path(Prefix.WORKSPACE, workspace)
    text = request.POST.get("text", "")
    _require_text(text)
    revision = posted_number(request, "draft_revision")
    visibility = Visibility.PRIVATE if request.POST.get("visibility") == "private" else None

    def create() -> Answer:
        prompts = (Prompt(content=text),)
        new = NewSession(workspace_id=workspace_id, prompts=prompts, visibility=visibility)
        session = create_session(access=access, new=new)
        if revision is not None:
            consume_workspace_draft(
                access=access, workspace_id=workspace_id, sent_revision=revision
            )
        return Answer(201, orjson.dumps({"session": session.public_id}).decode(), session.pk)

    answer = run_once(
        access=access,
        request=_keyed(request, "web.begin", workspace, {"text": text, "visibility": visibility}),
        operation=create,
        recheck=lambda first: _recheck(access, first),
    )
    public_id = orjson.loads(answer.body)["session"]
    return done(request, f"/s/{public_id}/", session=public_id)


@require_POST
@for_people
def send(request: HttpRequest, session: str, *, access: Access) -> HttpResponseBase:
    """A prompt, behind the queue or (`delivery=steer`) now. The same key again is the same one."""
    row = find_session(access, session)
    text = request.POST.get("text", "")
    _require_text(text)
    delivery = request.POST.get("delivery", "queue")
    revision = posted_number(request, "draft_revision")
    prompt = Prompt(content=text, delivery=delivery, draft_revision=revision)

    def submit() -> Answer:
        receipt = submit_prompt(access=access, session_id=row.pk, prompt=prompt)
        turn = encode_id(Prefix.TURN, receipt.turn_id) if receipt.turn_id else ""
        body = {"turn": turn, "seq": receipt.seq, "held": receipt.held}
        return Answer(202, orjson.dumps(body).decode(), row.pk)

    answer = run_once(
        access=access,
        request=_keyed(request, "web.send", session, {"text": text, "delivery": delivery}),
        operation=submit,
        recheck=lambda first: recheck_sent(access=access, session_id=first.session_id),
    )
    draft = get_draft(access=access, workspace_id=row.workspace_id, session_id=row.pk)
    kept = {"revision": draft.revision}
    return done(request, f"/s/{session}/#end", **orjson.loads(answer.body), **kept)


@require_POST
@for_people
def stop(request: HttpRequest, session: str, *, access: Access) -> HttpResponseBase:
    row = find_session(access, session)
    receipt = interrupt_session(access=access, session_id=row.pk)
    return done(request, f"/s/{session}/", stopped=receipt.changed)


@require_POST
@for_people
def rename(request: HttpRequest, session: str, *, access: Access) -> HttpResponseBase:
    row = find_session(access, session)
    changes = SessionChanges(title=request.POST.get("title", "").strip())
    update_session(access=access, session_id=row.pk, changes=changes)
    return done(request, f"/s/{session}/", title=changes.title)


@require_POST
@for_people
def pin(request: HttpRequest, session: str, *, access: Access) -> HttpResponseBase:
    row = find_session(access, session)
    pinned = request.POST.get("pinned") == "1"
    set_pinned(access=access, session_id=row.pk, pinned=pinned)
    return done(request, f"/s/{session}/", pinned=pinned)


@require_POST
@for_people
def read(request: HttpRequest, session: str, *, access: Access) -> HttpResponseBase:
    """Seen up to here."""
    row = find_session(access, session)
    seq = min(posted_number(request, "seq") or 0, row.head_seq)
    mark_read(access=access, session_id=row.pk, seq=seq)
    return done(request, f"/s/{session}/", seq=seq)


@require_POST
@for_people
def archive(request: HttpRequest, session: str, *, access: Access) -> HttpResponseBase:
    """A working one is archived only with the confirmed `stop`. `seen`: up to where its own page
    showed it; restored it is not unread again.
    """
    row = find_session(access, session)
    archive_session(access=access, session_id=row.pk, stop=request.POST.get("stop") == "1")
    seen = posted_number(request, "seen")
    if seen is not None:
        mark_read(access=access, session_id=row.pk, seq=min(seen, row.head_seq))
    home = f"/w/{encode_id(Prefix.WORKSPACE, row.workspace_id)}/"
    if row.parent_id is not None:  # it leads up, not out
        home = f"/s/{encode_id(Prefix.SESSION, row.parent_id)}/"
    below = count_archived_below(access=access, session_id=row.pk)
    is_root = row.parent_id is None
    return done(request, home, archived=True, home=home, below=below, is_root=is_root)


@require_POST
@for_people
def restore(request: HttpRequest, session: str, *, access: Access) -> HttpResponseBase:
    row = find_session(access, session)
    unarchive_session(access=access, session_id=row.pk)
    return done(request, f"/s/{session}/", archived=False)


@require_POST
@for_people
def session_draft(request: HttpRequest, session: str, *, access: Access) -> HttpResponseBase:
    row = find_session(access, session)
    return _save_draft(request, access, row.workspace_id, row.pk)


@require_POST
@for_people
def workspace_draft(request: HttpRequest, workspace: str, *, access: Access) -> HttpResponseBase:
    return _save_draft(request, access, id_in_path(Prefix.WORKSPACE, workspace), None)


@require_GET
@for_people
def live(request: HttpRequest, session: str, *, access: Access) -> HttpResponseBase:
    """What the page lacks after a seq, as patches: the way of browsers without a socket."""
    row = find_session(access, session)
    after = parse_position(request.GET.get("after", "0"), param="after")
    renderer = LiveRenderer(row, access, min(after, row.head_seq))
    events = selectors.read_events(row, after=after, limit=LIVE_EVENTS)
    answers = renderer.render_all(events)
    patches = [patch for answer in answers if answer for patch in answer["patches"]]
    seq = events[-1].seq if events else after
    return JsonResponse({"patches": patches, "seq": seq, "more": seq < row.head_seq})


def _save_draft(
    request: HttpRequest, access: Access, workspace_id: UUID, session_id: UUID | None
) -> HttpResponseBase:
    draft = save_draft(
        access=access,
        workspace_id=workspace_id,
        session_id=session_id,
        text=request.POST.get("text", ""),
        expected_revision=posted_number(request, "revision") or 0,
    )
    return done(request, "/", revision=draft.revision, at=rfc3339(draft.updated_at))


def _recheck(access: Access, first: Answer) -> None:
    find_session(access, orjson.loads(first.body)["session"])


def _keyed(request: HttpRequest, route: str, target: str, body: dict[str, Any]) -> KeyedRequest:
    key = request.headers.get("Idempotency-Key") or request.POST.get("key", "")
    return KeyedRequest(route, target, key, body)


def _require_text(text: str) -> None:
    if not has_visible(text):
        raise InvalidInput("empty_prompt", "Write something first.", param="text")
