"""Start times for the rows of `navarch jobs --eta`: all waiting jobs are forecast together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from navarch.engine.policy import Policy
from navarch.engine.registry import Registry
from navarch.job_history import JobRun
from navarch.model.cluster import Cluster
from navarch.views.jobs import JobRow


@dataclass(frozen=True)
class StartEstimate:
    """`seconds`: how long the estimate may take."""

    history: Sequence[JobRun]
    seconds: float

    def rows(
        self,
        rows: Sequence[JobRow],
        cluster: Cluster,
        policy: Policy,
        registry: Registry,
        now: float,
        jobs: Sequence[Mapping[str, Any]],
    ) -> list[JobRow]:
        """The rows with start times of those that wait. `jobs`: manifests of Jobs, for their deadlines."""
        from navarch.simulator.start_times.deadlines import job_deadlines  # `navarch jobs` without --eta does not load the simulator
        from navarch.simulator.start_times.estimate import NO_BASIS, Basis, start_times

        wanted = {row.key for row in rows if row.prospect is not None and not row.prospect.never}
        basis = Basis(cluster, now, self.history, job_deadlines(jobs))
        if not basis.known:
            return [replace(row, start_unknown=NO_BASIS) if row.key in wanted else row for row in rows]
        found = start_times(cluster, policy, registry, now, sorted(wanted), basis, seconds=self.seconds) if wanted else None
        return [
            row
            if found is None or row.key not in wanted
            else replace(row, start=found.known.get(row.key), start_unknown=found.unknown.get(row.key, ""))
            for row in rows
        ]
