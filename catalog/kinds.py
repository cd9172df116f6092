"""The fixed vocabularies of the catalogue, and the frozen values that leave it."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum


class ProviderKind(StrEnum):
    DEMO = "demo"
    OPENAI_COMPATIBLE = "openai_compatible"
    ANTHROPIC = "anthropic"
    GOOGLE = "google"


# What owners connect. The demo needs no address and no key, and comes with the organization.
CONNECTABLE = (ProviderKind.OPENAI_COMPATIBLE,)
OPENAI_BASE_URL = "https://api.openai.com/v1"


class ReasoningEffort(StrEnum):
    NONE = "none"
    MINIMAL = "minimal"
    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"
    MAX = "max"


class ProviderState(StrEnum):
    """Whether sessions can use its models now, and what is missing where not."""

    AVAILABLE = "available"
    DISABLED = "disabled"
    NO_CREDENTIALS = "no_credentials"
    NO_WORKER = "no_worker"


class Speed(StrEnum):
    STANDARD = "standard"
    FAST = "fast"


@dataclass(frozen=True, slots=True)
class ModelRef:
    """A model that was resolved: ids decide, names are decoration."""

    provider_id: str
    model_id: str
    display_name: str
    provider_name: str

    @property
    def full_id(self) -> str:
        return f"{self.provider_id}/{self.model_id}"


@dataclass(frozen=True, slots=True)
class ProviderConnection:
    """What a worker needs to reach a provider. `api_key` is never printed."""

    kind: ProviderKind
    base_url: str
    api_key: str = field(repr=False)
