"""The same act on many sessions, and the taking back of it."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from core.api.errors import problem_of
from core.api.fields import PublicId, StrictSerializer, Text
from core.api.pagination import NoQuery, read_query, read_shape
from core.api.views import ApiView
from core.errors import InvalidInput
from core.ids import Prefix, encode_id
from orgs.api.authentication import access_of
from sessions_app.api.requests import Choice
from sessions_app.services.bulk import BulkAction, Outcome, Result, act_in_bulk, undo_bulk

IDS_MAX = 500
TOKEN_MAX_CHARACTERS = 200_000
UNDO = "undo"
_ACTIONS = [*((action.value, action.value) for action in BulkAction), (UNDO, UNDO)]


class Bulk(StrictSerializer):
    action = Choice(choices=_ACTIONS)
    ids = serializers.ListField(
        child=PublicId(Prefix.SESSION), min_length=1, max_length=IDS_MAX, required=False
    )
    folder_id = PublicId(
        Prefix.FOLDER, allow_null=True, required=False, help_text="For `move`. null: in no folder."
    )
    undo = Text(
        required=False,
        allow_blank=False,
        max_length=TOKEN_MAX_CHARACTERS,
        help_text="For `undo`: the token of the answer that it takes back.",
    )


class BulkError(serializers.Serializer[Any]):
    type = serializers.CharField()
    code = serializers.CharField()
    message = serializers.CharField()


class BulkResult(serializers.Serializer[Any]):
    id = serializers.CharField()
    ok = serializers.BooleanField()
    changed = serializers.BooleanField()
    error = BulkError(allow_null=True)


class BulkOutcome(serializers.Serializer[Any]):
    data = BulkResult(many=True)  # type: ignore[assignment]
    undo = serializers.CharField(allow_null=True)


class BulkView(ApiView):
    @extend_schema(
        operation_id="sessions_bulk",
        tags=["Sessions"],
        summary="Archive, restore or move many sessions, or take back what such a call did.",
        request=Bulk,
        responses={200: BulkOutcome},
    )
    def post(self, request: Request) -> Response:
        """One that is refused holds up no other: each has a result of its own."""
        read_query(request.query_params, NoQuery)
        values = read_shape(request.data, Bulk)
        _require_own_fields(values)
        access = access_of(request)
        if values["action"] == UNDO:
            return Response(_shown(undo_bulk(access=access, token=values["undo"])))
        outcome = act_in_bulk(
            access=access,
            action=BulkAction(values["action"]),
            session_ids=values["ids"],
            folder_id=values.get("folder_id"),
        )
        return Response(_shown(outcome))


def _require_own_fields(values: dict[str, Any]) -> None:
    """Each action has fields of its own, all of them required."""
    wanted = {UNDO: {"undo"}, BulkAction.MOVE: {"ids", "folder_id"}}.get(values["action"], {"ids"})
    given = values.keys() - {"action"}
    for name in sorted(wanted ^ given):
        verb = "needs" if name in wanted else "takes no"
        raise InvalidInput(
            "invalid_request", f"The action {values['action']} {verb} {name}.", param=name
        )


def _shown(outcome: Outcome) -> dict[str, Any]:
    return {"data": [_row(result) for result in outcome.results], "undo": outcome.undo}


def _row(result: Result) -> dict[str, Any]:
    error = None
    if result.error is not None:
        told = problem_of(result.error).body("")["error"]
        error = {name: told[name] for name in ("type", "code", "message")}
    return {
        "id": encode_id(Prefix.SESSION, result.session_id),
        "ok": error is None,
        "changed": result.changed,
        "error": error,
    }
