"""Invitations: the link is mailed; where it cannot be, it is shown once to who invites."""

from __future__ import annotations

from django.conf import settings
from django.http import HttpRequest, HttpResponseBase
from django.views.decorators.http import require_GET, require_http_methods

from core.api.origin import origin_of
from core.errors import Conflict
from orgs.mail import deliver_invitation
from orgs.models import Invitation
from orgs.owner_admin.forms import InvitationForm
from orgs.owner_admin.pages import (
    SentBefore,
    ask,
    done,
    make_once,
    page_of,
    refuse,
    show,
)
from orgs.services.invitations import create_invitation, revoke_invitation
from orgs.tenant import Tenant


@require_GET
def invitations(request: HttpRequest, tenant: Tenant) -> HttpResponseBase:
    page = page_of(request, tenant.invitations())
    return show(request, tenant, "invitations.html", section="invitations", page=page)


@require_http_methods(["GET", "POST"])
def new(request: HttpRequest, tenant: Tenant) -> HttpResponseBase:
    form = InvitationForm(tenant, request.POST or None)
    if request.method == "POST" and form.is_valid():
        wanted = form.wanted()

        def make() -> tuple[Invitation, str]:
            return create_invitation(access=tenant.access, organization_id=tenant.id, new=wanted)

        try:
            made = make_once(request, form, make)
        except SentBefore:
            text = "That invitation was made. A link is shown once, and not again."
            return done(request, f"{tenant.home}invitations/", text)
        if made is not None:
            return _made(request, tenant, *made)
    return show(
        request,
        tenant,
        "form.html",
        status=400 if form.errors else 200,
        section="invitations",
        form=form,
        title="Invite somebody",
        text=f"The link in the mail is good once, for {settings.INVITATION_LIFETIME_DAYS} days. "
        "A new invitation to the same address takes the place of an open one.",
        word="Send invitation",
        back=f"{tenant.home}invitations/",
    )


@require_http_methods(["GET", "POST"])
def revoke(request: HttpRequest, tenant: Tenant, invitation: str) -> HttpResponseBase:
    row = tenant.get_invitation(invitation)
    back = f"{tenant.home}invitations/"
    if request.method == "GET":
        question = {
            "title": f"Revoke the invitation of {row.email}?",
            "text": "Its link is dead at once. You can invite the same address again.",
            "word": "Revoke",
            "back": back,
        }
        return ask(request, tenant, question, section="invitations")
    try:
        revoke_invitation(access=tenant.access, organization_id=tenant.id, invitation_id=row.pk)
    except Conflict as error:
        return refuse(request, back, error)
    return done(request, back, f"The invitation of {row.email} is revoked.")


def _made(
    request: HttpRequest, tenant: Tenant, invitation: Invitation, token: str
) -> HttpResponseBase:
    """The answer itself, without a redirect: so the link is stored nowhere."""
    delivery = deliver_invitation(invitation=invitation, token=token, origin=origin_of(request))
    if not delivery.link:
        text = f"{invitation.email} is invited: the link was mailed."
        if not delivery.is_mailed:
            text = (
                f"{invitation.email} is invited, but the mail server did not take the mail yet. "
                "If it does not arrive, invite the address again."
            )
        return done(request, f"{tenant.home}invitations/", text)
    return show(
        request,
        tenant,
        "invitations.html",
        section="invitations",
        page=page_of(request, tenant.invitations()),
        shown={
            "name": f"{invitation.email} is invited.",
            "text": delivery.link,
            "what": "link",
            "how": "No mail server is set, so pass the link on yourself.",
        },
    )
