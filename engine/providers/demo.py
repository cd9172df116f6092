"""The built-in provider: two models that need no network."""

from __future__ import annotations

from collections.abc import AsyncGenerator

from catalog.kinds import ProviderConnection
from engine.failures import provider_error
from engine.ports import ModelRequest, Provider, StreamPart
from engine.providers.assistant import AssistantProvider
from engine.providers.scripted import ScriptedProvider

SCRIPTED = "scripted"
ASSISTANT = "assistant"


def connect(connection: ProviderConnection) -> Provider:
    return DemoProvider()


class DemoProvider:
    def __init__(self) -> None:
        self._models: dict[str, Provider] = {
            SCRIPTED: ScriptedProvider(),
            ASSISTANT: AssistantProvider(),
        }

    def stream(self, request: ModelRequest) -> AsyncGenerator[StreamPart, None]:
        model = self._models.get(request.model.model_id)
        if model is None:
            raise provider_error(
                "provider_model_not_found", f"The demo has no model {request.model.model_id}."
            )
        return model.stream(request)

    async def aclose(self) -> None:
        """It holds nothing open."""
