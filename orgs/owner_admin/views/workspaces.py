"""Shared workspaces, and who works in them as what."""

from __future__ import annotations

from django.db.models import Count
from django.http import HttpRequest, HttpResponseBase
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from core.api.paths import id_in_path
from core.errors import InvalidInput, NotFound
from core.ids import Prefix
from orgs.models import User, Workspace
from orgs.owner_admin.forms import NameForm
from orgs.owner_admin.pages import ask, done, page_of, refuse, show, submit
from orgs.owner_admin.words import WORKSPACE_ROLE_WORDS
from orgs.roles import WorkspaceRole
from orgs.services.workspaces import (
    create_shared_workspace,
    remove_workspace_member,
    set_workspace_role,
)
from orgs.tenant import Tenant

# In one list to choose from; in a larger organization the member's own page adds them as well.
CHOICES_MAX = 500


@require_GET
def workspaces(request: HttpRequest, tenant: Tenant) -> HttpResponseBase:
    rows = tenant.workspaces().annotate(members=Count("memberships"))
    page = page_of(request, rows)
    return show(request, tenant, "workspaces.html", section="workspaces", page=page)


@require_http_methods(["GET", "POST"])
def new(request: HttpRequest, tenant: Tenant) -> HttpResponseBase:
    form = NameForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        made = submit(
            form,
            lambda: create_shared_workspace(
                access=tenant.access, organization_id=tenant.id, name=form.cleaned_data["name"]
            ),
        )
        if made is not None:
            to = f"{tenant.home}workspaces/{made.public_id}/"
            return done(request, to, f"{made.name} is made. You administer it.")
    return show(
        request,
        tenant,
        "form.html",
        status=400 if form.errors else 200,
        section="workspaces",
        form=form,
        title="New workspace",
        text="Its members see its sessions; nobody else does, the owner included.",
        word="Make workspace",
        back=f"{tenant.home}workspaces/",
    )


@require_GET
def workspace(request: HttpRequest, tenant: Tenant, workspace: str) -> HttpResponseBase:
    row = tenant.get_workspace(workspace)
    places = tenant.workspace_memberships().filter(workspace=row)
    inside = places.values("user_id")
    free = tenant.memberships().exclude(user_id__in=inside)[:CHOICES_MAX]
    return show(
        request,
        tenant,
        "workspace.html",
        section="workspaces",
        workspace=row,
        page=page_of(request, places.order_by("user__name", "pk")),
        free=free,
        roles=WORKSPACE_ROLE_WORDS.items(),
    )


@require_POST
def set_member(request: HttpRequest, tenant: Tenant, workspace: str) -> HttpResponseBase:
    """Adds a member of the organization, or changes the role of one who is there already."""
    row = tenant.get_workspace(workspace)
    user = tenant.get_membership(request.POST.get("member", "")).user
    back = _back(request, tenant, row, user)
    try:
        role = WorkspaceRole(request.POST.get("role", ""))
    except ValueError:
        return refuse(request, back, InvalidInput("unknown_role", "Choose a role."))
    set_workspace_role(access=tenant.access, workspace_id=row.pk, user_id=user.pk, role=role)
    word = WORKSPACE_ROLE_WORDS[role].lower()
    return done(request, back, f"{user.name} is {word} in {row.name}.")


@require_http_methods(["GET", "POST"])
def remove_member(
    request: HttpRequest, tenant: Tenant, workspace: str, user: str
) -> HttpResponseBase:
    row = tenant.get_workspace(workspace)
    places = tenant.workspace_memberships().filter(workspace=row)
    place = places.filter(user_id=id_in_path(Prefix.USER, user)).first()
    if place is None:
        raise NotFound
    back = _back(request, tenant, row, place.user)
    if request.method == "GET":
        question = {
            "title": f"Remove {place.user.name} from {row.name}?",
            "text": "They lose its sessions at once, on open pages too. What they made stays.",
            "word": "Remove",
            "back": back,
            "origin": request.GET.get("from", "")[:16],
        }
        return ask(request, tenant, question, section="workspaces")
    remove_workspace_member(access=tenant.access, workspace_id=row.pk, user_id=place.user_id)
    return done(request, back, f"{place.user.name} was removed from {row.name}.")


def _back(request: HttpRequest, tenant: Tenant, row: Workspace, user: User) -> str:
    """To the page that it was done on: the member's, or the workspace's."""
    origin = request.POST.get("from") or request.GET.get("from")
    if origin == "member":
        return f"{tenant.home}members/{user.public_id}/"
    return f"{tenant.home}workspaces/{row.public_id}/"
