"""What the pages of the owner's admin do: keys shown once, mail, the switch, the audit log."""

from __future__ import annotations

import csv
import io
import re
import smtplib
import threading
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from django.core import mail
from django.core.mail.backends.locmem import EmailBackend
from django.test import Client

from core.clock import now
from core.errors import Unauthenticated
from orgs.models import ApiKey, AuditEntry, Invitation, Organization, User
from orgs.models.audit import AuditAction
from orgs.owner_admin.csv_export import COLUMNS, safe_cell
from orgs.owner_admin.words import ACTION_WORDS
from orgs.principals import authenticate_key
from orgs.roles import Action, WorkspaceRole
from orgs.selectors import audit as selectors_audit
from orgs.selectors.invitations import find_invitation
from orgs.services import audit, audit_export
from orgs.services.workspaces import set_workspace_role
from tests.factories import Cast

SECRET = re.compile(r"sed_[wo]_[0-9a-f]{8}_[\w-]{20,}")
LINK = re.compile(r"http://testserver/invitation/([\w-]+)/")


class Desk:
    """Somebody at the owner's admin of the cast's organization."""

    def __init__(self, cast: Cast, who: str = "owner", **cookies: str) -> None:
        self.client = Client()
        self.client.force_login(getattr(cast, who))
        self.client.cookies.load(cookies)
        self.home = f"/owner/{cast.organization.public_id}/"

    def get(self, page: str, status: int = 200) -> str:
        answer = self.client.get(self.home + page)
        assert answer.status_code == status
        return answer.content.decode()

    def post(self, page: str, status: int = 302, **data: Any) -> str:
        answer = self.client.post(self.home + page, data)
        assert answer.status_code == status, answer.content.decode()[:2000]
        return answer.content.decode()


@pytest.fixture
def desk(cast: Cast) -> Desk:
    return Desk(cast)


def new_key(desk: Desk, status: int = 200, **fields: Any) -> str:
    asked = {"name": "nightly", "reach": "write", "lifetime_days": "30", **fields}
    return desk.post("keys/new/", status, **asked)


# ── Keys ──
def test_a_key_is_shown_in_the_answer_that_makes_it_and_never_again(desk: Desk) -> None:
    page = new_key(desk)
    (secret,) = set(SECRET.findall(page))
    assert authenticate_key(secret)
    row = ApiKey.objects.get(name="nightly")
    pages = ("keys/", "keys/new/", "audit/", f"keys/{row.public_id}/revoke/", "keys/?page=1")
    for other in pages:
        assert secret not in desk.get(other), other
        assert SECRET.findall(desk.get(other)) == []
    assert secret not in str(list(AuditEntry.objects.values()))
    assert secret not in str(dict(desk.client.session))


def test_a_reload_makes_no_second_key_and_shows_nothing(desk: Desk) -> None:
    first = new_key(desk, once="a1b2")
    again = desk.client.post(
        f"{desk.home}keys/new/",
        {"name": "nightly", "reach": "write", "lifetime_days": "30", "once": "a1b2"},
        follow=True,
    ).content.decode()
    assert SECRET.search(first)
    assert not SECRET.search(again)
    assert "It cannot be shown again" in again
    assert ApiKey.objects.filter(name="nightly").count() == 1


@pytest.mark.parametrize(
    ("fields", "place", "words"),
    [
        ({"name": " "}, "name", "required"),
        ({"lifetime_days": "400"}, "lifetime_days", "At most 365 days."),
        ({"lifetime_days": "0"}, "lifetime_days", "greater than or equal to 1"),
        ({"reach": "everything"}, "reach", "not one of the available choices"),
        ({"reach": "single"}, "actions", "Choose at least one action."),
        ({"reach": "single", "actions": ["session.own"]}, "actions", "not one of the available"),
        ({"name": "a\x00b"}, "name", "Null characters are not allowed."),
    ],
)
def test_what_is_wrong_stands_at_its_field(
    desk: Desk, fields: dict[str, Any], place: str, words: str
) -> None:
    before = ApiKey.objects.count()
    page = new_key(desk, 400, **fields)
    (said,) = re.findall(rf'id="field-{place}_error">([^<]*)', page)
    assert words in said
    assert ApiKey.objects.count() == before


def test_a_key_of_single_actions_for_a_service_account(cast: Cast, desk: Desk) -> None:
    desk.post("service-accounts/new/", name="reporting", role="member")
    account = User.objects.get(name="reporting")
    owned = {"owner": account.public_id, "workspace": cast.workspace.public_id}
    refused = new_key(desk, 400, **owned)
    assert (
        "must administer what it is for" in re.findall(r'"field-owner_error">([^<]*)', refused)[0]
    )
    set_workspace_role(
        access=cast.access("owner"),
        workspace_id=cast.workspace.pk,
        user_id=account.pk,
        role=WorkspaceRole.ADMINISTRATOR,
    )
    page = new_key(desk, reach="single", actions=["session.read"], **owned)
    (secret,) = set(SECRET.findall(page))
    access = authenticate_key(secret)
    assert access.grants[cast.workspace.pk].actions == {Action.SESSION_READ}


def test_a_rotated_key_is_shown_once_and_the_old_one_ends(cast: Cast, desk: Desk) -> None:
    old = cast.workspace_key
    page = desk.post(f"keys/{old.row.public_id}/rotate/", 200, overlap="0")
    (secret,) = set(SECRET.findall(page))
    assert authenticate_key(secret)
    with pytest.raises(Unauthenticated):
        authenticate_key(old.secret)
    again = desk.post(f"keys/{old.row.public_id}/rotate/", 400, overlap="0")
    assert "It was revoked or has expired" in again


def test_revoking_asks_first(cast: Cast, desk: Desk) -> None:
    key = cast.workspace_key
    page = desk.get(f"keys/{key.row.public_id}/revoke/")
    assert f"Revoke {key.row.name}?" in page
    assert authenticate_key(key.secret)
    desk.post(f"keys/{key.row.public_id}/revoke/")
    with pytest.raises(Unauthenticated):
        authenticate_key(key.secret)


def test_the_list_tells_what_ends_and_what_ended(cast: Cast, desk: Desk) -> None:
    keys = ApiKey.objects.filter(organization=cast.organization)
    assert "Expired" not in desk.get("keys/")
    keys.filter(pk=cast.workspace_key.row.pk).update(expires_at=now() - timedelta(days=1))
    keys.filter(pk=cast.read_only_key.row.pk).update(expires_at=now() + timedelta(days=19, hours=1))
    page = desk.get("keys/")
    assert "Expired" in page
    assert "19d left" in page


# ── Invitations ──
def test_an_invitation_is_mailed_and_its_link_shown_to_nobody(desk: Desk) -> None:
    """So that whoever comes in by it is whoever reads that address's mail."""
    desk.post("invitations/new/", 302, email="iris@example.test", role="member")
    (sent,) = mail.outbox
    (token,) = LINK.findall(sent.body)
    assert find_invitation(token=token)
    assert sent.to == ["iris@example.test"]
    assert sent.subject == "Ada Moreau invites you to Lindqvist Atlas on Sederunt"
    page = desk.get("invitations/")
    assert "iris@example.test is invited: the link was mailed." in page
    assert token not in page
    row = Invitation.objects.get(email="iris@example.test")
    assert token not in desk.get(f"invitations/{row.public_id}/revoke/")
    assert token not in str(list(AuditEntry.objects.values()))


def test_without_a_mail_server_the_link_is_shown_once(desk: Desk, settings: Any) -> None:
    settings.EMAIL_BACKEND = "django.core.mail.backends.console.EmailBackend"
    page = desk.post("invitations/new/", 200, email="iris@example.test", role="member")
    (token,) = set(LINK.findall(page))
    assert find_invitation(token=token)
    assert "No mail server is set" in page
    assert token not in desk.get("invitations/")


def test_a_reload_invites_nobody_twice(desk: Desk) -> None:
    form = {"email": "iris@example.test", "role": "member", "once": "c3"}
    for _ in range(2):
        desk.post("invitations/new/", 302, **form)
    assert len(mail.outbox) == 1
    assert Invitation.objects.filter(email="iris@example.test", revoked_at=None).count() == 1


def test_a_form_that_made_nothing_can_be_sent_again(cast: Cast, desk: Desk) -> None:
    form = {"email": cast.member.email, "role": "member", "once": "c4"}
    desk.post("invitations/new/", 400, **form)
    desk.post("invitations/new/", 302, **{**form, "email": "iris@example.test"})
    assert len(mail.outbox) == 1


def test_a_mail_server_that_is_away_undoes_no_invitation(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(*_: Any) -> int:
        raise smtplib.SMTPServerDisconnected("gone")

    monkeypatch.setattr(EmailBackend, "send_messages", away)
    desk.post("invitations/new/", 302, email="iris@example.test", role="member")
    page = desk.get("invitations/")
    assert "the mail server did not take the mail yet" in page
    assert not LINK.search(page)
    assert Invitation.objects.get(email="iris@example.test").is_open


def test_a_mail_server_that_says_nothing_holds_up_nobody(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    release = threading.Event()
    monkeypatch.setattr(EmailBackend, "send_messages", lambda *_: release.wait(30) and 1)
    monkeypatch.setattr("orgs.mail.SEND_SECONDS", 0.2)
    try:
        desk.post("invitations/new/", 302, email="iris@example.test", role="member")
    finally:
        release.set()
    assert "the mail server did not take the mail yet" in desk.get("invitations/")


def test_names_cannot_break_out_of_a_mails_subject(cast: Cast, desk: Desk) -> None:
    Organization.objects.filter(pk=cast.organization.pk).update(name="Atlas\nBcc: x@example.test")
    desk.post("invitations/new/", 302, email="iris@example.test", role="member")
    assert mail.outbox[0].subject.endswith("to Atlas Bcc: x@example.test on Sederunt")
    assert mail.outbox[0].recipients() == ["iris@example.test"]


def test_who_belongs_already_is_named_at_the_field(cast: Cast, desk: Desk) -> None:
    page = desk.post("invitations/new/", 400, email=cast.member.email.upper(), role="member")
    assert "belongs to the organization already" in page
    assert mail.outbox == []


# ── Settings ──
def test_only_an_owner_switches_only_me_and_the_page_says_since_when(cast: Cast) -> None:
    owner, admin = Desk(cast), Desk(cast, "admin")
    assert 'aria-checked="false"' in owner.get("settings/")
    owner.post("settings/only-me/", allow="on")
    owner.post("settings/only-me/", allow="on")  # a page that is behind
    page = admin.get("settings/")
    assert 'aria-checked="true"' in page
    assert "Only an owner can switch this." in page
    assert re.search(r"since <time.*by <span dir=\"auto\">Ada Moreau", page, re.DOTALL)
    admin.post("settings/only-me/", 403, allow="off")
    owner.post("settings/only-me/", 400, allow="perhaps")
    assert Organization.objects.get(pk=cast.organization.pk).allows_private_sessions


def test_names_are_shown_as_text(desk: Desk) -> None:
    desk.post("settings/", name="<script>x</script>")
    desk.post("service-accounts/new/", name="<b>bold</b>", role="member")
    for page in ("settings/", "service-accounts/", "audit/", "keys/new/"):
        text = desk.get(page)
        assert "<script>x" not in text
        assert "<b>bold" not in text


# ── Workspaces ──
def test_members_come_into_a_workspace_change_and_go(cast: Cast, desk: Desk) -> None:
    desk.post("workspaces/new/", name="Survey")
    room = cast.organization.workspaces.get(name="Survey")
    place = f"workspaces/{room.public_id}/"
    for role in ("viewer", "member"):
        desk.post(f"{place}members/", member=cast.viewer.public_id, role=role)
        assert room.memberships.get(user=cast.viewer).role == role
    desk.post(f"{place}members/", member=cast.viewer.public_id, role="emperor")
    assert room.memberships.get(user=cast.viewer).role == "member"
    desk.post(f"{place}members/{cast.viewer.public_id}/remove/")
    assert not room.memberships.filter(user=cast.viewer).exists()
    desk.get(f"{place}members/{cast.viewer.public_id}/remove/", 404)


def test_the_audit_log_names_the_workspace_of_a_change(cast: Cast, desk: Desk) -> None:
    desk.post(
        f"workspaces/{cast.workspace.public_id}/members/",
        member=cast.viewer.public_id,
        role="member",
    )
    line = lines_of(desk.get("audit/"))[0]
    assert "changed workspace role of Elif Aydin" in line
    assert line.count("in Field notes") == 1
    assert "role: viewer → member" in line


# ── Audit ──
def lines_of(page: str) -> list[str]:
    body = re.findall(r"<tr><td class=\"num\">.*?</tr>", page, re.DOTALL)
    return [" ".join(re.sub(r"<[^>]*>", " ", line).split()) for line in body]


def test_every_action_has_its_words() -> None:
    assert set(ACTION_WORDS) == set(AuditAction)


def test_filters_find_by_who_what_and_when(cast: Cast) -> None:
    owner, admin = Desk(cast), Desk(cast, "admin", zone="Europe%2FParis")
    owner.post("service-accounts/new/", name="reporting", role="member")
    admin.post("workspaces/new/", name="Survey")
    by_admin = lines_of(owner.get(f"audit/?who=user:{cast.admin.pk.hex}"))
    assert by_admin
    assert all("Bruno Keller" in line for line in by_admin)
    made = lines_of(owner.get("audit/?what=service_account.created"))
    assert len(made) == 1
    assert "made service account reporting" in made[0]
    assert lines_of(owner.get("audit/?until=2020-01-01")) == []
    old = AuditEntry.objects.create(
        organization_id=cast.organization.pk,
        action="member.left",
        actor_kind="user",
        actor_name="Dev Patel",
        target_kind="user",
        target_id="usr_x",
        target_name="Dev Patel",
        at="2020-01-01T23:30:00Z",  # in Paris, the second
    )
    assert len(lines_of(owner.get("audit/?since=2020-01-01&until=2020-01-01"))) == 1
    assert lines_of(admin.get("audit/?since=2020-01-01&until=2020-01-01")) == []
    assert len(lines_of(admin.get("audit/?since=2020-01-02&until=2020-01-02"))) == 1
    assert len(lines_of(owner.get(f"audit/?about={old.target_id}"))) == 1
    assert "before the first day" in owner.get("audit/?since=2020-01-02&until=2020-01-01", 400)
    for nonsense in (
        "who=user:zz",
        "what=no",
        "since=yesterday",
        f"who=user:{cast.outsider.pk.hex}",
    ):
        assert lines_of(owner.get(f"audit/?{nonsense}", 400)) == []


def test_times_and_fields_are_said_in_words(cast: Cast, desk: Desk) -> None:
    new_key(desk)
    key = ApiKey.objects.get(name="nightly")
    assert key.expires_at is not None
    line = lines_of(desk.get("audit/?what=api_key.created"))[0]
    assert f"begins with: none → {key.prefix}" in line
    assert f"expires: none → {key.expires_at:%Y-%m-%d %H:%M} UTC" in line


def test_whoever_has_a_line_can_be_asked_for_however_many_there_are(
    cast: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    owner, admin = Desk(cast), Desk(cast, "admin")
    owner.post("service-accounts/new/", name="reporting", role="member")
    admin.post("workspaces/new/", name="Survey")
    by_owner = {"organization_id": cast.organization.pk, "action": AuditAction.USER_UPDATED}
    audit.record(
        access=audit.Operator(cast.owner.pk, "Ada at work"),
        target=audit.target_of(cast.member),
        **by_owner,
    )
    monkeypatch.setattr(selectors_audit, "ACTORS_MAX", 1)
    who = {actor.name for actor in actors_of(cast)}
    assert who == {"Bruno Keller", "the server"}
    assert {actor.name for actor in actors_of(cast, cast.owner.pk)} == {*who, "Ada at work"}
    assert len(actors_of(cast, cast.outsider.pk)) == 2
    lines = lines_of(admin.get(f"audit/?who=user:{cast.owner.pk.hex}"))
    assert [line.count("Ada") for line in lines] == [1, 1]
    assert all("the server" in line for line in lines_of(owner.get("audit/?who=server:")))


def actors_of(cast: Cast, asked: UUID | None = None) -> list[selectors_audit.AuditActor]:
    return selectors_audit.list_actors(
        access=cast.access("owner"), organization_id=cast.organization.pk, asked=asked
    )


def test_older_lines_are_loaded_page_by_page_and_none_twice(cast: Cast, desk: Desk) -> None:
    for number in range(70):
        audit.record(
            access=cast.access("owner"),
            organization_id=cast.organization.pk,
            action=AuditAction.MEMBER_ADDED,
            target=audit.Target("user", "usr_x", f"Person {number:02}"),
        )
    page, seen = desk.get("audit/?what=member.added"), []
    while True:
        seen += lines_of(page)
        older = re.search(r'href="(\?[^"]*before=[^"]*)">Load older', page)
        if older is None:
            break
        page = desk.get("audit/" + older[1].replace("&amp;", "&"))
    count = AuditEntry.objects.filter(
        organization_id=cast.organization.pk, action="member.added"
    ).count()
    assert len(seen) == count > 70
    assert len({line.split("Person")[-1] for line in seen if "Person" in line}) == 70
    for bent in ("x", "AAAA", "WyJ4Il0", "%00"):
        desk.get(f"audit/?before={bent}", 400)


def test_an_export_is_a_line_itself_and_follows_the_filters(cast: Cast, desk: Desk) -> None:
    desk.post("service-accounts/new/", name="=1+1", role="member")
    text = desk.post("audit/export/", 200, what="service_account.created")
    (head, row) = csv.reader(io.StringIO(text))
    assert tuple(head) == COLUMNS
    told = dict(zip(head, row, strict=True))
    assert told["target_name"] == "'=1+1"
    assert told["actor_id"] == cast.owner.public_id
    line = AuditEntry.objects.latest("at")
    assert line.action == AuditAction.AUDIT_EXPORTED
    assert line.changes["lines"] == [None, 1]
    assert line.changes["filters"] == [None, {"action": "service_account.created"}]
    assert "exported the audit log of Lindqvist Atlas" in lines_of(desk.get("audit/"))[0]
    assert desk.client.get(f"{desk.home}audit/export/").status_code == 405


def test_an_export_is_a_download_that_is_not_kept(desk: Desk) -> None:
    answer = desk.client.post(f"{desk.home}audit/export/")
    assert answer["content-type"] == "text/csv; charset=utf-8"
    assert answer["content-disposition"].startswith('attachment; filename="audit-')
    assert "no-store" in answer["cache-control"]
    assert answer["x-content-type-options"] == "nosniff"


def test_an_export_that_would_be_cut_is_refused(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(audit_export, "EXPORT_MAX_ROWS", 3)
    desk.post("audit/export/")
    assert "choose a shorter time" in desk.get("audit/")
    assert not AuditEntry.objects.filter(action=AuditAction.AUDIT_EXPORTED).exists()


@pytest.mark.parametrize(
    "text", ["=1", "+1", "-1", "@x", "\t=1", "\r=1", " =1", "\u00a0=1", "＝1", "|x", "%x"]
)
def test_a_cell_is_no_formula(text: str) -> None:
    assert safe_cell(text) == f"'{text}"


@pytest.mark.parametrize("text", ["", "Ada", "1=1", "a-b", "usr_1", "2026-05-01T00:00:00Z"])
def test_a_plain_cell_stays(text: str) -> None:
    assert safe_cell(text) == text
