"""Folders: made, renamed, ordered, deleted, and sessions moved between them.

A folder's row is locked before the sessions in it, and the workspace's before that.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import transaction
from django.db.models import Value
from django.db.models.functions import Lower

from core.errors import Conflict, Forbidden, InvalidInput, NotFound
from core.text import has_visible, one_line
from orgs.access import Access
from orgs.models import Workspace
from orgs.roles import Action
from sessions_app.eventlog.announce import announce_folders, announce_rows
from sessions_app.models import FoldedGroup, Folder, Session
from sessions_app.models.folder import FOLDER_NAME_MAX_CHARACTERS
from sessions_app.selectors import Lock, get_folder, get_session
from sessions_app.services.validation import require_storable


@transaction.atomic
def create_folder(*, access: Access, workspace_id: UUID, name: str) -> Folder:
    """At the end. Raises NotFound, Forbidden, InvalidInput, Conflict."""
    folders = _hold(access, workspace_id)
    name = _require_name(name, folders)
    if len(folders) >= settings.FOLDERS_MAX:
        raise Conflict(
            "too_many_folders",
            f"A workspace has at most {settings.FOLDERS_MAX} folders; delete one that is not"
            " needed.",
        )
    folder = Folder.objects.create(workspace_id=workspace_id, name=name, position=len(folders) + 1)
    announce_folders(workspace_id=workspace_id)
    return folder


@transaction.atomic
def change_folder(
    *,
    access: Access,
    workspace_id: UUID,
    folder_id: UUID,
    name: str | None = None,
    position: int | None = None,
) -> Folder:
    """Another name, another place; a place beyond the last is the last. What is the case already
    tells nobody. Raises NotFound, Forbidden, InvalidInput, Conflict.
    """
    folders = _hold(access, workspace_id)
    folder = _find(folders, folder_id)
    others = [each for each in folders if each is not folder]
    changed = False
    if name is not None and (name := _require_name(name, others)) != folder.name:
        folder.name, changed = name, True
        folder.save(update_fields=["name"])
    if position is not None:
        others.insert(position - 1, folder)
        changed |= _number(others)
    if changed:
        announce_folders(workspace_id=workspace_id)
    return folder


@transaction.atomic
def delete_folder(*, access: Access, workspace_id: UUID, folder_id: UUID) -> None:
    """Its sessions stay, and are in none. Raises NotFound, Forbidden."""
    folders = _hold(access, workspace_id)
    folder = _find(folders, folder_id)
    inside = Session.objects.filter(folder=folder).order_by("id")
    held = [each.pk for each in inside.select_for_update(no_key=True, of=("self",)).only("pk")]
    Session.objects.filter(pk__in=held).update(folder=None)
    folder.delete()
    _number([each for each in folders if each is not folder])
    announce_folders(workspace_id=workspace_id)


@transaction.atomic
def move_session(*, access: Access, session_id: UUID, folder_id: UUID | None) -> Session:
    """Into a folder of its workspace, or out of any. Set, not toggled. Children go with their
    root. Raises NotFound, Forbidden, InvalidInput, Conflict.
    """
    session = get_session(access=access, session_id=session_id)
    access.require(Action.SESSION_CONTROL, session.workspace_id, maker_id=session.maker_id)
    if session.parent_id is not None:
        raise Conflict("child_session", "A child session is where its parent is; move that one.")
    if folder_id is not None:
        _require_folder(session.workspace_id, folder_id)
    session = get_session(access=access, session_id=session_id, lock=Lock.ALONE)
    if session.folder_id != folder_id:
        Session.objects.filter(pk=session.pk).update(folder_id=folder_id)
        announce_rows(session_ids=[session.pk], workspace_id=session.workspace_id)
    return get_session(access=access, session_id=session_id)


@transaction.atomic
def set_folded(
    *, access: Access, workspace_id: UUID, folded: bool, group: str = "", folder_id: UUID | None
) -> None:
    """Whether this person keeps a group of the sidebar shut. Raises NotFound, Forbidden."""
    if not access.may(Action.SESSION_READ, workspace_id):
        raise NotFound
    if access.user_id is None:
        raise Forbidden("needs_a_person", "What is kept shut belongs to signed-in people.")
    named: dict[str, Any] = {"user_id": access.user_id, "workspace_id": workspace_id}
    if folder_id is not None:
        get_folder(access=access, workspace_id=workspace_id, folder_id=folder_id)
        _require_folder(workspace_id, folder_id)
    folds = FoldedGroup.objects.filter(**named, group=group)
    folds = folds.filter(folder_id=folder_id) if folder_id else folds.filter(folder__isnull=True)
    if not folded:
        folds.delete()
    elif not folds.exists():
        FoldedGroup.objects.bulk_create(
            [FoldedGroup(**named, folder_id=folder_id, group=group)], ignore_conflicts=True
        )


def _hold(access: Access, workspace_id: UUID) -> list[Folder]:
    """The workspace's folders in their order; nobody else changes them until this ends."""
    if not access.may(Action.SESSION_READ, workspace_id):
        raise NotFound
    access.require(Action.SESSION_CONTROL, workspace_id)
    list(Workspace.objects.select_for_update(no_key=True).filter(pk=workspace_id).values_list("pk"))
    rows = Folder.objects.select_for_update().filter(workspace_id=workspace_id)
    return list(rows.order_by("position", "id"))


def _find(folders: Sequence[Folder], folder_id: UUID) -> Folder:
    for folder in folders:
        if folder.pk == folder_id:
            return folder
    raise NotFound


def _require_folder(workspace_id: UUID, folder_id: UUID) -> None:
    """It stays until this transaction ends."""
    rows = Folder.objects.select_for_update(no_key=True).filter(workspace_id=workspace_id)
    if not rows.filter(pk=folder_id).exists():
        raise InvalidInput(
            "folder_not_found", "There is no such folder in this workspace.", param="folder_id"
        )


def _require_name(name: str, others: Sequence[Folder]) -> str:
    require_storable(name, "name")
    name = one_line(name)
    if not has_visible(name) or len(name) > FOLDER_NAME_MAX_CHARACTERS:
        raise InvalidInput(
            "invalid_name",
            f"A folder's name has 1 to {FOLDER_NAME_MAX_CHARACTERS} characters.",
            param="name",
        )
    # As the database compares, whose idea of small letters may not be Python's.
    same = Folder.objects.filter(pk__in=[each.pk for each in others])
    if same.annotate(small=Lower("name")).filter(small=Lower(Value(name))).exists():
        raise Conflict("name_taken", "A folder of this workspace has this name already.")
    return name


def _number(folders: Sequence[Folder]) -> bool:
    """Places from 1, without gaps. Whether any changed."""
    moved = [(place, each) for place, each in enumerate(folders, 1) if each.position != place]
    for place, each in moved:
        each.position = place
        each.save(update_fields=["position"])
    return bool(moved)
