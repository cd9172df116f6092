"""Cleaning an archive: what goes, what stays, and who hears of it."""

from __future__ import annotations

import pytest

from core.errors import Conflict
from orgs.models.audit import AuditAction, AuditEntry
from sessions_app.domain.vocabulary import Visibility
from sessions_app.models import Event, Session
from sessions_app.services.archiving import (
    archive_session,
    delete_session,
    erase_tree,
    unarchive_session,
)
from sessions_app.services.cleaning import BATCH, clean_archive, count_cleanable
from tests.factories import Cast, make_session, send
from tests.services.test_children import allow_private


def archived(cast: Cast, *, by: str = "member", **fields: object) -> Session:
    session = make_session(cast, by=by, **fields)
    archive_session(access=cast.access(by), session_id=session.pk)
    return session


def clean(cast: Cast, by: str, confirm: int | None = None) -> set[object]:
    access, workspace_id = cast.access(by), cast.workspace.pk
    number = count_cleanable(access=access, workspace_id=workspace_id)
    count = number if confirm is None else confirm
    return set(clean_archive(access=access, workspace_id=workspace_id, confirm=count))


def test_all_that_is_archived_goes_in_every_partition_and_nothing_else(cast: Cast) -> None:
    kept = make_session(cast)
    tops = [archived(cast), archived(cast, origin={"type": "chat"}), archived(cast, by="owner")]
    parent = make_session(cast)
    child = make_session(cast, parent_id=parent.pk)
    archive_session(access=cast.access("member"), session_id=parent.pk)
    gone = {each.pk for each in (*tops, parent, child)}
    assert count_cleanable(access=cast.access("admin"), workspace_id=cast.workspace.pk) == 5
    assert clean(cast, "admin") == gone
    assert [each.pk for each in Session.objects.all()] == [kept.pk]
    assert not Event.objects.filter(session_id__in=gone).exists()
    entry = AuditEntry.objects.get(action=AuditAction.ARCHIVE_CLEANED)
    assert (entry.changes, entry.target_id) == ({"sessions": [5, 0]}, cast.workspace.public_id)


def test_a_member_cleans_what_they_made_with_all_below_it(cast: Cast) -> None:
    own, _others = archived(cast), archived(cast, by="second_member")
    parent = make_session(cast)
    child = make_session(cast, by="second_member", parent_id=parent.pk)
    archive_session(access=cast.access("member"), session_id=parent.pk)
    assert clean(cast, "member") == {own.pk, parent.pk, child.pk}
    assert Session.objects.count() == 1


def test_a_child_archived_alone_goes_and_its_parent_stays(cast: Cast) -> None:
    parent = make_session(cast)
    child = make_session(cast, parent_id=parent.pk)
    archive_session(access=cast.access("member"), session_id=child.pk)
    assert clean(cast, "owner") == {child.pk}
    assert Session.objects.filter(pk=parent.pk).exists()


@pytest.mark.parametrize("confirm", [0, 1, 3])
def test_a_number_that_is_no_longer_right_erases_nothing(cast: Cast, confirm: int) -> None:
    archived(cast)
    archived(cast)
    with pytest.raises(Conflict) as refused:
        clean(cast, "admin", confirm)
    assert (refused.value.code, refused.value.details) == ("count_changed", {"count": 2})
    assert Session.objects.count() == 2


def test_what_one_keeps_for_oneself_is_cleaned_by_its_maker_alone_and_untold(cast: Cast) -> None:
    allow_private(cast)
    kept = archived(cast, visibility=Visibility.PRIVATE)
    for name in ("owner", "admin", "workspace_key"):
        assert clean(cast, name) == set()
    assert clean(cast, "member") == {kept.pk}
    assert not AuditEntry.objects.filter(action=AuditAction.ARCHIVE_CLEANED).exists()


def test_what_was_restored_meanwhile_stays(cast: Cast, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = (archived(cast) for _ in range(2))
    monkeypatch.setattr("sessions_app.services.cleaning.BATCH", 1)
    original = unarchive_session
    found = iter([first.pk])

    def restoring(session: Session, below: list[Session], **rest: object) -> None:
        erase_tree(session, below, **rest)  # type: ignore[arg-type]
        if next(found, None):
            original(access=cast.access("member"), session_id=second.pk)

    monkeypatch.setattr("sessions_app.services.cleaning.erase_tree", restoring)
    assert clean(cast, "admin") == {first.pk}
    assert Session.objects.get().pk == second.pk


def test_more_than_a_batch_goes_and_each_batch_is_told(cast: Cast) -> None:
    for _ in range(BATCH + 1):
        archived(cast)
    assert len(clean(cast, "admin")) == BATCH + 1
    told = AuditEntry.objects.filter(action=AuditAction.ARCHIVE_CLEANED)
    assert sorted(entry.changes["sessions"][0] for entry in told) == [1, BATCH]


def test_removing_one_is_told_without_a_word_of_it(cast: Cast) -> None:
    session = make_session(cast, title="Survey")
    send(cast, session, "Survey the harbour")
    delete_session(access=cast.access("member"), session_id=session.pk, stop=True)
    entry = AuditEntry.objects.get(action=AuditAction.SESSION_REMOVED)
    assert (entry.target_id, entry.actor_name) == (session.public_id, cast.member.name)
    assert "urvey" not in str(entry.__dict__)
