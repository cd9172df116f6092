"""Pages and fragments of kin: a row's children, the whole tree, what changed of either."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponseBase, HttpResponseRedirect, JsonResponse
from django.shortcuts import render
from django.template.loader import render_to_string
from django.views.decorators.http import require_GET

from orgs.access import Access
from sessions_app.tree import list_children
from sessions_app.web.family import find_relatives, tree_context
from sessions_app.web.naming import display_title
from sessions_app.web.pages import find_session
from sessions_app.web.regions import FAMILY_REGIONS, render_regions
from sessions_app.web.shell import for_people, shell, wants_fragment, zone
from sessions_app.web.sidebar import make_rows

CHILDREN_SHOWN = 50
KIN_NAMED = 100  # as many as a page asks for at once


@require_GET
@for_people
def children(request: HttpRequest, session: str, *, access: Access) -> HttpResponseBase:
    """The rows that open below a row of the list, oldest first."""
    if not wants_fragment(request):
        return HttpResponseRedirect(f"/s/{session}/tree/")
    row = find_session(access, session)
    page = list_children(access=access, session_id=row.pk, limit=CHILDREN_SHOWN)
    context = {
        "parent_id": session,
        "rows": make_rows(access, page.rows),
        "has_more": page.has_more,
        "zone": zone(request),
    }
    return render(request, "parts/child_rows.html", context)


@require_GET
@for_people
def tree(request: HttpRequest, session: str, *, access: Access) -> HttpResponseBase:
    """All that stands in one tree with this session."""
    row = find_session(access, session)
    context = shell(request, access, row.workspace_id) | {"screen": "new"}
    context |= tree_context(access, row, is_whole=True)
    context |= {"session_id": session, "title": display_title(row)}
    return render(request, "tree.html", context)


@require_GET
@for_people
def around(request: HttpRequest, session: str, *, access: Access) -> HttpResponseBase:
    """The parts of a session's page that tell of those below it, as they are now."""
    row = find_session(access, session)
    parts = render_regions(session=row, access=access, zone=zone(request), names=FAMILY_REGIONS)
    return JsonResponse(
        {"patches": [{"op": "region", "name": n, "html": h} for n, h in parts.items()]}
    )


@require_GET
@for_people
def kin(request: HttpRequest, *, access: Access) -> HttpResponseBase:
    """How the named sessions stand, for pages that no socket tells: those that one may see."""
    found = find_relatives(access, request.GET.getlist("id")[:KIN_NAMED])
    told = [
        {
            "id": relative.id,
            "title": relative.title,
            "note": relative.note,
            "html": render_to_string("parts/standing.html", {"relative": relative}),
        }
        for relative in found.values()
    ]
    return JsonResponse({"kin": told})
