"""The shapes of query strings. They check types and bounds of form; rules are in services."""

from __future__ import annotations

from typing import ClassVar

from rest_framework import serializers

from core.api.fields import Flag, PublicId, QuerySerializer, Text, Whole, range_of
from core.api.pagination import PageQuery
from core.ids import MAX_SEQ, Prefix
from sessions_app.api.requests import Choice
from sessions_app.domain.vocabulary import SessionStatus
from sessions_app.listing import Archived, Sort
from sessions_app.models.choices import choices_of

EVENT_PAGE, EVENT_PAGE_MAX = 100, 1_000


class SessionListQuery(PageQuery):
    workspace_id = PublicId(Prefix.WORKSPACE, required=False)
    origin_type = Text(
        required=False,
        allow_blank=False,
        max_length=100,
        help_text="“work”, unless it is a parent's children that are listed.",
    )
    query = Text(default="", max_length=200, help_text="Contained in title, preview or id.")
    archived = Choice(choices_of(Archived), required=False)
    include_archived = Flag(required=False)
    pinned = Flag(required=False)
    parent_id = PublicId(Prefix.SESSION, required=False)
    forked_from = PublicId(
        Prefix.SESSION, required=False, help_text="Only the forks of a session that one may see."
    )
    agent_id = PublicId(Prefix.AGENT, required=False)
    folder_id = PublicId(Prefix.FOLDER, required=False)
    sort = Choice(choices_of(Sort), default=Sort.CREATED)
    order = Choice(
        [("asc", "asc"), ("desc", "desc")],
        required=False,
        help_text="desc, newest first; asc where `sort` is name.",
    )

    named: ClassVar = {
        "end_user[source]": Text(required=False, allow_blank=False, max_length=200),
        "end_user[id]": Text(required=False, allow_blank=False, max_length=200),
        "statuses[]": serializers.ListField(
            child=Choice(choices_of(SessionStatus)), required=False, max_length=10
        ),
        **range_of("created_at"),
    }


class InventoryQuery(PageQuery):
    include_archived = Flag(default=False)


class ChildrenQuery(PageQuery):
    archived = Choice(choices_of(Archived), default=Archived.EXCLUDE)
    order = Choice([("asc", "asc"), ("desc", "desc")], default="asc")


class SessionQueryString(QuerySerializer):
    origin_type = Text(required=False, max_length=100, help_text="Another partition is 404.")


class DeleteQuery(QuerySerializer):
    stop = Flag(default=False, help_text="Stop what runs, then delete.")


class EventListQuery(QuerySerializer):
    after = Whole(min_value=0, max_value=MAX_SEQ, required=False, help_text="Events beyond it.")
    before = Whole(min_value=0, max_value=MAX_SEQ, required=False, help_text="Events up to it.")
    order = Choice(
        [("asc", "asc"), ("desc", "desc")],
        required=False,
        help_text="asc; desc with `before` alone.",
    )
    limit = Whole(min_value=1, max_value=EVENT_PAGE_MAX, default=EVENT_PAGE)
    page = Text(default="", max_length=1_000)
    compact = Flag(default=False, help_text="Join runs of deltas into one event.")

    named: ClassVar = {"types[]": serializers.ListField(child=Text(max_length=100), required=False)}


class TurnListQuery(PageQuery):
    order = Choice([("asc", "asc"), ("desc", "desc")], default="asc")


class PendingQuery(PageQuery):
    """Oldest first."""


class InboxQuery(PageQuery):
    workspace_id = PublicId(Prefix.WORKSPACE, required=False)
    order = Choice(
        [("asc", "asc"), ("desc", "desc")], default="asc", help_text="asc: the longest wait first."
    )


class ModelListQuery(PageQuery):
    workspace_id = PublicId(Prefix.WORKSPACE, required=False)
