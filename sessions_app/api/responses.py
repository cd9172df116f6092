"""The shapes of what the server answers, for the documentation alone: `wire` makes the values."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from core.api.pagination import PageObject
from sessions_app.domain.vocabulary import (
    AgentAccess,
    AttemptStatus,
    MemoryScope,
    SessionStatus,
    TurnStatus,
    Visibility,
    WaitKind,
)
from sessions_app.models.choices import choices_of


def moment(**kwargs: Any) -> serializers.DateTimeField:
    return serializers.DateTimeField(**kwargs)


class ModelBinding(serializers.Serializer[Any]):
    provider_id = serializers.CharField()
    model_id = serializers.CharField()
    variant = serializers.CharField(allow_null=True)


class EndUserPair(serializers.Serializer[Any]):
    source = serializers.CharField()  # type: ignore[assignment]
    id = serializers.CharField()


class ForkSource(serializers.Serializer[Any]):
    session_id = serializers.CharField()
    seq = serializers.IntegerField(allow_null=True, help_text="Of the message in the source.")


class SessionObject(serializers.Serializer[Any]):
    """A session: the fields of the official client, and ours."""

    id = serializers.CharField()
    type = serializers.ChoiceField(choices=[("session", "session")])
    status = serializers.ChoiceField(choices=choices_of(SessionStatus))
    title = serializers.CharField()
    agent = serializers.DictField(help_text="The agent as it was at creation.")
    environment_id = serializers.CharField()
    metadata = serializers.DictField(child=serializers.CharField())
    created_at = moment()
    updated_at = moment(help_text="When content came last; bookkeeping does not move it.")
    archived_at = moment(allow_null=True)
    stop_reason = serializers.DictField(allow_null=True)
    organization_id = serializers.CharField()
    workspace_id = serializers.CharField()
    parent_id = serializers.CharField(allow_null=True)
    directory_id = serializers.CharField(allow_null=True)
    folder_id = serializers.CharField(allow_null=True)
    origin = serializers.DictField()
    visibility = serializers.ChoiceField(choices=choices_of(Visibility))
    agent_access = serializers.ChoiceField(choices=choices_of(AgentAccess))
    memory_scope = serializers.ChoiceField(choices=choices_of(MemoryScope))
    end_user = EndUserPair(allow_null=True)
    forked_from = ForkSource(allow_null=True, help_text="Where the caller may see it now.")
    model = ModelBinding(allow_null=True)
    model_label = serializers.CharField(allow_null=True)
    preview_text = serializers.CharField()
    message_count = serializers.IntegerField()
    working = serializers.BooleanField()
    executing = serializers.BooleanField()
    paused = serializers.BooleanField()
    waiting = serializers.IntegerField()
    pinned = serializers.BooleanField()
    unread = serializers.BooleanField()
    last_event_seq = serializers.IntegerField()
    queue_version = serializers.IntegerField()
    seq = serializers.IntegerField()
    resources = serializers.ListField(child=serializers.DictField())
    vault_ids = serializers.ListField(child=serializers.CharField())
    outcome_evaluations = serializers.ListField(child=serializers.DictField())
    stats = serializers.DictField()
    usage = serializers.DictField()


class FolderObject(serializers.Serializer[Any]):
    id = serializers.CharField()
    type = serializers.ChoiceField(choices=[("folder", "folder")])
    workspace_id = serializers.CharField()
    name = serializers.CharField()
    position = serializers.IntegerField()
    created_at = moment()


class FolderList(serializers.Serializer[Any]):
    data = FolderObject(many=True)  # type: ignore[assignment]


class FolderDeleted(serializers.Serializer[Any]):
    id = serializers.CharField()
    type = serializers.ChoiceField(choices=[("folder_deleted", "folder_deleted")])


class SessionDeleted(serializers.Serializer[Any]):
    id = serializers.CharField()
    type = serializers.ChoiceField(choices=[("session_deleted", "session_deleted")])


class ArchiveCleaned(serializers.Serializer[Any]):
    removed_session_ids = serializers.ListField(child=serializers.CharField())


class EventObject(serializers.Serializer[Any]):
    """A fact of the log. Beyond these fields it has those of its type."""

    id = serializers.CharField()
    type = serializers.CharField()
    version = serializers.IntegerField()
    seq = serializers.IntegerField()
    first_seq = serializers.IntegerField(required=False, help_text="Of a joined run.")
    session_id = serializers.CharField()
    turn_id = serializers.CharField(required=False)
    attempt = serializers.IntegerField(required=False)
    created_at = moment()
    processed_at = moment(required=False, allow_null=True)


class SentEvent(serializers.Serializer[Any]):
    """What was accepted, never “started”. An interrupt with nothing to stop has no id and seq."""

    id = serializers.CharField(allow_null=True)
    type = serializers.CharField()
    seq = serializers.IntegerField(allow_null=True)
    turn_id = serializers.CharField(required=False)
    processed_at = moment(required=False, allow_null=True)
    held = serializers.BooleanField()


class SentEvents(serializers.Serializer[Any]):
    data = SentEvent(many=True)  # type: ignore[assignment]


class TurnObject(serializers.Serializer[Any]):
    id = serializers.CharField()
    type = serializers.ChoiceField(choices=[("turn", "turn")])
    session_id = serializers.CharField()
    number = serializers.IntegerField()
    status = serializers.ChoiceField(choices=choices_of(TurnStatus))
    source = serializers.CharField()  # type: ignore[assignment]
    prompt_event_id = serializers.CharField()
    preview_text = serializers.CharField()
    model = ModelBinding(allow_null=True)
    model_reason = serializers.CharField(allow_null=True)
    error = serializers.DictField(allow_null=True)
    attempt_count = serializers.IntegerField()
    created_at = moment()
    started_at = moment(allow_null=True)
    ended_at = moment(allow_null=True)


class AttemptObject(serializers.Serializer[Any]):
    id = serializers.CharField()
    number = serializers.IntegerField()
    status = serializers.ChoiceField(choices=choices_of(AttemptStatus))
    started_at = moment()
    ended_at = moment(allow_null=True)


class TurnWithAttempts(TurnObject):
    attempts = AttemptObject(many=True)


class QueuedTurn(TurnObject):
    position = serializers.IntegerField()


class QueueObject(serializers.Serializer[Any]):
    """Prompts that wait, in the order in which they will start."""

    data = QueuedTurn(many=True)  # type: ignore[assignment]
    version = serializers.IntegerField()


class WaitObject(serializers.Serializer[Any]):
    """Something that asks people. `id` is that of the event: what the answer names."""

    id = serializers.CharField()
    type = serializers.ChoiceField(choices=[("wait", "wait")])
    kind = serializers.ChoiceField(choices=choices_of(WaitKind))
    session_id = serializers.CharField()
    session_title = serializers.CharField()
    workspace_id = serializers.CharField()
    turn_id = serializers.CharField()
    tool_use_id = serializers.CharField()
    tool_name = serializers.CharField()
    input = serializers.DictField(required=False, help_text="Of an approval: the arguments.")
    questions = serializers.ListField(child=serializers.DictField(), required=False)
    allow_skip = serializers.BooleanField(required=False)
    expires_at = moment(allow_null=True)
    created_at = moment()


class DraftObject(serializers.Serializer[Any]):
    type = serializers.ChoiceField(choices=[("draft", "draft")])
    text = serializers.CharField()
    revision = serializers.IntegerField()


class EditedObject(serializers.Serializer[Any]):
    draft = DraftObject()
    queue = QueueObject()


class WorkspaceHoldObject(serializers.Serializer[Any]):
    id = serializers.CharField()
    type = serializers.ChoiceField(choices=[("workspace_hold", "workspace_hold")])
    paused = serializers.BooleanField()


class WorkspaceObject(serializers.Serializer[Any]):
    id = serializers.CharField()
    type = serializers.ChoiceField(choices=[("workspace", "workspace")])
    organization_id = serializers.CharField()
    name = serializers.CharField()
    kind = serializers.ChoiceField(choices=[("shared", "shared"), ("personal", "personal")])
    role = serializers.CharField(allow_null=True, help_text="Null for keys: their scopes decide.")
    actions = serializers.ListField(child=serializers.CharField())


class ModelObject(serializers.Serializer[Any]):
    id = serializers.CharField(help_text="provider/model, as a model choice takes it.")
    type = serializers.ChoiceField(choices=[("model", "model")])
    provider_id = serializers.CharField()
    model_id = serializers.CharField()
    display_name = serializers.CharField()
    aliases = serializers.ListField(child=serializers.CharField())
    context_size = serializers.IntegerField(allow_null=True, help_text="Tokens.")
    efforts = serializers.ListField(child=serializers.CharField())


class SessionPageObject(PageObject):
    data = SessionObject(many=True)  # type: ignore[assignment]


class RowObject(serializers.Serializer[Any]):
    """A session as in a list row."""

    id = serializers.CharField()
    title = serializers.CharField()
    preview_text = serializers.CharField()
    message_count = serializers.IntegerField()
    model_label = serializers.CharField(allow_null=True)
    origin = serializers.DictField()
    updated_at = moment()
    status = serializers.ChoiceField(choices=choices_of(SessionStatus))
    executing = serializers.BooleanField()
    working = serializers.BooleanField()
    pinned = serializers.BooleanField()
    unread = serializers.BooleanField()
    waiting = serializers.IntegerField()
    directory_id = serializers.CharField(allow_null=True)
    folder_id = serializers.CharField(allow_null=True)
    parent_id = serializers.CharField(allow_null=True)
    seq = serializers.IntegerField()


class InventoryRowObject(RowObject):
    preview_text = serializers.CharField(help_text="Empty where one may not read the workspace.")
    pinned = None  # type: ignore[assignment]
    unread = None  # type: ignore[assignment]
    workspace_id = serializers.CharField()
    created_at = moment()
    archived_at = moment(allow_null=True)


class InventoryPageObject(PageObject):
    data = InventoryRowObject(many=True)  # type: ignore[assignment]


class TreeNodeObject(RowObject):
    children = serializers.ListField(
        child=serializers.DictField(), help_text="Of the same shape, oldest first."
    )


class TreeObject(serializers.Serializer[Any]):
    type = serializers.ChoiceField(choices=[("session_tree", "session_tree")])
    ancestors = RowObject(many=True, help_text="From the root down to the parent.")
    session = TreeNodeObject()
    truncated = serializers.BooleanField(help_text="There are more sessions below.")


class EventPageObject(PageObject):
    data = EventObject(many=True)  # type: ignore[assignment]


class TurnPageObject(PageObject):
    data = TurnObject(many=True)  # type: ignore[assignment]


class WaitPageObject(PageObject):
    data = WaitObject(many=True)  # type: ignore[assignment]


class WorkspacePageObject(PageObject):
    data = WorkspaceObject(many=True)  # type: ignore[assignment]


class ModelPageObject(PageObject):
    data = ModelObject(many=True)  # type: ignore[assignment]
