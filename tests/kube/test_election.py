"""Leader election in virtual time (looptime): leases of fifteen seconds pass at once."""

from __future__ import annotations

import asyncio
import itertools
import json
import random
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest
from tests.worlds.kube.small_api import SmallApi

from navarch.kube.client import Client
from navarch.kube.errors import Conflict, OutcomeUnknown, Status
from navarch.live.ops.election import Elector, make_identity
from navarch.live.ops.lease import ApiLeaseLock, LeaseRecord

pytestmark = pytest.mark.looptime


class SharedLease:
    """A Lease as an API server keeps it: one record, a version, and a refusal for writes of an old version."""

    def __init__(self) -> None:
        self.record: LeaseRecord | None = None
        self.version = 0
        self.holders: list[str] = []

    def write(self, record: LeaseRecord, seen: int) -> None:
        if seen != self.version:
            raise Conflict(Status(code=409, reason="Conflict", message="the object has been modified"))
        self.record, self.version = record, self.version + 1
        if not self.holders or self.holders[-1] != record.holder_identity:
            self.holders.append(record.holder_identity)


class View:
    """One elector's connection to it, which can be cut or made to hang."""

    def __init__(self, lease: SharedLease) -> None:
        self.lease = lease
        self.cut = False
        self.hangs = False
        self._seen = 0

    async def read(self) -> LeaseRecord | None:
        await self._network()
        self._seen = self.lease.version
        return self.lease.record

    async def write(self, record: LeaseRecord) -> None:
        await self._network()
        self.lease.write(record, self._seen)
        self._seen = self.lease.version

    async def _network(self) -> None:
        await asyncio.sleep(0.01)
        if self.hangs:
            await asyncio.Event().wait()
        if self.cut:
            raise OutcomeUnknown("cut")


class Replica:
    """An elector with its work, which records when it led."""

    def __init__(
        self,
        lease: SharedLease,
        name: str,
        seed: int,
        drift: float = 0.0,
        alive: Callable[[], bool] = lambda: True,
        view: View | None = None,
    ) -> None:
        self.view = view or View(lease)
        self.drift = drift
        self.jump = 0.0
        self.periods: list[tuple[float, float]] = []
        self.started = asyncio.Event()
        loop = asyncio.get_running_loop()
        self.elector = Elector(
            self.view,
            name,
            clock=lambda: loop.time() * (1 + self.drift) + self.jump,
            wall_clock=lambda: 1e9 * seed,  # wall clocks that disagree by decades
            rng=random.Random(seed),
            alive=alive,
        )
        self.finish = asyncio.Event()

    async def lead(self) -> None:
        loop = asyncio.get_running_loop()
        since = loop.time()
        assert self.elector.leading
        self.started.set()
        try:
            await self.finish.wait()
        finally:
            self.periods.append((since, loop.time()))
            self.started.clear()

    async def run(self) -> None:
        while True:
            await self.elector.run(self.lead)


@asynccontextmanager
async def running(*replicas: Replica) -> AsyncIterator[list[asyncio.Task[None]]]:
    tasks = [asyncio.create_task(replica.run()) for replica in replicas]
    try:
        yield tasks
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def never_two(*replicas: Replica) -> None:
    periods = sorted(period for replica in replicas for period in replica.periods)
    for (_, end), (begin, _) in itertools.pairwise(periods):
        assert end <= begin, f"two leaders at once: {periods}"


async def test_the_first_leads_and_the_others_wait() -> None:
    lease = SharedLease()
    a, b = Replica(lease, "a", 1), Replica(lease, "b", 2)
    async with running(a, b):
        await asyncio.sleep(120)
        assert lease.holders == ["a"]
        assert b.elector.leader == "a" and not b.elector.leading and a.elector.leading
        assert lease.record is not None and lease.record.lease_duration_seconds == 15
    never_two(a, b)


async def test_a_clean_stop_hands_over_at_once() -> None:
    lease = SharedLease()
    a, b = Replica(lease, "a", 1), Replica(lease, "b", 2)
    async with running(a, b) as tasks:
        await asyncio.sleep(30)
        stopped = asyncio.get_running_loop().time()
        tasks[0].cancel()
        await b.started.wait()
        assert asyncio.get_running_loop().time() - stopped < 3
        assert lease.holders == ["a", "", "b"]
        assert lease.record is not None and lease.record.lease_transitions == 1
    never_two(a, b)


async def test_a_leader_that_dies_is_replaced_when_its_lease_runs_out() -> None:
    lease = SharedLease()
    a, b = Replica(lease, "a", 1), Replica(lease, "b", 2)
    async with running(a, b):
        await asyncio.sleep(30)
        cut = asyncio.get_running_loop().time()
        a.view.cut = True
        await b.started.wait()
        assert 10 < asyncio.get_running_loop().time() - cut < 21
        # It noticed by itself, before b started.
        assert len(a.periods) == 1 and a.periods[0][1] - cut <= 10.1
    never_two(a, b)


async def test_requests_that_hang_do_not_keep_it_leading() -> None:
    lease = SharedLease()
    a, b = Replica(lease, "a", 1), Replica(lease, "b", 2)
    async with running(a, b):
        await asyncio.sleep(30)
        a.view.hangs = True
        await b.started.wait()
        assert not a.elector.leading and len(a.periods) == 1
    never_two(a, b)


async def test_a_short_outage_changes_nothing() -> None:
    lease = SharedLease()
    a, b = Replica(lease, "a", 1), Replica(lease, "b", 2)
    async with running(a, b):
        for _ in range(5):
            await asyncio.sleep(20)
            a.view.cut = True
            await asyncio.sleep(6)
            a.view.cut = False
        assert lease.holders == ["a"]


async def test_a_lease_that_another_candidate_takes_ends_the_lead() -> None:
    lease = SharedLease()
    a = Replica(lease, "a", 1)
    async with running(a):
        await asyncio.sleep(30)
        lease.write(LeaseRecord(holder_identity="admin", lease_duration_seconds=15), lease.version)
        await asyncio.sleep(2.2)
        assert not a.elector.leading and len(a.periods) == 1


async def test_an_elector_that_lost_the_lease_does_not_write_it_while_its_work_ends() -> None:
    """The work may take seconds to end; the time that the last renewal would have lasted is no leave to go on writing."""
    lease = SharedLease()
    replica = Replica(lease, "a", 1)
    allowed: list[bool] = []

    async def slow_to_stop() -> None:
        allowed.append(replica.elector.leading)
        try:
            await asyncio.Event().wait()
        finally:
            allowed.append(replica.elector.leading)
            await asyncio.sleep(1)
            allowed.append(replica.elector.leading)

    task = asyncio.create_task(replica.elector.run(slow_to_stop))
    await asyncio.sleep(30)
    lease.write(LeaseRecord(holder_identity="b", lease_duration_seconds=15), lease.version)
    await asyncio.wait([task])
    assert allowed == [True, False, False]
    assert lease.record is not None and lease.record.holder_identity == "b"


@pytest.mark.parametrize("jump", [3600.0, -3600.0])
async def test_a_clock_that_jumps_makes_no_second_leader(jump: float) -> None:
    lease = SharedLease()
    a, b = Replica(lease, "a", 1), Replica(lease, "b", 2)
    async with running(a, b):
        await asyncio.sleep(30)
        b.jump = jump
        await asyncio.sleep(60)
        assert lease.holders == ["a"]
        a.jump = jump
        assert not a.elector.leading
        await asyncio.sleep(60)
    never_two(a, b)


async def test_clocks_that_run_at_different_speeds() -> None:
    lease = SharedLease()
    a, b = Replica(lease, "a", 1, drift=-0.05), Replica(lease, "b", 2, drift=0.05)
    async with running(a, b):
        for _ in range(10):
            await asyncio.sleep(30)
            leader = a if a.elector.leading else b
            leader.view.cut = True
            await asyncio.sleep(40)
            leader.view.cut = False
    never_two(a, b)
    assert len(a.periods) + len(b.periods) >= 10


async def test_an_elector_stopped_while_its_lost_lead_ends_stops() -> None:
    """It does not stand for election again."""
    lease = SharedLease()
    replica = Replica(lease, "a", 1)
    ending = asyncio.Event()

    async def slow_to_stop() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ending.set()
            await asyncio.sleep(5)

    async def again_and_again() -> None:
        while True:
            await replica.elector.run(slow_to_stop)

    task = asyncio.create_task(again_and_again())
    await asyncio.sleep(30)
    replica.view.cut = True
    await ending.wait()
    replica.view.cut = False
    task.cancel()
    done, _ = await asyncio.wait([task], timeout=60)
    assert done and task.cancelled()


async def test_an_error_of_the_work_is_raised_and_the_lease_is_released() -> None:
    lease = SharedLease()
    replica = Replica(lease, "a", 1)

    async def broken() -> None:
        raise RuntimeError("no policy")

    with pytest.raises(RuntimeError, match="no policy"):
        await replica.elector.run(broken)
    assert lease.holders == ["a", ""]
    assert not replica.elector.leading


async def test_a_lease_that_is_kept_is_not_released() -> None:
    lease = SharedLease()
    replica = Replica(lease, "a", 1)

    async def work() -> None:
        replica.elector.keep()

    await replica.elector.run(work)
    assert lease.record is not None and lease.record.holder_identity == "a" and not replica.elector.leading


class LateView(View):
    """A write that is cut off reaches the server all the same, a little later."""

    def __init__(self, lease: SharedLease) -> None:
        super().__init__(lease)
        self.writing = asyncio.Event()

    async def write(self, record: LeaseRecord) -> None:
        self.writing.set()
        try:
            await self._network()
        except asyncio.CancelledError:
            asyncio.get_running_loop().call_later(0.015, self.lease.write, record, self._seen)
            raise
        self.lease.write(record, self._seen)
        self._seen = self.lease.version


async def test_a_release_that_meets_a_renewal_in_flight_is_tried_again() -> None:
    lease = SharedLease()
    view = LateView(lease)
    a, b = Replica(lease, "a", 1, view=view), Replica(lease, "b", 2)
    async with running(a, b) as tasks:
        await a.started.wait()
        view.writing.clear()
        await view.writing.wait()
        stopped = asyncio.get_running_loop().time()
        tasks[0].cancel()
        await b.started.wait()
        assert asyncio.get_running_loop().time() - stopped < 3
        assert lease.holders == ["a", "", "b"]
    never_two(a, b)


async def test_work_that_ends_releases_the_lease() -> None:
    lease = SharedLease()
    replica = Replica(lease, "a", 1)
    replica.finish.set()
    await replica.elector.run(replica.lead)
    assert lease.holders == ["a", ""]


async def test_the_work_has_ended_before_the_lease_is_released() -> None:
    lease = SharedLease()
    replica = Replica(lease, "a", 1)
    held: list[str] = []

    async def slow_to_stop() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(3)
            assert lease.record is not None
            held.append(lease.record.holder_identity)

    task = asyncio.create_task(replica.elector.run(slow_to_stop))
    await asyncio.sleep(5)
    task.cancel()
    await asyncio.wait([task])
    assert held == ["a"] and lease.holders == ["a", ""]


async def test_each_new_leader_is_announced_once() -> None:
    lease = SharedLease()
    seen: list[str] = []
    a = Replica(lease, "a", 1)
    b = Elector(View(lease), "b", on_new_leader=seen.append, clock=asyncio.get_running_loop().time)
    first = asyncio.create_task(a.elector.run(a.lead))
    await asyncio.sleep(1)
    second = asyncio.create_task(b.run(lambda: asyncio.sleep(5)))
    await asyncio.sleep(30)
    a.finish.set()
    await asyncio.gather(first, second)
    assert seen == ["a", "b"]


async def test_a_lease_that_was_kept_once_is_released_the_next_time() -> None:
    lease = SharedLease()
    replica = Replica(lease, "a", 1)

    async def keeps() -> None:
        replica.elector.keep()

    await replica.elector.run(keeps)
    assert lease.holders == ["a"]
    replica.finish.set()
    await replica.elector.run(replica.lead)
    assert lease.holders == ["a", ""]


@pytest.mark.looptime(False)
def test_an_identity_names_the_pod_and_is_unique(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POD_NAME", "navarch-7d")
    assert make_identity().startswith("navarch-7d_") and make_identity() != make_identity()
    monkeypatch.delenv("POD_NAME")
    assert make_identity().startswith(f"{socket.gethostname()}_")


@pytest.mark.parametrize("times", [(10, 10, 2), (15, 2, 2), (15, 10, 0)])
def test_times_that_cannot_be_safe_are_refused(times: tuple[float, float, float]) -> None:
    with pytest.raises(ValueError, match="expected lease duration"):
        Elector(View(SharedLease()), "a", lease_duration=times[0], renew_deadline=times[1], retry_period=times[2])


@pytest.mark.looptime(False)
async def test_the_lease_on_the_wire(api: SmallApi, client: Client) -> None:
    lock = ApiLeaseLock(client, "kube-system", "navarch")
    assert await lock.read() is None
    stored = {"metadata": {"name": "navarch", "resourceVersion": "7"}, "spec": {"holderIdentity": "a"}}
    api.script.append((201, {}, stored))
    await lock.write(LeaseRecord(holder_identity="a", lease_duration_seconds=15))
    assert api.requests[-1].method == "POST"
    api.script.append((200, {}, stored))
    await lock.write(LeaseRecord(holder_identity="", lease_transitions=2))
    assert api.requests[-1].method == "PUT"
    assert b'"resourceVersion":"7"' in api.bodies[-1] and b'"holderIdentity":""' in api.bodies[-1]


@pytest.mark.looptime(False)
async def test_a_lease_is_written_over_what_was_read_last(api: SmallApi, client: Client) -> None:
    """Of another leader, with what others have put into it; and a new lease after a deletion."""
    lock = ApiLeaseLock(client, "kube-system", "navarch")
    spec = {"holderIdentity": "b", "leaseTransitions": 3, "strategy": "OldestEmulationVersion"}
    stored = {"metadata": {"name": "navarch", "resourceVersion": "9", "labels": {"team": "ml"}}, "spec": spec}
    api.script.extend([(200, {}, stored), (200, {}, {**stored, "spec": {"holderIdentity": "a"}})])
    assert await lock.read() == LeaseRecord(holder_identity="b", lease_transitions=3)
    await lock.write(LeaseRecord(holder_identity="a", lease_transitions=4))
    sent = json.loads(api.bodies[-1])
    assert (api.requests[-1].method, sent["metadata"]) == ("PUT", stored["metadata"])
    assert (sent["spec"]["holderIdentity"], sent["spec"]["strategy"]) == ("a", "OldestEmulationVersion")
    assert await lock.read() is None
    await lock.write(LeaseRecord(holder_identity="a"))
    assert api.requests[-1].method == "POST"


@pytest.mark.looptime(False)
async def test_an_answer_with_another_holder_is_no_renewal(api: SmallApi, client: Client) -> None:
    """The answer to another request, which a proxy mixed up: believed, it would let two lead."""
    lock = ApiLeaseLock(client, "kube-system", "navarch")
    stored = {"metadata": {"name": "navarch", "resourceVersion": "9"}, "spec": {"holderIdentity": "b"}}
    api.script.extend([(200, {}, stored), (200, {}, stored)])
    await lock.read()
    with pytest.raises(OutcomeUnknown):
        await lock.write(LeaseRecord(holder_identity="a"))


@pytest.mark.looptime(False)
async def test_an_annotation_gives_the_lease_back_for_a_holder_that_is_gone(api: SmallApi, client: Client) -> None:
    lock = ApiLeaseLock(client, "kube-system", "navarch")
    await lock.annotate("k", "v")
    assert [request.method for request in api.requests] == ["GET"], "there is no Lease yet"
    stored = {"metadata": {"name": "navarch", "resourceVersion": "9", "annotations": {"a": "b"}}, "spec": {"holderIdentity": "old"}}
    conflict = {"kind": "Status", "status": "Failure", "reason": "Conflict", "code": 409}
    api.script.extend([(200, {}, stored), (409, {}, conflict), (200, {}, stored), (200, {}, stored)])
    await lock.annotate("k", "v", gone="old")
    sent = json.loads(api.bodies[-1])
    assert (sent["metadata"]["annotations"], sent["spec"]["holderIdentity"]) == ({"a": "b", "k": "v"}, "")
    api.script.extend([(200, {}, stored), (200, {}, stored)])
    await lock.annotate("k", "w", gone="another")
    assert json.loads(api.bodies[-1])["spec"]["holderIdentity"] == "old"
    assert lock.annotations == {}, "an elector sees only what it has read itself"


async def test_a_process_whose_work_hangs_does_not_renew_and_another_leads() -> None:
    lease, hangs = SharedLease(), [False]
    a, b = Replica(lease, "a", 1, alive=lambda: not hangs[0]), Replica(lease, "b", 2)
    async with running(a):
        await a.started.wait()
        async with running(b):
            await asyncio.sleep(60.0)
            assert a.elector.leading and not b.elector.leading
            hangs[0] = True
            await b.started.wait()
            await asyncio.sleep(60.0)
            assert b.elector.leading and not a.elector.leading
    never_two(a, b)
