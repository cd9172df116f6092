"""Folders in the sidebar: by menu, keyboard and dragging, live in every tab, shut for oneself."""

from __future__ import annotations

from playwright.sync_api import Page, expect

from tests.browser.conftest import NewPerson, shot
from tests.journeys.client import Client


def act(page: Page, key: str, *items: str) -> None:
    """Opens the menu of a row or a folder by keyboard and chooses."""
    row = page.locator(f'.row-item[data-key="{key}"]')
    if row.count():
        row.locator(".row").focus()
        row.locator("[data-row-menu]").press("Enter")
    else:
        page.locator(f'[data-group="{key}"] > summary').focus()
        page.locator(f'[data-group="{key}"] > [data-folder-menu]').press("Enter")
    for item in items:
        page.locator("[role=menuitem]", has_text=item).press("Enter")


def names(page: Page) -> list[str]:
    return page.locator("[data-is-folder] > summary [data-name]").all_inner_texts()


def test_folders_are_made_filled_ordered_and_deleted_in_all_tabs_at_once(
    person: NewPerson, client: Client
) -> None:
    first, second = client.create("Low tide"), client.create("High tide")
    someone, other = person(), person()
    page, far = (each.tab(f"/w/{each.workspace}/new/") for each in (someone, other))
    row = page.locator(f'.row-item[data-key="{first}"]')
    act(page, first, "Move to folder", "New folder")
    page.keyboard.type("Tides")
    page.keyboard.press("Enter")
    folder = page.locator("[data-is-folder]", has_text="Tides")
    expect(folder.locator(row)).to_be_visible()
    key = folder.get_attribute("data-group") or ""
    expect(folder.locator("[data-total]")).to_have_text("1")
    there = far.locator(f'[data-group="{key}"]')
    expect(there.locator(f'[data-key="{first}"]')).to_be_visible()

    page.locator(f'.row-item[data-key="{second}"] .row').drag_to(folder.locator("summary"))
    expect(there.locator(f'[data-key="{second}"]')).to_be_visible()
    expect(there.locator("[data-total]")).to_have_text("2")
    shot(page, "folders")

    page.click("[data-new-folder]")
    page.keyboard.type("Kilns")
    page.keyboard.press("Enter")
    kilns = page.locator("[data-is-folder]", has_text="Kilns")
    expect(kilns).to_be_visible()
    act(page, kilns.get_attribute("data-group") or "", "Move up")
    expect(far.locator("[data-is-folder] [data-name]").first).to_have_text("Kilns")
    act(page, key, "Rename")
    page.keyboard.type("Ebb and flow")
    page.keyboard.press("Enter")
    expect(there.locator("[data-name]")).to_have_text("Ebb and flow")
    page.click("[data-new-folder]")
    page.keyboard.type("EBB AND FLOW")
    page.keyboard.press("Enter")
    expect(page.locator(".toast")).to_contain_text("has this name already")

    there.locator("summary").click()
    expect(there).not_to_have_attribute("open", "")
    with far.expect_response("**/fold"):
        far.keyboard.press("Enter")
    with far.expect_response("**/fold"):
        far.keyboard.press("Enter")
    far.reload()
    expect(there).not_to_have_attribute("open", "")
    expect(folder).to_have_count(0)
    expect(page.locator(f'[data-group="{key}"]')).to_have_attribute("open", "")

    act(page, first, "Move to folder", "No folder")
    expect(page.locator('[data-group="today"]').locator(row)).to_be_visible()
    act(page, key, "Delete folder")
    expect(far.locator(f'[data-group="{key}"]')).to_have_count(0)
    expect(far.locator(f'[data-group="today"] [data-key="{second}"]')).to_be_visible()
    someone.problems.clear()  # the name that was taken
