"""The composer: input methods, drafts, failed sends; and order under a wrong clock."""

from __future__ import annotations

from playwright.sync_api import Page, Route, expect

from tests.browser.conftest import NewPerson, shot, transcript
from tests.journeys.client import Client, scripted


def prompts(page: Page) -> list[str]:
    return page.locator(".prompt .prompt-text").all_inner_texts()


def test_enter_that_picks_a_candidate_of_an_input_method_never_sends(
    person: NewPerson, client: Client
) -> None:
    session = client.create("写作")
    page = person().tab(f"/s/{session}/")
    page.focus("textarea")
    tab = page.context.new_cdp_session(page)
    tab.send("Input.imeSetComposition", {"text": "にほん", "selectionStart": 3, "selectionEnd": 3})
    enter = {"key": "Enter", "code": "Enter", "windowsVirtualKeyCode": 229}
    tab.send("Input.dispatchKeyEvent", {"type": "rawKeyDown", **enter})
    page.wait_for_timeout(400)
    assert page.locator(".prompt").count() == 0
    tab.send("Input.insertText", {"text": "日本"})
    assert page.input_value("textarea") == "日本"
    page.press("textarea", "Shift+Enter")
    page.keyboard.type("二行目")
    assert page.locator(".prompt").count() == 0
    page.press("textarea", "Enter")
    expect(page.locator(".prompt")).to_contain_text("日本")
    assert page.locator(".prompt").count() == 1


def test_a_draft_is_kept_on_the_server_and_spent_by_sending(
    person: NewPerson, client: Client
) -> None:
    session = client.create("Drafts")
    someone = person()
    page = someone.tab(f"/s/{session}/")
    other = someone.tab(f"/s/{session}/")
    with page.expect_response("**/draft"):
        page.fill("textarea", "half a thought")
    expect(other.locator("textarea")).to_have_value("half a thought")
    page.reload()
    assert page.input_value("textarea") == "half a thought"
    page.press("textarea", "Enter")
    expect(page.locator(".prompt")).to_contain_text("half a thought")
    expect(other.locator("textarea")).to_have_value("")
    page.reload()
    assert page.input_value("textarea") == ""


def test_a_draft_follows_the_person_to_another_device(person: NewPerson, client: Client) -> None:
    session = client.create("Two devices")
    desk = person().tab(f"/s/{session}/")
    phone = person().tab(f"/s/{session}/")
    desk.fill("textarea", "begun at the desk")
    expect(phone.locator("textarea")).to_have_value("begun at the desk")
    phone.fill("textarea", "begun at the desk, ended on the train")
    expect(desk.locator("textarea")).to_have_value("begun at the desk, ended on the train")
    phone.press("textarea", "Enter")
    expect(desk.locator("textarea")).to_have_value("")


def test_a_failed_send_keeps_the_text_and_retries_with_the_same_key(
    person: NewPerson, client: Client
) -> None:
    session = client.create("Bad network")
    someone = person()
    page = someone.tab(f"/s/{session}/")
    keys: list[str | None] = []

    def lose_the_answer(route: Route) -> None:
        keys.append(route.request.header_value("idempotency-key"))
        if len(keys) == 1:
            route.fetch()  # the server accepts it, and its answer is lost
            route.abort()
        else:
            route.continue_()

    page.route("**/send", lose_the_answer)
    page.fill("textarea", scripted({"say": "once only"}))
    page.press("textarea", "Enter")
    expect(page.locator(".prompt.is-not-sent")).to_contain_text("Not sent")
    shot(page, "not-sent")
    page.click("[data-retry]")
    expect(page.locator(".is-not-sent")).to_have_count(0)
    expect(page.locator(".answer")).to_contain_text("once only")
    expect(page.locator(".is-optimistic")).to_have_count(0)
    assert page.locator(".prompt").count() == 1
    assert len(keys) == 2
    assert keys[0] == keys[1]
    page.unroute("**/send")
    someone.problems.clear()  # the network error that we made


def test_a_wrong_clock_changes_no_order_and_shows_no_future(
    person: NewPerson, client: Client
) -> None:
    session = client.create("Five hours off")
    ahead, right = person().tab(), person("member").tab(f"/s/{session}/")
    ahead.add_init_script(
        "const D = Date; globalThis.Date = class extends D {"
        " constructor(...a) { a.length ? super(...a) : super(D.now() + 18e6) }"
        " static now() { return D.now() + 18e6 } };"
    )
    ahead.goto(right.url)
    for number in range(3):
        for page, who in ((ahead, "ahead"), (right, "right")):
            page.fill("textarea", f"{who} {number}")
            page.press("textarea", "Enter")
    for page in (ahead, right):
        expect(page.locator(".answer")).to_have_count(6, timeout=30_000)
        expect(page.locator("[data-busy]")).to_have_count(0)
    assert prompts(ahead) == prompts(right)
    assert transcript(ahead) == transcript(right)
    assert "-" not in ahead.locator(".row-age").first.inner_text()


def test_a_viewer_reads_and_is_told_why_there_is_no_composer(
    person: NewPerson, client: Client
) -> None:
    session = client.create("Read only")
    page = person("viewer").tab(f"/s/{session}/")
    expect(page.locator(".readonly")).to_contain_text("You can read this session")
    assert page.locator("textarea").count() == 0
