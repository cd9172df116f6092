from __future__ import annotations

import time
from typing import Any
from uuid import UUID, uuid4

import orjson
import psycopg
import pytest

from core import bus
from core.bus import bell
from core.db import in_db_thread
from core.ids import encode_id
from orgs.models import Login
from orgs.services.epochs import bump_access_epoch
from orgs.services.keys import revoke_api_key
from sessions_app.domain.vocabulary import Visibility
from sessions_app.services.archiving import archive_session, delete_session
from sessions_app.services.cancelling import cancel_session
from sessions_app.services.composer_drafts import save_draft
from sessions_app.services.personal import set_pinned
from sessions_app.streaming import rendering
from sessions_app.streaming.hub import Hub
from sessions_app.streaming.metrics import sockets_open, subscriptions_open
from sessions_app.streaming.socket import SUBSCRIPTIONS_MAX
from tests.factories import Cast, make_session, send
from tests.services.test_children import allow_private
from tests.services.test_waits import Asking
from tests.streaming.helpers import Tab, sign_in, until, whole_log, write_async
from tests.web.test_children import Family

ORIGIN = {"host": "localhost:8000", "origin": "http://localhost:8000"}


async def tab_of(cast: Cast, name: str = "member") -> Tab:
    """A signed-in person's tab, or a product's with one of the cast's keys."""
    actor = getattr(cast, name)
    if hasattr(actor, "secret"):
        tab = Tab({"host": "localhost:8000", "authorization": f"Bearer {actor.secret}"})
    else:
        tab = Tab({**ORIGIN, "cookie": await in_db_thread(sign_in, actor)})
    await tab.open()
    return tab


async def refused(headers: dict[str, str], path: str = "/v1/ws") -> tuple[int, str]:
    tab = Tab(headers, path)
    await tab.open()
    await tab.until(lambda: tab.close_code is not None)
    codes = [frame["code"] for frame in tab.frames]
    await tab.close()
    return int(tab.close_code or 0), "".join(codes)


# ── Who may open it ──


async def test_a_stranger_is_accepted_and_then_told_4401(committed_cast: Cast, hub: Hub) -> None:
    assert await refused(dict(ORIGIN)) == (4401, "unauthenticated")
    assert await refused({"host": "localhost:8000"}) == (4401, "unauthenticated")
    assert await refused({**ORIGIN, "cookie": "sederunt_login=nonsense"}) == (
        4401,
        "unauthenticated",
    )


@pytest.mark.parametrize(
    "origin",
    [
        None,
        "",
        "null",
        "https://evil.example",
        "http://localhost:8000.evil.example",
        "http://localhost",
        "https://localhost:8000",
        "http://LOCALHOST:8000/",
    ],
)
async def test_a_login_from_another_origin_is_told_4403(
    committed_cast: Cast, hub: Hub, origin: str | None
) -> None:
    headers = {
        "host": "localhost:8000",
        "cookie": await in_db_thread(sign_in, committed_cast.member),
    }
    if origin is not None:
        headers["origin"] = origin
    assert await refused(headers) == (4403, "origin_not_allowed")


async def test_a_host_that_is_not_ours_makes_no_origin_right(
    committed_cast: Cast, hub: Hub
) -> None:
    cookie = await in_db_thread(sign_in, committed_cast.member)
    headers = {"host": "evil.example", "origin": "http://evil.example", "cookie": cookie}
    assert await refused(headers) == (4403, "origin_not_allowed")


async def test_a_trusted_origin_may_be_another_host(
    committed_cast: Cast, hub: Hub, settings: Any
) -> None:
    settings.CSRF_TRUSTED_ORIGINS = ["https://notes.example"]
    cookie = await in_db_thread(sign_in, committed_cast.member)
    tab = Tab({"host": "localhost", "origin": "https://notes.example", "cookie": cookie})
    await tab.open()
    await tab.say("ping")
    await tab.until_told("pong")
    await tab.close()


@pytest.mark.parametrize("header", ["authorization", "x-api-key"])
async def test_a_key_needs_no_origin_and_minds_none(
    committed_cast: Cast, hub: Hub, header: str
) -> None:
    secret = committed_cast.read_only_key.secret
    value = f"Bearer {secret}" if header == "authorization" else secret
    for more in ({}, {"origin": "https://product.example"}):
        tab = Tab({"host": "localhost", header: value, **more})
        await tab.open()
        await tab.say("ping")
        await tab.until_told("pong")
        await tab.close()


@pytest.mark.parametrize(
    "value", ["Bearer sed_w_00000000_nothing", "Bearer ", "Basic abc", "Bearer \x7f", "x" * 5_000]
)
async def test_a_wrong_key_is_told_4401_even_with_a_good_cookie(
    committed_cast: Cast, hub: Hub, value: str
) -> None:
    cookie = await in_db_thread(sign_in, committed_cast.member)
    code, _ = await refused({**ORIGIN, "cookie": cookie, "authorization": value})
    assert code == 4401


async def test_another_path_is_told_4404(hub: Hub) -> None:
    assert await refused({"host": "localhost"}, "/v1/other") == (4404, "")


# ── Following sessions ──


async def test_a_tab_follows_several_sessions_with_the_very_text_of_the_log(
    committed_cast: Cast, hub: Hub
) -> None:
    first = await in_db_thread(make_session, committed_cast)
    second = await in_db_thread(make_session, committed_cast)
    await write_async(first.pk, *"abc")
    tab = await tab_of(committed_cast)
    await tab.say("subscribe", session=first.public_id, after=0)
    await tab.say("subscribe", session=second.public_id, after=1)
    await tab.until_told("caught_up", session=first.public_id)
    await tab.until_told("caught_up", session=second.public_id)
    await write_async(first.pk, "d")
    head = await write_async(second.pk, "e", "f")
    await tab.until_told("event", session=second.public_id, seq=head)
    await tab.until(lambda: len(tab.told("event", session=first.public_id)) == 5)
    log = await in_db_thread(whole_log, first.pk)
    told = [frame["event"] for frame in tab.told("event", session=first.public_id)]
    assert told == [event.data for event in log]
    seqs = [frame["seq"] for frame in tab.told("event", session=second.public_id)]
    assert seqs == list(range(2, head + 1))
    ready = tab.told("ready", session=second.public_id)[0]
    assert (ready["after"], ready["filtered"]) == (1, False)
    await tab.close()


async def test_subscribing_again_begins_anew_and_unsubscribing_ends(
    committed_cast: Cast, hub: Hub
) -> None:
    session = await in_db_thread(make_session, committed_cast)
    head = await write_async(session.pk, "a")
    tab = await tab_of(committed_cast)
    for _ in range(3):
        tab.frames.clear()
        await tab.say("subscribe", session=session.public_id, after=0)
        await tab.until_told("caught_up")
        assert [frame["seq"] for frame in tab.told("event")] == list(range(1, head + 1))
    assert subscriptions_open._value.get() == 1
    await tab.say("unsubscribe", session=session.public_id)
    await until(lambda: not hub._tracks)
    tab.frames.clear()
    await write_async(session.pk, "b")
    await tab.say("ping")
    await tab.until_told("pong")
    assert not tab.told("event")
    await tab.close()
    assert sockets_open._value.get() == 0


async def test_what_cannot_be_followed_is_told_and_the_socket_stays(
    committed_cast: Cast, hub: Hub
) -> None:
    session = await in_db_thread(make_session, committed_cast)
    hidden = await in_db_thread(
        make_session,
        committed_cast,
        by="outsider",
        workspace_id=committed_cast.other_workspace.pk,
    )
    tab = await tab_of(committed_cast)
    never = encode_id("ses", uuid4())
    for session_id in (hidden.public_id, never):
        await tab.say("subscribe", session=session_id, after=0)
        problem = await tab.until_told("error", session=session_id)
        assert {**problem, "session": ""} == {
            "type": "error",
            "code": "not_found",
            "message": "There is nothing here that you may see.",
            "param": None,
            "details": {},
            "session": "",
        }
    await tab.say("subscribe", session=session.public_id, after=999)
    problem = await tab.until_told("error", code="cursor_ahead")
    assert (problem["param"], problem["details"]) == ("after", {"head": 1})
    await tab.say("subscribe", session=session.public_id, after=0)
    await tab.until_told("caught_up")
    await tab.close()


async def test_a_deleted_session_ends_its_subscription_alone(
    committed_cast: Cast, hub: Hub
) -> None:
    session = await in_db_thread(make_session, committed_cast)
    tab = await tab_of(committed_cast)
    await tab.say("subscribe", session=session.public_id, after=0)
    await tab.until_told("caught_up")
    access = await in_db_thread(committed_cast.access, "owner")
    await in_db_thread(delete_session, access=access, session_id=session.pk)
    await tab.until_told("error", seconds=3, code="session_deleted", session=session.public_id)
    await tab.say("ping")
    await tab.until_told("pong")
    await tab.close()


async def test_a_revoked_key_is_told_4401_within_two_seconds(
    committed_cast: Cast, hub: Hub
) -> None:
    session = await in_db_thread(make_session, committed_cast)
    tab = await tab_of(committed_cast, "workspace_key")
    await tab.say("subscribe", session=session.public_id, after=0)
    await tab.until_told("caught_up")
    started = time.monotonic()
    await in_db_thread(revoke_api_key, key=committed_cast.workspace_key.row)
    await tab.until(lambda: tab.close_code == 4401)
    assert time.monotonic() - started < 2
    await tab.close()


@pytest.mark.parametrize("change", ["password", "inactive", "sign_out"])
async def test_a_login_that_ends_closes_its_sockets(
    committed_cast: Cast, hub: Hub, change: str
) -> None:
    tab = await tab_of(committed_cast)
    await tab.say("ping")
    await tab.until_told("pong")
    await in_db_thread(_end_login, committed_cast, change)
    await tab.until(lambda: tab.close_code == 4401, seconds=2)
    await tab.close()


def _end_login(cast: Cast, change: str) -> None:
    if change == "password":
        cast.member.set_password("another long password")
        cast.member.save()
    elif change == "inactive":
        cast.member.is_active = False
        cast.member.save()
    else:
        Login.objects.all().delete()
        return
    bump_access_epoch(organization_id=cast.organization.pk)


async def test_stopping_the_server_is_told_as_a_restart(committed_cast: Cast, hub: Hub) -> None:
    tab = await tab_of(committed_cast)
    await tab.say("ping")
    await tab.until_told("pong")
    hub.drain()
    await tab.until(lambda: tab.close_code == 1012, seconds=1)
    await tab.close()


# ── Hostile messages ──


@pytest.mark.parametrize(
    ("text", "code", "param"),
    [
        (" ", "invalid_json", None),
        ("{", "invalid_json", None),
        ("nan", "invalid_json", None),
        ('"\\ud800"', "invalid_json", None),
        ("[" * 5_000, "invalid_json", None),
        ("[]", "invalid_message", None),
        ("null", "invalid_message", None),
        ("7", "invalid_message", None),
        ("{}", "unknown_message", "type"),
        ('{"type":null}', "unknown_message", "type"),
        ('{"type":["subscribe"]}', "unknown_message", "type"),
        ('{"type":"drop\\u0000table"}', "unknown_message", "type"),
        ('{"type":"ping","more":1}', "unknown_field", "more"),
        ('{"type":"subscribe"}', "invalid_id", "session"),
        ('{"type":"subscribe","session":5}', "invalid_id", "session"),
        ('{"type":"subscribe","session":"ses_\\u0000"}', "invalid_id", "session"),
        ('{"type":"subscribe","session":"ses_%s"}' % ("0" * 31 + "G"), "invalid_id", "session"),
        ('{"type":"subscribe","session":"ses_%s","after":"x"}', "invalid_position", "after"),
        ('{"type":"subscribe","session":"ses_%s","after":-1}', "invalid_position", "after"),
        ('{"type":"subscribe","session":"ses_%s","after":1.5}', "invalid_position", "after"),
        ('{"type":"subscribe","session":"ses_%s","after":true}', "invalid_position", "after"),
        ('{"type":"subscribe","session":"ses_%s","after":1e99}', "invalid_position", "after"),
        ('{"type":"subscribe","session":"ses_%s","as":"xml"}', "invalid_value", "as"),
        ('{"type":"subscribe","session":"ses_%s","as":[]}', "invalid_value", "as"),
        ('{"type":"subscribe","session":"ses_%s","types":"a"}', "invalid_value", "types"),
        ('{"type":"subscribe","session":"ses_%s","types":[1]}', "unknown_event_type", "types[0]"),
        ('{"type":"unsubscribe","workspace":"x"}', "invalid_id", "workspace"),
        ('{"type":"sidebar","workspace":{}}', "invalid_id", "workspace"),
        ('{"type":"focus","session":"wrk_1"}', "invalid_id", "session"),
    ],
)
async def test_nonsense_is_an_error_with_its_path_and_the_socket_stays(
    committed_cast: Cast, hub: Hub, text: str, code: str, param: str | None
) -> None:
    tab = await tab_of(committed_cast)
    await tab.say_raw(text.replace("%s", "0" * 32))
    problem = await tab.until_told("error")
    assert (problem["code"], problem["param"]) == (code, param)
    await tab.say("ping")
    await tab.until_told("pong")
    await tab.close()


async def test_bytes_are_refused(committed_cast: Cast, hub: Hub) -> None:
    tab = await tab_of(committed_cast)
    await tab.say_bytes(b"\x00\xff")
    assert (await tab.until_told("error"))["code"] == "invalid_message"
    await tab.close()


async def test_a_message_that_is_too_large_closes_with_4400(committed_cast: Cast, hub: Hub) -> None:
    tab = await tab_of(committed_cast)
    await tab.say_raw(orjson.dumps({"type": "ping", "x": "é" * 32_768}).decode())
    await tab.until(lambda: tab.close_code == 4400)
    assert tab.told("error", code="message_too_large")
    await tab.close()


async def test_a_flood_of_messages_closes_with_4429(committed_cast: Cast, hub: Hub) -> None:
    tab = await tab_of(committed_cast)
    for _ in range(200):
        await tab.say("ping")
    await tab.until(lambda: tab.close_code == 4429)
    assert 80 <= len(tab.told("pong")) <= 120
    await tab.close()


async def test_subscriptions_are_bounded(committed_cast: Cast, hub: Hub) -> None:
    sessions = [
        await in_db_thread(make_session, committed_cast) for _ in range(SUBSCRIPTIONS_MAX + 1)
    ]
    tab = await tab_of(committed_cast)
    for session in sessions:
        await tab.say("subscribe", session=session.public_id, after=0)
    assert (await tab.until_told("error"))["code"] == "too_many_subscriptions"
    await tab.until(lambda: len(tab.told("caught_up")) == SUBSCRIPTIONS_MAX)
    await tab.close()


# ── The sidebar ──


async def test_rows_follow_what_happens_and_each_tells_its_seq(
    committed_cast: Cast, hub: Hub
) -> None:
    workspace = committed_cast.workspace.public_id
    tab = await tab_of(committed_cast)
    await tab.say("sidebar", workspace=workspace)
    await tab.until_told("ready", workspace=workspace)
    session = await in_db_thread(make_session, committed_cast, title="Tide tables")
    created = await _row(tab, session.public_id)
    assert created["title"] == "Tide tables"
    tab.frames.clear()
    await in_db_thread(send, committed_cast, session, "When is high water?")
    row = await _row(tab, session.public_id)
    assert row["preview_text"] == "When is high water?"
    assert row["seq"] > created["seq"]
    tab.frames.clear()
    access = await in_db_thread(committed_cast.access, "member")
    await in_db_thread(set_pinned, access=access, session_id=session.pk, pinned=True)
    assert (await _row(tab, session.public_id))["pinned"]
    tab.frames.clear()
    owner = await in_db_thread(committed_cast.access, "owner")
    await in_db_thread(archive_session, access=owner, session_id=session.pk, stop=True)
    frame = await tab.until_told("sidebar")
    assert (frame["rows"], frame["removed"]) == ([], [session.public_id])
    await tab.close()


async def _row(tab: Tab, session_id: str) -> dict[str, Any]:
    def rows() -> list[dict[str, Any]]:
        return [
            row for frame in tab.told("sidebar") for row in frame["rows"] if row["id"] == session_id
        ]

    await tab.until(rows, seconds=3)
    return rows()[-1]


async def test_deltas_alone_move_no_rows(committed_cast: Cast, hub: Hub) -> None:
    session = await in_db_thread(make_session, committed_cast)
    tab = await tab_of(committed_cast)
    await tab.say("sidebar", workspace=committed_cast.workspace.public_id)
    await tab.say("subscribe", session=session.public_id, after=0)
    await tab.until_told("caught_up")
    tab.frames.clear()
    head = await write_async(session.pk, *"abcdef")
    await tab.until_told("event", seq=head)
    assert not tab.told("sidebar")
    await tab.close()


async def test_a_workspace_that_one_may_not_read_does_not_exist(
    committed_cast: Cast, hub: Hub
) -> None:
    tab = await tab_of(committed_cast)
    for workspace in (committed_cast.other_workspace.public_id, encode_id("wrk", uuid4())):
        await tab.say("sidebar", workspace=workspace)
        problem = await tab.until_told("error", workspace=workspace)
        assert problem["code"] == "not_found"
    await in_db_thread(
        make_session,
        committed_cast,
        by="outsider",
        workspace_id=committed_cast.other_workspace.pk,
    )
    await tab.say("ping")
    await tab.until_told("pong")
    assert not tab.told("sidebar")
    await tab.close()


async def test_a_private_session_is_in_nobody_elses_sidebar(committed_cast: Cast, hub: Hub) -> None:
    workspace = committed_cast.workspace.public_id
    await in_db_thread(_allow_private, committed_cast)
    own, other = await tab_of(committed_cast), await tab_of(committed_cast, "owner")
    for tab in (own, other):
        await tab.say("sidebar", workspace=workspace)
        await tab.until_told("ready", workspace=workspace)
    session = await in_db_thread(make_session, committed_cast, visibility="private")
    await _row(own, session.public_id)
    access = await in_db_thread(committed_cast.access, "member")
    await in_db_thread(archive_session, access=access, session_id=session.pk)
    await own.until_told("sidebar", rows=[], removed=[session.public_id])
    await in_db_thread(delete_session, access=access, session_id=session.pk)
    shared = await in_db_thread(make_session, committed_cast)
    await _row(other, shared.public_id)
    rows = [row["id"] for frame in other.told("sidebar") for row in frame["rows"]]
    assert session.public_id not in rows
    assert not [frame for frame in other.told("sidebar") if session.public_id in frame["removed"]]
    await own.close()
    await other.close()


async def test_the_end_of_a_private_session_is_told_to_its_maker_alone(
    committed_cast: Cast, hub: Hub
) -> None:
    await in_db_thread(_allow_private, committed_cast)
    old = await in_db_thread(make_session, committed_cast, visibility="private")
    own, other = await tab_of(committed_cast), await tab_of(committed_cast, "owner")
    for tab in (own, other):
        await tab.say("sidebar", workspace=committed_cast.workspace.public_id)
        await tab.until_told("ready")
    busy = await in_db_thread(make_session, committed_cast, visibility="private")
    await in_db_thread(send, committed_cast, busy)
    await _row(own, busy.public_id)
    # The poll has seen both, and sees them go without a hint.
    seen = {old.pk, busy.pk}
    await until(lambda: seen <= _polled(hub, committed_cast), 5)
    access = await in_db_thread(committed_cast.access, "member")
    await in_db_thread(delete_session, access=access, session_id=old.pk)
    await in_db_thread(delete_session, access=access, session_id=busy.pk, stop=True)

    def removed(tab: Tab) -> set[str]:
        return {each for frame in tab.told("sidebar") for each in frame["removed"]}

    await own.until(lambda: removed(own) == {old.public_id, busy.public_id}, seconds=5)
    shared = await in_db_thread(make_session, committed_cast)
    await _row(other, shared.public_id)
    assert removed(other) == set()
    await own.close()
    await other.close()


def _polled(hub: Hub, cast: Cast) -> set[UUID]:
    window = hub._row_states.get(cast.workspace.pk)
    return set(window.rows) if window else set()


def _allow_private(cast: Cast) -> None:
    cast.organization.allows_private_sessions = True
    cast.organization.save()


async def test_a_deleted_session_leaves_every_sidebar(committed_cast: Cast, hub: Hub) -> None:
    session = await in_db_thread(make_session, committed_cast)
    tab = await tab_of(committed_cast, "viewer")
    await tab.say("sidebar", workspace=committed_cast.workspace.public_id)
    await tab.until_told("ready")
    access = await in_db_thread(committed_cast.access, "member")
    await in_db_thread(delete_session, access=access, session_id=session.pk)
    await tab.until_told("sidebar", rows=[], removed=[session.public_id])
    await tab.close()


async def test_rows_are_told_without_any_hint_within_the_poll(
    committed_cast: Cast, hub: Hub, settings: Any
) -> None:
    settings.DATABASE_DIRECT_URL = "postgresql://nobody@127.0.0.1:9/none"
    old = await in_db_thread(make_session, committed_cast)
    tab = await tab_of(committed_cast)
    await tab.say("sidebar", workspace=committed_cast.workspace.public_id)
    await tab.until_told("ready")
    await until(lambda: hub._row_states, 3)
    session = await in_db_thread(make_session, committed_cast)
    await _row(tab, session.public_id)
    access = await in_db_thread(committed_cast.access, "member")
    await in_db_thread(delete_session, access=access, session_id=old.pk)
    await tab.until_told("sidebar", seconds=3, rows=[], removed=[old.public_id])
    bus.close(0.1)
    bell._bell.forget()
    await tab.close()


async def test_who_leaves_a_workspace_loses_its_sidebar_and_its_sessions(
    committed_cast: Cast, hub: Hub
) -> None:
    workspace = committed_cast.workspace.public_id
    session = await in_db_thread(make_session, committed_cast)
    tab = await tab_of(committed_cast, "viewer")
    await tab.say("sidebar", workspace=workspace)
    await tab.say("subscribe", session=session.public_id, after=0)
    await tab.until_told("caught_up")
    await in_db_thread(_leave, committed_cast)
    await tab.until_told("error", seconds=2, code="not_found", workspace=workspace)
    await tab.until_told("error", seconds=2, code="not_found", session=session.public_id)
    tab.frames.clear()
    await in_db_thread(make_session, committed_cast)
    await write_async(session.pk, "unseen")
    await tab.say("ping")
    await tab.until_told("pong")
    assert [frame["type"] for frame in tab.frames] == ["pong"]
    await tab.close()


def _leave(cast: Cast) -> None:
    cast.workspace.memberships.filter(user=cast.viewer).delete()
    bump_access_epoch(organization_id=cast.organization.pk)


async def test_after_a_deaf_time_the_sidebar_is_read_again(
    committed_cast: Cast, hub: Hub, postgres_bus: str
) -> None:
    tab = await tab_of(committed_cast)
    await tab.say("sidebar", workspace=committed_cast.workspace.public_id)
    await tab.until_told("ready")
    await until(lambda: hub.hears_the_bus)
    tab.frames.clear()
    with psycopg.connect(postgres_bus, autocommit=True) as operator:
        operator.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE application_name = 'sederunt listener' AND datname = current_database()"
        )
    await tab.until_told("resync", workspace=committed_cast.workspace.public_id)
    await tab.close()


async def test_a_client_that_comes_back_reads_its_list_again(
    committed_cast: Cast, hub: Hub
) -> None:
    workspace = committed_cast.workspace.public_id
    tab = await tab_of(committed_cast)
    await tab.say("sidebar", workspace=workspace, cursor="old")
    await tab.until_told("resync", workspace=workspace)
    await tab.close()


# ── HTML ──


class Loud:
    def __init__(self, session: Any, access: Any, after: int) -> None:
        self.access = access
        self._after = after

    def render_all(self, events: Any) -> list[Any]:
        return [{"patches": [f"<p>{event.seq}</p>"]} for event in events]


async def test_frames_carry_the_markup_that_is_plugged_in(committed_cast: Cast, hub: Hub) -> None:
    session = await in_db_thread(make_session, committed_cast)
    rendering.plug(make_event_renderer=Loud, render_row=lambda row, _: f"<li>{row.pk}</li>")
    try:
        tab = await tab_of(committed_cast)
        await tab.say("sidebar", workspace=committed_cast.workspace.public_id)
        await tab.say("subscribe", session=session.public_id, after=0, **{"as": "html"})
        frame = await tab.until_told("event", seq=1)
        assert frame["html"] == {"patches": ["<p>1</p>"]}
        assert frame["event"]["type"] == "session.created"
        await in_db_thread(send, committed_cast, session)
        assert (await _row(tab, session.public_id))["html"] == f"<li>{session.pk}</li>"
        await tab.close()
    finally:
        rendering.unplug()


async def test_without_markup_html_is_refused(committed_cast: Cast, hub: Hub) -> None:
    session = await in_db_thread(make_session, committed_cast)
    tab = await tab_of(committed_cast)
    await tab.say("subscribe", session=session.public_id, **{"as": "html"})
    assert (await tab.until_told("error"))["param"] == "as"
    await tab.close()


# ── Drafts ──


async def test_a_draft_is_told_to_its_writers_tabs_and_to_nobody_else(
    committed_cast: Cast, hub: Hub, postgres_bus: str
) -> None:
    session = await in_db_thread(make_session, committed_cast)
    names = ("member", "member", "second_member", "workspace_key")
    desk, phone, *others = [await tab_of(committed_cast, name) for name in names]

    def save(text: str, expected_revision: int) -> None:
        save_draft(
            access=committed_cast.access("member"),
            workspace_id=session.workspace_id,
            session_id=session.pk,
            text=text,
            expected_revision=expected_revision,
        )

    await until(lambda: len(hub.open_viewers) == 4, 5)
    assert await hub.hears_the_bus_within(5)
    await in_db_thread(save, "half a thought", 0)
    told = {"type": "draft", "session": session.public_id, "revision": 1}
    await desk.until(lambda: told in desk.frames)
    await phone.until(lambda: told in phone.frames)
    for other in others:
        await other.say("ping")
        await other.until(lambda other=other: {"type": "pong"} in other.frames)
        assert [frame["type"] for frame in other.frames] == ["pong"]
    for tab in (desk, phone, *others):
        await tab.close()


# ── The inbox ──


async def test_who_may_decide_is_told_that_something_waits_wherever_they_look(
    committed_cast: Cast, hub: Hub, postgres_bus: str
) -> None:
    """Without a sidebar of that workspace; who may not decide hears nothing."""
    asking = await in_db_thread(Asking, committed_cast)
    names = ("member", "workspace_key", "viewer", "outsider")
    member, key, viewer, outsider = [await tab_of(committed_cast, name) for name in names]
    await until(lambda: len(hub.open_viewers) == 4, 5)
    assert await hub.hears_the_bus_within(5)
    await in_db_thread(asking.approval)
    for tab in (member, key):
        await tab.until(lambda tab=tab: {"type": "inbox"} in tab.frames)
    for tab in (viewer, outsider):
        await hears_nothing(tab)
    for tab in (member, key, viewer, outsider):
        await tab.close()


async def hears_nothing(tab: Tab) -> None:
    """Whatever rang before was told before the answer to this."""
    await tab.say("ping")
    await tab.until(lambda: {"type": "pong"} in tab.frames)
    assert [frame["type"] for frame in tab.frames] == ["pong"]


async def test_of_what_waits_in_a_private_session_its_maker_alone_is_told(
    committed_cast: Cast, hub: Hub, postgres_bus: str
) -> None:
    """Asked, decided and cancelled: when a private session is at work is as private as it is."""

    def private() -> Asking:
        allow_private(committed_cast)
        own = make_session(committed_cast, visibility=Visibility.PRIVATE)
        return Asking(committed_cast, own)

    asking = await in_db_thread(private)
    names = ("member", "second_member", "owner", "workspace_key")
    maker, *others = [await tab_of(committed_cast, name) for name in names]
    await until(lambda: len(hub.open_viewers) == 4, 5)
    assert await hub.hears_the_bus_within(5)
    use = await in_db_thread(asking.approval)
    await maker.until(lambda: {"type": "inbox"} in maker.frames)
    for decided in (lambda: asking.confirm(use), lambda: asking.question() and None):
        maker.frames.clear()
        await in_db_thread(decided)
        await maker.until(lambda: {"type": "inbox"} in maker.frames)
    for tab in others:
        await hears_nothing(tab)
    for tab in (maker, *others):
        await tab.close()


def wait_for_a_child_and_cancel(cast: Cast) -> None:
    family = Family(cast)
    family.start("Rates")
    family.wait()
    assert family.parent.waits.filter(kind="children", status="open").exists()
    cancel_session(access=cast.access("member"), session_id=family.parent.pk)


async def test_a_wait_for_children_asks_nobody_and_no_inbox_is_told(
    committed_cast: Cast, hub: Hub, postgres_bus: str
) -> None:
    tab = await tab_of(committed_cast, "member")
    await until(lambda: len(hub.open_viewers) == 1, 5)
    assert await hub.hears_the_bus_within(5)
    await in_db_thread(wait_for_a_child_and_cancel, committed_cast)
    await hears_nothing(tab)
    await tab.close()
