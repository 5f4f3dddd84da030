"""Quotas of device classes: how many devices of a class the claims of a queue's pods may request together.

A queue's capability may name `deviceclass/CLASS`. A claim that several pods of the queue share counts once. Requests for
administrative access do not count, because they reserve nothing. Of alternatives, the first counts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np

from navarch.engine.job import Job
from navarch.engine.points.protocols import Change
from navarch.engine.queue import Queue
from navarch.engine.reasons import Event, Reason
from navarch.engine.session import Session
from navarch.model.objects.devices import DeviceDemand, resource_claims
from navarch.model.spec import Shape
from navarch.model.status import IS_ALLOCATED

PREFIX = "deviceclass/"
_MILLI = 1000
_FREED = (Event.POD_REMOVED, Event.QUEUE_CHANGED, Event.CLAIM_CHANGED)
Claim = tuple[str, str]
Devices = Counter[str]
"""Device class -> how many."""


class DeviceQuota:
    def __init__(self, session: Session, queues: Sequence[Queue], paths: Sequence[Sequence[int]]) -> None:
        self.session = session
        self.queues = queues
        self.limits: dict[int, dict[str, int]] = {}
        for queue in queues:
            named = {n.removeprefix(PREFIX): a // _MILLI for n, a in queue.spec.capability or () if n.startswith(PREFIX)}
            if named:
                self.limits[queue.number] = named
        self.held: dict[int, Devices] = {number: Counter() for number in self.limits}
        self.promised: dict[int, Devices] = {number: Counter() for number in self.limits}
        """What jobs admitted in this cycle need to start."""
        self._users: dict[int, Counter[Claim]] = {number: Counter() for number in self.limits}
        self._claims: dict[Shape, dict[Claim, Devices]] = {}
        if self.limits:
            self._add_up(paths)

    def _add_up(self, paths: Sequence[Sequence[int]]) -> None:
        session = self.session
        claiming = [i for i, shape in enumerate(session.snapshot.shapes) if shape.claims]
        tasks = session.snapshot.tasks
        for row in np.flatnonzero(tasks.alive & IS_ALLOCATED[session.status] & np.isin(session.shape, claiming)).tolist():
            job = session.job_of(row)
            if job is not None:
                self._use(paths[job.queue.number], session.snapshot.shapes[session.shape[row]], 1)

    def claims(self, shape: Shape) -> dict[Claim, Devices]:
        """What each claim of such a pod asks for. A claim that is not made yet asks for nothing."""
        found = self._claims.get(shape)
        if found is None:
            known = resource_claims(self.session.snapshot)
            found = {}
            for _, name in shape.claims:
                claim = known.get((shape.namespace, name))
                if claim is not None:
                    found[shape.namespace, name] = _asked(claim.requests)
            self._claims[shape] = found
        return found

    def refuses(self, path: Iterable[int], shape: Shape) -> Reason | None:
        """Whether one more such pod (or several: equal pods share their claims) breaks a quota of the queue or an ancestor."""
        if not shape.claims or not self.limits:
            return None
        for number in path:
            if number in self.limits:
                fresh = [devices for claim, devices in self.claims(shape).items() if not self._users[number][claim]]
                reason = self._over(number, sum(fresh, Counter()), self.held[number])
                if reason is not None:
                    return reason
        return None

    def refuses_job(self, path: Iterable[int], job: Job) -> Reason | None:
        asked = self._least(job) if self.limits else None
        if not asked:
            return None
        for number in path:
            if number in self.limits:
                reason = self._over(number, asked, self.held[number] + self.promised[number])
                if reason is not None:
                    return reason
        return None

    def admit(self, path: Iterable[int], job: Job) -> None:
        asked = self._least(job) if self.limits else None
        for number in path if asked else ():
            if number in self.limits and asked is not None:
                self.promised[number] += asked

    def move(self, path: Iterable[int], change: Change, sign: int) -> None:
        if self.limits and change.task.shape.claims:
            self._use(path, change.task.shape, sign * len(change.tasks))

    def _use(self, path: Iterable[int], shape: Shape, pods: int) -> None:
        for number in path:
            if number not in self.limits:
                continue
            users, held = self._users[number], self.held[number]
            for claim, devices in self.claims(shape).items():
                before = users[claim]
                users[claim] += pods
                if not before and users[claim]:
                    held.update(devices)
                elif before and not users[claim]:
                    held.subtract(devices)

    def _over(self, number: int, asked: Devices, held: Devices) -> Reason | None:
        limits = self.limits[number]
        short = sorted(c for c, count in asked.items() if c in limits and held[c] + count > limits[c])
        if not short:
            return None
        name = self.queues[number].name
        figures: dict[str, int | float | str] = {"queue": name}
        for each in short:
            figures |= {f"{each} held": held[each], f"{each} asked": asked[each], f"{each} capability": limits[each]}
        text = f"queue resource quota insufficient: {', '.join(f'insufficient {PREFIX}{each}' for each in short)}"
        return Reason("QueueDeviceQuota", text, figures=figures, undone_by=_FREED)

    def _least(self, job: Job) -> Devices:
        """What the claims of the pods that the job needs to start ask for: its roles' minimums, then any up to its own."""
        session, wanted, rest = self.session, list[int](), list[int]()
        roles = Counter(dict(job.spec.roles))
        for task in session.sorted_tasks(list(job.tasks)):
            role = session.task(task).role
            (wanted if roles[role] > 0 else rest).append(task)
            roles[role] -= 1
        wanted += rest[: max(job.min_member - len(wanted), 0)]
        claims: dict[Claim, Devices] = {}
        for task in wanted:
            claims |= self.claims(session.snapshot.shapes[session.shape[task]])
        return sum(claims.values(), Counter())


def _asked(requests: Iterable[DeviceDemand]) -> Devices:
    devices: Devices = Counter()
    for request in requests:
        demand = request.alternatives[0] if request.alternatives else request
        if not demand.admin_access:
            devices[demand.device_class] += demand.count
    return devices
