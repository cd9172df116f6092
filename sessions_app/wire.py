"""What leaves on the wire, as JSON-ready values: sessions, list rows, turns."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Protocol

from core.clock import rfc3339
from core.ids import Prefix, encode_id, event_id
from orgs.access import Access
from sessions_app.domain.vocabulary import WaitKind
from sessions_app.models import Attempt, Folder, Session, Turn, Wait

Json = dict[str, Any]


def author_json(access: Access) -> Json:
    principal = access.principal
    return {"type": str(principal.kind), "id": principal.public_id, "name": principal.name}


class TreeNode(Protocol):
    @property
    def session(self) -> Session: ...

    @property
    def children(self) -> Sequence[TreeNode]: ...


def tree_json(ancestors: Iterable[Session], top: TreeNode, *, is_truncated: bool) -> Json:
    return {
        "type": "session_tree",
        "ancestors": [row_json(session) for session in ancestors],
        "session": _node_json(top),
        "truncated": is_truncated,
    }


def _node_json(node: TreeNode) -> Json:
    return {**row_json(node.session), "children": [_node_json(each) for each in node.children]}


def session_json(session: Session) -> Json:
    """The whole object: the fields of the official client, and ours."""
    return {
        **row_json(session),
        "type": "session",
        "organization_id": encode_id(Prefix.ORGANIZATION, session.organization_id),
        "workspace_id": encode_id(Prefix.WORKSPACE, session.workspace_id),
        "agent": agent_json(session.agent_snapshot),
        "environment_id": "default",
        "stop_reason": session.stop_reason,
        "metadata": session.metadata,
        "visibility": session.visibility,
        "agent_access": session.agent_access,
        "memory_scope": session.memory_scope,
        "end_user": end_user_json(session),
        "forked_from": forked_from_json(session),
        "model": model_json(session.model_settings or session.initial_settings),
        "paused": session.is_paused,
        "last_event_seq": session.head_seq,
        "queue_version": session.queue_version,
        "resources": [],
        "vault_ids": [],
        "outcome_evaluations": [],
        "stats": {},
        "usage": {},
        "created_at": rfc3339(session.created_at),
        "archived_at": rfc3339(session.archived_at),
    }


def listed_session_json(session: Session) -> Json:
    """The whole object without what may be long: an agent's instructions."""
    whole = session_json(session)
    return {**whole, "agent": {**whole["agent"], "system": None}}


def agent_json(snapshot: Json) -> Json:
    """The agent as it was at creation, in the names of the official client."""
    settings = snapshot.get("settings") or {}
    chosen = settings.get("model_id")
    return {
        "type": "agent",
        "id": snapshot.get("id"),
        "version": 1,
        "name": snapshot.get("name"),
        "description": None,
        "system": snapshot.get("instructions") or None,
        "model": {"id": f"{settings['provider_id']}/{chosen}"} if chosen else None,
        "tools": [{"type": "custom", "name": name} for name in snapshot.get("tools") or ()],
        "skills": [],
        "mcp_servers": [],
    }


def row_json(session: Session) -> Json:
    """A light list row. `seq` orders row frames: an older one never overwrites a newer."""
    return {
        "id": session.public_id,
        "title": session.title,
        "preview_text": session.preview_text,
        "message_count": session.message_count,
        "model_label": session.model_label or None,
        "origin": session.origin,
        "updated_at": rfc3339(session.activity_at),
        "status": session.status,
        "executing": session.is_working,
        "working": session.is_working,
        "pinned": getattr(session, "pinned_at", None) is not None,
        "unread": is_unread(session),
        "waiting": session.open_waits or 0,
        "directory_id": None,
        "folder_id": encode_id(Prefix.FOLDER, session.folder_id) if session.folder_id else None,
        "parent_id": encode_id(Prefix.SESSION, session.parent_id) if session.parent_id else None,
        "seq": session.head_seq,
    }


def folder_json(folder: Folder) -> Json:
    return {
        "id": folder.public_id,
        "type": "folder",
        "workspace_id": encode_id(Prefix.WORKSPACE, folder.workspace_id),
        "name": folder.name,
        "position": folder.position,
        "created_at": rfc3339(folder.created_at),
    }


def inventory_json(session: Session) -> Json:
    """A row for who administers the organization; pins and marks are nobody's here."""
    personal = {"pinned", "unread"}
    return {
        **{name: value for name, value in row_json(session).items() if name not in personal},
        "workspace_id": encode_id(Prefix.WORKSPACE, session.workspace_id),
        "created_at": rfc3339(session.created_at),
        "archived_at": rfc3339(session.archived_at),
    }


def is_unread(session: Session) -> bool:
    """An agent wrote since this person read; only in sessions that the person follows."""
    follows = getattr(session, "follows", None)
    return bool(follows) and session.agent_message_seq > (getattr(session, "read_seq", 0) or 0)


def model_json(settings: Json | None) -> Json | None:
    if not settings or not settings.get("model_id"):
        return None
    return {
        "provider_id": settings["provider_id"],
        "model_id": settings["model_id"],
        "variant": settings.get("reasoning_effort"),
    }


def end_user_json(session: Session) -> Json | None:
    if not session.end_user_id:
        return None
    return {"source": session.end_user_source, "id": session.end_user_id}


def forked_from_json(session: Session) -> Json | None:
    """The source, for who may see it: the row was read with an access, which said so."""
    if session.forked_from_id is None or not getattr(session, "sees_source", False):
        return None
    source_id = encode_id(Prefix.SESSION, session.forked_from_id)
    return {"session_id": source_id, "seq": session.forked_from_seq}


def turn_json(turn: Turn) -> Json:
    return {
        "id": turn.public_id,
        "type": "turn",
        "session_id": encode_id(Prefix.SESSION, turn.session_id),
        "number": turn.number,
        "status": turn.status,
        "source": turn.source,
        "prompt_event_id": event_id(turn.session_id, turn.prompt_seq),
        "preview_text": turn.preview_text,
        "model": model_json(turn.settings or turn.requested_settings),
        "model_reason": turn.model_reason or None,
        "error": turn.error,
        "attempt_count": turn.attempt_count,
        "created_at": rfc3339(turn.created_at),
        "started_at": rfc3339(turn.started_at),
        "ended_at": rfc3339(turn.ended_at),
    }


def turn_with_attempts_json(turn: Turn) -> Json:
    attempts = sorted(turn.attempts.all(), key=lambda attempt: attempt.number)
    return {**turn_json(turn), "attempts": [attempt_json(attempt) for attempt in attempts]}


def attempt_json(attempt: Attempt) -> Json:
    return {
        "id": attempt.public_id,
        "number": attempt.number,
        "status": attempt.status,
        "started_at": rfc3339(attempt.started_at),
        "ended_at": rfc3339(attempt.ended_at),
    }


def wait_json(wait: Wait) -> Json:
    """What asks, with all that is needed to answer; its session is loaded."""
    request = wait.request
    if wait.kind == WaitKind.APPROVAL:
        asked: Json = {"input": request["input"]}
    else:
        asked = {"questions": request["questions"], "allow_skip": request["allow_skip"]}
    return {
        "id": wait.event_id,
        "type": "wait",
        "kind": wait.kind,
        "session_id": wait.session.public_id,
        "session_title": wait.session.title,
        "workspace_id": encode_id(Prefix.WORKSPACE, wait.session.workspace_id),
        "turn_id": encode_id(Prefix.TURN, wait.turn_id),
        "tool_use_id": wait.tool_use_id,
        "tool_name": wait.tool_name,
        **asked,
        "expires_at": rfc3339(wait.expires_at),
        "created_at": rfc3339(wait.created_at),
    }


def queue_json(turns: list[Turn], version: int) -> Json:
    data = [{**turn_json(turn), "position": place} for place, turn in enumerate(turns, start=1)]
    return {"data": data, "version": version}
