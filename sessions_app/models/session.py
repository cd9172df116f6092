"""One durable conversation and workstream. Its row is a convenience; its log is the session."""

from __future__ import annotations

from typing import ClassVar

from django.contrib.postgres.fields import ArrayField
from django.contrib.postgres.indexes import GinIndex
from django.db import models
from django.db.models import F, Func, Value
from django.db.models.expressions import Combinable, CombinedExpression
from django.db.models.functions import Left, Lower

from catalog.models import Agent
from core.clock import now
from core.ids import Prefix, encode_id, uuid7
from orgs.models import ApiKey, Organization, User, Workspace
from sessions_app.domain.vocabulary import (
    DEFAULT_ORIGIN_TYPE,
    AgentAccess,
    MemoryScope,
    SessionStatus,
    TitleSource,
    Visibility,
)
from sessions_app.models.choices import choices_of, known
from sessions_app.models.folder import Folder
from sessions_app.querysets import SessionQuerySet

NAME_KEY_MAX_CHARACTERS = 100  # it travels in page cursors
COMBINING_MARKS = "[\u0300-\u036f]"


def _folded(text: str | Combinable) -> Func:
    """Without case and accents. `querysets.FOLDED`, as an expression."""
    decomposed = Func(Lower(text), template="normalize(%(expressions)s, NFKD)")
    marks = (Value(COMBINING_MARKS), Value(""), Value("g"))
    return Func(decomposed, *marks, function="regexp_replace")


NAME_KEY = Left(_folded("title"), NAME_KEY_MAX_CHARACTERS)
# A line break between them: what is looked for is one line, and is in the one or the other.
BOTH_TEXTS = CombinedExpression(
    CombinedExpression(F("title"), "||", Value("\n")), "||", F("preview_text")
)
FIND_KEY = _folded(BOTH_TEXTS)
ACTIVE_ROOTS = models.Q(parent__isnull=True, archived_at__isnull=True)


class Session(models.Model):
    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    organization = models.ForeignKey(Organization, on_delete=models.PROTECT, related_name="+")
    workspace = models.ForeignKey(Workspace, on_delete=models.PROTECT, related_name="sessions")
    agent = models.ForeignKey(Agent, on_delete=models.SET_NULL, null=True, related_name="+")
    agent_snapshot = models.JSONField(default=dict)
    maker = models.ForeignKey(User, on_delete=models.SET_NULL, null=True, related_name="+")
    maker_key = models.ForeignKey(ApiKey, on_delete=models.SET_NULL, null=True, related_name="+")
    parent = models.ForeignKey("self", on_delete=models.PROTECT, null=True, related_name="children")
    depth = models.PositiveSmallIntegerField(default=0)
    root = models.ForeignKey("self", on_delete=models.PROTECT, null=True, related_name="tree")
    ancestor_ids = ArrayField(models.UUIDField(), default=list, help_text="The root first.")

    # Frozen at creation.
    origin_type = models.CharField(max_length=100, default=DEFAULT_ORIGIN_TYPE)
    origin = models.JSONField(default=dict)
    agent_access = models.CharField(
        max_length=16, choices=choices_of(AgentAccess), default=AgentAccess.WORKSPACE
    )
    memory_scope = models.CharField(
        max_length=16, choices=choices_of(MemoryScope), default=MemoryScope.WORKSPACE
    )
    end_user_source = models.CharField(max_length=200, blank=True)
    end_user_id = models.CharField(max_length=200, blank=True)
    visibility = models.CharField(
        max_length=16, choices=choices_of(Visibility), default=Visibility.WORKSPACE
    )

    folder = models.ForeignKey(
        Folder,
        on_delete=models.SET_NULL,
        null=True,
        db_index=False,
        related_name="+",
        help_text="Of a root; what is below it is where it is.",
    )

    # Of a fork. No foreign key: the source may be deleted, and the fork lives on.
    forked_from_id = models.UUIDField(null=True)
    forked_from_seq = models.BigIntegerField(null=True, help_text="The message it was made from.")
    inherited_seq = models.BigIntegerField(
        default=0, help_text="Up to here the log repeats the source's: nothing of it was done here."
    )

    # The fold of the log: written by eventlog alone.
    head_seq = models.BigIntegerField(default=0)
    status = models.CharField(
        max_length=16, choices=choices_of(SessionStatus), default=SessionStatus.IDLE
    )
    stop_reason = models.JSONField(null=True)
    title = models.CharField(max_length=200, blank=True)
    name_key = models.GeneratedField(
        expression=NAME_KEY,
        output_field=models.TextField(db_collation="C"),
        db_persist=True,
        help_text="The title without case and accents: what a list by name is ordered by.",
    )
    find_key = models.GeneratedField(
        expression=FIND_KEY,
        output_field=models.TextField(),
        db_persist=True,
        help_text="Title and preview without case and accents: where a list looks for a text.",
    )
    metadata = models.JSONField(default=dict)
    message_count = models.PositiveIntegerField(default=0)
    preview_text = models.CharField(max_length=200, blank=True)
    agent_message_seq = models.BigIntegerField(default=0)
    activity_at = models.DateTimeField(default=now)
    archived_at = models.DateTimeField(null=True)
    paused_at = models.DateTimeField(null=True, help_text="Held, by a pause here or above.")

    # Bookkeeping of turns.
    title_source = models.CharField(max_length=16, choices=choices_of(TitleSource), blank=True)
    turn_count = models.PositiveIntegerField(default=0)
    queue_version = models.PositiveIntegerField(default=0)
    live_attempt_id = models.UUIDField(
        null=True, help_text="The fence: only this attempt may write."
    )
    started_turn_id = models.UUIDField(null=True, help_text="The started turn that has not ended.")
    ready_at = models.DateTimeField(
        null=True,
        help_text="From when a worker may claim the next turn; empty: nothing to claim.",
    )
    quiet_at = models.DateTimeField(
        null=True,
        help_text="Until then a fenced attempt may still be at work; empty: it is quiet.",
    )
    reported_turns = models.PositiveIntegerField(
        default=0, help_text="Turns that the parent has heard the result of."
    )
    result_seq = models.BigIntegerField(
        null=True, help_text="Of its newest child.result, in the parent's log."
    )
    archiving_id = models.UUIDField(
        null=True, help_text="Shared by all that one archive took; a restore brings back those."
    )
    pause_revision = models.BigIntegerField(default=0, help_text="Of the last Pause given here.")
    resume_revision = models.BigIntegerField(default=0, help_text="Of the last Resume given here.")
    initial_settings = models.JSONField(default=dict)
    next_settings = models.JSONField(default=dict, help_text="The next-send override.")
    checkpoint_settings = models.JSONField(
        default=dict,
        help_text="A change that the running turn takes at its next checkpoint.",
    )
    model_settings = models.JSONField(null=True, help_text="The binding.")
    model_label = models.CharField(max_length=400, blank=True)
    created_at = models.DateTimeField(default=now, editable=False)

    # Filled by `with_tree_state`; not columns.
    open_waits: int | None = None
    works_below: bool = False
    awaited_lists: list[list[str]] | None = None
    has_children: bool = False

    objects = SessionQuerySet.as_manager()

    class Meta:
        constraints: ClassVar[list[models.BaseConstraint]] = [
            known("status", SessionStatus, "session_status_is_known"),
            known("visibility", Visibility, "session_visibility_is_known"),
            known("agent_access", AgentAccess, "session_agent_access_is_known"),
            known("memory_scope", MemoryScope, "session_memory_scope_is_known"),
            models.CheckConstraint(
                condition=~models.Q(origin_type=""), name="session_origin_has_a_type"
            ),
        ]
        indexes: ClassVar[list[models.Index]] = [
            models.Index(
                fields=["workspace", "origin_type", "-created_at", "-id"],
                condition=ACTIVE_ROOTS,
                name="session_by_creation",
            ),
            models.Index(
                fields=["workspace", "origin_type", "-activity_at", "-id"],
                condition=ACTIVE_ROOTS,
                name="session_by_activity",
            ),
            models.Index(
                fields=["workspace", "origin_type", "name_key", "id"],
                condition=ACTIVE_ROOTS,
                name="session_by_name",
            ),
            models.Index(
                fields=["workspace", "end_user_source", "end_user_id", "-created_at", "-id"],
                condition=~models.Q(end_user_id=""),
                name="session_by_end_user",
            ),
            models.Index(
                fields=["organization", "-created_at", "-id"],
                condition=models.Q(parent__isnull=True, visibility=Visibility.WORKSPACE),
                name="session_by_organization",
            ),
            models.Index(
                fields=["workspace", "-archived_at", "-id"],
                condition=models.Q(archived_at__isnull=False),
                name="session_by_archiving",
            ),
            models.Index(
                fields=["ready_at"],
                condition=models.Q(ready_at__isnull=False),
                name="session_by_readiness",
            ),
            models.Index(
                fields=["forked_from_id", "-created_at", "-id"],
                condition=models.Q(forked_from_id__isnull=False),
                name="session_by_source",
            ),
            models.Index(
                fields=["folder", "-activity_at", "-id"],
                condition=models.Q(folder__isnull=False),
                name="session_by_folder",
            ),
            models.Index(
                fields=["root"],
                condition=models.Q(root__isnull=False),
                name="session_by_root",
            ),
            models.Index(
                fields=["root"],
                condition=models.Q(root__isnull=False, archived_at__isnull=True)
                & (models.Q(started_turn_id__isnull=False) | models.Q(ready_at__isnull=False)),
                name="session_at_work_below",
            ),
            GinIndex(name="session_by_text", fields=["find_key"], opclasses=["gin_trgm_ops"]),
            models.Index(
                fields=["parent", "-created_at", "-id"],
                condition=models.Q(parent__isnull=False),
                name="session_by_parent",
            ),
        ]

    def __str__(self) -> str:
        """How operators' pages and tracebacks name it: a title is people's text."""
        return self.public_id

    @property
    def public_id(self) -> str:
        return encode_id(Prefix.SESSION, self.pk)

    @property
    def is_at_work(self) -> bool:
        """A turn of its own has started and not ended, or is queued and not held."""
        return self.started_turn_id is not None or self.ready_at is not None

    @property
    def has_unreported_work(self) -> bool:
        """Of a child: its parent has not the result of all that it was given to do."""
        return self.turn_count > self.reported_turns

    @property
    def is_working(self) -> bool:
        """It is at work, or a session below it is. For rows read `with_tree_state`."""
        return self.is_at_work or self.works_below

    @property
    def awaited(self) -> int:
        """How many children's results its turn waits for. For rows read `with_tree_state`."""
        return len({child for each in self.awaited_lists or () for child in each})

    @property
    def is_paused(self) -> bool:
        return self.paused_at is not None

    @property
    def is_waiting(self) -> bool:
        """Nothing goes on before somebody decides: told by the stop reason, without a query."""
        return (self.stop_reason or {}).get("type") == "requires_action"
