"""Which model an organization's sessions use where nothing else says."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from uuid import UUID

from catalog.models import Model
from catalog.selectors import find_default_model, list_models
from core.errors import Conflict


@contextmanager
def keeping_a_default(organization_id: UUID) -> Iterator[None]:
    """Raises Conflict `default_needed`, within the transaction of the change, where it would leave
    models without a default among them. The last model may go: then there is nothing to choose.
    """
    had_one = find_default_model(organization_id=organization_id) is not None
    yield
    models = list_models(organization_id=organization_id)
    if had_one and models.exists() and not models.filter(is_default=True).exists():
        raise Conflict(
            "default_needed",
            "New sessions use a model of this one: make another model the default first.",
        )


def make_default(model: Model, organization_id: UUID) -> None:
    """The organization's row is held."""
    others = Model.objects.filter(provider__organization_id=organization_id, is_default=True)
    others.exclude(pk=model.pk).update(is_default=False)
    Model.objects.filter(pk=model.pk).update(is_default=True)
    model.is_default = True
