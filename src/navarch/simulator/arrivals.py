"""Arrivals until the cluster is asked for more than it has: how placement policies are compared ("Beware of fragmentation", ATC 2023).

Jobs come one after the other and stay. They are put in order of their names and shuffled; then jobs drawn from all of them are
appended until the next one would ask for more than `ratio` times the cluster's GPUs. Lists that ask for more lose jobs that are drawn.
What is allocated is looked at after each arrival. The figure at k percent is the mean over arrivals after which the GPUs asked for
are, rounded, k percent of the cluster's.

`BATCH` jobs come at one moment and are placed one by one in their order, so that a run takes fewer cycles.
"""

from __future__ import annotations

import dataclasses
import math
import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from msgspec import structs

from navarch.engine.policy import PluginOption, Policy
from navarch.simulator.jobs import PodSet, TraceJob

BATCH: Final = 128
STEP: Final = 10.0
PLUGIN: Final = "fragmentation"
LEVELS: Final = (100, 130)
"""Percent of the cluster's GPUs asked for, at which results are given."""


def arrivals(jobs: Sequence[TraceJob], gpus: float, ratio: float, seed: int) -> list[TraceJob]:
    """The jobs that come to a cluster with so many GPUs, with names by which equal times keep their order."""
    named = sorted(jobs, key=lambda job: job.name)
    endless = any(job.gpus for job in named)
    order = list(named)
    draw = random.Random(seed)
    draw.shuffle(order)
    asked, most = _milli(order), round(1000 * ratio * gpus)
    while asked > most:
        asked -= _milli([order.pop(draw.randrange(len(order)))])
    while endless:
        job = named[draw.randrange(len(named))]
        asked += _milli([job])
        if asked > most:
            break
        order.append(job)
    return [
        structs.replace(job, name=f"arrival-{number:06d}-{job.name}", submit=float(number // BATCH), duration=math.inf, walltime=None)
        for number, job in enumerate(order)
    ]


def steady_arrivals(
    jobs: Sequence[TraceJob], gpus: float, load: float, seed: int, *, until: float, walltime: float
) -> Iterator[TraceJob]:
    """Jobs that come at random moments (a Poisson process) and run for their time, at most `walltime`. If all of them started when
    they come, those that run would hold `load` times the cluster's GPUs on average. Moments are whole `STEP` seconds."""
    named = sorted(jobs, key=lambda job: job.name)
    work = sum(job.gpus * min(job.duration, walltime) for job in named) / len(named)
    draw = random.Random(seed)
    now, number = 0.0, 0
    while (now := now + draw.expovariate(load * gpus / work)) <= until:
        job = named[draw.randrange(len(named))]
        submit = math.ceil(now / STEP) * STEP
        yield structs.replace(job, name=f"arrival-{number:06d}-{job.name}", submit=submit, walltime=walltime)
        number += 1


def _milli(jobs: Sequence[TraceJob]) -> int:
    return round(1000 * sum(job.gpus for job in jobs))


def typical_pods(pods: Iterable[PodSet]) -> list[dict[str, object]]:
    """What `fragmentation.typicalPods` of a policy says where these pods are the workload."""
    counts: dict[tuple[int, float, tuple[str, ...]], int] = {}
    for each in pods:
        kind = (each.cpu, each.gpu_amount, each.gpu_types)
        counts[kind] = counts.get(kind, 0) + each.count
    return [
        {"cpu": cpu / 1000, "gpu": gpu, "types": list(types), "count": count} for (cpu, gpu, types), count in sorted(counts.items())
    ]


def with_typical_pods(policy: Policy, jobs: Sequence[TraceJob]) -> Policy:
    """The policy, with these jobs as the workload that `fragmentation` keeps room for, unless it names one itself."""
    known = {f"{PLUGIN}.typicalPods": typical_pods(pods for job in jobs for pods in job.pods)}

    def told(option: PluginOption) -> PluginOption:
        if option.name != PLUGIN or known.keys() <= option.arguments.keys():
            return option
        return structs.replace(option, arguments={**option.arguments, **known})

    return dataclasses.replace(policy, tiers=tuple(tuple(told(option) for option in tier) for tier in policy.tiers))


COURSE_POINTS: Final = 400


def course(order: Sequence[TraceJob], started: Mapping[str, float], gpus: float) -> list[list[float]]:
    """[percent of the GPUs asked for], [percent allocated], after arrivals that lie about equally far from each other."""
    asked = held = 0.0
    points = [(0.0, 0.0)]
    for job in order:
        asked += job.gpus
        held += started.get(job.name, 0.0)
        points.append((100 * asked / gpus, 100 * held / gpus))
    every = max(len(points) // COURSE_POINTS, 1)
    shown = points[::every] + points[-1:]
    return [[round(x, 3) for x, _ in shown], [round(y, 3) for _, y in shown]]


def allocated_at(order: Sequence[TraceJob], started: Mapping[str, float], gpus: float, ratio: float) -> dict[str, float | None]:
    """Percent of the GPUs that are allocated where so many percent were asked for; nothing for levels above the ratio. `started`: GPUs
    that each job holds, by name. On a small cluster no arrival may round to a level: then the last one below it counts."""
    asked = held = 0
    capacity = round(1000 * gpus)
    rounded: dict[int, list[int]] = {level: [] for level in LEVELS}
    below = dict.fromkeys(LEVELS, 0)
    for job in order:
        asked += _milli([job])
        held += round(1000 * started.get(job.name, 0.0))
        for level in LEVELS:
            if round(100 * asked / capacity) == level:
                rounded[level].append(held)
            if 100 * asked <= level * capacity:
                below[level] = held
    found = {level: rounded[level] or [below[level]] for level in LEVELS}
    return {str(level): 100 * sum(each) / len(each) / capacity if level <= 100 * ratio else None for level, each in found.items()}
