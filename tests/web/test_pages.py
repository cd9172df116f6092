"""Who sees which page, what the forms do, and how many statements a page costs."""

from __future__ import annotations

import json
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import Any

import pytest
from django.db import connection, transaction
from django.test import Client
from django.test.utils import CaptureQueriesContext

from orgs.models import User
from orgs.roles import WorkspaceRole
from sessions_app.domain.events import Draft
from sessions_app.eventlog import append, head
from sessions_app.models import ComposerDraft, Session
from sessions_app.services import attempts
from sessions_app.web.loading import load_page
from tests.factories import PASSWORD, Cast, claim, delta, make_session, message, send

PEOPLE = ["owner", "admin", "member", "second_member", "viewer"]
JSON = {"HTTP_ACCEPT": "application/json"}


def browser(user: User | None) -> Client:
    client = Client()
    if user is not None:
        client.force_login(user)
    return client


def pages_of(cast: Cast, session: Session) -> list[str]:
    workspace = cast.workspace.public_id
    return [
        f"/w/{workspace}/",
        f"/w/{workspace}/new/",
        f"/w/{workspace}/sidebar/",
        f"/w/{workspace}/archived/",
        f"/w/{workspace}/group/today/",
        f"/s/{session.public_id}/",
        f"/s/{session.public_id}/events/2/",
        f"/s/{session.public_id}/live?after=0",
    ]


ACTS = ["send", "stop", "rename", "pin", "read", "archive", "restore", "draft"]


@pytest.mark.slow
@pytest.mark.parametrize("who", PEOPLE)
def test_those_of_the_workspace_read_every_page(cast: Cast, who: str) -> None:
    session = make_session(cast, title="Shared")
    send(cast, session)
    client = browser(getattr(cast, who))
    for path in pages_of(cast, session):
        assert client.get(path).status_code == 200, path


def test_an_outsider_gets_the_same_answer_as_for_what_never_was(cast: Cast) -> None:
    session = make_session(cast, title="Not for others")
    send(cast, session)
    client = browser(cast.outsider)
    never = client.get("/s/ses_00000000000000000000000000000000/").content
    for path in pages_of(cast, session):
        answer = client.get(path)
        assert answer.status_code == 404, path
        assert answer.content == never
    for act in ACTS:
        assert client.post(f"/s/{session.public_id}/{act}", {"text": "x"}).status_code == 404, act
    assert client.post(f"/w/{cast.workspace.public_id}/begin", {"text": "x"}).status_code == 404


def test_only_its_maker_sees_a_private_session(cast: Cast) -> None:
    organization = cast.organization
    organization.allows_private_sessions = True
    organization.save()
    session = make_session(cast, visibility="private", title="Harbour diary")
    path = f"/s/{session.public_id}/"
    assert browser(cast.member).get(path).status_code == 200
    for who in ("owner", "admin", "second_member", "viewer", "outsider"):
        client = browser(getattr(cast, who))
        assert client.get(path).status_code == 404, who
        if who != "outsider":
            listed = client.get(f"/w/{cast.workspace.public_id}/").content.decode()
            assert "Harbour diary" not in listed


def test_somebody_who_is_not_signed_in_is_sent_to_the_form_and_back(cast: Cast) -> None:
    session = make_session(cast)
    for path in pages_of(cast, session):
        answer = browser(None).get(path)
        assert answer.status_code == 302
        assert answer["Location"].startswith("/sign-in/?next=/")
    assert browser(None).post(f"/s/{session.public_id}/stop", **JSON).status_code == 401


def test_a_viewer_may_change_nothing(cast: Cast) -> None:
    session = make_session(cast)
    before = head(session.pk)
    client = browser(cast.viewer)
    for act in ("send", "stop", "rename", "archive", "restore"):
        fields = {"text": "x", "title": "x"}
        assert client.post(f"/s/{session.public_id}/{act}", fields).status_code == 403, act
    assert client.post(f"/w/{cast.workspace.public_id}/begin", {"text": "x"}).status_code == 403
    assert head(session.pk) == before


def test_forms_need_the_csrf_token(cast: Cast) -> None:
    session = make_session(cast)
    client = Client(enforce_csrf_checks=True)
    client.force_login(cast.member)
    assert client.post(f"/s/{session.public_id}/stop").status_code == 403


def test_a_first_prompt_makes_one_session_however_often_its_form_is_sent(cast: Cast) -> None:
    client = browser(cast.member)
    path = f"/w/{cast.workspace.public_id}/begin"
    answers = [client.post(path, {"text": "Begin", "key": "k1"}) for _ in range(2)]
    assert answers[0]["Location"] == answers[1]["Location"]
    assert Session.objects.count() == 1


def test_a_repeated_send_with_its_key_is_one_prompt(cast: Cast) -> None:
    session = make_session(cast)
    client = browser(cast.member)
    path = f"/s/{session.public_id}/send"
    headers: dict[str, Any] = {**JSON, "HTTP_IDEMPOTENCY_KEY": "k2"}
    first = client.post(path, {"text": "Once"}, **headers).json()
    assert client.post(path, {"text": "Once"}, **headers).json() == first
    other = client.post(path, {"text": "Another"}, **headers)
    assert other.status_code == 409
    assert other.json()["error"]["code"] == "idempotency_key_reused"
    session.refresh_from_db()
    assert session.turn_count == 1


def test_who_may_only_read_by_now_is_not_told_a_send_again(cast: Cast) -> None:
    session = make_session(cast, by="second_member")
    client = browser(cast.member)
    form = {"text": "Once", "key": "k3"}
    assert client.post(f"/s/{session.public_id}/send", form, **JSON).status_code == 200
    cast.workspace.memberships.filter(user=cast.member).update(role=WorkspaceRole.VIEWER)
    assert client.post(f"/s/{session.public_id}/send", form, **JSON).status_code == 403


def test_beginning_spends_the_draft_it_was_made_from(cast: Cast) -> None:
    client = browser(cast.member)
    path = f"/w/{cast.workspace.public_id}/"
    client.post(f"{path}draft", {"text": "Draft", "revision": "0"}, **JSON)
    client.post(f"{path}begin", {"text": "Draft", "draft_revision": "1"})
    assert ComposerDraft.objects.values_list("text", "revision").get() == ("", 2)
    client.post(f"{path}draft", {"text": "Newer", "revision": "2"}, **JSON)
    client.post(f"{path}begin", {"text": "Draft", "draft_revision": "1"})
    assert ComposerDraft.objects.get().text == "Newer"


def test_a_session_begins_also_while_another_tab_writes_its_draft(committed_cast: Cast) -> None:
    client = browser(committed_cast.member)
    path = f"/w/{committed_cast.workspace.public_id}/"
    client.post(f"{path}draft", {"text": "Draft", "revision": "0"}, **JSON)

    def begin() -> int:
        try:
            form = {"text": "Draft", "draft_revision": "1"}
            return client.post(f"{path}begin", form, **JSON).status_code
        finally:
            connection.close()

    with ThreadPoolExecutor(1) as pool:
        with transaction.atomic():
            ComposerDraft.objects.update(text="Newer", revision=2)
            answer = pool.submit(begin)
            wait_until_blocked()
        assert answer.result() == 200
    assert Session.objects.count() == 1
    assert ComposerDraft.objects.get().text == "Newer"


def wait_until_blocked() -> None:
    """Until another connection waits for a lock that this one holds."""
    # Not pg_stat_activity, which looks the same throughout a transaction.
    waiting = (
        "SELECT 1 FROM pg_locks WHERE NOT granted AND pg_backend_pid() = ANY(pg_blocking_pids(pid))"
    )
    limit = time.monotonic() + 20
    with connection.cursor() as cursor:
        while cursor.execute(waiting).fetchone() is None:
            assert time.monotonic() < limit
            time.sleep(0.01)


@pytest.mark.parametrize("text", ["", "   ", "nul \x00 inside"])
def test_bad_text_is_refused_and_nothing_is_written(cast: Cast, text: str) -> None:
    session = make_session(cast)
    before = head(session.pk)
    answer = browser(cast.member).post(f"/s/{session.public_id}/send", {"text": text}, **JSON)
    assert answer.status_code == 400
    assert head(session.pk) == before


def test_sending_spends_the_draft_it_was_made_from(cast: Cast) -> None:
    session = make_session(cast)
    client = browser(cast.member)
    path = f"/s/{session.public_id}/"
    saved = client.post(f"{path}draft", {"text": "Draft", "revision": "0"}, **JSON).json()
    assert "Draft</textarea>" in client.get(path).content.decode()
    client.post(f"{path}send", {"text": "Draft", "draft_revision": str(saved["revision"])})
    assert ComposerDraft.objects.get().text == ""


def test_a_stale_draft_is_told_the_current_one(cast: Cast) -> None:
    session = make_session(cast)
    client = browser(cast.member)
    path = f"/s/{session.public_id}/draft"
    client.post(path, {"text": "one", "revision": "0"}, **JSON)
    answer = client.post(path, {"text": "two", "revision": "0"}, **JSON)
    assert answer.status_code == 409
    assert answer.json()["error"]["details"]["current"] == {"text": "one", "revision": 1}


def test_archiving_a_working_session_is_refused_until_confirmed(cast: Cast) -> None:
    session = make_session(cast)
    send(cast, session)
    client = browser(cast.member)
    path = f"/s/{session.public_id}/archive"
    assert client.post(path, **JSON).json()["error"]["code"] == "target_working"
    assert client.post(path, {"stop": "1"}, **JSON).json()["archived"] is True
    listed = client.get(f"/w/{cast.workspace.public_id}/archived/").content.decode()
    assert session.public_id in listed


def test_a_refused_archive_says_how_many_prompts_it_would_withdraw(cast: Cast) -> None:
    session = make_session(cast)
    for text in ("One", "Two", "Three"):
        send(cast, session, text)
    claim()
    answer = browser(cast.member).post(f"/s/{session.public_id}/archive", **JSON)
    assert answer.json()["error"]["details"]["queued_prompts"] == 2


def test_what_was_seen_when_it_was_archived_is_not_unread_when_restored(cast: Cast) -> None:
    session = make_session(cast)
    send(cast, session)
    lease = claim().lease
    attempts.open_step(lease=lease, step=1)
    attempts.record(lease=lease, drafts=[message("Done.")])
    attempts.hand_over(lease=lease)
    client = browser(cast.member)
    client.post(f"/s/{session.public_id}/stop")
    rows = f"/w/{cast.workspace.public_id}/sidebar/"
    for fields, is_unread in (({}, True), ({"seen": head(session.pk)}, False)):
        assert "is-unread" in client.get(rows).content.decode()
        client.post(f"/s/{session.public_id}/archive", fields)
        client.post(f"/s/{session.public_id}/restore")
        assert ("is-unread" in client.get(rows).content.decode()) is is_unread


def test_a_row_tells_the_newest_words_without_their_marks(cast: Cast) -> None:
    session = make_session(cast, title="Marked")
    send(cast, session, "Press *Send*, then **wait** for `done`")
    page = browser(cast.member).get(f"/w/{cast.workspace.public_id}/").content.decode()
    assert "Press Send, then wait for done" in page


def test_the_menu_marks_the_workspace_that_is_open(cast: Cast) -> None:
    page = browser(cast.member).get(f"/w/{cast.workspace.public_id}/").content.decode()
    here = f'class="menu-item" href="/w/{cast.workspace.public_id}/" aria-current="true"'
    assert page.count('aria-current="true"') == page.count(here) == 1


def test_hostile_titles_prompts_and_names_stay_text(cast: Cast) -> None:
    attack = '"><img src=x onerror=alert(1)><script>alert(1)</script>'
    session = make_session(cast, title=attack)
    send(cast, session, attack)
    cast.member.name = attack[:100]
    cast.member.save()
    page = browser(cast.member).get(f"/s/{session.public_id}/").content.decode()
    assert "<img" not in page
    assert "<script>" not in page
    assert page.count("<script") == 1


def test_pages_forbid_inline_scripts_and_foreign_sources(cast: Cast) -> None:
    answer = browser(cast.member).get(f"/w/{cast.workspace.public_id}/")
    policy = answer["Content-Security-Policy"]
    assert "script-src 'self'" in policy
    assert "unsafe" not in policy
    assert " style=" not in answer.content.decode()


def test_nonsense_in_addresses_is_not_found(cast: Cast) -> None:
    client = browser(cast.member)
    session = make_session(cast)
    workspace = cast.workspace.public_id
    for path in ("/s/x/", "/w/x/", "/s/ses_1/", "/w/ses_1/", f"/w/{workspace}/group/nonsense/"):
        assert client.get(path).status_code == 404, path
    assert client.get(f"/w/{workspace}/group/today/?cursor=%00").status_code == 400
    assert client.get(f"/s/{session.public_id}/?before=x").status_code == 200
    assert client.get(f"/s/{session.public_id}/live?after=x").status_code == 400


def test_a_zone_that_does_not_exist_is_read_as_utc(cast: Cast) -> None:
    client = browser(cast.member)
    client.cookies["zone"] = "../../etc/passwd"
    assert client.get(f"/w/{cast.workspace.public_id}/").status_code == 200


def long_session(cast: Cast, turns: int) -> Session:
    session = make_session(cast, title="Long")
    message = {"type": "text", "text": "Some words of an answer, as they come. " * 12}
    model = {"provider_id": "demo", "model_id": "assistant"}
    drafts = []
    for number in range(turns):
        delta = {"message_id": f"msg_{number}", "text": "Some words "}
        drafts += [
            Draft("step.checkpoint", {"step": 1, "directory": None, "model": model}),
            *[Draft("agent.message_delta", delta) for _ in range(8)],
            Draft(
                "agent.message",
                {"message_id": f"msg_{number}", "content": [message], "model": model},
            ),
        ]
    append(session_id=session.pk, drafts=drafts)
    return session


@pytest.mark.slow
def test_the_first_screen_of_ten_thousand_events_is_small_and_costs_few_statements(
    cast: Cast,
) -> None:
    session = long_session(cast, 1_000)
    for _ in range(30):
        make_session(cast, title="Another in the list")
    client = browser(cast.member)
    path = f"/s/{session.public_id}/"
    with CaptureQueriesContext(connection) as statements:
        page = client.get(path)
    assert head(session.pk) > 10_000
    assert len(page.content) < 150_000
    assert b"Load earlier" in page.content
    assert len(statements) <= 22
    short = make_session(cast, title="Short")
    with CaptureQueriesContext(connection) as fewer:
        client.get(f"/s/{short.public_id}/")
    assert len(statements) - len(fewer) <= 2


def test_load_earlier_leads_through_all_of_it_without_gaps(cast: Cast) -> None:
    session = long_session(cast, 150)
    client = browser(cast.member)
    seen: list[str] = []
    path = f"/s/{session.public_id}/"
    while True:
        page = client.get(path, headers={"X-Fragment": "1"}).content.decode()
        keys = [part.split('"')[0] for part in page.split('data-key="')[1:]]
        seen = [*keys, *seen]
        if "data-load-earlier" not in page:
            break
        path = page.split('class="button is-small is-quiet" href="')[1].split('"')[0]
    assert seen == [f"msg_{number}" for number in range(150)]


def test_a_session_without_a_title_shows_its_first_words_and_else_its_id(cast: Cast) -> None:
    session = make_session(cast)
    client = browser(cast.member)
    path = f"/s/{session.public_id}/"
    assert f"<title>{session.public_id}" in client.get(path).content.decode()
    send(cast, session, "The first words")
    send(cast, session, "Others, later")
    assert "<title>The first words · Sederunt" in client.get(path).content.decode()
    listed = client.get(f"/w/{cast.workspace.public_id}/").content.decode()
    assert '<span class="row-title" dir="auto">The first words</span>' in listed


@pytest.mark.slow
def test_a_group_says_how_many_of_how_many_and_goes_on(cast: Cast) -> None:
    made = [make_session(cast, title=f"Session {number}").public_id for number in range(45)]
    client = browser(cast.member)
    page = client.get(f"/w/{cast.workspace.public_id}/").content.decode()
    assert "<span data-shown>10</span> of <span data-of>45</span>" in page
    seen = [i for i in made if f'data-key="{i}"' in page]
    while "data-load-older" in page:
        path = page.split('data-older><a href="')[1].split('"')[0]
        page = client.get(path, headers={"X-Fragment": "1"}).content.decode()
        seen += [i for i in made if f'data-key="{i}"' in page]
    assert sorted(seen) == sorted(made)


def test_patches_bring_a_page_to_where_a_reload_would_be(cast: Cast) -> None:
    session = make_session(cast)
    client = browser(cast.member)
    send(cast, session, "Go")
    answer = client.get(f"/s/{session.public_id}/live?after=1", **JSON).json()
    put = next(patch for patch in answer["patches"] if patch["op"] == "put")
    page = client.get(f"/s/{session.public_id}/").content.decode()
    markup = put["html"].replace("\n", "")
    assert markup in page.replace("\n", "")
    assert answer["seq"] == head(session.pk)
    json.dumps(answer)


def test_signing_in_and_out(cast: Cast) -> None:
    client = Client()
    form = {"email": cast.member.email.upper(), "password": PASSWORD, "next": "https://evil.test/"}
    answer = client.post("/sign-in/", form)
    assert (answer.status_code, answer["Location"]) == (302, "/")
    assert client.get("/")["Location"] == f"/w/{cast.workspace.public_id}/"
    assert client.get("/sign-out/").status_code == 405
    assert client.post("/sign-out/")["Location"] == "/sign-in/"
    assert client.get("/")["Location"].startswith("/sign-in/")


def test_who_has_no_workspace_is_told_so_and_an_operator_where_to_go(cast: Cast) -> None:
    nobody = User.objects.create_user(email="nobody@test", name="Nobody", password=PASSWORD)
    answer = browser(nobody).get("/")
    assert answer.status_code == 200
    assert "No workspace yet" in answer.content.decode()
    assert "/admin/" not in answer.content.decode()
    User.objects.filter(pk=nobody.pk).update(is_staff=True)
    assert 'href="/admin/"' in browser(nobody).get("/").content.decode()


def test_wrong_passwords_are_counted_and_right_ones_are_not(cast: Cast) -> None:
    client = Client(REMOTE_ADDR="203.0.113.9")
    right = {"email": cast.viewer.email, "password": PASSWORD}
    for _ in range(12):
        assert client.post("/sign-in/", right).status_code == 302
    wrong = {**right, "password": "no"}
    answers = [client.post("/sign-in/", wrong) for _ in range(9)]
    assert [answer.status_code for answer in answers] == [401] * 8 + [429]
    assert "do not belong together" in answers[0].content.decode()
    assert int(answers[-1]["Retry-After"]) > 0


def test_every_time_on_the_page_is_told_in_the_readers_zone(cast: Cast) -> None:
    session = make_session(cast)
    Session.objects.filter(pk=session.pk).update(
        created_at=datetime(2026, 5, 1, 22, 30, tzinfo=UTC)
    )
    client = browser(cast.member)
    client.cookies["zone"] = "Pacific%2FAuckland"  # as the page's script writes it
    page = client.get(f"/s/{session.public_id}/").content.decode()
    assert "2 May 2026, 10:30" in page
    assert "1 May 2026, 22:30" not in page


def test_the_text_of_a_broken_attempt_is_whole_after_a_reload(cast: Cast) -> None:
    session = make_session(cast)
    send(cast, session)
    lease = claim().lease
    attempts.open_step(lease=lease, step=1)
    attempts.record(lease=lease, drafts=[delta(f"{n} ") for n in range(2_500)])
    attempts.hand_over(lease=lease)
    attempts.open_step(lease=claim().lease, step=1)
    session.refresh_from_db()
    items = load_page(session=session).transcript.items
    (broken,) = [item for item in items if item.type == "agent.message"]
    assert broken.text == "".join(f"{n} " for n in range(2_500))
    assert broken.is_abandoned


@pytest.mark.slow
def test_the_badge_of_each_session_says_what_the_api_says(cast: Cast) -> None:
    """BR-063: whichever of them was looked at before."""
    running, idle = make_session(cast), make_session(cast)
    send(cast, running)
    claim()
    person = browser(cast.member)
    for session in [running, idle] * 25:
        page = person.get(f"/s/{session.public_id}/").content.decode()
        told = person.get(f"/v1/sessions/{session.public_id}").json()
        assert (told["id"], told["status"]) == (
            session.public_id,
            "running" if session is running else "idle",
        )
        badge = page.split('data-region="state"')[1].split("data-region=")[0]
        assert ('class="state is-working"' in badge) is (told["status"] == "running")
