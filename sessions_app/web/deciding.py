"""What people decide on pages: calls that wait, questions, and the list of all of them."""

from __future__ import annotations

from typing import Any

from django.http import (
    HttpRequest,
    HttpResponseBase,
    HttpResponseRedirect,
    JsonResponse,
    QueryDict,
)
from django.middleware.csrf import get_token
from django.shortcuts import render
from django.views.decorators.http import require_GET, require_POST

from core.api.paths import id_in_path
from core.errors import DomainError, InvalidInput, TooLarge
from core.ids import InvalidId, Prefix, encode_id, parse_event_id
from orgs.access import Access
from sessions_app.inbox import count_inbox, list_inbox
from sessions_app.models import Session, Wait
from sessions_app.services.waits import (
    Confirmation,
    QuestionReply,
    answer_question,
    confirm_call,
)
from sessions_app.web.naming import display_title, note_first_words
from sessions_app.web.pages import find_session, show_session
from sessions_app.web.rendering import render_item
from sessions_app.web.shell import (
    done,
    find_home,
    for_people,
    shell,
    wants_fragment,
    wants_json,
    zone,
)
from sessions_app.web.waits import Typed, ask_key, item_of, place_of_problem, read_answers

INBOX_ROWS = 20
_DECISIONS = {"allow": (True, False), "allow_session": (True, True), "deny": (False, False)}


@require_POST
@for_people
def confirm(request: HttpRequest, session: str, event: str, *, access: Access) -> HttpResponseBase:
    """`decision`: allow, allow_session, or deny with a `reason`."""
    row = find_session(access, session)
    decision = request.POST.get("decision", "")
    if decision not in _DECISIONS:
        raise InvalidInput("invalid_confirmation", "Allow it or deny it.", param="decision")
    allow, for_session = _DECISIONS[decision]
    reason = "" if allow else request.POST.get("reason", "").strip()
    confirmation = Confirmation(event, allow, reason, for_session)
    confirm_call(access=access, session_id=row.pk, confirmation=confirmation)
    return done(request, _back(request, session, event), decided=decision)


@require_POST
@for_people
def answer(request: HttpRequest, session: str, event: str, *, access: Access) -> HttpResponseBase:
    """A refusal that belongs to one of the questions stays at it, with what was typed."""
    row = find_session(access, session)
    skip = request.POST.get("do") == "skip"
    questions = _questions(row, event)
    answers = {} if skip else read_answers(questions, request.POST)
    try:
        reply = QuestionReply(event, answers, skip)
        answer_question(access=access, session_id=row.pk, reply=reply)
    except (InvalidInput, TooLarge) as error:
        place = place_of_problem(questions, error.param)
        if not place:
            raise
        return _at_its_field(request, access, row, _typed(event, request.POST, place, error))
    return done(request, _back(request, session, event), decided="skip" if skip else "answer")


@require_GET
@for_people
def inbox(request: HttpRequest, *, access: Access) -> HttpResponseBase:
    """All that waits for this person, over all workspaces; the list alone for the script."""
    found = list_inbox(
        access=access, descending=True, limit=INBOX_ROWS, page=request.GET.get("page", "")
    )
    sessions = list({wait.session_id: wait.session for wait in found.rows}.values())
    note_first_words(sessions)
    named = {session.pk: display_title(session) for session in sessions}
    context: dict[str, Any] = {
        "cards": [_card(request, access, wait, named[wait.session_id]) for wait in found.rows],
        "next_page": found.next_page,
        "zone": zone(request),
    }
    if wants_fragment(request):
        return render(request, "parts/inbox.html", context)
    workspace_id = find_home(request, access)
    if workspace_id is None:
        return HttpResponseRedirect("/")
    context |= shell(request, access, workspace_id) | {"screen": "inbox", "is_inbox": True}
    return render(request, "inbox.html", context)


@require_GET
@for_people
def count(request: HttpRequest, *, access: Access) -> HttpResponseBase:
    """For the badge: 100 stands for more than it can show."""
    return JsonResponse({"count": count_inbox(access=access)})


def _card(request: HttpRequest, access: Access, wait: Wait, title: str) -> dict[str, Any]:
    item = item_of(wait)
    session_id = wait.session.public_id
    html = render_item(
        item,
        session=wait.session,
        zone=zone(request),
        may_control=True,
        token=get_token(request),
        place="inbox",
    )
    return {
        "key": item.key,
        "html": html,
        "title": title,
        "href": f"/s/{session_id}/#{item.key}",
        "workspace": access.grants[wait.session.workspace_id].name,
        "is_private": wait.session.visibility == "private",
    }


def _questions(session: Session, event: str) -> list[dict[str, Any]]:
    """What was asked, in order; nothing for an id that names no question: the service says so."""
    try:
        named, seq = parse_event_id(event)
    except InvalidId:
        return []
    wait = session.waits.filter(event_seq=seq).first() if named == session.pk else None
    return list(wait.request.get("questions", [])) if wait else []


def _typed(event: str, posted: QueryDict, place: int, error: DomainError) -> Typed:
    values = {name: list(posted.getlist(name)) for name in posted}
    return Typed(ask_key(event), values, place, error.message)


def _at_its_field(
    request: HttpRequest, access: Access, session: Session, typed: Typed
) -> HttpResponseBase:
    if wants_json(request):
        body = {"code": "invalid_answer", "message": typed.problem}
        return JsonResponse({"error": {**body, "details": {"place": typed.place}}}, status=400)
    page = show_session(request, access, session, typed=typed)
    page.status_code = 400
    return page


def _back(request: HttpRequest, session: str, event: str) -> str:
    place = request.POST.get("place")
    if place == "inbox":
        return "/inbox/"
    if place:  # the page of a session above, whose dock had the card
        return f"/s/{encode_id(Prefix.SESSION, id_in_path(Prefix.SESSION, place))}/#end"
    return f"/s/{session}/#{ask_key(event)}"
