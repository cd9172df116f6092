"""Where a person belongs, and the way out of it: asked once, named. Services decide."""

from __future__ import annotations

from dataclasses import dataclass

from django.http import HttpRequest, HttpResponseBase, HttpResponseRedirect
from django.shortcuts import render
from django.views.decorators.http import require_http_methods

from core.api.paths import id_in_path
from core.errors import Conflict, NotFound
from core.ids import Prefix, encode_id
from orgs.access import Access
from orgs.roles import WorkspaceKind
from orgs.services.members import remove_organization_member
from orgs.services.workspaces import remove_workspace_member
from sessions_app.web.shell import for_people, theme

LEFT = "/account/?done=left"
LEAVING_ORGANIZATION = (
    "You lose all of its workspaces, and your keys stop working at once. What you made stays "
    "there. Only an invitation lets you back in."
)
LEAVING_WORKSPACE = "You no longer see its sessions, those that you made included. They stay there."


@dataclass(frozen=True, slots=True)
class Place:
    """An organization or a shared workspace; `path` leads to the question whether to leave it."""

    name: str
    role: str
    path: str
    workspaces: tuple[Place, ...] = ()


def places_of(access: Access) -> list[Place]:
    """The organizations, each with those of its shared workspaces that the person is in."""
    return [
        Place(
            grant.name,
            str(grant.role),
            f"/account/organizations/{encode_id(Prefix.ORGANIZATION, pk)}/leave",
            tuple(
                Place(
                    inner.name,
                    str(inner.role),
                    f"/account/workspaces/{encode_id(Prefix.WORKSPACE, workspace_id)}/leave",
                )
                for workspace_id, inner in access.grants.items()
                if inner.organization_id == pk and inner.kind is WorkspaceKind.SHARED
            ),
        )
        for pk, grant in access.organizations.items()
    ]


@require_http_methods(["GET", "POST"])
@for_people
def leave_organization(
    request: HttpRequest, organization: str, *, access: Access
) -> HttpResponseBase:
    pk = id_in_path(Prefix.ORGANIZATION, organization)
    if access.user_id is None or pk not in access.organizations:
        raise NotFound
    name = access.organizations[pk].name
    if request.method != "POST":
        return _ask(request, name, LEAVING_ORGANIZATION)
    try:
        remove_organization_member(access=access, organization_id=pk, user_id=access.user_id)
    except Conflict as error:  # the last owner stays
        return _ask(request, name, LEAVING_ORGANIZATION, problem=error.message, status=409)
    return HttpResponseRedirect(LEFT)


@require_http_methods(["GET", "POST"])
@for_people
def leave_workspace(request: HttpRequest, workspace: str, *, access: Access) -> HttpResponseBase:
    pk = id_in_path(Prefix.WORKSPACE, workspace)
    grant = access.grants.get(pk)
    if access.user_id is None or grant is None or grant.kind is not WorkspaceKind.SHARED:
        raise NotFound
    if request.method == "POST":
        remove_workspace_member(access=access, workspace_id=pk, user_id=access.user_id)
        return HttpResponseRedirect(LEFT)
    return _ask(request, grant.name, LEAVING_WORKSPACE)


def _ask(
    request: HttpRequest, name: str, told: str, *, problem: str = "", status: int = 200
) -> HttpResponseBase:
    context = {"name": name, "told": told, "problem": problem, "theme": theme(request)}
    return render(request, "leave.html", context, status=status)
