"""What all processes of an installation count together: tries, and requests."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
from django.db import OperationalError, connection

from core import rate_limit, tries
from core.models import Budget, RecentTries
from core.rate_limit import RateLimiter, spend
from core.tries import count_try, forget_all, forget_try, network_of


def attempt(name: str = "a", limit: int = 3, window: int = 60) -> int:
    return count_try(limits={name: limit}, window_seconds=window).wait_seconds


# ── Tries ──


def test_so_many_in_a_window_and_then_wait(db: None) -> None:
    assert [attempt() for _ in range(3)] == [0, 0, 0]
    assert 59 <= attempt() <= 60
    assert attempt("another") == 0


def test_a_refused_one_does_not_prolong_the_wait(db: None) -> None:
    for _ in range(3):
        attempt()
    for _ in range(20):
        assert attempt() > 0
    assert len(RecentTries.objects.get().times) == 3


def test_what_is_older_than_the_window_counts_no_more(db: None) -> None:
    for _ in range(3):
        attempt()
    row = RecentTries.objects.get()
    row.times = [row.times[0] - 61, row.times[1] - 30, row.times[2]]
    row.save()
    assert attempt() == 0
    assert 29 <= attempt() <= 30


def test_a_good_one_is_taken_back_and_a_success_forgives(db: None) -> None:
    made = count_try(limits={"a": 3, "b": 3}, window_seconds=60)
    attempt()
    forget_try(made)
    assert [attempt(), attempt(), attempt() > 0] == [0, 0, True]
    forget_all("a")
    assert attempt() == 0


def test_the_smallest_of_several_limits_counts_and_none_is_charged(db: None) -> None:
    attempt("account", limit=1)
    refused = count_try(limits={"account": 1, "address": 5}, window_seconds=60)
    assert refused.wait_seconds > 0
    assert RecentTries.objects.count() == 1


def test_what_was_typed_is_nowhere_in_clear(db: None) -> None:
    attempt("password of ada@example.test")
    assert "ada" not in str(list(RecentTries.objects.values()))


@pytest.mark.django_db(transaction=True)
def test_of_many_at_once_no_more_go_through_than_one_after_another() -> None:
    def one(_: int) -> int:
        try:
            limits = {"account": 8, "address": 40}
            return count_try(limits=limits, window_seconds=60).wait_seconds
        finally:
            connection.close()

    with ThreadPoolExecutor(12) as pool:
        answers = list(pool.map(one, range(60)))
    assert answers.count(0) == 8


def test_old_rows_are_swept(db: None, monkeypatch: pytest.MonkeyPatch) -> None:
    attempt("old")
    RecentTries.objects.update(last_at="2026-01-01T00:00:00Z")
    monkeypatch.setattr(tries, "_SWEEP_CHANCE", 2)
    attempt("new")
    assert RecentTries.objects.count() == 1


@pytest.mark.parametrize(
    ("address", "network"),
    [
        ("203.0.113.9", "203.0.113.9"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("2001:db8:1:2::9", "2001:db8:1:2::/64"),
        ("::ffff:203.0.113.9", "203.0.113.9"),
        ("", ""),
        ("x" * 500, "x" * 64),
    ],
)
def test_whoever_has_a_whole_network_counts_once(address: str, network: str) -> None:
    assert network_of(address) == network


# ── Requests ──


class Clock:
    moment = 0.0

    def __call__(self) -> float:
        return self.moment


def admitted(limiters: list[RateLimiter], requests: int) -> int:
    turns = [limiters[number % len(limiters)] for number in range(requests)]
    return sum(limiter.take("ada").is_admitted for limiter in turns)


@pytest.mark.parametrize(("limit", "processes"), [(3, 2), (60, 4), (1_000, 4)])
def test_several_processes_share_one_budget(db: None, limit: int, processes: int) -> None:
    limiters = [RateLimiter(limit, clock=Clock(), spend=spend) for _ in range(processes)]
    group = max(1, limit // rate_limit.GROUPS_PER_LIMIT)
    through = admitted(limiters, limit * 3)
    # The database's clock goes on meanwhile, and fills the bucket a little.
    assert limit <= through <= limit + (processes - 1) * group + max(3, limit // 20)


def test_a_restart_fills_no_bucket(db: None) -> None:
    assert admitted([RateLimiter(60, clock=Clock(), spend=spend)], 60) == 60
    assert admitted([RateLimiter(60, clock=Clock(), spend=spend)], 60) <= 3


def test_a_request_costs_no_write(db: None) -> None:
    told: list[int] = []

    def counting(key: str, limit: int, used: int) -> float:
        told.append(used)
        return spend(key, limit, used)

    assert admitted([RateLimiter(6_000, spend=counting)], 600) == 600
    assert told == [1, *[60] * 9]


def test_one_principal_does_not_pay_for_another(db: None) -> None:
    limiter = RateLimiter(2, clock=Clock(), spend=spend)
    assert [limiter.take("ada").is_admitted for _ in range(3)] == [True, True, False]
    assert limiter.take("bruno").is_admitted
    assert Budget.objects.count() == 2


def test_a_database_that_is_away_neither_locks_out_nor_opens_the_door(db: None) -> None:
    clock, is_away = Clock(), [False]
    asked: list[int] = []

    def flaky(key: str, limit: int, used: int) -> float:
        asked.append(used)
        if is_away[0]:
            raise OperationalError
        return spend(key, limit, used)

    limiter = RateLimiter(1_000, clock=clock, spend=flaky)
    assert limiter.take("ada").is_admitted
    is_away[0] = True
    assert sum(limiter.take("ada").is_admitted for _ in range(1_500)) == 999
    # It is asked once a second at most, however many requests come.
    assert asked == [1, 10]
    is_away[0] = False
    clock.moment = 2.0
    limiter.take("ada")
    # Everything that went through meanwhile is told, once it is back.
    assert 1_000 in asked
    assert Budget.objects.get().tokens < 40


def test_a_debt_is_paid_by_waiting_and_has_a_bottom(db: None) -> None:
    assert spend("ada", 60, 1) == 59
    assert -60 <= spend("ada", 60, 5_000) <= -59
    assert spend("ada", 60, -1) <= -58
