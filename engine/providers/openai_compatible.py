"""Any server that speaks OpenAI's chat completions, through pydantic-ai's direct requests.

No agent of pydantic-ai runs here: the step loop is ours, this module translates one request.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterator, Sequence
from typing import Any

import httpx2
from django.conf import settings
from openai import AsyncOpenAI, Timeout
from pydantic_ai import direct, exceptions, messages
from pydantic_ai.models import ModelRequestParameters, StreamedResponse
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIChatModelSettings
from pydantic_ai.profiles.openai import OpenAIModelProfile
from pydantic_ai.providers.openai_compatible import OpenAICompatibleProvider as Connection
from pydantic_ai.tools import ToolDefinition

from catalog.kinds import OPENAI_BASE_URL, ProviderConnection
from core.outbound import AddressRefused, cause_of
from core.outbound_http import GuardedTransport
from engine.failures import error_from_status, provider_error
from engine.ports import (
    AgentReply,
    Finish,
    HistoryItem,
    ModelRequest,
    Provider,
    ProviderError,
    StreamPart,
    TextDelta,
    ThinkingDelta,
    ToolCall,
    ToolReturn,
    ToolSpec,
    Usage,
    UserText,
)
from engine.tools.names import from_wire, to_wire

# Seconds. A reasoning model may think for minutes before its first byte.
TIMEOUT = Timeout(connect=10.0, read=300.0, write=60.0, pool=10.0)
# Servers without a key still want one to be sent.
NO_KEY = "none"
REDIRECTED = "The address redirects elsewhere, and the key is sent to no other."


def connect(connection: ProviderConnection) -> Provider:
    return OpenAICompatibleProvider(connection)


class OpenAICompatibleProvider:
    def __init__(self, connection: ProviderConnection) -> None:
        self._secrets = (connection.api_key,) if connection.api_key else ()
        # Our loop retries and says so in the log; a retry inside the client would be silent.
        self._client = AsyncOpenAI(
            base_url=connection.base_url or OPENAI_BASE_URL,
            api_key=connection.api_key or NO_KEY,
            max_retries=0,
            timeout=TIMEOUT,
            # Follows no redirects: who answers at the address must not send the key elsewhere.
            http_client=httpx2.AsyncClient(
                transport=GuardedTransport(settings.PROVIDER_PRIVATE_HOSTS),
                follow_redirects=False,
            ),
        )

    async def stream(self, request: ModelRequest) -> AsyncGenerator[StreamPart, None]:
        model = OpenAIChatModel(
            request.model.model_id,
            provider=Connection(
                request.model.provider_id,
                openai_client=self._client,
                # Without it a stream that was cut off would pass for a complete one.
                profile=OpenAIModelProfile(openai_chat_streaming_requires_finish_reason=True),
            ),
        )
        began = False
        try:
            async with direct.model_request_stream(
                model,
                to_messages(request),
                model_settings=_settings(request),
                model_request_parameters=ModelRequestParameters(
                    function_tools=[_definition(spec) for spec in request.tools]
                ),
                instrument=False,
            ) as stream:
                async for event in stream:
                    began = True
                    for part in _deltas(event):
                        yield part
                for part in self._ending(stream, request.tools):
                    yield part
        except ProviderError:
            raise
        except (exceptions.AgentRunError, httpx2.HTTPError, httpx2.StreamError) as error:
            # The original may carry the key in its text: it is not chained.
            raise self._translate(error, began) from None

    def _ending(self, stream: StreamedResponse, tools: Sequence[ToolSpec]) -> Iterator[StreamPart]:
        """Calls, usage and the finish, if the response is complete; else nothing at all."""
        response = stream.get()
        if response.state != "complete" or response.finish_reason is None:
            return
        if response.finish_reason == "content_filter" and not response.text:
            refusal = str((response.provider_details or {}).get("refusal", ""))
            raise provider_error("provider_refused", refusal, secrets=self._secrets)
        names = [spec.name for spec in tools]
        for part in response.parts:
            if isinstance(part, messages.ToolCallPart):
                arguments = part.args if isinstance(part.args, str) else part.args_as_json_str()
                name = from_wire(part.tool_name, names)
                yield ToolCall(part.tool_call_id, name, arguments)
        yield Usage(response.usage.input_tokens, response.usage.output_tokens)
        yield Finish(response.finish_reason)

    def _translate(self, error: Exception, began: bool) -> ProviderError:
        cause = cause_of(error)
        if isinstance(cause, AddressRefused):
            return provider_error("provider_misconfigured", str(cause))
        if 300 <= getattr(error.__cause__, "status_code", 0) < 400:
            return provider_error("provider_misconfigured", REDIRECTED)
        reason = _reason(error)
        retry_after = getattr(error, "retry_after", None)
        if (code := _code(error, began)) is not None:
            return provider_error(code, reason, retry_after=retry_after, secrets=self._secrets)
        status = getattr(error, "status_code", 500)
        return error_from_status(status, reason, retry_after=retry_after, secrets=self._secrets)

    async def aclose(self) -> None:
        await self._client.close()


def to_messages(request: ModelRequest) -> list[messages.ModelMessage]:
    """The history in pydantic-ai's words. Thinking is left out: no server needs it back."""
    translated: list[messages.ModelMessage] = []
    asked: list[messages.ModelRequestPart] = []
    for item in request.history:
        if isinstance(item, AgentReply):
            if asked:
                translated.append(messages.ModelRequest(parts=asked))
                asked = []
            translated.append(_response(item))
        else:
            asked.append(_request_part(item))
    # The instructions that count are those of the newest request.
    translated.append(messages.ModelRequest(parts=asked, instructions=request.instructions or None))
    return translated


def _response(reply: AgentReply) -> messages.ModelResponse:
    parts: list[messages.ModelResponsePart] = []
    if reply.text:
        parts.append(messages.TextPart(reply.text))
    parts += [
        messages.ToolCallPart(to_wire(call.name), dict(call.arguments), call.call_id)
        for call in reply.calls
    ]
    return messages.ModelResponse(parts=parts)


def _request_part(item: HistoryItem) -> messages.ModelRequestPart:
    if isinstance(item, ToolReturn):
        return messages.ToolReturnPart(to_wire(item.name), item.text, item.call_id)
    assert isinstance(item, UserText)
    return messages.UserPromptPart(item.text)


def _definition(spec: ToolSpec) -> ToolDefinition:
    return ToolDefinition(
        name=to_wire(spec.name),
        description=spec.description,
        parameters_json_schema=dict(spec.parameters),
        strict=False,
    )


def _settings(request: ModelRequest) -> OpenAIChatModelSettings:
    settings = OpenAIChatModelSettings()
    if request.model.reasoning_effort:
        # Said outright: the neutral setting is dropped for models that the library does not know.
        effort: Any = request.model.reasoning_effort
        settings["openai_reasoning_effort"] = effort
    if request.model.speed == "fast":
        settings["openai_service_tier"] = "priority"
    return settings


def _deltas(event: Any) -> Iterator[StreamPart]:
    part: Any = None
    if isinstance(event, messages.PartStartEvent):
        part, text = event.part, getattr(event.part, "content", "")
    elif isinstance(event, messages.PartDeltaEvent):
        part, text = event.delta, getattr(event.delta, "content_delta", "")
    if part is None or not isinstance(text, str) or not text:
        return
    if isinstance(part, messages.TextPart | messages.TextPartDelta):
        yield TextDelta(text)
    elif isinstance(part, messages.ThinkingPart | messages.ThinkingPartDelta):
        yield ThinkingDelta(text)


# The first class that fits decides; where none does, the HTTP status.
_CODES: tuple[tuple[type[Exception], str], ...] = (
    (exceptions.ModelQuotaExceededError, "provider_quota_exceeded"),
    (exceptions.ModelRateLimitError, "provider_rate_limited"),
    (exceptions.ModelOverloadedError, "provider_overloaded"),
    (exceptions.ModelContextWindowExceededError, "provider_context_exceeded"),
    (exceptions.ModelAuthenticationError, "provider_auth_failed"),
    (exceptions.ModelNotFoundError, "provider_model_not_found"),
    (exceptions.ContentFilterError, "provider_refused"),
    (exceptions.ModelRequestTimeout, "provider_timeout"),
    (exceptions.ModelTimeoutError, "provider_timeout"),
)


def _code(error: Exception, began: bool) -> str | None:
    for kind, code in _CODES:
        if isinstance(error, kind):
            return code
    if isinstance(error, exceptions.ModelHTTPError):
        return None
    if isinstance(error, exceptions.ModelUnavailableError | exceptions.ModelServerError):
        return "provider_unavailable"
    if isinstance(error, exceptions.ModelRequestRejectedError):
        return "provider_bad_request"
    if isinstance(error, exceptions.ModelConnectionError) and not began:
        return "provider_unavailable"
    return "provider_broken_stream"


def _reason(error: Exception) -> str:
    """The provider's own words from the body of its answer, never the exception's text."""
    body = getattr(error, "body", None)
    if isinstance(body, dict):
        inner = body.get("error", body)
        message = inner.get("message") if isinstance(inner, dict) else inner
        return str(message or "")
    return body if isinstance(body, str) else ""
