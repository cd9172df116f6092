"""The pages that are read: list, session, archive."""

from __future__ import annotations

import uuid
from typing import Any
from uuid import UUID

from django.http import HttpRequest, HttpResponse, HttpResponseBase, HttpResponseRedirect
from django.middleware.csrf import get_token
from django.shortcuts import render
from django.views.decorators.http import require_GET

from core.api.paths import id_in_path
from core.errors import NotFound
from core.ids import Prefix, encode_id
from orgs.access import Access
from orgs.roles import Action
from sessions_app import selectors
from sessions_app.listing import Archived, SessionQuery, Sort, list_sessions
from sessions_app.models import Session
from sessions_app.services.composer_drafts import get_draft
from sessions_app.web.child_items import relatives_named
from sessions_app.web.family import crumbs, find_relatives
from sessions_app.web.forking import kinship
from sessions_app.web.loading import load_page
from sessions_app.web.regions import may, session_context
from sessions_app.web.rendering import render_items
from sessions_app.web.shell import (
    administered,
    find_home,
    for_people,
    remember_workspace,
    shell,
    theme,
    wants_fragment,
    zone,
)
from sessions_app.web.sidebar import list_groups, load_group, make_rows
from sessions_app.web.waits import Typed

RECENT = 3


@require_GET
@for_people
def home(request: HttpRequest, *, access: Access) -> HttpResponseBase:
    workspace_id = find_home(request, access)
    if workspace_id is None:
        context = {
            "person": request.user,
            "theme": theme(request),
            "administered": administered(access),
        }
        return render(request, "no_workspace.html", context)
    return HttpResponseRedirect(f"/w/{encode_id(Prefix.WORKSPACE, workspace_id)}/")


@require_GET
@for_people
def workspace(
    request: HttpRequest, workspace: str, *, access: Access, screen: str = "list"
) -> HttpResponseBase:
    """The list of sessions, and a composer that begins a new one."""
    workspace_id = id_in_path(Prefix.WORKSPACE, workspace)
    context = shell(request, access, workspace_id)
    draft = None
    context["offers_private"] = selectors.allows_private(access=access, workspace_id=workspace_id)
    if context["may_create"]:
        draft = get_draft(access=access, workspace_id=workspace_id, session_id=None)
    recent = [row for group in context["groups"] for row in group.rows][:RECENT]
    context |= {"screen": screen, "draft": draft, "recent": recent, "send_key": uuid.uuid4().hex}
    return remember_workspace(render(request, "workspace.html", context), workspace_id)


@require_GET
@for_people
def sidebar(request: HttpRequest, workspace: str, *, access: Access) -> HttpResponseBase:
    """The groups alone: what a page reads again after it was away."""
    workspace_id = id_in_path(Prefix.WORKSPACE, workspace)
    _require_reader(access, workspace_id)
    groups = list_groups(access=access, workspace_id=workspace_id, zone=zone(request))
    context = {"groups": groups, "zone": zone(request), "workspace": {"id": workspace}}
    return render(request, "parts/groups.html", context)


@require_GET
@for_people
def group(request: HttpRequest, workspace: str, group: str, *, access: Access) -> HttpResponseBase:
    """More of one group: rows for the script, a page of its own for a plain link."""
    workspace_id = id_in_path(Prefix.WORKSPACE, workspace)
    _require_reader(access, workspace_id)
    found = load_group(
        access=access,
        workspace_id=workspace_id,
        key=group,
        cursor=request.GET.get("cursor", ""),
        zone=zone(request),
    )
    if wants_fragment(request):
        context = {"group": found, "zone": zone(request), "workspace": {"id": workspace}}
        return render(request, "parts/group_rows.html", context)
    context = shell(request, access, workspace_id) | {"screen": "new", "group": found}
    return render(request, "group.html", context)


@require_GET
@for_people
def archived(request: HttpRequest, workspace: str, *, access: Access) -> HttpResponseBase:
    """Most recently archived first, whatever their activity."""
    workspace_id = id_in_path(Prefix.WORKSPACE, workspace)
    context = shell(request, access, workspace_id)
    query = SessionQuery(
        workspace_id=workspace_id,
        archived=Archived.ONLY,
        sort=Sort.ARCHIVED,
        limit=50,
        page=request.GET.get("page", ""),
    )
    page = list_sessions(access=access, query=query)
    context |= {
        "screen": "new",
        "rows": make_rows(access, page.rows),
        "next_page": page.next_page,
        "may_restore": access.may(Action.SESSION_CONTROL, workspace_id),
        "is_archive": True,
    }
    return render(request, "archived.html", context)


@require_GET
@for_people
def session(request: HttpRequest, session: str, *, access: Access) -> HttpResponseBase:
    """The newest page of a session, or the one above `before`."""
    return show_session(request, access, find_session(access, session))


def show_session(
    request: HttpRequest, access: Access, row: Session, *, typed: Typed | None = None
) -> HttpResponse:
    """`typed`: a form on it that was refused, shown with what was in it."""
    before = _seq(request.GET.get("before"))
    page = load_page(session=row, before=before)
    items = render_items(
        page.transcript.items,
        session=row,
        zone=zone(request),
        may_control=may(access, Action.SESSION_CONTROL, row),
        may_fork=may(access, Action.SESSION_CREATE, row),
        token=get_token(request),
        typed=typed,
        relatives=find_relatives(access, relatives_named(page.transcript.items)),
    )
    context: dict[str, Any] = {
        "items": items,
        "earlier": page.before,
        "is_newest": before is None,
        "head_seq": page.head,
        "session_id": row.public_id,
    }
    if wants_fragment(request):
        return render(request, "parts/earlier.html", context)
    context |= shell(request, access, row.workspace_id)
    context |= session_context(
        session=row, access=access, zone=zone(request), token=get_token(request)
    )
    context |= {
        "screen": "session",
        "send_key": uuid.uuid4().hex,
        "rename": "rename" in request.GET,
        "crumbs": crumbs(access, row),
        "root_id": encode_id(Prefix.SESSION, row.root_id or row.pk),
        **kinship(access, row),
    }
    if context["may_control"] and context["is_open"]:
        context["draft"] = get_draft(
            access=access, workspace_id=row.workspace_id, session_id=row.pk
        )
    return remember_workspace(render(request, "session.html", context), row.workspace_id)


@require_GET
@for_people
def event_text(request: HttpRequest, session: str, seq: int, *, access: Access) -> HttpResponseBase:
    """All the text of one event, as plain text, where the page shows only its beginning."""
    row = find_session(access, session)
    found = selectors.read_events(row, after=seq - 1, limit=1) if seq else []
    if not found or found[0].seq != seq:
        raise NotFound
    response = HttpResponse(_event_text(found[0].data), content_type="text/plain; charset=utf-8")
    response["X-Content-Type-Options"] = "nosniff"
    return response


def find_session(access: Access, public_id: str) -> Session:
    session_id = id_in_path(Prefix.SESSION, public_id)
    return selectors.get_session(access=access, session_id=session_id)


def _event_text(data: dict[str, Any]) -> str:
    content = data.get("content")
    if isinstance(content, str):
        return content
    if content is None:
        return str(data.get("input") or data.get("text") or "")
    return "\n\n".join(block.get("text", "") for block in content)


def _require_reader(access: Access, workspace_id: UUID) -> None:
    if not access.may(Action.SESSION_READ, workspace_id):
        raise NotFound


def _seq(text: str | None) -> int | None:
    """Nonsense reads as the newest page."""
    return int(text) if text and text.isascii() and text.isdigit() and len(text) < 16 else None
