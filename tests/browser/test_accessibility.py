"""axe finds nothing on any page, at three widths, in light and dark."""

from __future__ import annotations

import time

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page

from tests.browser.conftest import NewPerson, shot
from tests.journeys.client import Client, scripted

SIZES = {"wide": (1440, 900), "middle": (1024, 768), "phone": (360, 780)}
ANSWER = """# A heading

Text with `code`, a [link](https://docs.example.test/) and a table:

| Month | Amount |
|---|--:|
| March | 8,412.50 |

```python
print("x")  # a long line that scrolls sideways, because it is much longer than the column is wide
```
"""


def violations(page: Page) -> list[str]:
    found = Axe().run(page).response["violations"]
    return [
        f"{rule['id']}: {node['html'][:200]} {node['failureSummary'][:300]}"
        for rule in found
        for node in rule["nodes"]
    ]


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", SIZES)
def test_no_page_has_a_violation(person: NewPerson, client: Client, size: str, scheme: str) -> None:
    width, height = SIZES[size]
    someone = person(viewport={"width": width, "height": height}, color_scheme=scheme)
    done = client.start(
        {"think": "a", "call": [{"tool": "probe.lookup", "args": {}}]}, {"say": ANSWER}
    )
    client.send(done, scripted({"fail": {"status": 400, "message": "no"}, "times": 9}))
    client.wait_for_idle(done)
    busy = client.start({"say": "slow " * 900, "chunks": 900, "every_ms": 100})
    client.send(busy, "waits")
    paths = {
        "list": f"/w/{someone.workspace}/",
        "new": f"/w/{someone.workspace}/new/",
        "archived": f"/w/{someone.workspace}/archived/",
        "done": f"/s/{done}/",
        "busy": f"/s/{busy}/",
        "nothing": "/s/ses_00000000000000000000000000000000/",
    }
    problems: dict[str, list[str]] = {}
    for name, path in paths.items():
        page = someone.tab(path)
        page.wait_for_timeout(600)
        for summary in page.locator(".call > summary").all():
            summary.click()
        shot(page, f"{name}-{size}-{scheme}")
        problems[name] = violations(page)
        overflow = page.evaluate(
            "document.documentElement.scrollWidth - document.documentElement.clientWidth"
        )
        assert overflow <= 0, f"{name} scrolls sideways"
        page.close()
    client.call("POST", f"sessions/{busy}/events", json={"events": [{"type": "user.interrupt"}]})
    someone.problems.clear()  # the page that is not there
    assert {name: found for name, found in problems.items() if found} == {}


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_sign_in_has_none_either(person: NewPerson, scheme: str) -> None:
    someone = person(color_scheme=scheme)
    someone.context.clear_cookies()
    page = someone.tab("/sign-in/")
    shot(page, f"sign-in-{scheme}")
    assert violations(page) == []


def wait_for_quiet(client: Client) -> None:
    deadline = time.monotonic() + 30
    while True:
        listed = client.call("GET", "sessions", params={"limit": 100})["data"]
        if not any(session["working"] for session in listed):
            return
        assert time.monotonic() < deadline, "a session works on and on"
        time.sleep(0.2)


# The first frame of the whole page may come long after its last byte: until then it still arrives.
NOTE_FIRST_FRAME = """addEventListener("DOMContentLoaded", () => requestAnimationFrame(
    () => requestAnimationFrame(() => { window.firstFrameAt = performance.now(); })))"""
SHIFTS = """() => new Promise((done) => {
    const found = [];
    new PerformanceObserver((list) => {
        for (const entry of list.getEntries()) {
            if (!(entry.startTime > window.firstFrameAt)) continue;
            if (entry.hadRecentInput || entry.value < 0.001) continue;
            found.push(entry.sources.map(({ node }) => node?.outerHTML || node?.data).join());
        }
    }).observe({ type: "layout-shift", buffered: true });
    setTimeout(() => done(window.firstFrameAt ? found : ["no frame was drawn"]), 1500);
})"""


@pytest.mark.parametrize("size", SIZES)
def test_nothing_moves_after_a_page_has_loaded(
    person: NewPerson, client: Client, size: str
) -> None:
    width, height = SIZES[size]
    someone = person(viewport={"width": width, "height": height})
    someone.context.add_init_script(NOTE_FIRST_FRAME)
    session = client.start({"think": "a"}, {"say": ANSWER})
    client.wait_for_idle(session)
    wait_for_quiet(client)  # rows of working sessions move on purpose
    for path in (f"/w/{someone.workspace}/", f"/w/{someone.workspace}/new/", f"/s/{session}/"):
        assert someone.tab(path).evaluate(SHIFTS) == [], path
