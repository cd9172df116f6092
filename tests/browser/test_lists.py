"""The sidebar, archive with Undo, and the dialog that asks once."""

from __future__ import annotations

from datetime import datetime
from urllib.parse import unquote
from zoneinfo import ZoneInfo

from playwright.sync_api import expect

from tests.browser.conftest import NewPerson, shot
from tests.journeys.client import Client, count, scripted


def test_a_session_that_another_starts_appears_and_moves_by_itself(
    person: NewPerson, client: Client
) -> None:
    someone = person()
    page = someone.tab(f"/w/{someone.workspace}/new/")
    session = client.create("Starts elsewhere")
    row = page.locator(f'[data-key="{session}"]')
    expect(row).to_be_visible()
    client.send(session, scripted({"say": "busy " * 30, "chunks": 30, "every_ms": 80}))
    expect(page.locator('[data-group="active"]').locator(row)).to_contain_text("Working")
    expect(page.locator('[data-group="today"]').locator(row)).to_be_visible()


def test_archiving_leaves_the_session_and_undo_brings_it_back(
    person: NewPerson, client: Client
) -> None:
    session = client.create("Goes to the archive")
    page = person().tab(f"/s/{session}/")
    page.click("summary[aria-label='Session menu']")
    page.click("form[data-act=archive] button")
    page.wait_for_url("**/w/wrk_*/")
    expect(page.locator(".toast")).to_contain_text("Archived Goes to the archive")
    expect(page.locator(f'[data-key="{session}"]')).to_have_count(0)
    shot(page, "toast")
    page.hover(".toast")
    left = page.locator("[data-seconds]").inner_text()
    page.wait_for_timeout(1_600)
    assert page.locator("[data-seconds]").inner_text() == left
    page.click("[data-undo]")
    page.wait_for_url(f"**/s/{session}/")
    expect(page.locator(".toast")).to_have_count(0)
    expect(page.locator(f'[data-key="{session}"]')).to_be_visible()


def test_archiving_a_working_session_asks_once_and_can_be_declined(
    person: NewPerson, client: Client
) -> None:
    someone = person()
    session = client.start({"say": "busy " * 600, "chunks": 600, "every_ms": 100})
    client.wait_for(session, lambda events: count(events, "turn.started"))
    client.send(session, "After it")
    page = someone.tab(f"/s/{session}/")
    expect(page.locator("[data-busy]")).to_be_visible()
    page.click("summary[aria-label='Session menu']")
    page.click("form[data-act=archive] button")
    dialog = page.locator("[data-dialog=stop-and-archive]")
    expect(dialog).to_contain_text("1 queued prompt is withdrawn")
    expect(dialog).to_contain_text("Stop the current task and archive?")
    expect(dialog.locator("[data-keep]")).to_be_focused()
    shot(page, "dialog")
    page.click("text=Keep session open")
    expect(page.locator("[data-busy]")).to_be_visible()
    page.click("summary[aria-label='Session menu']")
    page.click("form[data-act=archive] button")
    page.click("text=Stop and archive")
    page.wait_for_url("**/w/wrk_*/")
    assert client.session(session)["archived_at"]
    someone.problems.clear()  # the refusal that makes the page ask


def test_undo_of_an_archived_answer_does_not_make_it_unread(
    person: NewPerson, client: Client
) -> None:
    session = client.create("Read, then archived")
    someone = person()
    page = someone.tab(f"/s/{session}/")
    page.fill("textarea", scripted({"say": "Read while it came."}))
    page.press("textarea", "Enter")
    expect(page.locator(".answer")).to_contain_text("Read while it came.")
    expect(page.locator("[data-busy]")).to_have_count(0)
    page.click("summary[aria-label='Session menu']")
    page.click("form[data-act=archive] button")
    page.wait_for_url("**/w/wrk_*/")
    page.click("[data-undo]")
    page.wait_for_url(f"**/s/{session}/")
    page.goto(f"{someone.server.url}/w/{someone.workspace}/archived/")
    expect(page.locator(f'[data-key="{session}"]')).to_be_visible()
    expect(page.locator(f'[data-key="{session}"] .is-unread')).to_have_count(0)


def test_the_open_session_is_never_unread_in_its_own_tab(person: NewPerson, client: Client) -> None:
    session = client.create("Read as it comes")
    page = person().tab(f"/s/{session}/")
    page.evaluate(
        """() => { window.wasUnread = false; new MutationObserver(() => {
            if (document.querySelector('.row.is-unread[aria-current]')) window.wasUnread = true;
        }).observe(document.body, { subtree: true, childList: true, attributes: true }); }"""
    )
    call = {"tool": "probe.append", "args": {"line": "x", "sleep_ms": 2_000}}
    page.fill("textarea", scripted({"say": "First part.", "call": [call]}, {"say": "The rest."}))
    page.press("textarea", "Enter")
    expect(page.locator(".answer").last).to_contain_text("The rest.", timeout=20_000)
    page.wait_for_timeout(1_000)
    assert page.evaluate("window.wasUnread") is False


def test_a_first_visit_tells_times_in_its_own_zone(person: NewPerson, client: Client) -> None:
    session = client.create("Started")
    someone = person(timezone_id="Asia/Kathmandu")
    someone.context.clear_cookies(name="zone")
    page = someone.tab(f"/s/{session}/")
    time = page.locator(".drawer time")
    local = time.evaluate(
        """node => new Date(node.dateTime).toLocaleTimeString('en-GB',
            { hour: '2-digit', minute: '2-digit', timeZone: 'Asia/Kathmandu' })"""
    )
    expect(time).to_contain_text(f", {local}")
    assert f", {local}:" in str(time.get_attribute("title"))


def test_days_begin_at_the_readers_midnight_on_the_very_first_page(
    person: NewPerson, client: Client
) -> None:
    """The sign-in page has told the zone, and where it could not, the page marks its days anew."""
    session = client.start({"say": "here"})
    client.wait_for_idle(session)
    # Of these two one has another date than UTC at any hour.
    for zone in ("Pacific/Kiritimati", "Pacific/Pago_Pago"):
        someone = person(timezone_id=zone)
        kept = {c["name"]: unquote(c["value"]) for c in someone.context.cookies()}
        assert kept["zone"] == zone
        today = datetime.now(ZoneInfo(zone)).date().isoformat()
        page = someone.tab(f"/s/{session}/")
        assert page.request.get(page.url).text().count(f'data-day="{today}"') == 1
        someone.context.clear_cookies(name="zone")
        page.reload()
        expect(page.locator(".day")).to_have_attribute("data-day", today)
        expect(page.locator(".day")).to_have_text("Today")


def test_on_a_phone_the_account_is_at_the_top_and_signs_out(person: NewPerson) -> None:
    someone = person("admin", viewport={"width": 390, "height": 844}, has_touch=True)
    page = someone.tab(f"/w/{someone.workspace}/")
    page.click(".account > summary")
    page.click(".account [data-theme-choice=dark]")
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    assert page.get_by_text("Archived", exact=True).count() == 1
    shot(page, "phone-account")
    page.click(".account >> text=Sign out")
    page.wait_for_url("**/sign-in/")
    # What the page asked for in that moment is refused, and the browser says so by itself.
    someone.forgive("401 (Unauthorized)")


def test_a_filtered_group_counts_what_matched(person: NewPerson, client: Client) -> None:
    client.create("Only the zebra matches")
    someone = person()
    page = someone.tab(f"/w/{someone.workspace}/new/")
    group = page.locator('[data-group="today"]')
    before = group.locator("[data-total]").inner_text()
    assert int(before) > 1
    page.fill("[data-filter]", "zebra")
    expect(group.locator(".count:visible")).to_have_text("1")
    page.fill("[data-filter]", "")
    expect(group.locator(".count:visible")).to_have_text(before)


def test_archived_lists_and_restores_without_scripts(person: NewPerson, client: Client) -> None:
    session = client.create("Back by a plain form")
    client.call("POST", f"sessions/{session}/archive")
    someone = person(java_script_enabled=False)
    page = someone.tab(f"/w/{someone.workspace}/archived/")
    page.click(f'[data-archived="{session}"] button')
    page.wait_for_url(f"**/s/{session}/")
    assert client.session(session)["archived_at"] is None


def test_everything_of_a_turn_works_without_scripts(person: NewPerson) -> None:
    someone = person("member", java_script_enabled=False)
    page = someone.tab(f"/w/{someone.workspace}/new/")
    page.fill("textarea", "A plain form")
    page.click("[data-composer] button.is-primary")
    page.wait_for_url("**/s/ses_*/")
    expect(page.locator(".prompt")).to_contain_text("A plain form")
    page.wait_for_timeout(2_000)
    page.reload()
    expect(page.locator(".answer")).to_be_visible()


def test_renaming_in_place_reaches_the_list(person: NewPerson, client: Client) -> None:
    session = client.create("Old name")
    page = person().tab(f"/s/{session}/")
    page.click("[data-rename]")
    page.keyboard.type("New name")
    page.keyboard.press("Enter")
    expect(page.locator("h1")).to_have_text("New name")
    expect(page.locator(f'[data-key="{session}"] .row-title')).to_have_text("New name")


def test_the_row_menu_pins_and_keys_reach_it(person: NewPerson, client: Client) -> None:
    session = client.create("To be pinned")
    page = person().tab(f"/s/{session}/")
    row = page.locator(f'[data-key="{session}"]')
    row.hover()
    row.locator("[data-row-menu]").click()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    page.mouse.move(700, 400)
    page.focus("textarea")
    expect(page.locator('[data-group="pinned"]').locator(row)).to_be_visible()
    shot(page, "pinned")


def test_shortcuts_open_a_new_session_the_filter_and_the_list_of_keys(
    person: NewPerson, client: Client
) -> None:
    session = client.create("Keys")
    page = person().tab(f"/s/{session}/")
    page.keyboard.press("?")
    expect(page.locator("[data-dialog=keys]")).to_be_visible()
    page.keyboard.press("Escape")
    page.keyboard.press("/")
    expect(page.locator("[data-filter]")).to_be_focused()
    page.keyboard.press("Escape")
    page.keyboard.press("n")
    page.wait_for_url("**/new/")


def test_signing_out_elsewhere_stops_the_page_and_says_so(
    person: NewPerson, client: Client
) -> None:
    session = client.create("Signed out")
    someone = person("admin")
    page = someone.tab(f"/s/{session}/")
    page.fill("textarea", "kept text")
    page.wait_for_timeout(1_200)
    other = someone.tab(f"/s/{session}/")
    other.click(".person > summary")
    other.click(".person >> text=Sign out")
    other.wait_for_url("**/sign-in/")
    expect(page.locator("[data-connection]")).to_contain_text("You are signed out")
    assert page.input_value("textarea") == "kept text"
    someone.problems.clear()
