"""Child sessions on pages: cards, lines, the dock above, the tree, breadcrumbs, who may answer."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from django.conf import settings
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from core.api.reader import zone_of
from core.ids import Prefix, encode_id, event_id, uuid7
from orgs.models import User
from sessions_app.domain.events import Draft
from sessions_app.domain.vocabulary import Visibility
from sessions_app.eventlog import read_after
from sessions_app.models import Session, Turn, Wait
from sessions_app.services import attempts
from sessions_app.services.archiving import archive_session, delete_session
from sessions_app.services.attempts import Completed, Failed, Lease
from sessions_app.services.calls import Call
from sessions_app.services.cancelling import cancel_session
from sessions_app.services.children.awaiting import wait_for_children
from sessions_app.services.children.spawning import NewChild, spawn_child
from sessions_app.web.child_items import relatives_named
from sessions_app.web.family import find_relatives
from sessions_app.web.live import LiveRenderer
from sessions_app.web.loading import load_page
from sessions_app.web.relatives import KIN_NAMED
from sessions_app.web.rendering import render_items
from tests.factories import Cast, claim, make_session, message, send


def browser(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client


class Family:
    """A parent whose turn runs, and the children that its calls started."""

    def __init__(self, cast: Cast, **fields: Any) -> None:
        self.cast = cast
        self.parent = make_session(cast, **{"title": "Tariffs", **fields})
        send(cast, self.parent)
        self.lease = claim().lease

    def call(self, name: str, **arguments: Any) -> Call:
        payload = {
            "name": name,
            "input": arguments,
            "call_id": "call_1",
            "step": 1,
            "evaluated_permission": "allow",
            "repeatable": True,
        }
        (seq,) = attempts.record(lease=self.lease, drafts=[Draft("agent.tool_use", payload)])
        return Call(self.parent.pk, seq, "call_1", name)

    def start(self, title: str, prompt: str = "Look at it.") -> Session:
        call = self.call("session.start_child", title=title, prompt=prompt)
        made: list[Session] = []

        def effect(held: Session, turn: Turn) -> Draft:
            new = NewChild(prompt=prompt, title=title)
            made.append(
                spawn_child(held, turn=turn, attempt=1, tool_use_id=call.tool_use_id, new=new)
            )
            return call.result({"session_id": made[0].public_id})

        attempts.record_effect(lease=self.lease, call=call, effect=effect)
        return made[0]

    def wait(self) -> None:
        call = self.call("session.wait_children")
        attempts.record_effect(
            lease=self.lease,
            call=call,
            effect=lambda held, turn: wait_for_children(held, turn=turn, call=call, named=None),
        )
        assert attempts.suspend_turn(lease=self.lease)

    def begin(self) -> Lease:
        """The oldest child that has not begun."""
        return claim().lease

    def page(self, who: str = "member", session: Session | None = None) -> str:
        path = f"/s/{(session or self.parent).public_id}/"
        return browser(getattr(self.cast, who)).get(path).content.decode()


def ask(lease: Lease, line: str = "psql") -> str:
    payload = {
        "name": "probe.append_asked",
        "input": {"line": line},
        "call_id": "call_1",
        "step": 1,
        "evaluated_permission": "ask",
        "repeatable": False,
    }
    (seq, *_) = attempts.record_ask(lease=lease, drafts=[Draft("agent.tool_use", payload)])
    assert attempts.suspend_turn(lease=lease)
    return event_id(lease.session_id, seq)


def finish(lease: Lease, text: str = "It is **fine**.") -> None:
    attempts.record(lease=lease, drafts=[message(text)])
    attempts.finish_turn(lease=lease, outcome=Completed())


def card(page: str, child: Session) -> str:
    begins = page.index(f'data-key="child-{child.public_id}"')
    return page[begins : page.index("</article>", begins)]


def words(markup: str) -> str:
    return " ".join(re.sub(r"<[^>]+>", " ", markup).split())


@pytest.fixture
def family(cast: Cast) -> Family:
    return Family(cast)


@pytest.mark.slow
def test_a_card_takes_the_place_of_the_call_that_started_the_child(family: Family) -> None:
    left = family.start("Left", "Read the left file.")
    page = family.page()
    assert "session.start_child" not in page
    shown = card(page, left)
    assert f'href="/s/{left.public_id}/"' in shown
    assert "Left" in words(shown)
    assert "Queued" in words(shown)
    assert "Read the left file." in words(shown)
    family.begin()
    assert "Working" in words(card(family.page(), left))


def test_a_result_becomes_part_of_the_card_and_a_line_where_it_arrived(family: Family) -> None:
    left, right = family.start("Left"), family.start("Right")
    family.wait()
    first, second = family.begin(), family.begin()
    finish(first)
    attempts.finish_turn(lease=second, outcome=Failed("tool_loop", "It went in circles."))
    page = family.page()
    assert "<strong>fine</strong>" in card(page, left)
    assert "Done" in words(card(page, left))
    assert "It went in circles." in card(page, right)
    assert "Failed" in words(card(page, right))
    later = page[page.index("session.wait_children") :]
    assert re.search(r"Left is done at [\d:]+ \.", words(later))
    assert re.search(r"Right failed at [\d:]+ \.", words(later))


def test_a_result_right_below_its_card_needs_no_line(family: Family) -> None:
    family.start("Left")
    finish(family.begin())
    assert "is done at" not in family.page()


def test_who_stops_or_cancels_a_child_is_read_on_its_card(cast: Cast, family: Family) -> None:
    left = family.start("Left")
    cancel_session(access=cast.access("owner"), session_id=left.pk)
    shown = words(card(family.page(), left))
    assert "Cancelled" in shown
    assert "stopped before it had an answer" in shown


def test_a_waiting_parent_says_for_how_many_and_for_whom(family: Family) -> None:
    family.start("Left")
    family.start("Right")
    family.wait()
    page = family.page()
    assert page.count("Waiting for 2 child sessions") >= 2  # header, strip
    assert 'Waiting for 2<span class="long"> child sessions</span>' in page  # its row
    assert "Waiting for you" not in page
    assert "data-busy" in page
    line = page[page.index("session.wait_children") :]
    assert "Left, Right" in line[: line.index("</summary>")]
    finish(family.begin())
    assert "Waiting for 1 child session" in words(family.page())


@pytest.mark.slow
@pytest.mark.parametrize("steps", [1, 3, 100])
def test_live_frames_end_where_a_reload_does(family: Family, steps: int) -> None:
    access = family.cast.access("member")
    live = LiveRenderer(family.parent, access, 3)
    family.start("Left")
    family.start("")
    family.wait()
    finish(family.begin())
    finish(family.begin(), "Right.")
    events = read_after(session_id=family.parent.pk, after=3, limit=1_000)
    shown: list[dict[str, Any]] = []
    for start in range(0, len(events), steps):
        for answer in live.render_all(events[start : start + steps]):
            shown = patched(shown, answer["patches"] if answer else [])
    page = load_page(session=Session.objects.get(pk=family.parent.pk)).transcript
    relatives = find_relatives(access, relatives_named(page.items))
    markup = render_items(
        page.items, session=family.parent, zone=zone_of(""), may_control=True, may_fork=True,
        relatives=relatives,
    )  # fmt: skip
    wanted = {item.key: place.html for item, place in zip(page.items, markup, strict=True)}
    for patch in shown:
        assert without_ages(patch["html"]) == without_ages(wanted[patch["key"]])
    kept = [key for key in wanted if key in {patch["key"] for patch in shown}]
    assert [patch["key"] for patch in shown] == kept


def patched(shown: list[dict[str, Any]], patches: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    for patch in patches:
        if patch["op"] in {"put", "drop"}:
            places = [place for place, each in enumerate(shown) if each["key"] == patch["key"]]
            if patch["op"] == "drop":
                shown = [each for each in shown if each["key"] != patch["key"]]
            elif places:
                shown[places[0]] = patch
            else:
                shown = [*shown, patch]
    return shown


def without_ages(html: str) -> str:
    return re.sub(r"<time[^>]*>[^<]*</time>", "", html)


def test_a_stream_that_began_later_still_settles_an_old_card(family: Family) -> None:
    left = family.start("Left")
    attempts.record(lease=family.lease, drafts=[message("Meanwhile.")])
    attempts.finish_turn(lease=family.lease, outcome=Completed())
    send(family.cast, family.parent, "And now?")
    head = Session.objects.get(pk=family.parent.pk).head_seq
    live = LiveRenderer(family.parent, family.cast.access("member"), head)
    lease = family.begin()
    finish(lease if lease.session_id == left.pk else family.begin())
    events = read_after(session_id=family.parent.pk, after=head, limit=100)
    patches = [p for answer in live.render_all(events) if answer for p in answer["patches"]]
    (settled,) = [p for p in patches if p.get("key") == f"child-{left.public_id}"]
    assert "<strong>fine</strong>" in settled["html"]
    assert settled["after"] == ""  # it stays where it stands


def test_a_card_on_an_earlier_page_knows_its_result(family: Family) -> None:
    left = family.start("Left")
    head = Session.objects.get(pk=family.parent.pk).head_seq
    finish(family.begin())
    page = browser(family.cast.member).get(f"/s/{family.parent.public_id}/?before={head}")
    assert "<strong>fine</strong>" in card(page.content.decode(), left)


@pytest.mark.slow
def test_more_children_cost_no_more_statements(cast: Cast, family: Family) -> None:
    client = browser(cast.member)

    def statements(path: str) -> int:
        with CaptureQueriesContext(connection) as made:
            assert client.get(path).status_code == 200
        return len(made)

    path = f"/s/{family.parent.public_id}/"
    paths = [path, f"{path}tree/", f"{path}around/", f"/w/{cast.workspace.public_id}/"]
    ask_of(family, 1)
    few = [statements(each) for each in [*paths, kin_path()]]
    ask_of(family, 5)
    assert [statements(each) for each in [*paths, kin_path()]] == few
    assert few[0] <= 34


def kin_path() -> str:
    """Of all sessions that there are."""
    ids = [session.public_id for session in Session.objects.all()]
    return "/kin/?" + urlencode({"id": ids}, doseq=True)


def ask_of(family: Family, number: int) -> None:
    for _ in range(number):
        family.start("")
        ask(family.begin())


def test_what_a_descendant_asks_is_answered_above(cast: Cast, family: Family) -> None:
    right = family.start("Right")
    family.wait()
    asked = ask(family.begin(), "psql -f 0042.sql")
    page = family.page()
    dock = page[page.index("data-dock") :]
    assert "psql -f 0042.sql" in dock
    assert f'<a href="/s/{right.public_id}/#ask-{asked}" dir="auto">Right</a> asks to run' in dock
    assert "Needs you" in page
    assert '<span class="state-more" dir="auto">Right</span>' in page
    form = {"decision": "allow", "place": family.parent.public_id}
    answer = browser(cast.member).post(f"/s/{right.public_id}/waits/{asked}/confirm", form)
    assert answer["Location"] == f"/s/{family.parent.public_id}/#end"
    assert Wait.objects.get(kind="approval").status == "answered"
    assert "data-asks" not in family.page()


@pytest.mark.parametrize("place", ["//evil.test", "usr_1", "ses_1"])
def test_a_bent_place_leads_nowhere(cast: Cast, family: Family, place: str) -> None:
    right = family.start("Right")
    asked = ask(family.begin())
    form = {"decision": "allow", "place": place}
    answer = browser(cast.member).post(f"/s/{right.public_id}/waits/{asked}/confirm", form)
    assert answer.status_code == 404


def test_a_viewer_sees_what_waits_below_and_cannot_answer(cast: Cast, family: Family) -> None:
    right = family.start("Right")
    asked = ask(family.begin())
    page = family.page("viewer")
    assert "Right</a> asks to run" in page
    assert "Only people who may control this session can decide." in page
    assert f"waits/{asked}/confirm" not in page
    path = f"/s/{right.public_id}/waits/{asked}/confirm"
    assert browser(cast.viewer).post(path, {"decision": "allow"}).status_code == 403


@pytest.mark.parametrize("path", ["children/", "tree/", "around/"])
def test_who_may_not_see_a_session_learns_nothing_of_its_kin(
    cast: Cast, family: Family, path: str
) -> None:
    family.start("Left")
    address = f"/s/{family.parent.public_id}/{path}"
    headers = {"X-Fragment": "1"}
    assert browser(cast.viewer).get(address, headers=headers).status_code == 200
    assert browser(cast.outsider).get(address, headers=headers).status_code == 404


def test_a_page_without_a_socket_is_told_how_the_sessions_it_names_stand(
    cast: Cast, family: Family
) -> None:
    left, right = family.start("Left"), family.start("<b>Right</b>")
    client = browser(cast.viewer)
    bent = ["ses_1", "trn_01", "\x00", "", encode_id(Prefix.SESSION, uuid7())]
    wanted = {"id": [left.public_id, right.public_id, left.public_id, *bent]}
    told = {each["id"]: each for each in client.get("/kin/", wanted).json()["kin"]}
    assert told.keys() == {left.public_id, right.public_id}
    assert told[right.public_id]["title"] == "<b>Right</b>"
    shown = card(family.page("viewer"), left)
    assert told[left.public_id]["html"].strip() in shown
    assert browser(cast.outsider).get("/kin/", wanted).json() == {"kin": []}
    assert client.get("/kin/").json() == {"kin": []}


def test_no_more_kin_are_told_at_once_than_a_page_asks_for(cast: Cast, family: Family) -> None:
    left = family.start("Left")
    strange = [encode_id(Prefix.SESSION, uuid7()) for _ in range(KIN_NAMED)]
    told = browser(cast.viewer).get("/kin/", {"id": [*strange, left.public_id]}).json()
    assert told == {"kin": []}
    script = (Path(settings.BASE_DIR) / "static/js/family.js").read_text()
    assert f"const KIN_NAMED = {KIN_NAMED};" in script


def test_an_only_me_family_is_its_makers_alone(cast: Cast) -> None:
    cast.organization.allows_private_sessions = True
    cast.organization.save()
    family = Family(cast, visibility=Visibility.PRIVATE)
    left = family.start("Left")
    ask(family.begin())
    assert "Left" in family.page()
    for name in ("owner", "second_member"):
        client = browser(getattr(cast, name))
        assert client.get(f"/s/{left.public_id}/").status_code == 404
        assert client.get("/kin/", {"id": left.public_id}).json() == {"kin": []}
        assert "Tariffs" not in client.get(f"/w/{cast.workspace.public_id}/").content.decode()


def test_a_child_page_leads_up_and_says_who_wrote_its_prompt(cast: Cast, family: Family) -> None:
    left = family.start("Left")
    grandchild = make_session(cast, title="Deep", parent_id=left.pk)
    page = family.page(session=grandchild)
    crumbs = page[page.index('class="crumbs"') :]
    crumbs = crumbs[: crumbs.index("</nav>")]
    assert re.findall(r'href="/s/([^/]+)/"', crumbs) == [
        family.parent.public_id,
        left.public_id,
    ]
    family.begin()
    page = family.page(session=left)
    prompt = page[page.index('class="prompt"') :]
    prompt = prompt[: prompt.index("</article>")]
    assert 'class="avatar"' not in prompt
    assert f'of <a href="/s/{family.parent.public_id}/"' in prompt
    assert "/pin" not in page.split('class="drawer"')[0].split('data-region="menu"')[0]


def test_a_machine_prompt_in_the_queue_is_the_agents(family: Family) -> None:
    left = family.start("Left")
    page = family.page(session=left)
    queued = page[page.index("data-queued") :]
    queued = queued[: queued.index("</li>")]
    assert "From the agent of the session above" in queued
    assert 'class="avatar"' not in queued


def test_the_tree_marks_where_one_is_and_names_every_state(cast: Cast, family: Family) -> None:
    left, right = family.start("Left"), family.start("Right")
    finish(family.begin())
    deep = make_session(cast, title="Deep", parent_id=right.pk)
    page = family.page(session=right)
    tree = page[page.index('data-region="tree"') :]
    tree = tree[: tree.index("</section>")]
    shown = re.findall(r'data-relative="([^"]+)"( aria-current="page")?', tree)
    assert [each for each, _ in shown] == [
        each.public_id for each in (family.parent, left, right, deep)
    ]
    assert [each for each, is_current in shown if is_current] == [right.public_id]
    assert "Done Left" in words(tree)
    assert 'data-region="tree"></section>' in family.page(session=make_session(cast, title="X"))


def test_a_large_tree_is_cut_and_says_so(
    cast: Cast, monkeypatch: pytest.MonkeyPatch, settings: Any
) -> None:
    monkeypatch.setattr("sessions_app.web.family.TREE_SHOWN", 3)
    parent = make_session(cast, title="Many")
    children = [make_session(cast, title=f"C{n}", parent_id=parent.pk) for n in range(6)]
    client = browser(cast.member)
    page = client.get(f"/s/{children[5].public_id}/").content.decode()
    shown = re.findall(r'data-relative="([^"]+)"', page)
    assert shown == [each.public_id for each in (parent, *children[:2], children[5])]
    assert "Show all 6" in page
    whole = client.get(f"/s/{parent.public_id}/tree/").content.decode()
    assert len(re.findall("data-relative", whole)) == 7
    settings.TREE_MAX_SESSIONS = 4
    whole = client.get(f"/s/{parent.public_id}/tree/").content.decode()
    assert "Only the first 4 are read." in whole


def test_a_row_with_children_opens_on_demand(cast: Cast, family: Family) -> None:
    left = family.start("Left")
    make_session(cast, title="Alone")
    client = browser(cast.member)
    page = client.get(f"/w/{cast.workspace.public_id}/").content.decode()
    assert page.count("data-unfold") == 1
    assert f'href="/s/{family.parent.public_id}/tree/" data-unfold' in page
    assert left.public_id not in page
    path = f"/s/{family.parent.public_id}/children/"
    rows = client.get(path, headers={"X-Fragment": "1"}).content.decode()
    assert f'data-key="{left.public_id}"' in rows
    assert "is-child" in rows
    assert client.get(path)["Location"] == f"/s/{family.parent.public_id}/tree/"
    archive_session(access=cast.access("member"), session_id=left.pk, stop=True)
    assert "data-unfold" not in client.get(f"/w/{cast.workspace.public_id}/").content.decode()


def test_a_parent_is_active_while_a_child_works(cast: Cast, family: Family) -> None:
    family.start("Left")
    attempts.record(lease=family.lease, drafts=[message("Started it.")])
    attempts.finish_turn(lease=family.lease, outcome=Completed())
    client = browser(cast.member)
    path = f"/w/{cast.workspace.public_id}/"
    assert 'data-group="active"' in client.get(path).content.decode()
    finish(family.begin())
    assert 'data-group="active"' not in client.get(path).content.decode()


def test_a_row_names_the_child_that_asks(cast: Cast, family: Family) -> None:
    family.start("Right")
    ask(family.begin())
    page = browser(cast.member).get(f"/w/{cast.workspace.public_id}/").content.decode()
    row = page[page.index(f'data-key="{family.parent.public_id}"') :]
    assert "Right asks" in row[: row.index("</li>")]


def test_what_goes_along_is_named_before_and_after(cast: Cast, family: Family) -> None:
    family.start("Left")
    family.start("Right")
    path = f"/s/{family.parent.public_id}/"
    question = browser(cast.owner).get(f"{path}cancel").content.decode()
    assert "2 child sessions, with all that runs there" in question
    client = browser(cast.member)
    headers = {"HTTP_ACCEPT": "application/json"}
    refusal = client.post(f"{path}archive", **headers).json()["error"]
    assert refusal["details"]["sessions_below"] == 2
    answer = client.post(f"{path}archive", {"stop": 1}, **headers).json()
    assert (answer["below"], answer["is_root"]) == (2, True)


def test_archiving_a_child_leads_to_its_parent(cast: Cast, family: Family) -> None:
    left = family.start("Left")
    path = f"/s/{left.public_id}/archive"
    answer = browser(cast.member).post(path, {"stop": 1})
    assert answer["Location"] == f"/s/{family.parent.public_id}/"


def test_a_child_that_is_gone_leaves_a_card_without_a_link(cast: Cast, family: Family) -> None:
    left = family.start("Left")
    delete_session(access=cast.access("owner"), session_id=left.pk, stop=True)
    shown = card(family.page(), left)
    assert "No longer here" in shown
    assert "href=" not in shown
