"""How long an explanation takes where much runs and much waits.

    python -m bench.explain [--nodes 5000] [--waiting 1000] [--policy volcano] [--eta]

Twenty pods run on each node, in gangs of ten; gangs of one to sixteen pods wait. One job that waits is explained. The first figure is
the time until its first answers are there (cause, nodes by clause, order), the second the time of all. Reading the objects is not
counted: a user pays it once, and it stands beside the figures, as does one cycle over the same objects. What was read is left out of
the garbage collector's view, as in the command. CPU time stands beside the wall clock, because the machine may be shared.

With --eta every job says how long it is expected to run, and the start is forecast in a process beside the search, as the command
does. One more figure is the CPU time of the forecasts alone, in this process, for as many runs as fit into the same seconds.
"""

from __future__ import annotations

import argparse
import gc
from random import Random
from time import perf_counter, process_time
from typing import Any

from bench.report import Figure, peak_memory_gib, show
from navarch.engine.policy import PRESETS
from navarch.explanation.explain import explain_read, reading
from navarch.explanation.search import FIRST_ANSWERS, Search
from navarch.explanation.start_time import StartTimeQuestion
from navarch.offline.cycles import Cycles
from navarch.simulator.start_times.estimate import RUNS

Object = dict[str, Any]
VOLCANO = "scheduling.volcano.sh/v1beta1"
PODS_A_NODE, GPUS_A_NODE, GANG, QUEUES = 20, 8, 10, 10
MOMENT = "2026-01-01T00:00:00Z"
NOW = 1767229200.0


def node(number: int) -> Object:
    name = f"n{number:05d}"
    amounts = {"cpu": "64", "memory": "512Gi", "nvidia.com/gpu": str(GPUS_A_NODE), "pods": "110"}
    labels = {"kubernetes.io/hostname": name, "gpu": ("h100", "h200")[number % 2]}
    status = {"allocatable": amounts, "capacity": amounts, "conditions": [{"type": "Ready", "status": "True"}]}
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels}, "spec": {}, "status": status}


def gang(name: str, size: int, cpu: int, gpus: int, queue: str, where: list[str]) -> list[Object]:
    phase = "Running" if where else "Inqueue"
    metadata = {"name": name, "namespace": "ns", "creationTimestamp": MOMENT}
    spec = {"minMember": size, "queue": queue}
    status: Object = {"phase": phase}
    if where:  # as a scheduler leaves it
        status["conditions"] = [{"type": "Scheduled", "status": "True", "reason": "tasks in gang are ready to be scheduled"}]
    out: list[Object] = [{"apiVersion": VOLCANO, "kind": "PodGroup", "metadata": metadata, "spec": spec, "status": status}]
    requests = {"cpu": str(cpu), "memory": "4Gi"} | ({"nvidia.com/gpu": str(gpus)} if gpus else {})
    for number in range(size):
        pod = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": f"{name}-{number}",
                "namespace": "ns",
                "creationTimestamp": MOMENT,
                "annotations": {"scheduling.k8s.io/group-name": name},
            },
            "spec": {"containers": [{"name": "main", "image": "x", "resources": {"requests": requests}}]},
            "status": {"phase": "Running", "startTime": MOMENT} if where else {"phase": "Pending"},
        }
        if where:
            pod["spec"]["nodeName"] = where[number]  # type: ignore[index]
        out.append(pod)
    return out


def cluster(nodes: int, waiting: int) -> list[Object]:
    random = Random(1)
    objects = [
        {"apiVersion": VOLCANO, "kind": "Queue", "metadata": {"name": f"q{i}"}, "spec": {"weight": 1}, "status": {"state": "Open"}}
        for i in range(QUEUES)
    ]
    objects += [node(number) for number in range(nodes)]
    number = 0
    for gpus, count in ((0, PODS_A_NODE - GPUS_A_NODE), (1, GPUS_A_NODE)):
        slots = [f"n{i:05d}" for i in range(nodes) for _ in range(count)]
        for first in range(0, len(slots), GANG):
            where = slots[first : first + GANG]
            objects += gang(f"r{number:05d}", len(where), 3, gpus, f"q{number % QUEUES}", where)
            number += 1
    for number in range(waiting):
        size, cpu, gpus = random.choice((1, 2, 4, 8, 16)), random.choice((1, 2, 4)), random.choice((1, 2, 4, 8))
        objects += gang(f"w{number:04d}", size, cpu, gpus, f"q{number % QUEUES}", [])
    return objects


def expect_durations(objects: list[Object]) -> None:
    """From 20 minutes to 90 hours, an hour of which those that run have run."""
    random = Random(5)
    for each in objects:
        if each["kind"] == "PodGroup":
            minutes = random.choice((20, 40, 90, 200, 600)) * random.randint(1, 9)
            each["metadata"]["annotations"] = {"navarch.io/expected-duration": f"{minutes}m"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=5000)
    parser.add_argument("--waiting", type=int, default=1000)
    parser.add_argument("--policy", default="volcano", choices=sorted(PRESETS))
    parser.add_argument("--job", default="w0017")
    parser.add_argument("--seconds", type=float, default=5.0, help="search for so long; more on a machine that is shared")
    parser.add_argument("--eta", action="store_true", help="with start times")
    given = parser.parse_args()
    objects = cluster(given.nodes, given.waiting)
    if given.eta:
        expect_durations(objects)
    started = perf_counter()
    read = reading(objects, given.policy, NOW)
    seconds_to_read = perf_counter() - started
    again = Cycles(read.given.documents, read.rules)
    started = perf_counter()
    again.decide()
    cycle = perf_counter() - started
    del again
    gc.freeze()
    first: dict[str, float] = {}

    def reached(search: Search, section: str) -> None:
        if section in FIRST_ANSWERS:
            first["wall"], first["cpu"], first["trials"] = perf_counter() - started, process_time() - cpu, search.trials.used

    started, cpu = perf_counter(), process_time()
    found = explain_read(read, f"ns/{given.job}", seconds=given.seconds, reached=reached, may_fork=given.eta)
    whole, whole_cpu = perf_counter() - started, process_time() - cpu
    size = f"{given.nodes:,} nodes, {given.nodes * PODS_A_NODE:,} running pods, {given.waiting:,} waiting jobs, {given.policy}"
    figures = [
        Figure(f"{size}: reading", seconds_to_read, "s"),
        Figure(f"  cause, nodes, order ({first['trials']} trials)", first["wall"], "s", 1.0, cycle, "one cycle of plan"),
        Figure("    CPU time", first["cpu"], "s"),
        Figure(f"  all answers ({found.trials} trials, complete: {found.complete})", whole, "s", 5.0, cycle, "one cycle of plan"),
        Figure("    CPU time", whole_cpu, "s"),
        Figure("  memory", peak_memory_gib(), "GiB"),
    ]
    if given.eta:
        question = StartTimeQuestion(read.run, f"ns/{given.job}", (), {}, RUNS)
        cpu = process_time()
        answer = question.answer(given.seconds)
        figures.append(Figure(f"  start time ({answer.runs} runs): CPU time", process_time() - cpu, "s"))
    show("explain", figures)
    print(f"{found.job} {found.state}: {found.cause.code}; blockers {found.blockers.jobs}; {len(found.changes)} changes")
    if given.eta:
        print(f"start: {found.eta or found.eta_reason}")
    if found.not_established:
        print(f"not established: {', '.join(found.not_established)}")


if __name__ == "__main__":
    main()
