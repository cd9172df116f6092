"""Who and what is in the demo organization."""

from __future__ import annotations

from dataclasses import dataclass

from orgs.roles import OrganizationRole, Scope, WorkspaceRole

ORGANIZATION = "Lindqvist Atlas"
WORKSPACE = "Field notes"
OTHER_ORGANIZATION = "Haddad Tiles"
OTHER_WORKSPACE = "Kiln"


@dataclass(frozen=True, slots=True)
class Person:
    """`role` is the word in demo.json; an outsider has no role in the organization."""

    name: str
    email: str
    role: str
    organization_role: OrganizationRole | None
    workspace_role: WorkspaceRole | None


OWNER = Person(
    "Ada Moreau",
    "ada@lindqvist-atlas.example",
    "owner",
    OrganizationRole.OWNER,
    WorkspaceRole.ADMINISTRATOR,
)
OUTSIDER = Person("Farid Haddad", "farid@haddad-tiles.example", "outsider", None, None)
MEMBERS = (
    Person(
        "Bruno Keller",
        "bruno@lindqvist-atlas.example",
        "admin",
        OrganizationRole.ADMIN,
        WorkspaceRole.ADMINISTRATOR,
    ),
    Person(
        "Chiara Novak",
        "chiara@lindqvist-atlas.example",
        "member",
        OrganizationRole.MEMBER,
        WorkspaceRole.MEMBER,
    ),
    Person(
        "Dev Patel",
        "dev@lindqvist-atlas.example",
        "member",
        OrganizationRole.MEMBER,
        WorkspaceRole.MEMBER,
    ),
    Person(
        "Elif Aydin",
        "elif@lindqvist-atlas.example",
        "viewer",
        OrganizationRole.MEMBER,
        WorkspaceRole.VIEWER,
    ),
)
PEOPLE = (OWNER, *MEMBERS, OUTSIDER)


@dataclass(frozen=True, slots=True)
class DemoKey:
    """`scope` is the word in demo.json. `in_workspace`: of Field notes, else of all."""

    name: str
    scope: str
    scopes: tuple[Scope, ...]
    in_workspace: bool


KEYS = (
    DemoKey("Demo: the whole organization", "organization", (Scope.FULL,), in_workspace=False),
    DemoKey("Demo: Field notes", "workspace", (Scope.FULL,), in_workspace=True),
    DemoKey("Demo: Field notes, reading only", "read_only", (Scope.READ,), in_workspace=True),
)


@dataclass(frozen=True, slots=True)
class Example:
    """A session to look at; the worker answers its prompts."""

    title: str
    maker: Person
    prompts: tuple[str, ...]


EXAMPLES = (
    Example(
        "What survives a crash",
        OWNER,
        ("What happens when a worker dies in the middle of an answer?", "Give me a long answer"),
    ),
    Example(
        "Numbers for the spring survey",
        MEMBERS[1],
        ("What is 17 × 23?", "And 391 / 4?", "What did I say so far?"),
    ),
    Example(
        "How answers look", MEMBERS[2], ("Show me a table and some code", "And a quotation, please")
    ),
    Example("Connecting a real model", OWNER, ("How do I connect a real model?",)),
)
