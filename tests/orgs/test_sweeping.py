"""What is over is forgotten, piece by piece, by whichever worker does the chores."""

from __future__ import annotations

from datetime import timedelta

import pytest

from core.clock import now
from engine import chores
from engine.chores import Chores
from orgs.models import Invitation, Login
from orgs.selectors.invitations import find_invitation
from orgs.services.invitations import (
    NewInvitation,
    accept_as_newcomer,
    create_invitation,
    revoke_invitation,
)
from orgs.services.sweeping import sweep
from tests.factories import PASSWORD, Cast


def make_logins(cast: Cast, count: int, *, seconds: int) -> None:
    ends = now() + timedelta(seconds=seconds)
    Login.objects.bulk_create(
        Login(digest=f"{seconds} {number}", user=cast.member, data="", expires_at=ends)
        for number in range(count)
    )


def invite(cast: Cast, name: str) -> tuple[Invitation, str]:
    return create_invitation(
        access=cast.access("owner"),
        organization_id=cast.organization.pk,
        new=NewInvitation(f"{name}@example.test"),
    )


def test_a_run_is_bounded_and_the_oldest_go_first(cast: Cast) -> None:
    make_logins(cast, 3, seconds=-60)
    make_logins(cast, 4, seconds=-5)
    make_logins(cast, 2, seconds=60)
    assert sweep(limit=3) == 3
    assert not Login.objects.filter(digest__startswith="-60").exists()
    assert [sweep(limit=3) for _ in range(3)] == [3, 1, 0]
    assert Login.objects.filter(expires_at__gt=now()).count() == 2


def test_the_digest_of_a_dead_link_goes_and_its_invitation_stays(cast: Cast) -> None:
    accepted, revoked, old, alive = (
        invite(cast, name) for name in ("greta", "iris", "jonas", "kofi")
    )
    accept_as_newcomer(token=accepted[1], name="Greta Olsen", password=PASSWORD)
    revoke_invitation(
        access=cast.access("owner"),
        organization_id=cast.organization.pk,
        invitation_id=revoked[0].pk,
    )
    Invitation.objects.filter(pk=old[0].pk).update(expires_at=now() - timedelta(seconds=1))
    assert sweep(limit=2) == 2
    assert sweep() == 1
    assert sweep() == 0
    left = Invitation.objects.exclude(digest=None)
    assert [row.pk for row in left] == [alive[0].pk]
    assert Invitation.objects.count() == 4
    assert find_invitation(token=alive[1]) == alive[0]
    for _, token in (accepted, revoked, old):
        assert find_invitation(token=token) is None


def test_workers_sweep_among_their_chores_now_and_then(
    committed_cast: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    common = Chores(grace_seconds=60)
    for expected in (0, 1):  # at once; then not before its time
        make_logins(committed_cast, 1, seconds=-60 - expected)
        common.do()
        assert Login.objects.count() == expected
    monkeypatch.setattr(chores, "SWEEP_SECONDS", 0.0)
    common.do()
    assert not Login.objects.exists()
