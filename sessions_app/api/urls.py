"""Every route under /v1. Each has a row in the access matrix of the tests."""

from __future__ import annotations

from django.urls import path, re_path

from catalog.api.providers import (
    ProviderModelsView,
    ProviderModelView,
    ProvidersView,
    ProviderTestView,
    ProviderView,
)
from orgs.api.keys import AuditView, KeyRotationView, KeysView, KeyView
from orgs.api.organizations import (
    InvitationsView,
    InvitationView,
    MembersView,
    MemberView,
    OrganizationsView,
    OrganizationView,
    ServiceAccountsView,
    ServiceAccountView,
)
from orgs.api.workspaces import WorkspaceMembersView, WorkspaceMemberView
from sessions_app.api.agents import AgentSessionView
from sessions_app.api.bulk import BulkView
from sessions_app.api.catalogue import InventoryView, ModelsView, WorkspacesView
from sessions_app.api.cleaning import CleanArchiveView
from sessions_app.api.control import (
    CancelView,
    PauseView,
    QueueDeleteView,
    QueueEditView,
    QueueMoveView,
    QueuePromoteView,
    ResumeView,
    RetryView,
    WorkspacePauseView,
    WorkspaceResumeView,
)
from sessions_app.api.events import EventsView
from sessions_app.api.folders import FoldersView, FolderView, MoveView
from sessions_app.api.forking import ForkView
from sessions_app.api.openapi import openapi_view
from sessions_app.api.personal import DraftView, PinView, ReadMarkView, VisibilityView
from sessions_app.api.routing import no_such_route
from sessions_app.api.sessions import ArchiveView, SessionsView, SessionView, UnarchiveView
from sessions_app.api.tree import ChildrenView, TreeView
from sessions_app.api.turns import QueueView, TurnsView, TurnView
from sessions_app.api.waits import InboxView, PendingView
from sessions_app.streaming.sse import session_stream_view
from sessions_app.streaming.workspace_sse import workspace_stream_view

ORGANIZATION = "organizations/<str:organization_id>"
PROVIDER = f"{ORGANIZATION}/providers/<str:provider_id>"
WORKSPACE = "workspaces/<str:workspace_id>"
SESSION = "sessions/<str:session_id>"
QUEUED = f"{SESSION}/queue/<str:turn_id>"

urlpatterns = [
    path("openapi.json", openapi_view),
    path("workspaces", WorkspacesView.as_view()),
    path("models", ModelsView.as_view()),
    path("agents/<str:agent_id>/session", AgentSessionView.as_view()),
    path("inbox", InboxView.as_view()),
    path("sessions", SessionsView.as_view()),
    path("sessions/bulk", BulkView.as_view()),
    path("archive/clean", CleanArchiveView.as_view()),
    path(SESSION, SessionView.as_view()),
    path(f"{SESSION}/archive", ArchiveView.as_view()),
    path(f"{SESSION}/unarchive", UnarchiveView.as_view()),
    path(f"{SESSION}/pin", PinView.as_view()),
    path(f"{SESSION}/visibility", VisibilityView.as_view()),
    path(f"{SESSION}/read", ReadMarkView.as_view()),
    path(f"{SESSION}/draft", DraftView.as_view()),
    path(f"{SESSION}/events", EventsView.as_view()),
    path(f"{SESSION}/events/stream", session_stream_view),
    path(f"{SESSION}/turns", TurnsView.as_view()),
    path(f"{SESSION}/turns/<str:turn_id>", TurnView.as_view()),
    path(f"{SESSION}/queue", QueueView.as_view()),
    path(f"{QUEUED}/move", QueueMoveView.as_view()),
    path(f"{QUEUED}/edit", QueueEditView.as_view()),
    path(f"{QUEUED}/delete", QueueDeleteView.as_view()),
    path(f"{QUEUED}/promote", QueuePromoteView.as_view()),
    path(f"{SESSION}/pause", PauseView.as_view()),
    path(f"{SESSION}/resume", ResumeView.as_view()),
    path(f"{SESSION}/cancel", CancelView.as_view()),
    path(f"{SESSION}/retry", RetryView.as_view()),
    path(f"{SESSION}/fork", ForkView.as_view()),
    path(f"{WORKSPACE}/pause", WorkspacePauseView.as_view()),
    path(f"{WORKSPACE}/resume", WorkspaceResumeView.as_view()),
    path(f"{SESSION}/pending", PendingView.as_view()),
    path(f"{SESSION}/children", ChildrenView.as_view()),
    path(f"{SESSION}/tree", TreeView.as_view()),
    path(f"{SESSION}/move", MoveView.as_view()),
    path(f"{WORKSPACE}/stream", workspace_stream_view),
    path(f"{WORKSPACE}/folders", FoldersView.as_view()),
    path(f"{WORKSPACE}/folders/<str:folder_id>", FolderView.as_view()),
    path(f"{WORKSPACE}/members", WorkspaceMembersView.as_view()),
    path(f"{WORKSPACE}/members/<str:user_id>", WorkspaceMemberView.as_view()),
    path("organizations", OrganizationsView.as_view()),
    path(ORGANIZATION, OrganizationView.as_view()),
    path(f"{ORGANIZATION}/members", MembersView.as_view()),
    path(f"{ORGANIZATION}/members/<str:user_id>", MemberView.as_view()),
    path(f"{ORGANIZATION}/invitations", InvitationsView.as_view()),
    path(f"{ORGANIZATION}/invitations/<str:invitation_id>", InvitationView.as_view()),
    path(f"{ORGANIZATION}/service_accounts", ServiceAccountsView.as_view()),
    path(f"{ORGANIZATION}/service_accounts/<str:user_id>", ServiceAccountView.as_view()),
    path(f"{ORGANIZATION}/api_keys", KeysView.as_view()),
    path(f"{ORGANIZATION}/api_keys/<str:key_id>", KeyView.as_view()),
    path(f"{ORGANIZATION}/api_keys/<str:key_id>/rotate", KeyRotationView.as_view()),
    path(f"{ORGANIZATION}/providers", ProvidersView.as_view()),
    path(PROVIDER, ProviderView.as_view()),
    path(f"{PROVIDER}/test", ProviderTestView.as_view()),
    path(f"{PROVIDER}/models", ProviderModelsView.as_view()),
    path(f"{PROVIDER}/models/<str:model_id>", ProviderModelView.as_view()),
    path(f"{ORGANIZATION}/sessions", InventoryView.as_view()),
    path(f"{ORGANIZATION}/audit", AuditView.as_view()),
    re_path("", no_such_route),
]
