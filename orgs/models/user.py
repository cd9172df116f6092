"""A person who signs in with an e-mail address."""

from __future__ import annotations

from typing import Any, ClassVar

from django.contrib.auth.models import (
    AbstractBaseUser,
    BaseUserManager,
    PermissionsMixin,
)
from django.db import models
from django.db.models.functions import Lower

from core.clock import now
from core.ids import Prefix, encode_id, uuid7


class UserManager(BaseUserManager["User"]):
    def get_by_natural_key(self, username: str | None) -> User:
        return self.get(email__iexact=username)

    def create_user(self, email: str, password: str | None = None, **fields: Any) -> User:
        user = self.model(email=self.normalize_email(email), **fields)
        user.set_password(password)
        user.save(using=self._db)
        return user

    def create_superuser(self, email: str, password: str | None = None, **fields: Any) -> User:
        return self.create_user(email, password, is_staff=True, is_superuser=True, **fields)


class User(AbstractBaseUser, PermissionsMixin):
    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    email = models.EmailField(max_length=254)
    name = models.CharField(max_length=100)
    is_active = models.BooleanField(default=True)
    is_staff = models.BooleanField(
        default=False, help_text="May open /admin/, as an operator of this server."
    )
    service_of = models.ForeignKey(
        "orgs.Organization",
        on_delete=models.CASCADE,
        null=True,
        blank=True,
        editable=False,
        related_name="service_accounts",
        help_text="The organization whose service account this is; empty for a person.",
    )
    created_at = models.DateTimeField(default=now, editable=False)

    USERNAME_FIELD = "email"
    REQUIRED_FIELDS: ClassVar[list[str]] = ["name"]

    objects = UserManager()

    class Meta:
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(Lower("email"), name="one_user_per_email"),
        ]

    def __str__(self) -> str:
        return self.email

    @property
    def is_service_account(self) -> bool:
        return self.service_of_id is not None

    @property
    def public_id(self) -> str:
        return encode_id(Prefix.USER, self.pk)
