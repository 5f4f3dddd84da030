"""In the working process: when the waiting jobs of a cluster start.

Jobs that have the first places are forecast where the time does not suffice for all: a run ends when the last wanted job has started.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any, Final

from navarch.ingest.settings import settings_for
from navarch.installed import installed
from navarch.job_history import HistoryError, read_history
from navarch.live.cluster_objects import ClusterObjects
from navarch.offline.inventory import Inventory
from navarch.offline.policies import read_policy
from navarch.simulator.start_times.deadlines import job_deadlines
from navarch.simulator.start_times.estimate import NO_BASIS, Basis, StartTimes, start_times
from navarch.views.prospects import prospects
from navarch.web.work.requests import Forecast

SIZES: Final = (2000, 200, 20)
"""How many jobs are tried to be forecast together."""
NOT_REACHED: Final = "only jobs with the first places are forecast"


def forecast_starts(work: Forecast, objects: ClusterObjects) -> dict[str, Any]:
    """`known`: key -> moments by which a job starts with a chance of 50 and of 90 percent. `unknown`: why not -> keys. `reason`: why
    all others have none."""
    os.nice(10)
    registry = installed(tuple(Path(each) for each in work.plugin_dirs))
    policy = read_policy(work.policy, registry)
    settings = settings_for(
        policy, work.scheduler_names, work.namespace_as_queue, work.node_pool_label_key, work.partition_label_value
    )
    cluster, now = Inventory(objects.documents, settings).cluster, time.time()
    try:
        history = read_history(work.history) if work.history and Path(work.history).is_file() else []
    except HistoryError as error:
        return {"known": {}, "unknown": {}, "reason": str(error)}
    jobs = [each.manifest for each in objects.documents if each.manifest.get("kind") == "Job"]
    basis = Basis(cluster, now, history, job_deadlines(jobs))
    if not basis.known:
        return {"known": {}, "unknown": {}, "reason": NO_BASIS}
    waiting = {key: each.place for key, each in prospects(cluster, policy, registry, now).items() if not each.never}
    in_order = sorted(waiting, key=lambda key: (waiting[key], key))
    found = StartTimes({}, {})
    sizes = [SIZES[0], *(size for size in SIZES[1:] if size < len(in_order))]
    for size in sizes:
        wanted = in_order[:size]
        found = start_times(cluster, policy, registry, now, wanted, basis, seconds=work.seconds / len(sizes))
        if found.known or not wanted:
            break
    unknown: dict[str, list[str]] = {}
    for key, reason in found.unknown.items():
        unknown.setdefault(reason, []).append(key)
    known = {key: (each.p50, each.p90) for key, each in found.known.items()}
    return {"known": known, "unknown": unknown, "reason": NOT_REACHED}
