"""Mail that the server sends of organizations."""

from __future__ import annotations

from dataclasses import dataclass

from django.core.mail import EmailMessage
from django.template.loader import render_to_string

from core.mail import has_mail_server, send_within
from core.text import one_line
from orgs.models import Invitation

SEND_SECONDS = 5


@dataclass(frozen=True, slots=True)
class Delivery:
    """How an invitation leaves. `link` is there where no mail server is set: who invites passes it
    on, and vouches for the address. Else it is in the mail alone, sent or not: whoever comes in by
    it reads that address's mail, and a mail that bounces gives nobody the link.
    """

    link: str
    is_mailed: bool


def deliver_invitation(*, invitation: Invitation, token: str, origin: str) -> Delivery:
    """`origin`: scheme and host of this server. A mail server that is away, or takes longer than
    SEND_SECONDS, does not undo the invitation; it may take the mail later.
    """
    link = f"{origin}/invitation/{token}/"
    is_sent = send_within(_message(invitation, link), seconds=SEND_SECONDS)
    if has_mail_server():
        return Delivery("", is_mailed=is_sent)
    return Delivery(link, is_mailed=False)


def _message(invitation: Invitation, link: str) -> EmailMessage:
    sender = one_line(invitation.invited_by.name) if invitation.invited_by else "Somebody"
    organization = one_line(invitation.organization.name)
    context = {
        "invitation": invitation,
        "link": link,
        "sender": sender,
        "organization": organization,
    }
    return EmailMessage(
        subject=f"{sender} invites you to {organization} on Sederunt",
        body=render_to_string("owner/mail/invitation.txt", context),
        to=[invitation.email],
    )
