"""A real Chromium before the real server. Without Chromium the tests fail and say what to do."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect, sync_playwright
from playwright.sync_api import TimeoutError as PlaywrightTimeout

from tests.journeys.client import Client
from tests.journeys.server import ROOT, Server

ARTIFACTS = ROOT / "tests" / "artifacts"
CANDIDATES = ("chromium", "chromium-browser", "google-chrome")
ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
]
SECONDS = 1_000
# What is promised within two seconds is measured where nothing else runs; elsewhere it must happen.
WITHIN_TWO_SECONDS = pytest.mark.parametrize(
    "most_seconds", [pytest.param(2, marks=[pytest.mark.proof, pytest.mark.alone]), 20]
)
expect.set_options(timeout=15 * SECONDS)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.browser)


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    server = Server(WEB="2", WORKERS="1")
    try:
        server.start()
        yield server
    finally:
        server.remove()


# Not for the whole run: while Playwright is open, its event loop counts as running.
@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    path = os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, CANDIDATES)), None)
    assert path, "The browser tests need Chromium: apt-get install -y chromium (or set CHROMIUM)."
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=ARGUMENTS)
        yield browser
        browser.close()


class Person:
    """Somebody signed in, with as many tabs as they open."""

    def __init__(self, server: Server, context: BrowserContext, role: str) -> None:
        self.server = server
        self.context = context
        self.role = role
        self.problems: list[str] = []

    @property
    def workspace(self) -> str:
        return str(self.server.demo["workspace_id"])

    def tab(self, path: str = "") -> Page:
        page = self.context.new_page()
        page.on("pageerror", lambda error: self.problems.append(str(error)))
        page.on(
            "console",
            lambda said: self.problems.append(said.text) if said.type == "error" else None,
        )
        if path:
            page.goto(self.server.url + path)
        return page

    def forgive(self, text: str) -> None:
        self.problems = [problem for problem in self.problems if text not in problem]

    def sign_in(self) -> Person:
        user = next(u for u in self.server.demo["users"] if u["role"] == self.role)
        page = self.context.new_page()
        page.goto(f"{self.server.url}/sign-in/")
        page.fill("[name=email]", user["email"])
        page.fill("[name=password]", user["password"])
        page.click("text=Sign in >> nth=-1")
        try:
            page.wait_for_url(lambda url: "/sign-in/" not in url)
        except PlaywrightTimeout as late:
            raise AssertionError(f"Not signed in: {page.inner_text('body')}") from late
        page.close()
        return self


NewPerson = Callable[..., Person]


@pytest.fixture
def person(server: Server, chromium: Browser) -> Iterator[NewPerson]:
    """`person("member", color_scheme="dark", …)`; a script error on any page fails the test."""
    people: list[Person] = []

    def make(role: str = "owner", **options: Any) -> Person:
        options.setdefault("viewport", {"width": 1440, "height": 900})
        options.setdefault("timezone_id", "Europe/Paris")
        context = chromium.new_context(**options)
        context.set_default_timeout(30 * SECONDS)
        people.append(Person(server, context, role).sign_in())
        return people[-1]

    yield make
    for one in people:
        one.context.close()
    problems = [problem for one in people for problem in one.problems]
    assert problems == []


@pytest.fixture
def client(server: Server) -> Client:
    return server.client()


def shot(page: Page, name: str) -> None:
    ARTIFACTS.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=ARTIFACTS / f"{name}.png")


def transcript(page: Page) -> str:
    """The history's markup, without what only counts how long ago something was."""
    return str(
        page.evaluate(
            """() => {
            const copy = document.querySelector('[data-transcript]').cloneNode(true);
            const own = '.day, [data-earlier], [name=csrfmiddlewaretoken]';
            copy.querySelectorAll(own).forEach((node) => node.remove());
            copy.querySelectorAll('time').forEach((node) => node.removeAttribute('title'));
            copy.querySelectorAll('*').forEach((node) => {  // attributes have no order
                const sorted = [...node.attributes].sort((a, b) => (a.name < b.name ? -1 : 1));
                sorted.forEach(({ name }) => {
                    const value = node.getAttribute(name);
                    node.removeAttribute(name);
                    node.setAttribute(name, value);
                });
            });
            return copy.innerHTML.replace(/\\s*\\n\\s*/g, '\\n').trim();
        }"""
        )
    )
