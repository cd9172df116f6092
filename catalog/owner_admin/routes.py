"""Which page answers which address, below an organization's."""

from __future__ import annotations

from catalog.owner_admin import models, providers
from orgs.owner_admin.guard import View

_PROVIDER = "providers/<provider>/"
_MODEL = f"{_PROVIDER}models/<model>/"
ROUTES: dict[str, View] = {
    "providers/": providers.providers,
    "providers/new/": providers.new,
    _PROVIDER: providers.provider,
    f"{_PROVIDER}edit/": providers.edit,
    f"{_PROVIDER}switch/": providers.switch,
    f"{_PROVIDER}test/": providers.test,
    f"{_PROVIDER}remove/": providers.remove,
    f"{_PROVIDER}models/new/": models.new,
    _MODEL: models.edit,
    f"{_MODEL}remove/": models.remove,
}
