"""Leading again: what was decided in an earlier term and not sent is void, and what was written then proves nothing."""

from __future__ import annotations

from typing import cast

import pytest
from tests.worlds.live_parts.cluster_cache import SETTINGS, group, pod, put
from tests.worlds.live_parts.fake_pool import Submitted
from tests.worlds.live_parts.statuses import Asked, figures

from navarch.kube.client import Client
from navarch.live.cache.assumed_pods import AssumedBind, AssumedStatus
from navarch.live.cache.cluster_cache import ClusterCache
from navarch.live.core import LiveCore
from navarch.live.instructions import BindPod, BindResult, EndBind, Instruction
from navarch.live.writers.binder import Binder, OutcomeLookup
from navarch.live.writers.events import Events
from navarch.live.writers.evictor import Evictor
from navarch.live.writers.gang_marks import GangMarks
from navarch.live.writers.group_status import GroupStatuses
from navarch.live.writers.pod_status import PodStatuses
from navarch.live.writers.queue_status import QueueStatuses
from navarch.live.writers.writers import LiveWriters
from navarch.model.spec import QueueSpec
from navarch.model.status import TaskStatus

pytestmark = pytest.mark.looptime


class Scene:
    def __init__(self) -> None:
        self.sent = Submitted()
        self.dropped: list[str] = []
        self.core = LiveCore(SETTINGS, self._carry_out)
        self.cache = self.core.cache
        pool, events, assumed = self.sent.pool, Events(Submitted().pool), self.cache.assumed
        self.pods = PodStatuses(pool, self.cache, events, lambda: 1e9)
        self.queues = QueueStatuses(pool, self.cache)
        self.writers = LiveWriters(
            self.cache,
            Binder(pool, self.core, cast(OutcomeLookup, None)),
            Evictor(pool, self.cache, assumed, events, lambda: 1e9),
            self.pods,
            GroupStatuses(pool, cast(Client, Asked(True)), self.cache, assumed, events, lambda: 1e9),
            self.queues,
            GangMarks(pool, lambda: 1e9),
        )

    def _carry_out(self, instruction: Instruction) -> None:
        if isinstance(instruction, EndBind) and instruction.result is BindResult.DROPPED:
            self.dropped.append(instruction.bind.uid)

    def decide(self, name: str, now: float) -> None:
        bind = AssumedBind(f"uid-{name}", "default", name, "n1", f"default/pod/{name}", now)
        self.cache.assumed.binds[bind.uid] = bind
        self.cache.refresh(bind.uid)
        self.writers.carry_out(BindPod(bind))

    def lead(self, now: float) -> None:
        self.writers.forget_all()
        self.core.start_leading(now)
        self.writers.resume()

    def status(self, name: str) -> TaskStatus:
        task = self.cache.cluster.task(f"uid-{name}")
        assert task is not None
        return task.status


async def test_binds_of_an_earlier_term_that_were_not_sent_never_are() -> None:
    scene = Scene()
    for name in ("a", "b", "c"):
        put(scene.cache, pod(name))
    scene.lead(10.0)
    scene.decide("a", 10.0)
    scene.writers.pause()
    scene.decide("b", 11.0)
    scene.lead(20.0)
    assert (scene.dropped, scene.status("a"), scene.status("b")) == (["uid-b"], TaskStatus.BINDING, TaskStatus.PENDING)
    scene.decide("c", 20.0)
    assert [write.path.split("/")[-2] for write in scene.sent.writes] == ["a", "c"]


def seen(made: ClusterCache) -> tuple[str, str]:
    """The node promised to the pod, the phase of the group."""
    jobs = made.cluster.jobs
    task, job = made.cluster.task("uid-a"), jobs.specs[jobs.rows.of["default/g"]]
    assert task is not None and job is not None
    return task.nominated_node, job.phase


async def test_promises_and_phases_of_an_earlier_term_give_way_to_what_the_objects_say() -> None:
    scene = Scene()
    put(scene.cache, pod("a"))
    scene.cache.put(group("g", 2))
    assumed = scene.cache.assumed
    assumed.nominations["uid-a"] = "n1"
    scene.cache.refresh("uid-a")
    assumed.statuses["default/g"] = AssumedStatus("uid-g", "Running", ())
    scene.cache.refresh_group("default/g")
    assert seen(scene.cache) == ("n1", "Running")
    scene.writers.pause()
    scene.lead(10.0)
    assert seen(scene.cache) == ("", "Pending")


async def test_statuses_of_an_earlier_term_are_written_again() -> None:
    scene = Scene()
    put(scene.cache, pod("a"))
    scene.cache.put(QueueSpec("root", dialect="volcano", state="Open"))
    task = scene.cache.cluster.task("uid-a")
    assert task is not None
    for now in (0.0, 100.0):
        scene.lead(now)
        scene.queues.take([figures("root", 500)])
        scene.pods.refuse(task, "Unschedulable", "no room", now)
        scene.writers.flush(now + 1)
        while scene.sent.open:
            scene.sent.end()
        scene.writers.pause()
    paths = [write.path.split("/")[-2] for write in scene.sent.writes]
    assert sorted(paths) == ["a", "a", "root", "root"]
