"""What is one person's own changes no byte of what others read, at whatever address (BR-089,
BR-092): before it is there, while it is, and when it is gone again.
"""

from __future__ import annotations

import html
import re
from typing import Any

import pytest
from django.test import Client

from sessions_app.web.urls import urlpatterns
from tests.api.callers import secrets_of_keys
from tests.api.client import Caller
from tests.api.hiding import Hidden, Workspace, bytes_of, erase
from tests.api.matrix_rows import MATRIX, PEOPLE
from tests.api.surfaces import PAGES, TELLING, Place, described, reads
from tests.factories import Cast
from tests.orgs.owner_rows import ROWS, House, two_houses

STRANGERS = (
    *(each for each in PEOPLE if each != "member"),
    "workspace_key",
    "organization_key",
    "organization_read_key",
)
PAGES_MAX = 60  # of one list
MORE = re.compile(r'href="([^"]*(?:cursor|page|before)=[^"]+)"')


class Eyes:
    """One caller, and every address that they could ask."""

    def __init__(self, cast: Cast, name: str, secrets: dict[str, str], house: House) -> None:
        self.house = house
        if name in secrets:
            self.api = Caller(cast, authorization=f"Bearer {secrets[name]}")
        else:
            self.api = Caller(cast, name)
        self.browser: Client | None = None
        if not name.endswith("key"):
            self.browser = Client()
            self.browser.force_login(getattr(cast, name))
            self.browser.get("/", follow=True)  # which remembers the workspace that was open last
        self.api.get("/v1/workspaces")  # a first use is noted

    def read(self, place: Place, hidden: Hidden) -> dict[str, str]:
        found = {address: self._walk(place.fill(address), hidden) for address in reads()}
        if self.browser is not None:
            found |= self._pages(self.browser, place, hidden)
        return found

    def _walk(self, address: str, hidden: Hidden) -> str:
        """All pages of a list, each by the cursor of the one before."""
        text, cursor = "", None
        for _ in range(PAGES_MAX):
            page = f"{'&' if '?' in address else '?'}page={cursor}" if cursor else ""
            answer = self.api.get(f"{address}{page}")
            text += bytes_of(answer, hidden)
            body = answer.json()
            cursor = body.get("next_page") if isinstance(body, dict) else None
            if not cursor:
                return text
        raise AssertionError(f"{address} has no end")

    def _pages(self, browser: Client, place: Place, hidden: Hidden) -> dict[str, str]:
        found = {}
        for address in PAGES:
            for headers in ({}, {"x-fragment": "1"}):
                answer = browser.get(place.fill(address), headers=headers)
                name = f"{address} in part" if headers else address
                found[name] = bytes_of(answer, hidden)
                for more in MORE.findall(answer.content.decode()):
                    found[f"{name} more"] = bytes_of(browser.get(html.unescape(more)), hidden)
        for row in ROWS:
            if row.method == "GET":
                found[f"owner {row.address}"] = bytes_of(row.send(browser, self.house), hidden)
        return found


def differences(before: dict[str, str], after: dict[str, str]) -> set[str]:
    assert before.keys() == after.keys()
    return {address for address in before if before[address] != after[address]}


@pytest.fixture
def stage(cast: Cast) -> tuple[Workspace, Hidden, dict[str, str], House]:
    ours, _ = two_houses(cast)
    return Workspace(cast), Hidden.to_be(), secrets_of_keys(cast), ours


@pytest.mark.slow
@pytest.mark.parametrize("name", STRANGERS)
def test_what_is_hidden_changes_no_byte_of_what_others_read(stage: Any, name: str) -> None:
    workspace, hidden, secrets, house = stage
    eyes = Eyes(workspace.cast, name, secrets, house)
    without = eyes.read(workspace.place(hidden), hidden)
    made = hidden.make(workspace)
    with_it = eyes.read(workspace.place(hidden), hidden)
    assert differences(without, with_it) == set()
    erase(workspace, made)
    assert differences(without, eyes.read(workspace.place(hidden), hidden)) == set()


@pytest.mark.slow
def test_its_maker_sees_it_at_all_of_them(stage: Any) -> None:
    """Or the test above could not fail."""
    workspace, hidden, secrets, house = stage
    eyes = Eyes(workspace.cast, "member", secrets, house)
    without = eyes.read(workspace.place(hidden), hidden)
    hidden.make(workspace)
    told = differences(without, eyes.read(workspace.place(hidden), hidden))
    assert set(TELLING) - told == set()


def test_no_read_of_the_api_is_left_out() -> None:
    """The rows come from the description, which has what the URL configuration has."""
    described_too = {*described(), "/v1/openapi.json"}
    routed = {"/v1/" + re.sub(r"<str:(\w+)>", r"{\1}", p) for m, p in MATRIX if m == "GET"}
    assert described_too == routed
    assert len(TELLING) >= 20


def test_no_page_is_left_out(cast: Cast) -> None:
    """Whatever answers a GET below `/`, beside what is posted alone."""
    browser = Client()
    browser.force_login(cast.member)
    read = {re.sub(r"\{\w+\}|\d+", "·", page.partition("?")[0]) for page in PAGES}
    read |= {page.replace("today", "·") for page in read}
    for pattern in urlpatterns:
        path = "/" + re.sub(r"<\w+:\w+>", "·", str(pattern.pattern))
        if path == "/account/":
            continue  # one's own logins, and when each was used last
        is_read = browser.get(path.replace("·", "1")).status_code != 405
        assert is_read is (path in read), path
