"""Which provider serves a model: by the kind of the organization's connection, imported lazily.

To add a kind: write a module with `connect(connection) -> Provider` and name it in `KINDS`.
Only a worker calls this. Beside it, a test of the connection alone decrypts credentials, for the
one request that it makes.
"""

from __future__ import annotations

from importlib import import_module
from uuid import UUID

from catalog.kinds import ProviderConnection
from catalog.selectors import provider_connection
from core.errors import DomainError
from engine.database import patiently
from engine.failures import provider_error
from engine.ports import ModelChoice, Provider

KINDS = {
    "demo": "engine.providers.demo",
    "openai_compatible": "engine.providers.openai_compatible",
}


# Connections kept open, per process.
OPEN_MAX = 64


class ProviderRegistry:
    """The open connections of this process, one for each distinct configuration."""

    def __init__(self) -> None:
        self._open: dict[ProviderConnection, Provider] = {}

    def for_organization(self, organization_id: UUID) -> OrganizationProviders:
        return OrganizationProviders(self, organization_id)

    async def open(self, connection: ProviderConnection) -> Provider:
        """A provider with this configuration; changed credentials open another one."""
        if (provider := self._open.get(connection)) is None:
            module = KINDS.get(connection.kind)
            if module is None:
                raise provider_error("provider_misconfigured", f"kind {connection.kind}")
            provider = import_module(module).connect(connection)
            if len(self._open) >= OPEN_MAX:
                # The oldest may still serve a stream: it is let go, and ends with that stream.
                self._open.pop(next(iter(self._open)))
            self._open[connection] = provider
        return provider

    async def aclose(self) -> None:
        opened, self._open = self._open, {}
        for provider in opened.values():
            await provider.aclose()


class OrganizationProviders:
    """The providers that the turns of one organization may reach."""

    def __init__(self, registry: ProviderRegistry, organization_id: UUID) -> None:
        self._registry = registry
        self._organization_id = organization_id

    async def connect(self, model: ModelChoice) -> Provider:
        """Raises ProviderError `provider_misconfigured`; reads the configuration of now."""
        try:
            connection = await patiently(
                provider_connection,
                organization_id=self._organization_id,
                provider_id=model.provider_id,
            )
        except DomainError as error:
            raise provider_error("provider_misconfigured", error.message) from error
        return await self._registry.open(connection)
