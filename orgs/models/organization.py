"""The tenant, and who belongs to it in which role."""

from __future__ import annotations

from typing import ClassVar

from django.db import models

from core.clock import now
from core.ids import Prefix, encode_id, uuid7
from orgs.models.user import User
from orgs.roles import OrganizationRole


class Organization(models.Model):
    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    name = models.CharField(max_length=100)
    allows_private_sessions = models.BooleanField(
        default=False, help_text="Members may create sessions that only they see."
    )
    access_epoch = models.PositiveBigIntegerField(
        default=0,
        editable=False,
        help_text="Rises with every change of who may see or do what; open streams watch it.",
    )
    created_at = models.DateTimeField(default=now, editable=False)

    def __str__(self) -> str:
        return self.name

    @property
    def public_id(self) -> str:
        return encode_id(Prefix.ORGANIZATION, self.pk)


class OrganizationMembership(models.Model):
    organization = models.ForeignKey(
        Organization, on_delete=models.CASCADE, related_name="memberships"
    )
    user = models.ForeignKey(
        User, on_delete=models.CASCADE, related_name="organization_memberships"
    )
    role = models.CharField(max_length=16, choices=[(r.value, r.value) for r in OrganizationRole])
    created_at = models.DateTimeField(default=now, editable=False)

    class Meta:
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(
                fields=["organization", "user"],
                name="one_organization_membership_per_user",
            ),
            models.CheckConstraint(
                condition=models.Q(role__in=[r.value for r in OrganizationRole]),
                name="organization_role_is_known",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.user} · {self.role}"
