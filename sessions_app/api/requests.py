"""The shapes of what clients send. They check types and bounds of form; rules are in services."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from drf_spectacular.utils import PolymorphicProxySerializer, extend_schema_field
from rest_framework import serializers

from catalog.kinds import ReasoningEffort, Speed
from core.api.fields import Flag, PublicId, StrictSerializer, Text, Whole
from core.ids import MAX_SEQ, Prefix
from sessions_app.domain.vocabulary import AgentAccess, MemoryScope, Visibility
from sessions_app.models.choices import choices_of

EVENTS_MAX = 50  # in one request
BLOCKS_MAX = 100  # in one message
EVENT_TYPES_TO_COME = frozenset(
    {
        "user.custom_tool_result",
        "user.tool_result",
        "user.define_outcome",
        "system.message",
    }
)


class Choice(serializers.ChoiceField):
    """One word of an enum; the word sent is not repeated in the error."""

    def __init__(self, choices: Any, **kwargs: Any) -> None:
        listed = ", ".join(value for value, _ in choices)
        kwargs.setdefault("error_messages", {"invalid_choice": f"Use one of: {listed}."})
        super().__init__(choices=choices, **kwargs)

    def to_internal_value(self, data: Any) -> Any:
        if not isinstance(data, str):
            raise serializers.ValidationError("Use a text.", code="invalid_type")
        return super().to_internal_value(data)


class ModelReference(StrictSerializer):
    provider_id = Text(default="", max_length=100)
    model_id = Text(allow_blank=False, max_length=200)
    variant = Text(required=False, allow_null=True, max_length=32)


@extend_schema_field(
    {
        "oneOf": [
            {"type": "string", "maxLength": 200},
            {
                "type": "object",
                "properties": {
                    "provider_id": {"type": "string"},
                    "model_id": {"type": "string"},
                    "variant": {"type": ["string", "null"]},
                },
                "required": ["model_id"],
                "additionalProperties": False,
            },
        ]
    }
)
class ModelChoice(serializers.Field[Any, Any, Any, Any]):
    """`provider/model`, an id, alias or display name; or {provider_id, model_id, variant}."""

    def to_internal_value(self, data: Any) -> dict[str, Any]:
        if isinstance(data, str):
            data = {"model_id": data}
        if not isinstance(data, Mapping):
            raise serializers.ValidationError("Use a text or an object.", code="invalid_type")
        nested = ModelReference(data=dict(data))
        nested.is_valid(raise_exception=True)
        return dict(nested.validated_data)


class SettingsFields(StrictSerializer):
    """A model choice, wherever one is taken."""

    model = ModelChoice(required=False, allow_null=True)
    reasoning_effort = Choice(choices_of(ReasoningEffort), required=False, allow_null=True)
    speed = Choice(choices_of(Speed), required=False, allow_null=True)


@extend_schema_field(
    {"oneOf": [{"type": "string"}, {"type": "object", "additionalProperties": {}}]}
)
class AgentChoice(serializers.Field[Any, Any, Any, Any]):
    """An id, a name, “default”, or the official client's {type: "agent", id}."""

    def to_internal_value(self, data: Any) -> str:
        if isinstance(data, Mapping) and data.get("type", "agent") == "agent":
            data = data.get("id")
        if not isinstance(data, str) or len(data) > 200:
            raise serializers.ValidationError(
                "Use the id or the name of an agent, or “default”.", code="invalid_type"
            )
        return data


class TextBlock(StrictSerializer):
    type = Choice([("text", "text")])
    text = Text()


@extend_schema_field(
    {
        "oneOf": [
            {"type": "string"},
            {
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": {
                        "type": {"type": "string", "const": "text"},
                        "text": {"type": "string"},
                    },
                    "required": ["type", "text"],
                    "additionalProperties": False,
                },
            },
        ]
    }
)
class Content(serializers.Field[Any, Any, Any, Any]):
    """A text, or blocks {type: "text", text}."""

    def to_internal_value(self, data: Any) -> str | list[dict[str, Any]]:
        if isinstance(data, str):
            return data
        if not isinstance(data, list):
            raise serializers.ValidationError("Use a text or blocks.", code="invalid_type")
        if len(data) > BLOCKS_MAX:
            raise serializers.ValidationError(f"At most {BLOCKS_MAX} blocks.", code="too_long")
        for index, block in enumerate(data):
            _check_block(block, index)
        return data


def _check_block(block: Any, index: int) -> None:
    nested = TextBlock(data=block)
    if not nested.is_valid():
        raise serializers.ValidationError({index: nested.errors})  # type: ignore[dict-item]


class UserMessage(SettingsFields):
    """A prompt. `draft_revision` names the composer draft that it was made from."""

    not_yet = frozenset({"tools", "resources"})

    type = Choice([("user.message", "user.message")])
    content = Content()
    delivery = Choice([("queue", "queue"), ("steer", "steer")], default="queue")
    input = Choice([("text", "text"), ("voice", "voice")], default="text")
    draft_revision = Whole(min_value=0, max_value=2**31 - 1, required=False)
    resume = Flag(default=False, help_text="Release a paused session in the same step.")


class UserInterrupt(StrictSerializer):
    """Stop: ends the running turn, keeps what it wrote, goes on with the queue."""

    ignored = frozenset({"session_thread_id"})

    type = Choice([("user.interrupt", "user.interrupt")])


class UserToolConfirmation(StrictSerializer):
    """Allow or deny a call that waits; `scope` session: this tool asks no more in this session."""

    ignored = frozenset({"session_thread_id"})

    type = Choice([("user.tool_confirmation", "user.tool_confirmation")])
    tool_use_id = Text(max_length=200, help_text="The id of the `agent.tool_use` event.")
    result = Choice([("allow", "allow"), ("deny", "deny")])
    deny_message = Text(required=False, allow_null=True, help_text="Told to the model.")
    scope = Choice([("once", "once"), ("session", "session")], default="once")


@extend_schema_field(
    {
        "type": "object",
        "additionalProperties": {
            "type": "object",
            "properties": {
                "text": {"type": "string"},
                "selected": {"type": "array", "items": {"type": "string"}},
                "other": {"type": "string"},
            },
            "additionalProperties": False,
        },
    }
)
class Answers(serializers.Field[Any, Any, Any, Any]):
    """Question id → {text}, or {selected, other}. What it must be depends on the question."""

    def to_internal_value(self, data: Any) -> dict[str, Any]:
        if not isinstance(data, Mapping):
            raise serializers.ValidationError("Use an object.", code="invalid_type")
        return dict(data)


class UserQuestionResponse(StrictSerializer):
    """Answer a structured question, or skip it where that is allowed."""

    type = Choice([("user.question_response", "user.question_response")])
    question_id = Text(max_length=200, help_text="The id of the `agent.question` event.")
    answers = Answers(default=dict)
    skip = Flag(default=False)


EVENT_SHAPES: Mapping[str, type[StrictSerializer]] = {
    "user.message": UserMessage,
    "user.interrupt": UserInterrupt,
    "user.tool_confirmation": UserToolConfirmation,
    "user.question_response": UserQuestionResponse,
}


@extend_schema_field(
    PolymorphicProxySerializer(
        component_name="EventInput",
        serializers=dict(EVENT_SHAPES),
        resource_type_field_name="type",
    )
)
class EventInput(serializers.Field[Any, Any, Any, Any]):
    """What a client may say to a session."""

    def __init__(self, *, only: str = "", **kwargs: Any) -> None:
        self.only = only
        super().__init__(**kwargs)

    def to_internal_value(self, data: Any) -> dict[str, Any]:
        if not isinstance(data, Mapping):
            raise serializers.ValidationError("Use an object.", code="invalid_type")
        kind = data.get("type")
        shape = EVENT_SHAPES.get(kind) if isinstance(kind, str) else None
        if shape is None or (self.only and kind != self.only):
            raise serializers.ValidationError({"type": [_unknown_type(kind)]})
        nested = shape(data=dict(data))
        nested.is_valid(raise_exception=True)
        return dict(nested.validated_data)


def _unknown_type(kind: Any) -> serializers.ErrorDetail:
    known = " or ".join(EVENT_SHAPES)
    if isinstance(kind, str) and kind in EVENT_TYPES_TO_COME:
        text = f"This server does not take this type of event yet; send {known}."
        return serializers.ErrorDetail(text, code="event_type_not_supported_yet")
    return serializers.ErrorDetail(f"Send {known}.", code="unknown_event_type")


class SendEvents(StrictSerializer):
    events = serializers.ListField(child=EventInput(), min_length=1, max_length=EVENTS_MAX)


class Origin(serializers.DictField):
    """`type` partitions sessions; the rest is the product's own."""


class EndUserShape(StrictSerializer):
    source = Text(allow_blank=False, max_length=200)  # type: ignore[assignment]
    id = Text(allow_blank=False, max_length=200)


class CreateSession(SettingsFields):
    ignored = frozenset({"vault_ids"})
    not_yet = frozenset({"directory_id", "tools", "skills", "resources", "budget", "deployment_id"})

    workspace_id = PublicId(
        Prefix.WORKSPACE,
        required=False,
        help_text="Default: the key's own, or the person's personal one.",
    )
    agent = AgentChoice(default="default")
    environment_id = Text(default="default", allow_null=True, help_text="“default” for none.")
    title = Text(default="", allow_null=True)
    origin = Origin(required=False, allow_null=True)
    metadata = serializers.DictField(default=dict)
    parent_id = PublicId(
        Prefix.SESSION,
        required=False,
        allow_null=True,
        help_text="Makes a child session; what is left out is the parent's.",
    )
    visibility = Choice(
        choices_of(Visibility), required=False, help_text="“workspace” unless it is a child."
    )
    agent_access = Choice(
        choices_of(AgentAccess), required=False, help_text="“workspace” unless it is a child."
    )
    memory_scope = Choice(
        choices_of(MemoryScope), required=False, help_text="“workspace” unless it is a child."
    )
    end_user = EndUserShape(required=False, allow_null=True)
    initial_events = serializers.ListField(
        child=EventInput(only="user.message"), default=list, max_length=EVENTS_MAX
    )


class UpdateSession(SettingsFields):
    """A merge patch: what is left out stays, null empties a text or drops a metadata key."""

    ignored = frozenset({"vault_ids"})
    not_yet = frozenset({"directory_id", "tools", "skills", "budget", "visibility", "agent"})
    frozen = frozenset({"origin", "agent_access", "memory_scope", "end_user", "workspace_id"})

    title = Text(required=False, allow_null=True)
    metadata = serializers.DictField(required=False, allow_null=True)

    def _refuse_names(self, data: Mapping[str, Any]) -> None:
        """Frozen fields are refused as such, later, once the session is known to be visible."""
        super()._refuse_names({k: v for k, v in data.items() if k not in self.frozen})


class Stoppable(StrictSerializer):
    stop = Flag(default=False, help_text="A person has confirmed that the task be stopped.")


class Nothing(StrictSerializer):
    """An empty body."""


class Retry(StrictSerializer):
    turn_id = Text(required=False, allow_null=True, help_text="Left out: the newest turn.")


class Fork(StrictSerializer):
    from_seq = Whole(
        min_value=1,
        max_value=MAX_SEQ,
        required=False,
        allow_null=True,
        help_text="The `seq` of a message. Left out: the newest.",
    )
    from_event_id = Text(
        required=False, allow_null=True, max_length=80, help_text="The same by the event's `id`."
    )
    include = Flag(default=True, help_text="false: the history ends before that prompt.")
    title = Text(
        required=False, allow_null=True, help_text="Left out: the source's, with “(fork)”."
    )


class QueueChange(StrictSerializer):
    expected_version = Whole(
        min_value=0, max_value=2**31 - 1, help_text="The queue's `version` that was looked at."
    )


class QueueMove(QueueChange):
    position = Whole(min_value=1, max_value=2**31 - 1, help_text="From 1.")


class VisibilityChange(StrictSerializer):
    visibility = Choice(choices_of(Visibility))


class PinChange(StrictSerializer):
    pinned = Flag(default=True)


class ReadMark(StrictSerializer):
    seq = Whole(min_value=0, max_value=MAX_SEQ)


class DraftChange(StrictSerializer):
    text = Text()
    expected_version = Whole(
        min_value=0, max_value=2**31 - 1, help_text="The `revision` that this text was made from."
    )


class CreateFolder(StrictSerializer):
    name = Text(allow_blank=False, max_length=400)


class UpdateFolder(StrictSerializer):
    name = Text(required=False, allow_blank=False, max_length=400)
    position = Whole(
        min_value=1, max_value=1_000, required=False, help_text="From 1; beyond the last: the last."
    )


class MoveSession(StrictSerializer):
    folder_id = PublicId(Prefix.FOLDER, allow_null=True, help_text="null: in no folder.")


class CleanArchive(StrictSerializer):
    workspace_id = PublicId(Prefix.WORKSPACE)
    confirm = Whole(min_value=0, max_value=1_000_000_000)
