"""The user of a product, for whom the product has a session."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class EndUser:
    """A product's own user: the exact pair. The same id from another source is somebody else."""

    source: str
    id: str
