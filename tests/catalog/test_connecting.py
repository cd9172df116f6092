"""Who administers an organization connects providers and models; every change is written down."""

from __future__ import annotations

import json
import threading
from decimal import Decimal
from ipaddress import ip_address
from typing import Any

import pytest

from catalog.models import Agent, Model, Provider
from catalog.selectors import find_default_model, provider_connection
from catalog.services import validation
from catalog.services.agents import get_or_create_default_agent
from catalog.services.connecting import (
    PROVIDERS_MAX,
    NewProvider,
    ProviderChanges,
    connect_provider,
    remove_provider,
    update_provider,
)
from catalog.services.models import MODELS_MAX, add_model, remove_model, update_model
from core.errors import Conflict, DomainError, Forbidden, InvalidInput, NotFound
from orgs.models import AuditEntry, OrganizationMembership
from orgs.roles import OrganizationRole
from tests.factories import Cast

KEY = "sk-unit-key-that-is-long-7731"
PUBLIC = "https://8.8.8.8/v1"


def connect(cast: Cast, who: str = "owner", **fields: Any) -> Provider:
    new = NewProvider(**{"name": "Harbour models", "base_url": PUBLIC, "api_key": KEY, **fields})
    return connect_provider(access=cast.access(who), organization_id=cast.organization.pk, new=new)


def change(cast: Cast, provider: Provider, who: str = "owner", **changes: Any) -> Provider:
    return update_provider(
        access=cast.access(who),
        organization_id=cast.organization.pk,
        provider_id=provider.pk,
        changes=ProviderChanges(**changes),
    )


def names(cast: Cast, provider: Provider) -> dict[str, Any]:
    return {
        "access": cast.access("owner"),
        "organization_id": cast.organization.pk,
        "provider_id": provider.pk,
    }


def lines(cast: Cast) -> list[tuple[str, str, dict[str, Any]]]:
    rows = AuditEntry.objects.filter(organization_id=cast.organization.pk).order_by("at", "id")
    rows = rows.filter(target_kind__in=["provider", "model"])
    return [(row.action, row.target_name, row.changes) for row in rows]


def test_a_provider_is_connected_and_written_down_without_its_key(cast: Cast) -> None:
    provider = connect(cast, models=[{"model_id": "tide-1"}, {"model_id": "tide-2"}])
    assert (provider.slug, provider.credentials_end) == ("harbour-models", "7731")
    assert KEY not in provider.encrypted_credentials
    found = provider_connection(organization_id=cast.organization.pk, provider_id="harbour-models")
    assert (found.api_key, found.base_url) == (KEY, PUBLIC)
    told = lines(cast)
    assert told[0] == (
        "provider.connected",
        "Harbour models",
        {
            "kind": [None, "openai_compatible"],
            "base_url": [None, PUBLIC],
            "key_ends_with": [None, "…7731"],
        },
    )
    assert [line[:2] for line in told[1:]] == [
        ("model.added", "Harbour models: tide-1"),
        ("model.added", "Harbour models: tide-2"),
    ]
    assert KEY not in json.dumps(told)


@pytest.mark.parametrize("who", ["member", "viewer", "read_only_key", "workspace_key", "outsider"])
def test_nobody_else_may(cast: Cast, who: str) -> None:
    provider = connect(cast)
    before = lines(cast)
    with pytest.raises((Forbidden, NotFound)):
        connect(cast, who)
    with pytest.raises((Forbidden, NotFound)):
        change(cast, provider, who, name="Mine")
    given = {**names(cast, provider), "access": cast.access(who)}
    with pytest.raises((Forbidden, NotFound)):
        add_model(**given, fields={"model_id": "x"})
    with pytest.raises((Forbidden, NotFound)):
        remove_provider(**given)
    assert lines(cast) == before


def test_who_lost_the_role_meanwhile_changes_nothing(cast: Cast) -> None:
    """What one may do is asked again once the organization is held."""
    provider = connect(cast)
    given = {**names(cast, provider), "access": cast.access("admin")}
    OrganizationMembership.objects.filter(user=cast.admin).update(role=OrganizationRole.MEMBER)
    for act in (
        lambda: update_provider(**given, changes=ProviderChanges(name="Mine")),
        lambda: add_model(**given, fields={"model_id": "x"}),
        lambda: remove_provider(**given),
        lambda: connect_provider(
            access=given["access"],
            organization_id=cast.organization.pk,
            new=NewProvider("Another", base_url=PUBLIC),
        ),
    ):
        with pytest.raises(Forbidden):
            act()
    assert Provider.objects.get(pk=provider.pk).name == "Harbour models"


def test_ids_of_other_tenants_name_nothing(cast: Cast) -> None:
    theirs = Provider.objects.get(organization=cast.other_organization)
    model = theirs.models.first()
    assert model is not None
    given = names(cast, theirs)
    ours = names(cast, connect(cast))
    acts = [
        lambda: change(cast, theirs, name="Ours"),
        lambda: remove_provider(**given),
        lambda: add_model(**given, fields={"model_id": "x"}),
        lambda: update_model(**given, model_pk=model.pk, fields={"is_enabled": False}),
        lambda: update_model(**ours, model_pk=model.pk, fields={"is_enabled": False}),
        lambda: remove_model(**ours, model_pk=model.pk),
    ]
    for act in acts:
        with pytest.raises(NotFound):
            act()
    theirs.refresh_from_db()
    assert (theirs.name, theirs.models.count()) == ("Demo", 2)


@pytest.mark.parametrize(
    ("base_url", "code"),
    [
        ("javascript:alert(1)", "invalid_base_url"),
        ("file:///etc/passwd", "invalid_base_url"),
        ("ftp://8.8.8.8/", "invalid_base_url"),
        ("//8.8.8.8/v1", "invalid_base_url"),
        ("8.8.8.8/v1", "invalid_base_url"),
        ("https://", "invalid_base_url"),
        ("https://:443/v1", "invalid_base_url"),
        ("https://user:secret-word@8.8.8.8/v1", "invalid_base_url"),
        ("https://secret-word@8.8.8.8/v1", "invalid_base_url"),
        ("https://8.8.8.8/v1?key=secret-word", "invalid_base_url"),
        ("https://8.8.8.8/v1#x", "invalid_base_url"),
        ("https://8.8.8.8/v1?", "invalid_base_url"),
        ("https://8.8.8.8:99999/v1", "invalid_base_url"),
        ("https://8.8.8.8:x/v1", "invalid_base_url"),
        ("https://8.8.8.8\\@evil.test/v1", "invalid_base_url"),
        ("https://8.8.8.8/\x00", "invalid_base_url"),
        ("https://8.8.8.8/\ud800", "invalid_base_url"),
        ("https://8.8.8.8/a b", "invalid_base_url"),
        ("https://8.8.8.8/\r\nX-Evil: 1", "invalid_base_url"),
        ("https://exämple.test/v1", "invalid_base_url"),
        ("https://[::1/v1", "invalid_base_url"),
        ("https://8.8.8.8/" + "x" * 500, "invalid_base_url"),
        ("https://10.0.0.1/v1", "address_refused"),
        ("https://169.254.169.254/latest", "address_refused"),
        ("https://[fd00:ec2::254]/", "address_refused"),
        ("https://[::ffff:10.0.0.1]/", "address_refused"),
        ("http://8.8.8.8/v1", "address_refused"),
    ],
)
def test_an_address_that_is_none_is_refused_and_nothing_written(
    cast: Cast, base_url: str, code: str
) -> None:
    provider = connect(cast)
    before = lines(cast)
    for act in (
        lambda: connect(cast, name="Other", base_url=base_url),
        lambda: change(cast, provider, base_url=base_url, api_key=KEY),
    ):
        with pytest.raises(InvalidInput) as raised:
            act()
        assert (raised.value.code, raised.value.param) == (code, "base_url")
        assert "secret-word" not in str(raised.value)
    assert lines(cast) == before
    assert Provider.objects.filter(organization=cast.organization).count() == 2


@pytest.mark.parametrize(("host", "is_admitted"), [("127.0.0.1", True), ("localhost", True)])
def test_the_machine_itself_is_for_development(
    cast: Cast, settings: Any, host: str, is_admitted: bool
) -> None:
    assert connect(cast, base_url=f"http://{host}:9/v1/").base_url == f"http://{host}:9/v1"
    settings.PROVIDER_PRIVATE_HOSTS = []
    with pytest.raises(InvalidInput) as raised:
        connect(cast, name="Other", base_url=f"http://{host}:9/v1")
    assert raised.value.code == "address_refused"


def test_what_a_name_means_is_looked_at_when_it_is_stored(
    cast: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    def look_up(host: str) -> list[Any]:
        asked.append(host)
        return [ip_address("10.0.0.1")] if host.startswith("inside") else []

    monkeypatch.setattr("core.outbound._look_up", look_up)
    with pytest.raises(InvalidInput, match="address_refused"):
        connect(cast, base_url="https://inside.example.test/v1")
    provider = connect(cast, base_url="https://unknown.example.test/v1")
    change(cast, provider, name="Renamed", base_url="https://unknown.example.test/v1")
    assert asked == ["inside.example.test", "unknown.example.test"]
    slots = threading.BoundedSemaphore(1)
    monkeypatch.setattr(validation, "_resolving", slots)
    with slots:
        connect(cast, base_url="https://inside.example.test/v1")
    assert len(asked) == 2


@pytest.mark.parametrize("key", ["a b", "\x00", "x\ny", "ключ", "x" * 1_001, "\ud800", "sécret"])
def test_a_key_that_is_none_is_refused_without_being_repeated(cast: Cast, key: str) -> None:
    with pytest.raises(InvalidInput) as raised:
        connect(cast, api_key=key)
    assert (raised.value.code, raised.value.param) == ("invalid_provider_key", "api_key")
    assert key not in str(raised.value)
    assert not Provider.objects.filter(name="Harbour models").exists()


def test_a_short_key_shows_nothing_of_itself(cast: Cast) -> None:
    assert connect(cast, api_key="local-key").credentials_end == ""


def test_the_stored_key_is_not_sent_to_another_address(cast: Cast) -> None:
    """Whoever may change the address need not know the key."""
    provider = connect(cast)
    for elsewhere in ("https://1.1.1.1/v1", "https://8.8.8.8:8443/v1", "https://8.8.8.8/x", ""):
        with pytest.raises(Conflict) as raised:
            change(cast, provider, base_url=elsewhere)
        assert (raised.value.code, raised.value.param) == ("key_needed", "api_key")
    assert change(cast, provider, base_url=f"{PUBLIC}/").base_url == PUBLIC
    moved = change(cast, provider, base_url="https://1.1.1.1/v1", api_key="another-long-key-0042")
    assert (moved.base_url, moved.credentials_end) == ("https://1.1.1.1/v1", "0042")
    assert change(cast, provider, base_url=PUBLIC, api_key="").credentials_end == ""


def test_a_change_is_a_line_with_old_and_new(cast: Cast) -> None:
    provider = connect(cast)
    change(cast, provider, name="Harbour", is_enabled=False)
    change(cast, provider, name="Harbour", is_enabled=False)
    change(cast, provider, api_key="another-long-key-0042")
    assert lines(cast)[1:] == [
        (
            "provider.updated",
            "Harbour",
            {"name": ["Harbour models", "Harbour"], "is_enabled": [True, False]},
        ),
        ("provider.key_replaced", "Harbour", {"key_ends_with": ["…7731", "…0042"]}),
    ]


def test_an_old_address_with_a_password_is_told_without_it(cast: Cast) -> None:
    provider = connect(cast, api_key="")
    Provider.objects.filter(pk=provider.pk).update(base_url="https://u:pass-word@8.8.8.8/v1")
    change(cast, provider, base_url=PUBLIC)
    assert lines(cast)[-1][2] == {"base_url": ["[redacted]", PUBLIC]}


def test_a_new_address_or_key_forgets_the_last_test(cast: Cast) -> None:
    provider = connect(cast)
    moved = {"base_url": "https://8.8.8.8/v2", "api_key": KEY}
    for changes in (moved, {"api_key": "another-long-key-0042"}):
        Provider.objects.filter(pk=provider.pk).update(last_test={"outcome": "works"})
        change(cast, provider, name="Harbour")
        assert Provider.objects.get(pk=provider.pk).last_test == {"outcome": "works"}
        change(cast, provider, **changes)
        assert Provider.objects.get(pk=provider.pk).last_test is None


def test_short_names_differ_and_are_made_from_names(cast: Cast) -> None:
    assert [connect(cast, name=name).slug for name in ("Tide", "Tide", "Tide!", "潮", "潮")] == [
        "tide", "tide-2", "tide-3", "provider", "provider-2",
    ]  # fmt: skip
    assert connect(cast, slug="eu_west-1").slug == "eu_west-1"
    with pytest.raises(Conflict, match="slug_taken"):
        connect(cast, slug="tide")
    for slug in ("Tide", "a/b", "-a", "a" * 51, "a b", "\x00"):
        with pytest.raises(InvalidInput, match="invalid_slug"):
            connect(cast, slug=slug)


def test_there_is_a_bound(cast: Cast) -> None:
    demo = Provider.objects.get(organization=cast.organization)
    Provider.objects.bulk_create(
        Provider(organization=cast.organization, slug=f"p{n}", kind="demo", name="P")
        for n in range(PROVIDERS_MAX - 1)
    )
    with pytest.raises(Conflict, match="too_many_providers"):
        connect(cast)
    Model.objects.bulk_create(
        Model(provider=demo, model_id=f"m{n}", display_name="M")
        for n in range(MODELS_MAX - demo.models.count())
    )
    with pytest.raises(Conflict, match="too_many_models"):
        add_model(**names(cast, demo), fields={"model_id": "one-more"})


@pytest.mark.parametrize("kind", ["demo", "anthropic", "google", "nonsense", ""])
def test_what_no_worker_can_serve_is_not_connected(cast: Cast, kind: str) -> None:
    with pytest.raises(InvalidInput) as raised:
        connect(cast, kind=kind)
    assert (raised.value.code, raised.value.param) == ("kind_not_supported", "kind")


def test_a_model_has_all_that_the_catalogue_knows(cast: Cast) -> None:
    provider = connect(cast)
    fields = {
        "model_id": "tide-1",
        "display_name": " Tide One ",
        "aliases": ["fast", "fast", "cheap"],
        "context_size": 128_000,
        "efforts": ["high", "low"],
        "input_price": Decimal("2.50"),
        "output_price": Decimal(10),
    }
    model = add_model(**names(cast, provider), fields=fields)
    model.refresh_from_db()
    assert (model.display_name, model.aliases, model.efforts) == (
        "Tide One", ["fast", "cheap"], ["low", "high"],
    )  # fmt: skip
    assert (model.context_size, model.input_price) == (128_000, Decimal("2.5"))
    changed = update_model(
        **names(cast, provider),
        model_pk=model.pk,
        fields={"input_price": Decimal(3), "context_size": None, "model_id": "ignored"},
    )
    assert (changed.model_id, changed.context_size) == ("tide-1", None)
    assert lines(cast)[-1] == (
        "model.updated",
        "Harbour models: Tide One",
        {"input_price": ["2.5", "3"], "context_size": [128_000, None]},
    )
    with pytest.raises(Conflict) as raised:
        add_model(**names(cast, provider), fields=fields)
    assert raised.value.code == "model_exists"


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("model_id", ""),
        ("model_id", " "),
        ("model_id", "x" * 201),
        ("model_id", "a\x00b"),
        ("model_id", "a\ud800"),
        ("model_id", "a\nb"),
        ("display_name", "\u200b"),
        ("aliases", [""]),
        ("aliases", [f"a{n}" for n in range(21)]),
        ("context_size", 0),
        ("context_size", 10**12),
        ("efforts", ["much"]),
        ("input_price", Decimal(-1)),
        ("input_price", Decimal("0.0000001")),
        ("output_price", Decimal("NaN")),
        ("output_price", Decimal("Infinity")),
        ("output_price", Decimal("1e6")),
    ],
)
def test_what_is_no_model_is_refused_with_its_path(cast: Cast, field: str, value: Any) -> None:
    provider = connect(cast)
    with pytest.raises(InvalidInput) as raised:
        add_model(**names(cast, provider), fields={"model_id": "tide-1", field: value})
    assert (raised.value.code, raised.value.param) == ("invalid_model", field)
    with pytest.raises(InvalidInput) as raised:
        connect(cast, name="Other", models=[{"model_id": "ok"}, {"model_id": "tide", field: value}])
    assert raised.value.param == f"models[1].{field}"
    assert not Provider.objects.filter(name="Other").exists()
    assert provider.models.count() == 0


def test_one_model_is_the_default_and_another_takes_over(cast: Cast) -> None:
    provider = connect(cast, models=[{"model_id": "tide-1"}])
    model = provider.models.get()
    assert not model.is_default
    update_model(**names(cast, provider), model_pk=model.pk, fields={"is_default": True})
    default = find_default_model(organization_id=cast.organization.pk)
    assert default is not None
    assert default.full_id == "harbour-models/tide-1"
    rows = Model.objects.filter(provider__organization=cast.organization, is_default=True)
    assert rows.count() == 1
    theirs = Model.objects.filter(provider__organization=cast.other_organization, is_default=True)
    assert theirs.count() == 1


def test_the_default_stays_as_long_as_there_is_another_model(cast: Cast) -> None:
    demo = Provider.objects.get(organization=cast.organization)
    default = demo.models.get(is_default=True)
    given = names(cast, demo)
    connect(cast, models=[{"model_id": "tide-1"}])
    before = lines(cast)
    for act in (
        lambda: remove_provider(**given),
        lambda: change(cast, demo, is_enabled=False),
        lambda: remove_model(**given, model_pk=default.pk),
        lambda: update_model(**given, model_pk=default.pk, fields={"is_enabled": False}),
        lambda: update_model(**given, model_pk=default.pk, fields={"is_default": False}),
    ):
        with pytest.raises(Conflict) as raised:
            act()
        assert raised.value.code == "default_needed"
    assert lines(cast) == before


def test_the_last_model_may_go_and_the_first_one_becomes_the_default(cast: Cast) -> None:
    demo = Provider.objects.get(organization=cast.organization)
    remove_provider(**names(cast, demo))
    assert find_default_model(organization_id=cast.organization.pk) is None
    connect(cast, models=[{"model_id": "tide-1"}, {"model_id": "tide-2"}])
    default = find_default_model(organization_id=cast.organization.pk)
    assert default is not None
    assert default.model_id == "tide-1"


def test_agents_of_a_removed_model_go_over_to_the_default(cast: Cast) -> None:
    provider = connect(cast, models=[{"model_id": "tide-1"}])
    agent = get_or_create_default_agent(workspace_id=cast.workspace.pk)
    Agent.objects.filter(pk=agent.pk).update(model=provider.models.get())
    remove_provider(**names(cast, provider))
    agent.refresh_from_db()
    assert agent.model is None
    assert lines(cast)[-1] == (
        "provider.removed",
        "Harbour models",
        {"models": [["tide-1"], []], "agents": [1, None]},
    )
    with pytest.raises(NotFound):
        remove_provider(**names(cast, provider))


def test_the_demo_takes_neither_address_nor_key(cast: Cast) -> None:
    demo = Provider.objects.get(organization=cast.organization)
    for changes in ({"base_url": PUBLIC}, {"api_key": KEY}):
        with pytest.raises(DomainError, match="kind_not_supported"):
            change(cast, demo, **changes)
    assert change(cast, demo, name="Trial").name == "Trial"
