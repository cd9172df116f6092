"""What children came to, and how a waiting parent is told.

A child's end and the result in its parent's log are one transaction, which holds the parent's row
before the child's.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any
from uuid import UUID

from django.conf import settings

from core.ids import Prefix, encode_id
from sessions_app import eventlog
from sessions_app.domain.events import Draft
from sessions_app.domain.fitting import fit_entries, size_of
from sessions_app.models import Session, Wait
from sessions_app.services.calls import Call

TOLD_COLUMNS = ("title", "turn_count", "reported_turns", "result_seq", "archived_at")
RESULT_FIELDS = ("status", "text", "error", "truncated")


def results_of(parent: Session, children: Sequence[Session]) -> dict[UUID, Mapping[str, Any]]:
    """The newest child.result of each child that has one, as the parent's log has it."""
    reported = {child.result_seq: child.pk for child in children if child.result_seq is not None}
    events = eventlog.read_at(session_id=parent.pk, seqs=reported.keys())
    return {reported[event.seq]: event.data for event in events}


def results_of_deleted(parent: Session, ids: Collection[UUID]) -> list[Mapping[str, Any]]:
    """The newest child.result of each, from the parent's log, which outlives its children. Of one
    that never reported only that it is gone.
    """
    if not ids:
        return []
    wanted = sorted(encode_id(Prefix.SESSION, pk) for pk in ids)
    results = eventlog.find_child_results(session_id=parent.pk, child_ids=wanted)
    found = {event.data["child_id"]: event.data for event in results}
    return [found.get(each, {"child_id": each, "status": "deleted"}) for each in wanted]


def told_results(wait: Wait) -> Draft:
    """The result of a call that waited for children."""
    named = [UUID(child) for child in wait.request["child_ids"]]
    ordered = Session.objects.filter(pk__in=named).order_by("created_at", "pk")
    children = list(ordered.only(*TOLD_COLUMNS))
    results = results_of(wait.session, children)
    unfinished = [UUID(child) for child in wait.request["remaining"]]
    deleted = results_of_deleted(wait.session, set(named) - {child.pk for child in children})
    call = Call(wait.session_id, wait.tool_use_seq, wait.request["call_id"], wait.tool_name)
    return tell_results(call, children, results, unfinished, deleted)


def tell_results(
    call: Call,
    children: Sequence[Session],
    results: Mapping[UUID, Mapping[str, Any]],
    unfinished: Collection[UUID] = (),
    deleted: Sequence[Mapping[str, Any]] = (),
) -> Draft:
    """What the model is told of its children, as the result of the call. `deleted`: the last that
    was heard of those that are no more.
    """
    finished = [child for child in children if child.pk not in unfinished]
    entries = [describe(child, results.get(child.pk)) for child in finished]
    entries += [_describe_deleted(result) for result in deleted]
    told: dict[str, Any] = {
        "results": [],
        "unfinished": [child.public_id for child in children if child.pk in unfinished],
    }
    told["results"] = fit_entries(entries, settings.TOOL_EVENT_MAX_BYTES - size_of(told))
    known = [
        results[child.pk]["id"]
        for child in finished
        if child.pk in results and not child.has_unreported_work
    ]
    known += [result["id"] for result in deleted if "id" in result]
    outcome = "expired" if unfinished else "ok"
    return call.result(told, child_result_ids=known, outcome=outcome)


def describe(child: Session, result: Mapping[str, Any] | None) -> dict[str, Any]:
    """One child for the model."""
    told: dict[str, Any] = {"session_id": child.public_id, "title": child.title}
    if child.has_unreported_work:
        return {**told, "status": "unfinished" if child.archived_at is None else "archived"}
    if result is None:
        return {**told, "status": "no_result_yet"}
    return told | {name: result[name] for name in RESULT_FIELDS if result.get(name)}


def _describe_deleted(result: Mapping[str, Any]) -> dict[str, Any]:
    told = {"session_id": result["child_id"], "title": result.get("title", ""), "deleted": True}
    return told | {name: result[name] for name in RESULT_FIELDS if result.get(name)}
