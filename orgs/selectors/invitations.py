"""An invitation, as whoever holds its link finds it."""

from __future__ import annotations

from orgs.models import Invitation
from orgs.principals import access_of, digest_secret
from orgs.roles import OrganizationAction, OrganizationRole

TOKEN_MAX_LENGTH = 100


def find_invitation(*, token: str) -> Invitation | None:
    """The open invitation with this token, whoever holds it. None for a dead one, whatever the
    reason: a link tells nothing of an organization that it does not lead into.
    """
    if not token.isascii() or not token.isprintable() or len(token) > TOKEN_MAX_LENGTH:
        return None
    rows = Invitation.objects.select_related("organization", "workspace", "invited_by")
    invitation = rows.filter(digest=digest_secret(token)).first()
    return invitation if invitation and invitation.is_open and _stands(invitation) else None


def _stands(invitation: Invitation) -> bool:
    """Whether who sent it might still do so: nobody stays in who was let in by a removed admin."""
    sender = access_of(user_id=invitation.invited_by_id, key_id=None)
    action = OrganizationAction.MANAGE
    if invitation.role == OrganizationRole.OWNER:
        action = OrganizationAction.OWN
    return sender is not None and sender.may_in(action, invitation.organization_id)
