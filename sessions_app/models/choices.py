"""Enums as choices and as check constraints, so that Python and the database agree."""

from __future__ import annotations

from enum import StrEnum

from django.db import models


def choices_of(enum: type[StrEnum]) -> list[tuple[str, str]]:
    return [(member.value, member.value or "none") for member in enum]


def known(field: str, enum: type[StrEnum], name: str) -> models.CheckConstraint:
    values = [member.value for member in enum]
    return models.CheckConstraint(condition=models.Q(**{f"{field}__in": values}), name=name)
