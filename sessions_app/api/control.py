"""Turns under control: pause, resume, cancel, retry, and the queue in people's hands."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any
from uuid import UUID

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from core.api.pagination import NoQuery, read_query, read_shape
from core.api.paths import id_in_path
from core.api.views import ApiView
from core.errors import InvalidInput
from core.ids import InvalidId, Prefix, decode_id, encode_id
from orgs.access import Access
from orgs.api.authentication import access_of
from sessions_app import wire
from sessions_app.api import building, requests, responses
from sessions_app.api.openapi import IDEMPOTENCY
from sessions_app.models import Session, WorkspaceHold
from sessions_app.selectors import Queue, list_queue
from sessions_app.services.cancelling import cancel_session
from sessions_app.services.holding import (
    pause_session,
    pause_workspace,
    resume_session,
    resume_workspace,
)
from sessions_app.services.idempotency import Answer, recheck_sent, run_once
from sessions_app.services.queueing import (
    QueuedTurn,
    delete_queued,
    edit_queued,
    move_queued,
    promote_queued,
)
from sessions_app.services.retrying import retry_turn


class _SessionCommand(ApiView):
    """POST with an empty body to something that a session does."""

    command: Callable[..., Session]

    def _do(self, request: Request, session_id: str) -> Response:
        read_query(request.query_params, NoQuery)
        read_shape(request.data, requests.Nothing)
        pk = id_in_path(Prefix.SESSION, session_id)
        session = type(self).command(access=access_of(request), session_id=pk)
        return Response(wire.session_json(session))


class PauseView(_SessionCommand):
    command = pause_session

    @extend_schema(
        operation_id="sessions_pause",
        tags=["Control"],
        summary="Hold a session and all below it; the running turn goes on after a resume.",
        request=requests.Nothing,
        responses={200: responses.SessionObject},
    )
    def post(self, request: Request, session_id: str) -> Response:
        return self._do(request, session_id)


class ResumeView(_SessionCommand):
    command = resume_session

    @extend_schema(
        operation_id="sessions_resume",
        tags=["Control"],
        summary="Let a session and all below it go on.",
        request=requests.Nothing,
        responses={200: responses.SessionObject},
    )
    def post(self, request: Request, session_id: str) -> Response:
        return self._do(request, session_id)


class CancelView(_SessionCommand):
    command = cancel_session

    @extend_schema(
        operation_id="sessions_cancel",
        tags=["Control"],
        summary="End a session and all below it for good: the queue is drained, nothing starts.",
        request=requests.Nothing,
        responses={200: responses.SessionObject},
    )
    def post(self, request: Request, session_id: str) -> Response:
        return self._do(request, session_id)


class RetryView(ApiView):
    @extend_schema(
        operation_id="sessions_retry",
        tags=["Control"],
        summary="Send the prompt of a failed turn once more, before what is queued.",
        parameters=[IDEMPOTENCY],
        request=requests.Retry,
        responses={202: responses.SentEvent},
    )
    def post(self, request: Request, session_id: str) -> Response:
        read_query(request.query_params, NoQuery)
        access = access_of(request)
        pk = id_in_path(Prefix.SESSION, session_id)
        values = read_shape(request.data, requests.Retry)
        turn_id = _turn_id(values["turn_id"]) if values.get("turn_id") else None
        answer = run_once(
            access=access,
            request=building.keyed(request, "sessions.retry", encode_id(Prefix.SESSION, pk)),
            operation=partial(_retry, access, pk, turn_id),
            recheck=lambda _: recheck_sent(access=access, session_id=pk),
        )
        return building.answered(answer)


class _QueueCommand(ApiView):
    """POST to one queued turn, with the version of the queue that the caller saw."""

    shape: type = requests.QueueChange

    def _read(
        self, request: Request, session_id: str, turn_id: str
    ) -> tuple[Access, QueuedTurn, dict[str, Any]]:
        read_query(request.query_params, NoQuery)
        queued = (id_in_path(Prefix.SESSION, session_id), id_in_path(Prefix.TURN, turn_id))
        values = read_shape(request.data, self.shape)
        return access_of(request), QueuedTurn(*queued, values["expected_version"]), values


class QueueMoveView(_QueueCommand):
    shape = requests.QueueMove

    @extend_schema(
        operation_id="queue_move",
        tags=["Control"],
        summary="Put a queued prompt at another place.",
        request=requests.QueueMove,
        responses={200: responses.QueueObject},
    )
    def post(self, request: Request, session_id: str, turn_id: str) -> Response:
        access, queued, values = self._read(request, session_id, turn_id)
        return _queue(move_queued(access=access, queued=queued, position=values["position"]))


class QueueEditView(_QueueCommand):
    @extend_schema(
        operation_id="queue_edit",
        tags=["Control"],
        summary="Take a queued prompt into one's draft; sent from there it has its old place.",
        request=requests.QueueChange,
        responses={200: responses.EditedObject},
    )
    def post(self, request: Request, session_id: str, turn_id: str) -> Response:
        access, queued, _ = self._read(request, session_id, turn_id)
        draft = edit_queued(access=access, queued=queued)
        queue = list_queue(access=access, session_id=queued.session_id)
        return Response(
            {
                "draft": {"type": "draft", "text": draft.text, "revision": draft.revision},
                "queue": wire.queue_json(queue.turns, queue.version),
            }
        )


class QueueDeleteView(_QueueCommand):
    @extend_schema(
        operation_id="queue_delete",
        tags=["Control"],
        summary="Take a queued prompt out of the queue.",
        request=requests.QueueChange,
        responses={200: responses.QueueObject},
    )
    def post(self, request: Request, session_id: str, turn_id: str) -> Response:
        access, queued, _ = self._read(request, session_id, turn_id)
        return _queue(delete_queued(access=access, queued=queued))


class QueuePromoteView(_QueueCommand):
    @extend_schema(
        operation_id="queue_promote",
        tags=["Control"],
        summary="Send a queued prompt now: it takes the place of the running turn.",
        request=requests.QueueChange,
        responses={200: responses.QueueObject},
    )
    def post(self, request: Request, session_id: str, turn_id: str) -> Response:
        access, queued, _ = self._read(request, session_id, turn_id)
        return _queue(promote_queued(access=access, queued=queued))


class _WorkspaceCommand(ApiView):
    command: Callable[..., WorkspaceHold]

    def _do(self, request: Request, workspace_id: str) -> Response:
        read_query(request.query_params, NoQuery)
        read_shape(request.data, requests.Nothing)
        pk = id_in_path(Prefix.WORKSPACE, workspace_id)
        hold = type(self).command(access=access_of(request), workspace_id=pk)
        return Response({"id": workspace_id, "type": "workspace_hold", "paused": hold.stands})


class WorkspacePauseView(_WorkspaceCommand):
    command = pause_workspace

    @extend_schema(
        operation_id="workspaces_pause",
        tags=["Control"],
        summary="Hold a whole workspace: what works now, and whatever would start.",
        request=requests.Nothing,
        responses={200: responses.WorkspaceHoldObject},
    )
    def post(self, request: Request, workspace_id: str) -> Response:
        return self._do(request, workspace_id)


class WorkspaceResumeView(_WorkspaceCommand):
    command = resume_workspace

    @extend_schema(
        operation_id="workspaces_resume",
        tags=["Control"],
        summary="Let a workspace go on.",
        request=requests.Nothing,
        responses={200: responses.WorkspaceHoldObject},
    )
    def post(self, request: Request, workspace_id: str) -> Response:
        return self._do(request, workspace_id)


def _retry(access: Access, session_id: UUID, turn_id: UUID | None) -> Answer:
    receipt = retry_turn(access=access, session_id=session_id, turn_id=turn_id)
    return Answer(202, building.echo_json(receipt), session_id)


def _queue(queue: Queue) -> Response:
    return Response(wire.queue_json(queue.turns, queue.version))


def _turn_id(text: str) -> UUID:
    try:
        return decode_id(Prefix.TURN, text)
    except InvalidId:
        raise InvalidInput("invalid_id", "This is not a turn's id.", param="turn_id") from None
