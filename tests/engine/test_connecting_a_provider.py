"""An operator stores a provider's key in the admin; only a worker ever reads it again."""

from __future__ import annotations

from django.test import Client

from catalog.models import Provider
from catalog.selectors import provider_connection
from orgs.models import User
from tests.factories import Cast

KEY = "local-key-7731"


def test_an_operator_connects_a_provider(cast: Cast, client: Client) -> None:
    operator = User.objects.get(pk=cast.owner.pk)
    operator.is_staff = operator.is_superuser = True
    operator.save()
    client.force_login(operator)
    form = {
        "organization": cast.organization.pk.hex,
        "slug": "local",
        "kind": "openai_compatible",
        "name": "Local",
        "base_url": "http://127.0.0.1:9/v1",
        "is_enabled": "on",
        "api_key": KEY,
        "models-TOTAL_FORMS": "0",
        "models-INITIAL_FORMS": "0",
    }
    answer = client.post("/admin/catalog/provider/add/", form)
    assert answer.status_code == 302, answer.content.decode()[:2000]
    provider = Provider.objects.get(slug="local")
    assert KEY not in provider.encrypted_credentials
    page = client.get(f"/admin/catalog/provider/{provider.pk}/change/").content.decode()
    assert KEY not in page
    assert provider.encrypted_credentials not in page
    client.post(f"/admin/catalog/provider/{provider.pk}/change/", {**form, "api_key": ""})
    connection = provider_connection(organization_id=cast.organization.pk, provider_id="local")
    assert connection.api_key == KEY
    assert KEY not in repr(connection)
