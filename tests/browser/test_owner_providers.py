"""Providers in the owner's admin in a real browser: connected, tested, switched off, removed."""

from __future__ import annotations

import re
import uuid

import pytest
from llmock.pytest_plugin import LLMock
from playwright.sync_api import Page, expect

from tests.browser.conftest import NewPerson, shot
from tests.browser.test_accessibility import SIZES, violations

KEY = "local-key-that-no-pattern-knows-7731"


WIDTHS = {**SIZES, "tablet": (768, 1024)}


def connect(page: Page, root: str, name: str, base_url: str) -> None:
    page.goto(f"{root}providers/")
    page.click("text=Connect a provider")
    page.fill("[name=name]", name)
    page.fill("[name=base_url]", base_url)
    page.fill("[name=api_key]", KEY)
    page.fill("[name=models]", "tide-1\ntide-2")
    page.click("main button:has-text('Connect')")
    expect(page.locator("h1")).to_have_text(name)


def root_of(page: Page) -> str:
    return re.sub(r"members/$", "", page.url)


def test_an_owner_connects_a_provider_and_is_told_what_is_wrong(
    person: NewPerson, llmock: LLMock
) -> None:
    page = person().tab("/owner/")
    root = root_of(page)
    page.click("text=Providers and models")
    name = f"Harbour {uuid.uuid4().hex[:6]}"
    connect(page, root, name, llmock.base_url("openai"))
    facts = page.locator(".owner-facts")
    expect(facts).to_contain_text("Available")
    page.click("text=Test connection")
    expect(facts).to_contain_text("It works: tide-1 began to answer")
    llmock.fail(401, message=f"Incorrect key {KEY}.")
    page.click("text=Test connection")
    expect(facts).to_contain_text("the key was refused. It said: Incorrect key [redacted].")
    assert KEY not in page.content()

    page.click("text=Switch off")
    expect(facts).to_contain_text("Switched off")
    page.click("text=Switch on")
    expect(facts).to_contain_text("Available")
    page.click("text=Remove provider…")
    expect(page.locator("main")).to_contain_text("with its models, 2 at present")
    page.click("main button:has-text('Remove')")
    expect(page.locator(".note")).to_contain_text("was removed, and its key with it")
    expect(page.locator("tr", has_text=name)).to_have_count(0)
    page.click("text=Audit log")
    expect(page.locator("tbody tr", has_text=f"removed provider {name}")).to_be_visible()
    assert KEY not in page.content()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", WIDTHS)
def test_no_page_has_a_violation_or_scrolls_sideways(
    person: NewPerson, llmock: LLMock, size: str, scheme: str
) -> None:
    width, height = WIDTHS[size]
    someone = person(viewport={"width": width, "height": height}, color_scheme=scheme)
    page = someone.tab("/owner/")
    root = root_of(page)
    problems: dict[str, list[str]] = {}

    def look(name: str) -> None:
        page.wait_for_timeout(200)
        shot(page, f"owner-{name}-{size}-{scheme}")
        problems[name] = violations(page)
        wide = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
        assert page.evaluate(wide) <= 0, f"{name} scrolls sideways"

    page.goto(f"{root}providers/new/")
    look("provider-new")
    page.fill("[name=name]", "Inside")
    page.fill("[name=base_url]", "http://10.0.0.1/v1")
    page.fill("[name=models]", "tide-1")
    page.click("main button:has-text('Connect')")
    look("provider-new-wrong")
    connect(page, root, f"Harbour {size} {scheme}", llmock.base_url("openai"))
    look("provider")
    home = page.url
    # One test each: an organization has ten in a minute.
    outcome = "It works" if scheme == "light" else "there is no model"
    if scheme == "dark":
        llmock.fail(404, code="model_not_found", message="The model `tide-1` does not exist.")
    page.click("text=Test connection")
    expect(page.locator(".owner-facts")).to_contain_text(outcome)
    look("provider-tested")
    page.click("text=Switch off")
    page.goto(f"{home}edit/")
    look("provider-edit")
    page.goto(f"{home}models/new/")
    look("model-new")
    page.goto(home)
    page.click(".owner-table .is-main a >> nth=0")
    page.fill("[name=aliases]", "fast, cheap")
    page.fill("[name=context_size]", "128000")
    page.fill("[name=input_price]", "2.5")
    page.fill("[name=output_price]", "10")
    look("model-edit")
    page.click("main button:has-text('Save')")
    look("provider-priced")
    page.click("text=Remove provider…")
    look("provider-remove")
    page.goto(f"{root}providers/")
    look("providers")
    someone.problems.clear()  # a form that was filled in wrongly answers 400
    assert {name: found for name, found in problems.items() if found} == {}
