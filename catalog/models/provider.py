"""Providers of models, with their credentials encrypted at rest, and the models they offer."""

from __future__ import annotations

from typing import ClassVar

from django.contrib.postgres.fields import ArrayField
from django.db import models

from catalog.kinds import ProviderKind, ReasoningEffort
from core.clock import now
from core.ids import Prefix, encode_id, uuid7
from core.text import redact
from orgs.models import Organization


class Provider(models.Model):
    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    organization = models.ForeignKey(
        Organization, on_delete=models.CASCADE, related_name="providers"
    )
    slug = models.SlugField(max_length=50, help_text="Its id on the wire: provider/model.")
    kind = models.CharField(max_length=32, choices=[(k.value, k.value) for k in ProviderKind])
    name = models.CharField(max_length=100)
    base_url = models.URLField(max_length=500, blank=True)
    encrypted_credentials = models.TextField(blank=True, editable=False)
    credentials_end = models.CharField(
        max_length=4, blank=True, editable=False, help_text="By which people tell keys apart."
    )
    is_enabled = models.BooleanField(default=True)
    last_test = models.JSONField(
        null=True, editable=False, help_text="What came of trying it as it is stored now."
    )
    created_at = models.DateTimeField(default=now, editable=False)

    class Meta:
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(
                fields=["organization", "slug"],
                name="provider_slugs_differ_within_an_organization",
            ),
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def public_id(self) -> str:
        return encode_id(Prefix.PROVIDER, self.pk)

    @property
    def shown_base_url(self) -> str:
        """For people: an operator may have stored one with credentials in it."""
        bears_more = "@" in self.base_url or "?" in self.base_url
        return redact(self.base_url) if bears_more else self.base_url


class Model(models.Model):
    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    provider = models.ForeignKey(Provider, on_delete=models.CASCADE, related_name="models")
    model_id = models.CharField(max_length=200)
    display_name = models.CharField(max_length=200)
    aliases = ArrayField(models.CharField(max_length=200), default=list, blank=True)
    context_size = models.PositiveIntegerField(null=True, blank=True, help_text="Tokens.")
    efforts = ArrayField(
        models.CharField(max_length=16, choices=[(e.value, e.value) for e in ReasoningEffort]),
        default=list,
        blank=True,
    )
    input_price = models.DecimalField(
        max_digits=12,
        decimal_places=6,
        null=True,
        blank=True,
        help_text="Per million tokens.",
    )
    output_price = models.DecimalField(
        max_digits=12,
        decimal_places=6,
        null=True,
        blank=True,
        help_text="Per million tokens.",
    )
    is_enabled = models.BooleanField(default=True)
    is_default = models.BooleanField(
        default=False,
        help_text="What an organization's sessions use unless something else says.",
    )

    class Meta:
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(
                fields=["provider", "model_id"],
                name="model_ids_differ_within_a_provider",
            ),
        ]

    def __str__(self) -> str:
        return self.display_name

    @property
    def public_id(self) -> str:
        return encode_id(Prefix.MODEL, self.pk)
