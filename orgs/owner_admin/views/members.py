"""Members: who belongs to the organization, as what, and in which workspaces."""

from __future__ import annotations

from django.db.models import Count, Q
from django.http import HttpRequest, HttpResponseBase, HttpResponseRedirect
from django.views.decorators.http import require_GET, require_http_methods

from core.errors import Conflict, Forbidden
from orgs.models import OrganizationMembership
from orgs.owner_admin.forms import RoleForm
from orgs.owner_admin.pages import ask, done, page_of, refuse, show, submit
from orgs.owner_admin.words import ORGANIZATION_ROLE_WORDS, WORKSPACE_ROLE_WORDS
from orgs.principals import access_for_user
from orgs.roles import OrganizationAction, OrganizationRole, WorkspaceKind
from orgs.services.members import remove_organization_member, set_organization_role
from orgs.tenant import Tenant

SEARCH_MAX_CHARACTERS = 100
# In one list to choose from; with more workspaces than that, their own pages add members as well.
CHOICES_MAX = 500


@require_GET
def members(request: HttpRequest, tenant: Tenant) -> HttpResponseBase:
    text = request.GET.get("q", "").replace("\x00", "").strip()[:SEARCH_MAX_CHARACTERS]
    rows = tenant.people()
    if text:
        rows = rows.filter(Q(user__name__icontains=text) | Q(user__email__icontains=text))
    here = Q(
        user__workspace_memberships__workspace__organization_id=tenant.id,
        user__workspace_memberships__workspace__kind=WorkspaceKind.SHARED,
    )
    rows = rows.annotate(workspaces=Count("user__workspace_memberships", filter=here))
    page = page_of(request, rows)
    return show(request, tenant, "members.html", section="members", page=page, q=text)


@require_http_methods(["GET", "POST"])
def member(request: HttpRequest, tenant: Tenant, user: str) -> HttpResponseBase:
    """A person or a service account: the role, and the workspaces."""
    membership = tenant.get_membership(user)
    account = membership.user
    form = RoleForm(
        tenant,
        request.POST or None,
        is_person=not account.is_service_account,
        initial={"role": membership.role},
    )
    if request.method == "POST" and form.is_valid():
        role = OrganizationRole(form.cleaned_data["role"])
        changed = submit(
            form,
            lambda: set_organization_role(
                access=tenant.access, organization_id=tenant.id, user_id=account.pk, role=role
            ),
        )
        if changed is not None:
            word = ORGANIZATION_ROLE_WORDS[role].lower()
            to = _next(request, tenant, f"{tenant.home}members/{user}/")
            return done(request, to, f"{account.name} is now {word}.")
    places = tenant.workspace_memberships().filter(user=account).order_by("workspace__name", "pk")
    taken = [place.workspace_id for place in places]
    return show(
        request,
        tenant,
        "member.html",
        status=400 if form.errors else 200,
        section="service-accounts" if account.is_service_account else "members",
        member=account,
        membership=membership,
        is_self=account.pk == tenant.access.user_id,
        may_change=tenant.is_owned or membership.role != OrganizationRole.OWNER,
        form=form,
        places=places,
        roles=WORKSPACE_ROLE_WORDS.items(),
        free=tenant.workspaces().exclude(pk__in=taken)[:CHOICES_MAX],
    )


@require_http_methods(["GET", "POST"])
def remove(request: HttpRequest, tenant: Tenant, user: str) -> HttpResponseBase:
    membership = tenant.get_person(user)
    back = f"{tenant.home}members/{user}/"
    if request.method == "GET":
        return ask(request, tenant, _question(tenant, membership, back), section="members")
    try:
        remove_organization_member(
            access=tenant.access, organization_id=tenant.id, user_id=membership.user_id
        )
    except (Conflict, Forbidden) as error:
        return refuse(request, back, error)
    to = _next(request, tenant, f"{tenant.home}members/")
    if to == "/":
        return HttpResponseRedirect(to)
    return done(request, to, f"{membership.user.name} was removed.")


def _question(tenant: Tenant, membership: OrganizationMembership, back: str) -> dict[str, str]:
    if membership.user_id == tenant.access.user_id:
        return {
            "title": f"Leave {tenant.organization.name}?",
            "text": "You lose it and all its workspaces at once, on open pages too. What you made "
            "stays. An owner or admin can invite you again.",
            "word": "Leave",
            "back": back,
        }
    name = membership.user.name
    return {
        "title": f"Remove {name} from {tenant.organization.name}?",
        "text": f"{name} loses the organization and all its workspaces at once, on open pages "
        "too, and the keys that they own do nothing more. What they made stays.",
        "word": "Remove",
        "back": back,
    }


def _next(request: HttpRequest, tenant: Tenant, to: str) -> str:
    """Out of these pages, for who has just given up what opens them."""
    assert request.user.is_authenticated
    may = access_for_user(request.user).may_in(OrganizationAction.MANAGE, tenant.id)
    return to if may else "/"
