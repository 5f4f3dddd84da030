"""The ledger: tasks at once, tasks a minute for each user, CPU seconds a minute for all. The budget of repeated work."""

from __future__ import annotations

import pytest

from navarch.web.errors import RequestError
from navarch.web.work.limits import CpuBudget, WorkLedger, WorkLimits


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


def test_each_user_has_so_many_tasks_a_minute() -> None:
    clock = Clock()
    ledger = WorkLedger(WorkLimits(a_minute=2), clock)
    for _ in range(2):
        ledger.begin("jane")
        ledger.end(0.1)
    with pytest.raises(RequestError) as raised:
        ledger.begin("jane")
    assert raised.value.retry_after == 60.0
    ledger.begin("joe")
    ledger.end(0.1)
    clock.now += 60
    ledger.begin("jane")


def test_cpu_seconds_of_all_users_are_counted_together() -> None:
    clock = Clock()
    ledger = WorkLedger(WorkLimits(cpu_a_minute=10.0), clock)
    ledger.begin("jane")
    ledger.end(10.0)
    with pytest.raises(RequestError, match="10 CPU seconds"):
        ledger.begin("joe")
    clock.now += 60
    ledger.begin("joe")


def test_tasks_that_run_or_wait_are_limited() -> None:
    ledger = WorkLedger(WorkLimits(waiting=2), Clock())
    ledger.begin("jane")
    ledger.begin("joe")
    with pytest.raises(RequestError, match="2 tasks run or wait"):
        ledger.begin("jim")
    ledger.end(0.0)
    ledger.begin("jim")


def test_repeated_work_waits_when_its_budget_is_spent() -> None:
    budget = CpuBudget(part=0.1, burst=10.0, least_pause=5.0)
    assert budget.pause(0.0, 4.0) == 5.0
    assert budget.pause(10.0, 4.0) == 10.0  # 3 are left, so 1 is missing for the next run
    assert budget.pause(20.0, 4.0) == 40.0
    assert budget.pause(1000.0, 30.0) == 300.0  # more than can be kept: the next one begins when all of it is there


@pytest.mark.parametrize("cost", [0.2, 2.0, 7.0, 25.0])
def test_repeated_work_takes_its_part_of_a_core_at_most(cost: float) -> None:
    budget, now, runs = CpuBudget(part=0.05, burst=15.0, least_pause=10.0), 0.0, 0
    while now < 30_000:
        runs += 1
        now += budget.pause(now, cost)
    assert runs * cost <= 0.05 * now + 15.0
