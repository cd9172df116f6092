"""Folders in the sidebar: made, changed, filled; and groups that one keeps shut."""

from __future__ import annotations

from uuid import UUID

from django.http import HttpRequest, HttpResponseBase
from django.views.decorators.http import require_POST

from core.api.paths import id_in_path
from core.errors import InvalidInput
from core.ids import Prefix
from orgs.access import Access
from sessions_app.services.folders import (
    change_folder,
    create_folder,
    delete_folder,
    move_session,
    set_folded,
)
from sessions_app.web.pages import find_session
from sessions_app.web.shell import done, for_people, posted_number
from sessions_app.web.sidebar import TITLES


@require_POST
@for_people
def create(request: HttpRequest, workspace: str, *, access: Access) -> HttpResponseBase:
    folder = create_folder(
        access=access,
        workspace_id=id_in_path(Prefix.WORKSPACE, workspace),
        name=request.POST.get("name", ""),
    )
    return done(request, f"/w/{workspace}/", folder=folder.public_id, name=folder.name)


@require_POST
@for_people
def change(
    request: HttpRequest, workspace: str, folder: str, *, access: Access
) -> HttpResponseBase:
    """Its name or its place, whichever is sent."""
    position = posted_number(request, "position")
    if position is not None and position < 1:
        raise InvalidInput("invalid_position", "Places begin at 1.", param="position")
    changed = change_folder(
        access=access,
        **_named(workspace, folder),
        name=request.POST.get("name"),
        position=position,
    )
    return done(request, f"/w/{workspace}/", name=changed.name, position=changed.position)


@require_POST
@for_people
def delete(
    request: HttpRequest, workspace: str, folder: str, *, access: Access
) -> HttpResponseBase:
    delete_folder(access=access, **_named(workspace, folder))
    return done(request, f"/w/{workspace}/")


@require_POST
@for_people
def move(request: HttpRequest, session: str, *, access: Access) -> HttpResponseBase:
    """Into the folder that is named, or out of any."""
    row = find_session(access, session)
    named = request.POST.get("folder", "")
    folder_id = id_in_path(Prefix.FOLDER, named) if named else None
    move_session(access=access, session_id=row.pk, folder_id=folder_id)
    return done(request, f"/s/{session}/", folder=named)


@require_POST
@for_people
def fold(request: HttpRequest, workspace: str, *, access: Access) -> HttpResponseBase:
    """Keep a group of the sidebar shut, or open."""
    group = request.POST.get("group", "")
    is_named = group in TITLES
    set_folded(
        access=access,
        workspace_id=id_in_path(Prefix.WORKSPACE, workspace),
        folded=request.POST.get("folded") == "1",
        group=group if is_named else "",
        folder_id=None if is_named else id_in_path(Prefix.FOLDER, group),
    )
    return done(request, f"/w/{workspace}/")


def _named(workspace: str, folder: str) -> dict[str, UUID]:
    return {
        "workspace_id": id_in_path(Prefix.WORKSPACE, workspace),
        "folder_id": id_in_path(Prefix.FOLDER, folder),
    }
