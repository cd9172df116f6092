"""What the owner's pages about providers do and say, and that no page has a key."""

from __future__ import annotations

import json
from typing import Any

import pytest
from llmock.pytest_plugin import LLMock

from catalog.kinds import ProviderState
from catalog.models import Model, Provider
from catalog.owner_admin.words import STATE_WORDS
from catalog.selectors import provider_connection
from catalog.services.workers import note_worker
from core.ids import uuid7
from orgs.models import AuditEntry
from tests.factories import Cast
from tests.orgs.test_owner_admin_pages import Desk

KEY = "local-key-that-no-pattern-knows-7731"
NOWHERE = "http://127.0.0.1:9/v1"


@pytest.fixture
def desk(cast: Cast) -> Desk:
    return Desk(cast)


def connect(desk: Desk, status: int = 302, **fields: Any) -> str:
    asked = {"name": "Harbour", "base_url": NOWHERE, "api_key": KEY, "models": "tide-1", **fields}
    return desk.post("providers/new/", status, **asked)


def page_of(cast: Cast, name: str = "Harbour") -> str:
    provider = Provider.objects.get(organization=cast.organization, name=name)
    return f"providers/{provider.public_id}/"


def test_a_newcomer_connects_tests_and_sees_what_is_missing(
    cast: Cast, desk: Desk, llmock: LLMock
) -> None:
    assert "Connect a provider" in desk.get("providers/")
    connect(desk, base_url=llmock.base_url("openai"), models=" tide-1 \n\ntide-2\r\ntide-1")
    here = page_of(cast)
    seen = [desk.get(here), desk.get("providers/"), desk.get(f"{here}edit/")]
    assert "Test the connection before somebody needs it." in seen[0]
    assert "No worker" in seen[0]
    assert "ends with <code>7731</code>" in seen[0]
    assert "None since address or key were stored." in seen[0]
    provider = Provider.objects.get(organization=cast.organization, slug="harbour")
    assert [model.model_id for model in provider.models.order_by("model_id")] == [
        "tide-1",
        "tide-2",
    ]
    note_worker(token=uuid7(), name="w", kinds=["openai_compatible"])
    desk.post(f"{here}test/")
    seen.append(desk.get(here))
    assert "It works: tide-1 began to answer after" in seen[-1]
    assert "Available" in seen[-1]
    llmock.fail(401, message=f"Wrong key {KEY}")
    desk.post(f"{here}test/")
    seen.append(desk.get(here))
    assert "the key was refused. It said: Wrong key [redacted]" in seen[-1]
    assert "Failed" in desk.get("providers/")
    seen += [desk.get("audit/"), desk.post("audit/export/", 200)]
    assert not any(KEY in page or provider.encrypted_credentials in page for page in seen)


def test_a_refused_form_says_why_and_keeps_all_but_the_key(cast: Cast, desk: Desk) -> None:
    page = connect(desk, 400, base_url="http://10.0.0.1/v1", models="tide-1\ntide-2")
    assert "leads into a private network" in page
    assert 'value="http://10.0.0.1/v1"' in page
    assert "tide-2" in page
    assert KEY not in page
    assert not Provider.objects.filter(name="Harbour").exists()


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"base_url": "javascript:alert(1)"}, "begins with https://"),
        ({"base_url": "file:///etc/passwd"}, "begins with https://"),
        ({"base_url": "https://u:secret@host.test/"}, "Leave name and password out"),
        ({"base_url": "https://host.test/?key=x"}, "Leave out what comes after"),
        ({"base_url": "http://169.254.169.254/"}, "private network"),
        ({"base_url": "https://" + "x" * 600}, "at most 500 characters"),
        ({"name": ""}, "This field is required"),
        ({"name": "a\x00b"}, "Null characters are not allowed"),
        ({"models": ""}, "This field is required"),
        ({"models": "x" * 201}, "Use 1 to 200 characters"),
        ({"models": "\n".join(map(str, range(201)))}, "at most 200 models"),
        ({"api_key": "a b"}, "without spaces"),
        ({"api_key": "x" * 1_001}, "at most 1000 characters"),
        ({"slug": "A/B"}, "small letters"),
        ({"slug": "demo"}, "Another provider has this short name"),
    ],
)
def test_hostile_input_is_answered_in_the_form(
    cast: Cast, desk: Desk, fields: dict[str, str], words: str
) -> None:
    before = AuditEntry.objects.count()
    assert words in connect(desk, 400, **fields)
    assert not Provider.objects.filter(organization=cast.organization).exclude(slug="demo").exists()
    assert AuditEntry.objects.count() == before


def test_what_people_and_providers_wrote_is_no_markup(cast: Cast, desk: Desk) -> None:
    connect(desk, name="<b>Harbour</b>", models="<i>tide</i>")
    provider = Provider.objects.get(name="<b>Harbour</b>")
    provider.last_test = {
        "outcome": "wrong_key",
        "text": "It said: <script>alert(1)</script>",
        "model_id": "m",
        "at": "2026-12-03T08:00:00Z",
    }
    provider.save()
    for page in (page_of(cast, "<b>Harbour</b>"), "providers/", "audit/"):
        text = desk.get(page)
        assert "&lt;b&gt;Harbour" in text
        assert not any(tag in text for tag in ("<b>Harbour", "<i>tide", "<script>alert"))


def test_an_address_with_a_password_is_not_shown(cast: Cast, desk: Desk) -> None:
    connect(desk)
    here = page_of(cast)
    Provider.objects.filter(name="Harbour").update(base_url="https://u:pass-word@8.8.8.8/v1")
    for page in (here, f"{here}edit/", "providers/"):
        assert "pass-word" not in desk.get(page)


def test_a_key_is_replaced_and_an_empty_field_leaves_it(cast: Cast, desk: Desk) -> None:
    connect(desk)
    here = page_of(cast)
    assert 'type="password"' in desk.get(f"{here}edit/")
    desk.post(f"{here}edit/", name="Harbour", base_url=NOWHERE, api_key="")
    place = {"organization_id": cast.organization.pk, "provider_id": "harbour"}
    assert provider_connection(**place).api_key == KEY
    page = desk.post(f"{here}edit/", 400, name="Harbour", base_url="http://127.0.0.1:10/v1")
    assert "Write the key again" in page
    desk.post(f"{here}edit/", name="Harbour", base_url=NOWHERE, api_key="another-long-key-0042")
    assert provider_connection(**place).api_key == "another-long-key-0042"
    lines = desk.get("audit/")
    assert "replaced the key of" in lines
    assert "…7731" in lines
    assert "…0042" in lines


def test_it_is_switched_to_what_was_asked_for(cast: Cast, desk: Desk) -> None:
    connect(desk)
    here = page_of(cast)
    for wanted, is_enabled in (("off", False), ("off", False), ("on", True)):
        desk.post(f"{here}switch/", enabled=wanted)
        assert Provider.objects.get(name="Harbour").is_enabled is is_enabled
    desk.post(f"{here}switch/", 400, enabled="maybe")
    desk.post(f"{page_of(cast, 'Demo')}switch/", enabled="off")
    assert "make another model the default first" in desk.get("providers/")
    assert Provider.objects.get(organization=cast.organization, slug="demo").is_enabled


def test_removing_says_what_goes_and_asks_first(cast: Cast, desk: Desk) -> None:
    connect(desk)
    here = page_of(cast)
    text = desk.get(f"{here}remove/")
    assert "with its models, 1 at present" in text
    assert "Agents that use them, 0 at present" in text
    assert Provider.objects.filter(name="Harbour").exists()
    desk.post(f"{here}remove/")
    desk.get(here, 404)
    desk.post(f"{here}test/", 404)
    desk.post(f"{page_of(cast, 'Demo')}remove/")
    assert "make another model the default first" not in desk.get("providers/")


def test_the_default_is_kept_while_there_is_another_model(cast: Cast, desk: Desk) -> None:
    connect(desk)
    desk.post(f"{page_of(cast, 'Demo')}remove/")
    assert "make another model the default first" in desk.get("providers/")
    assert Provider.objects.filter(organization=cast.organization, slug="demo").exists()


def test_a_model_is_added_changed_made_the_default_and_removed(cast: Cast, desk: Desk) -> None:
    connect(desk)
    here = page_of(cast)
    desk.post(
        f"{here}models/new/",
        model_id="tide-2",
        display_name="Tide Two",
        aliases="fast, cheap ,",
        context_size="128000",
        input_price="2.50",
        output_price="10",
        efforts=["low", "high"],
        flags=["is_enabled"],
    )
    model = Model.objects.get(model_id="tide-2")
    assert (model.aliases, model.efforts, str(model.input_price)) == (
        ["fast", "cheap"],
        ["low", "high"],
        "2.500000",
    )
    there = f"{here}models/{model.public_id}/"
    form = desk.get(there)
    for shown in ('value="Tide Two"', 'value="fast, cheap"', 'value="128000"', 'value="2.5"'):
        assert shown in form
    assert "This field" not in form
    desk.post(there, display_name="Tide Two", flags=["is_enabled", "is_default"])
    model.refresh_from_db()
    assert (model.is_default, model.aliases, model.input_price) == (True, [], None)
    page = desk.post(there, 400, display_name="Tide Two", flags=["is_enabled"])
    assert "make another model the default first" in page
    desk.post(f"{there}remove/")
    assert "make another model the default first" in desk.get(here)
    first = Model.objects.get(model_id="tide-1")
    desk.post(f"{here}models/{first.public_id}/", flags=["is_enabled", "is_default"])
    desk.post(f"{there}remove/")
    assert not Model.objects.filter(model_id="tide-2").exists()
    desk.get(there, 404)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"model_id": ""}, "This field is required"),
        ({"model_id": "tide-1"}, "has a model of that id already"),
        ({"context_size": "0"}, "greater than or equal to 1"),
        ({"context_size": "9" * 30}, "Use 1 to"),
        ({"input_price": "-1"}, "A price is 0"),
        ({"input_price": "NaN"}, "Enter a number"),
        ({"input_price": "1e9"}, "A price is 0"),
        ({"output_price": "0.0000001"}, "at most 6 decimals"),
        ({"efforts": ["much"]}, "Select a valid choice"),
        ({"flags": ["is_root"]}, "Select a valid choice"),
        ({"aliases": ",".join(map(str, range(21)))}, "At most 20 aliases"),
    ],
)
def test_a_model_that_is_none_is_answered_in_the_form(
    cast: Cast, desk: Desk, fields: dict[str, Any], words: str
) -> None:
    connect(desk)
    sent = {"model_id": "tide-2", "flags": ["is_enabled"], **fields}
    assert words in desk.post(f"{page_of(cast)}models/new/", 400, **sent)
    assert not Model.objects.filter(model_id="tide-2").exists()


def test_a_model_of_another_provider_is_not_reached_through_this_one(
    cast: Cast, desk: Desk
) -> None:
    connect(desk)
    demo = Model.objects.filter(provider__organization=cast.organization, provider__slug="demo")
    for model in demo:
        there = f"{page_of(cast)}models/{model.public_id}/"
        desk.get(there, 404)
        desk.post(f"{there}remove/", 404)
    assert demo.count() == 2


def test_a_test_that_cannot_be_made_says_why(cast: Cast, desk: Desk) -> None:
    here = page_of(cast, "Demo")
    assert "Test connection" not in desk.get(here)
    desk.post(f"{here}test/")
    assert "no connection to test" in desk.get(here)
    connect(desk)
    for _ in range(10):
        desk.post(f"{page_of(cast)}test/")
        desk.get(page_of(cast))
    desk.post(f"{page_of(cast)}test/")
    assert "That were many tests" in desk.get(page_of(cast))


def test_the_demo_has_a_name_alone(cast: Cast, desk: Desk) -> None:
    here = page_of(cast, "Demo")
    assert 'name="api_key"' not in desk.get(f"{here}edit/")
    desk.post(f"{here}edit/", name="Trial", base_url=NOWHERE, api_key=KEY)
    demo = Provider.objects.get(organization=cast.organization, slug="demo")
    assert (demo.name, demo.base_url, demo.encrypted_credentials) == ("Trial", "", "")


def test_each_state_has_its_words() -> None:
    assert set(STATE_WORDS) == set(ProviderState)


def test_nothing_of_a_key_is_written_down(cast: Cast, desk: Desk) -> None:
    connect(desk)
    lines = json.dumps(list(AuditEntry.objects.values_list("changes", "target_name")))
    assert KEY not in lines
    assert KEY[:-4] not in lines
