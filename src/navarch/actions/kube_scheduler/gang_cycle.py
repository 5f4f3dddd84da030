"""A `scheduling.k8s.io` group in one turn, as kube-scheduler's workload cycle takes it: whole, or not at all.

The group stands in the queue where its most important, oldest waiting pod stands. Its pods are placed one after the other by the usual
filters and scores, each with the ones before it in place. A pod that finds no node does not fail the group while the minCount can
still be reached. If it is reached, what was placed is kept, and the other pods are refused on their own. If not, everything is taken
back and every pod is told the group's shortage. Nothing is evicted for a group.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from navarch.engine.job import Job
from navarch.engine.placement.fit_errors import FitErrors
from navarch.engine.statement import Statement
from navarch.model.status import IS_ALLOCATED

if TYPE_CHECKING:
    from navarch.actions.kube_scheduler.schedule import Schedule

GANG_API = "upstream"
TOO_FEW = "waiting for minCount pods from a gang to appear in scheduling queue"


class GangCycle:
    def __init__(self, action: Schedule) -> None:
        self.action = action
        self.session = action.session
        self._on: dict[str, bool] = {}
        self._other: dict[str, None] = {}
        """Groups with a minimum that are not treated as gangs."""

    def is_gang(self, row: int) -> bool:
        job = self.session.job_of(row)
        if job is None or job.spec.min_member <= 1:
            return False
        if job.spec.dialect == GANG_API and self._enabled(row):
            return True
        self._other[job.key] = None
        return False

    def _enabled(self, row: int) -> bool:
        profile = self.session.class_of(row).profile
        found = self._on.get(profile)
        if found is None:
            found = self._on[profile] = self.action.given_for(profile).flag("gangs")
        return found

    def turns(self, waiting: list[int]) -> Iterator[list[int]]:
        """Pods in their order: those of a gang together at the place of its first, the others in stretches between gangs."""
        gangs: dict[int, list[int]] = {}
        for row in waiting:
            if self.is_gang(row):
                gangs.setdefault(self._job(row).row, []).append(row)
        stretch: list[int] = []
        for row in waiting:
            if not self.is_gang(row):
                stretch.append(row)
                continue
            members = gangs.pop(self._job(row).row, None)
            if members is not None:
                if stretch:
                    yield stretch
                    stretch = []
                yield members
        if stretch:
            yield stretch

    def place(self, rows: list[int]) -> None:
        session, job = self.session, self._job(rows[0])
        scheduled = sum(1 for task in job.tasks if IS_ALLOCATED[session.status[task]])
        least, left, placed = job.spec.min_member, len(rows), 0
        if scheduled + left < least:
            self._refuse_all(rows, TOO_FEW)
            return
        statement = session.statement()
        failed: dict[int, FitErrors] = {}
        for row in rows:
            left -= 1
            errors = self._try(statement, job, row)
            if errors is None:
                placed += 1
                continue
            failed[row] = errors
            if scheduled + placed + left < least:
                self._take_back(statement, job)
                shortage = f"minCount ({least}) cannot be satisfied: {scheduled + placed} scheduled, {left} remaining"
                self._refuse_all(rows, f"{shortage}: {errors.message}")
                return
        self._keep(statement)
        for row, errors in failed.items():
            self.action.refuse(row, errors)

    def announced(self) -> list[str]:
        """A word on groups that are no gangs under this policy."""
        if not self._other:
            return []
        first = min(self._other)
        others = f" and {len(self._other) - 1} more" if len(self._other) > 1 else ""
        return [f"{first}{others}: under kube-scheduler's rules a group is a gang only with scheduling.k8s.io and GangScheduling"]

    def _job(self, row: int) -> Job:
        job = self.session.job_of(row)
        assert job is not None
        return job

    def _try(self, statement: Statement, job: Job, row: int) -> FitErrors | None:
        """Give the pod a node, or say why none takes it."""
        session = self.session
        task = session.class_of(row)
        attempt, _ = self.action.look(task, row)
        node = attempt.node
        if node < 0 and attempt.feasible.any():
            node = session.view(task).choose_in(attempt.feasible, 1)[0]
        if node >= 0:
            statement.allocate(job, [row], [node], task)
            self.action.changed()
            return None
        size = len(session.nodes)
        attempt.errors.message = attempt.rejection if not size else attempt.errors.available_text(size, attempt.rejection)
        return attempt.errors

    def _take_back(self, statement: Statement, job: Job) -> None:
        """Every pod is told the group's shortage, so none is told that it could have run."""
        undone = dict(job.last_undone)
        statement.discard()
        job.last_undone.clear()
        job.last_undone.update(undone)
        self.action.changed()

    def _keep(self, statement: Statement) -> None:
        for operation in statement.operations:
            for row in operation.tasks:
                self.action.nominations.drop(row)
        statement.commit()

    def _refuse_all(self, rows: list[int], message: str) -> None:
        for row in rows:
            self.action.refuse(row, FitErrors(len(self.session.nodes), message=message))
