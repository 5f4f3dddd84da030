"""Jobs in virtual time: each arrives once and ends once, no GPU is used twice, and cycles left out change nothing."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from navarch.engine.record import CycleRecord
from navarch.ingest.settings import settings_for
from navarch.installed import installed
from navarch.offline.policies import read_policy
from navarch.simulator.clusters import read_cluster
from navarch.simulator.fitting import Fitting
from navarch.simulator.jobs import PodSet, TraceJob
from navarch.simulator.progress import SimulatedJob
from navarch.simulator.simulate import simulate
from navarch.simulator.simulation import Simulation

GPUS = 4


class Log:
    """Writes down what happens, and that no node is ever overfull."""

    def __init__(self) -> None:
        self.arrivals: Counter[str] = Counter()
        self.ends: dict[str, float] = {}
        self.starts: dict[str, float] = {}
        self.placed: dict[str, tuple[Any, ...]] = {}
        self.on_node: dict[str, dict[str, int]] = {}
        self.cycles = 0

    def arrived(self, now: float, job: TraceJob) -> None:
        self.arrivals[job.name] += 1

    def moved(self, now: float, job: SimulatedJob) -> None:
        sizes = [each.gpus for each in job.job.pods for _ in range(each.count)]
        held: Counter[str] = Counter()
        for uid, gpus in zip(job.tasks, sizes):
            if uid in job.nodes:
                held[job.nodes[uid]] += gpus
        self.on_node[job.job.name] = dict(held)
        used: Counter[str] = Counter()
        for nodes in self.on_node.values():
            used.update(nodes)
        assert all(count <= GPUS for count in used.values()), used
        if job.first_start is not None:
            self.starts.setdefault(job.job.name, job.first_start)
            self.placed[job.job.name] = tuple(sorted(job.nodes.items()))

    def ended_job(self, now: float, job: SimulatedJob, *, done: bool) -> None:
        assert job.job.name not in self.ends
        assert done
        self.on_node.pop(job.job.name)
        self.ends[job.job.name] = now

    def decided(self, now: float, record: CycleRecord, seconds: float) -> None:
        self.cycles += 1

    def fragmented_by(self, now: float, gpus: float) -> None:
        assert gpus >= 0


def play(jobs: list[TraceJob], policy: str, cluster: str = f"a=3x{GPUS}gpu", *, skip: bool = True) -> tuple[Log, Simulation]:
    registry, log = installed(()), Log()
    chosen = read_policy(policy, registry)
    built, nodes = read_cluster(cluster).build(settings_for(chosen))
    simulation = Simulation(built, chosen, registry, log, skip=skip)
    simulation.run(Fitting(nodes).jobs(jobs))
    return log, simulation


def job(number: int, submit: int, duration: int, *pods: PodSet, queue: str = "a") -> TraceJob:
    return TraceJob(name=f"j{number:02d}", submit=float(submit), duration=float(duration), pods=pods, queue=queue)


SIZES = ((PodSet(gpus=1),), (PodSet(gpus=2),), (PodSet(gpus=4),), (PodSet(2, gpus=4),), (PodSet(gpus=4), PodSet(gpus=2)))


@st.composite
def traces(draw: st.DrawFn) -> list[TraceJob]:
    each = st.tuples(st.integers(0, 12), st.integers(0, 9), st.sampled_from(SIZES), st.sampled_from("ab"))
    rows = sorted(draw(st.lists(each, min_size=1, max_size=14)), key=lambda row: row[0])
    return [job(number, submit, duration, *pods, queue=queue) for number, (submit, duration, pods, queue) in enumerate(rows)]


@pytest.mark.parametrize("policy", ["fifo", "fifo-skip", "sjf", "packing"])
@settings(max_examples=25, deadline=None)
@given(jobs=traces())
def test_cycles_that_are_left_out_change_nothing(policy: str, jobs: list[TraceJob]) -> None:
    fast, simulation = play(jobs, policy)
    slow, _ = play(jobs, policy, skip=False)
    assert fast.starts == slow.starts
    assert fast.placed == slow.placed
    assert fast.ends == slow.ends
    assert fast.arrivals == Counter({each.name: 1 for each in jobs})
    assert fast.ends.keys() == fast.arrivals.keys()
    assert not simulation.jobs


@settings(max_examples=10, deadline=None)
@given(jobs=traces())
def test_other_policies_conserve_jobs_too(jobs: list[TraceJob]) -> None:
    log, simulation = play(jobs, "navarch")
    assert log.ends.keys() == {each.name for each in jobs}
    assert not simulation.jobs


PRESETS = ("navarch", "volcano", "kai", "kube-batch", "kube-scheduler", "packing", "easy")


@pytest.mark.parametrize("queue", ["default", "team"])
@pytest.mark.parametrize("policy", PRESETS)
def test_every_preset_runs_a_trace_without_queues_of_its_own(policy: str, queue: str) -> None:
    jobs = [job(0, 0, 10, PodSet(gpus=2), queue=queue), job(1, 1, 10, PodSet(2, gpus=4), queue=queue)]
    log, _ = play(jobs, policy)
    assert set(log.ends) == {"j00", "j01"}


def test_kai_moves_pods_together_for_a_job_that_does_not_fit() -> None:
    jobs = [job(0, 0, 50, PodSet(gpus=3)), job(1, 0, 500, PodSet(gpus=1)), job(2, 0, 500, PodSet(gpus=2))]
    jobs.append(job(3, 100, 10, PodSet(gpus=4)))
    log, _ = play(jobs, "kai", f"a=2x{GPUS}gpu")
    assert log.starts["j03"] < 500, "without moves it waits for the ends of the others"


def test_a_remark_says_why_jobs_never_start() -> None:
    registry, log = installed(()), Log()
    policy = read_policy({"actions": "allocate", "tiers": [{"plugins": [{"name": "gang"}, {"name": "predicates"}]}]}, registry)
    built, _ = read_cluster(f"a=1x{GPUS}gpu").build(settings_for(policy))
    simulation = Simulation(built, policy, registry, log)
    simulation.run([job(0, 0, 10, PodSet(gpus=1, node_selector=(("zone", "z"),)))])
    assert [each.job.name for each in simulation.waiting] == ["j00"]
    assert simulation.why_waiting() == "cannot start: no node has the label zone"


def test_strict_order_waits_for_the_first_job_and_skipping_does_not() -> None:
    jobs = [job(0, 0, 100, PodSet(gpus=2)), job(1, 1, 10, PodSet(gpus=4)), job(2, 2, 10, PodSet(gpus=1))]
    strict, _ = play(jobs, "fifo", "a=1x4gpu")
    skips, _ = play(jobs, "fifo-skip", "a=1x4gpu")
    assert strict.starts == {"j00": 0.0, "j01": 100.0, "j02": 110.0}
    assert skips.starts == {"j00": 0.0, "j01": 100.0, "j02": 2.0}


def test_shortest_first_prefers_short_jobs_and_stops_at_the_first() -> None:
    jobs = [job(0, 0, 100, PodSet(gpus=4)), job(1, 1, 50, PodSet(gpus=4)), job(2, 2, 5, PodSet(gpus=4)), job(3, 3, 20, PodSet(gpus=1))]
    log, _ = play(jobs, "sjf", "a=1x4gpu")
    assert log.starts == {"j00": 0.0, "j01": 125.0, "j02": 100.0, "j03": 105.0}


def test_a_remainder_goes_to_the_emptiest_node_and_small_jobs_to_the_fullest() -> None:
    jobs = [job(0, 0, 100, PodSet(gpus=1)), job(1, 1, 100, PodSet(gpus=4), PodSet(gpus=2)), job(2, 2, 100, PodSet(gpus=1))]
    log, _ = play(jobs, "fifo")
    assert log.placed["j01"] == (("default/j01-0", "a-001"), ("default/j01-1", "a-002"))
    assert log.placed["j02"] == (("default/j02-0", "a-002"),)


def test_an_idle_queue_costs_no_cycle_when_a_job_ends() -> None:
    log, _ = play([job(0, 0, 10, PodSet(gpus=1)), job(1, 5, 10, PodSet(gpus=1))], "fifo")
    assert log.cycles == 2


def test_a_shorter_job_without_room_that_comes_at_the_same_moment_stops_those_behind_it() -> None:
    jobs = [job(0, 0, 100, PodSet(gpus=2)), job(1, 5, 50, PodSet(gpus=1)), job(2, 5, 10, PodSet(gpus=4))]
    fast, _ = play(jobs, "sjf", "a=1x4gpu")
    slow, _ = play(jobs, "sjf", "a=1x4gpu", skip=False)
    assert fast.starts == slow.starts == {"j00": 0.0, "j02": 100.0, "j01": 110.0}


def wide(number: int, submit: int, pods: int, least: int) -> TraceJob:
    """An elastic job of pods with one GPU."""
    return replace(job(number, submit, 500, PodSet(pods, gpus=1)), min_pods=least)


@pytest.mark.parametrize("policy", ["fifo", "fifo-skip", "sjf", "packing"])
def test_an_elastic_job_grows_where_one_more_pod_fits(policy: str) -> None:
    jobs = [job(0, 0, 50, PodSet(gpus=1)), job(1, 0, 900, PodSet(gpus=1)), wide(2, 1, 3, 2)]
    for skip in (True, False):
        log, _ = play(jobs, policy, "a=1x4gpu", skip=skip)
        assert log.ends["j02"] == 1 + 49 + (500 - 49 * 2 / 3)


def test_an_elastic_job_does_not_grow_before_the_first_job_of_its_queue() -> None:
    jobs = [job(0, 0, 50, PodSet(gpus=2)), wide(1, 1, 4, 2), job(2, 2, 10, PodSet(gpus=4)), job(3, 60, 10, PodSet(gpus=1), queue="b")]
    fast, _ = play(jobs, "fifo", "a=1x4gpu")
    slow, _ = play(jobs, "fifo", "a=1x4gpu", skip=False)
    assert fast.ends == slow.ends
    assert fast.ends["j01"] == 1 + 2 * 500


def test_of_queues_that_share_nodes_the_one_whose_first_job_waits_longest_is_served_first() -> None:
    jobs = [job(number, number, 50, PodSet(gpus=4), queue=queue) for number, queue in enumerate("bba")]
    for policy in ("fifo", "fifo-skip", "easy", "packing"):
        log, _ = play(jobs, policy, "a=1x4gpu")
        assert log.starts == {"j00": 0.0, "j01": 50.0, "j02": 100.0}


def test_on_a_cluster_without_gpus_cores_are_counted() -> None:
    jobs = [TraceJob(name=name, submit=0, duration=100, pods=(PodSet(2, cpu=4000),), min_pods=1) for name in "ab"]
    (run,) = simulate(jobs, "c=2x8cpu", ["fifo"]).runs
    figures = run.measures.to_dict()
    assert (figures["gpuAllocated"]["mean"], figures["cpuAllocated"]["mean"], figures["fragmentation"]) == (None, 100.0, None)
    unsaid, gpus = (simulate(jobs, cluster, ["fifo"]).runs[0].measures.to_dict() for cluster in ("c=2x64Gi", "c=2x8cpu+1gpu"))
    assert "cpuAllocated" not in unsaid and "cpuAllocated" not in gpus
