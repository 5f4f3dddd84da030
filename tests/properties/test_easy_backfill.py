"""EASY backfill keeps its word: beside a slow reference, on random traces whose jobs run exactly as long as they say.

The reference knows which jobs run, where, and until when, and counts by loops how many pods fit. A promise has to be the earliest
moment at which the running jobs leave enough room. It never moves to a later moment, and the job has started by then.
"""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from navarch.engine.record import CycleRecord
from navarch.ingest.settings import settings_for
from navarch.installed import installed
from navarch.offline.policies import read_policy
from navarch.simulator.clusters import read_cluster
from navarch.simulator.fitting import Fitting
from navarch.simulator.jobs import PodSet, TraceJob
from navarch.simulator.progress import SimulatedJob
from navarch.simulator.simulation import Simulation

Room = dict[str, list[int]]
"""Node -> free GPUs, free thousandths of cores."""


def fits(room: Room, pods: PodSet) -> bool:
    found = 0
    for gpus, cpu in room.values():
        while gpus >= pods.gpus and cpu >= pods.cpu and found < pods.count:
            gpus, cpu, found = gpus - pods.gpus, cpu - pods.cpu, found + 1
    return found == pods.count


class Promises:
    """An observer that compares each promise with the reference."""

    def __init__(self, jobs: list[TraceJob], nodes: Room) -> None:
        self._jobs = {f"default/{job.name}": job for job in jobs}
        self._nodes = nodes
        self._running: dict[str, tuple[float, list[str]]] = {}
        """Job -> its end, the node of each pod."""
        self.promised: dict[str, float] = {}

    def arrived(self, now: float, job: TraceJob) -> None:
        return None

    def moved(self, now: float, job: SimulatedJob) -> None:
        key = job.spec.key
        assert now <= self.promised.get(key, now), f"{key} starts at {now:g}, promised for {self.promised[key]:g}"
        self._running[key] = now + job.job.duration, list(job.nodes.values())

    def ended_job(self, now: float, job: SimulatedJob, *, done: bool) -> None:
        del self._running[job.spec.key]

    def fragmented_by(self, now: float, gpus: float) -> None:
        return None

    def decided(self, now: float, record: CycleRecord, seconds: float) -> None:
        begins: dict[str, tuple[float, list[str]]] = {}
        for bind in record.binds:
            begins.setdefault(bind.job, (now + self._jobs[bind.job].duration, []))[1].append(bind.node)
        for decision in record.jobs:
            for reason in decision.reasons:
                if reason.code == "Reserved":
                    at = reason.figures["at"]
                    assert isinstance(at, float)
                    assert at <= self.promised.get(decision.job, at), f"at {now:g} the promise to {decision.job} moves to {at:g}"
                    self.promised[decision.job] = at
                    older = {key: end for key, end in begins.items() if self._age(key) < self._age(decision.job)}
                    assert at == self._earliest(decision.job, now, self._running | older)

    def _age(self, key: str) -> tuple[float, str, str]:
        return self._jobs[key].submit, self._jobs[key].queue, key

    def _earliest(self, key: str, now: float, running: dict[str, tuple[float, list[str]]]) -> float:
        (pods,) = self._jobs[key].pods
        return min(end for end, _ in running.values() if end > now and fits(self._room_at(end, running), pods))

    def _room_at(self, moment: float, running: dict[str, tuple[float, list[str]]]) -> Room:
        room = {name: list(free) for name, free in self._nodes.items()}
        for key, (end, nodes) in running.items():
            for node in nodes if end > moment else ():
                (pods,) = self._jobs[key].pods
                room[node][0] -= pods.gpus
                room[node][1] -= pods.cpu
        return room


@st.composite
def traces(draw: st.DrawFn) -> list[TraceJob]:
    pods = st.builds(PodSet, count=st.integers(1, 4), gpus=st.integers(0, 4), cpu=st.sampled_from((500, 2000, 6000)))
    each = st.tuples(st.integers(0, 40), st.sampled_from((1, 5, 20, 33, 60, 100)), pods, st.sampled_from("ab"))
    rows = sorted(draw(st.lists(each, min_size=3, max_size=18)), key=lambda row: row[0])
    return [
        TraceJob(name=f"j{number:02d}", submit=float(submit), duration=float(duration), pods=(kind,), queue=queue)
        for number, (submit, duration, kind, queue) in enumerate(rows)
    ]


@settings(max_examples=40, deadline=None)
@given(jobs=traces(), cluster=st.sampled_from(("a=3x4gpu+16cpu", "a=2x4gpu+8cpu,b=1x8gpu+8cpu", "a=5x4gpu+8cpu")))
def test_a_promise_is_the_earliest_start_and_is_kept(jobs: list[TraceJob], cluster: str) -> None:
    registry = installed(())
    policy = read_policy("easy", registry)
    built, nodes = read_cluster(cluster).build(settings_for(policy))
    have = {node.name: dict(node.allocatable) for node in nodes}
    watch = Promises(jobs, {name: [has["nvidia.com/gpu"] // 1000, has["cpu"]] for name, has in have.items()})
    Simulation(built, policy, registry, watch, estimates="exact").run(Fitting(nodes).jobs(jobs))
