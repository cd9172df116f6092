"""Mail that the server sends of organizations."""

from __future__ import annotations

import logging
import smtplib

from django.core.mail import EmailMessage
from django.template.loader import render_to_string

from core.text import one_line
from orgs.models import Invitation

log = logging.getLogger("sederunt.mail")


def mail_invitation(*, invitation: Invitation, link: str) -> bool:
    """Whether a server took it. A mail server that is away does not undo the invitation."""
    sender = invitation.invited_by
    name = one_line(sender.name) if sender else "Somebody"
    organization = one_line(invitation.organization.name)
    context = {"invitation": invitation, "link": link, "sender": name, "organization": organization}
    message = EmailMessage(
        subject=f"{name} invites you to {organization} on Sederunt",
        body=render_to_string("owner/mail/invitation.txt", context),
        to=[invitation.email],
    )
    try:
        return message.send() == 1
    except (smtplib.SMTPException, OSError) as error:
        log.warning("invitation_not_mailed %s: %s", invitation.public_id, type(error).__name__)
        return False
