"""What changes the catalogue."""

from catalog.services.agents import get_or_create_default_agent
from catalog.services.providers import (
    create_demo_provider,
    create_provider,
    set_credentials,
)

__all__ = [
    "create_demo_provider",
    "create_provider",
    "get_or_create_default_agent",
    "set_credentials",
]
