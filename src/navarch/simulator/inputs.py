"""What `navarch.simulate` accepts: a wrong argument gets one line with what was found and what is expected."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from navarch.engine.policy import Policy
from navarch.offline.inputs import read_amount, read_count
from navarch.simulator.clusters import ClusterSetup
from navarch.simulator.estimates import KINDS
from navarch.simulator.failures import NodeFailures
from navarch.simulator.jobs import TraceJob

PolicySource = str | Path | Mapping[str, object] | Policy
_POLICY = (str, Path, Mapping, Policy)


class CheckedJobs:
    """Jobs that a caller made, checked as they are read: each is a job, and with `in_order` none comes before the one ahead of it.
    `again`: they are read more than once."""

    def __init__(self, jobs: Iterable[TraceJob], *, again: bool, in_order: bool) -> None:
        self._jobs = list(jobs) if again and isinstance(jobs, Iterator) else jobs
        self._in_order = in_order

    def __iter__(self) -> Iterator[TraceJob]:
        last = -math.inf
        for job in self._jobs:
            if not isinstance(job, TraceJob):
                raise ValueError(f"trace: found {job!r}, expected a TraceJob")
            if self._in_order and job.submit < last:
                raise ValueError(
                    f"trace: found job {job.name!r} at {job.submit:g} after one at {last:g}, expected order of submission"
                )
            last = job.submit
            yield job


def check_arguments(
    trace: object, cluster: object, checkpoint: object, estimates: object, failures: object, arrivals: object, seeds: object
) -> None:
    if not isinstance(trace, Iterable):
        raise ValueError(f"trace: found {trace!r}, expected KIND:FILE or jobs in order of submission")
    if not isinstance(cluster, str | ClusterSetup):
        raise ValueError(f"cluster: found {cluster!r}, expected a text such as h100=16x8gpu, or a ClusterSetup")
    if checkpoint is not None:
        read_amount(checkpoint, "checkpoint")
    if estimates not in KINDS:
        raise ValueError(f"estimates: found {estimates!r}, expected one of {', '.join(KINDS)}")
    if not isinstance(failures, NodeFailures | None):
        raise ValueError(f"failures: found {failures!r}, expected NodeFailures")
    if arrivals is not None:
        read_amount(arrivals, "arrivals")
    if not isinstance(seeds, Sequence):
        raise ValueError(f"seeds: found {seeds!r}, expected a list of whole numbers")
    for seed in seeds:
        read_count(seed, "seeds", least=0)


def listed_policies(policies: Iterable[PolicySource] | PolicySource) -> list[PolicySource]:
    given: object = policies
    found = [given] if isinstance(given, _POLICY) else list(given) if isinstance(given, Iterable) else []
    if not found or not all(isinstance(each, _POLICY) for each in found):
        raise ValueError(f"policies: found {given!r}, expected a policy or policies: presets, paths or decoded mappings")
    return found
