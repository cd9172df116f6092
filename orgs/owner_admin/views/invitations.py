"""Invitations: the link is mailed, and shown once to who invites."""

from __future__ import annotations

from django.conf import settings
from django.http import HttpRequest, HttpResponseBase
from django.views.decorators.http import require_GET, require_http_methods

from core.errors import Conflict
from orgs.mail import mail_invitation
from orgs.models import Invitation
from orgs.owner_admin.forms import InvitationForm
from orgs.owner_admin.pages import (
    ask,
    done,
    note_sent,
    page_of,
    refuse,
    show,
    submit,
    was_sent_before,
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
    if request.method == "POST" and was_sent_before(request):
        text = "That invitation was made, and its link was shown. It is not shown again."
        return done(request, f"{tenant.home}invitations/", text)
    if request.method == "POST" and form.is_valid():
        made = submit(
            form,
            lambda: create_invitation(
                access=tenant.access, organization_id=tenant.id, new=form.wanted()
            ),
        )
        if made is not None:
            note_sent(request)
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
    link = request.build_absolute_uri(f"/invitation/{token}/")
    is_mailed = mail_invitation(invitation=invitation, link=link)
    is_log = settings.EMAIL_BACKEND.endswith("console.EmailBackend")
    how = "The mail could not be sent: pass the link on yourself."
    if is_mailed:
        how = f"The link was mailed to {invitation.email}."
        if is_log:
            how = "No mail server is set: the mail stands in the server’s log. Pass the link on."
    return show(
        request,
        tenant,
        "invitations.html",
        section="invitations",
        page=page_of(request, tenant.invitations()),
        shown={"name": f"{invitation.email} is invited", "text": link, "what": "link", "how": how},
    )
