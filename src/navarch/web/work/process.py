"""`python -m navarch.web.work.process`: reads one task from standard input, carries it out, writes the answer to standard output.

The process limits itself before it begins: CPU seconds by RLIMIT_CPU, memory by RLIMIT_AS. Whatever the work does, the dashboard goes
on.
"""

from __future__ import annotations

import asyncio
import resource
import sys
import time
from pathlib import Path
from typing import Any, Final

import msgspec

from navarch.engine.policy import PRESETS, PolicyError
from navarch.engine.reasons import Reason, dominant
from navarch.engine.record import CycleRecord
from navarch.explanation.explain import explain
from navarch.explanation.names import NotFound
from navarch.ingest.groups import shown_key
from navarch.installed import installed
from navarch.kube.client import Client
from navarch.kube.connect import connect
from navarch.kube.errors import ConfigError, KubeError
from navarch.live.cluster_objects import ClusterObjects, cluster_objects
from navarch.offline import replay
from navarch.offline.plan import PlanError
from navarch.offline.policies import read_policy
from navarch.web.work.forecasting import forecast_starts
from navarch.web.work.requests import Answer, Explain, Forecast, OpenRecording, Task

MOST_ENTRIES: Final = 1000


class _Decisions(msgspec.Struct):
    binds: list[dict[str, Any]]
    evictions: list[dict[str, Any]]
    nominations: list[dict[str, Any]]
    jobs: list[dict[str, Any]]


def main() -> None:
    task = msgspec.json.decode(sys.stdin.buffer.read(), type=Task)
    resource.setrlimit(resource.RLIMIT_CPU, (task.cpu_seconds, task.cpu_seconds + 1))
    resource.setrlimit(resource.RLIMIT_AS, (task.memory, task.memory))
    sys.stdout.buffer.write(msgspec.json.encode(carry_out(task), enc_hook=str))


def carry_out(task: Task) -> Answer:
    try:
        match task.work:
            case Explain():
                return Answer({"explanation": _explained(task.work)})
            case Forecast():
                return Answer(forecast_starts(task.work, asyncio.run(_objects(task.work))))
            case OpenRecording():
                return Answer(opened_recording(task.work))
    except NotFound as error:
        return Answer(error=str(error), status=404)
    except (replay.RecordingError, PolicyError, PlanError) as error:
        return Answer(error=str(error), status=400)
    except (KubeError, ConfigError) as error:
        return Answer(error=f"the cluster cannot be read: {error}", status=503)
    except MemoryError:
        return Answer(error=f"this takes more than {task.memory >> 20} MiB of memory", status=503)


def _explained(work: Explain) -> dict[str, Any]:
    found = asyncio.run(_objects(work))
    answer = explain(
        found.documents,
        work.job,
        work.policy,
        time.time(),
        work.trials,
        work.seconds,
        scheduler_names=work.scheduler_names,
        keep_going=True,
        namespace_as_queue=work.namespace_as_queue,
        node_pool_label_key=work.node_pool_label_key,
        partition_label_value=work.partition_label_value,
        plugin_dirs=work.plugin_dirs,
    )
    answer.notes += found.notes
    return answer.to_dict()


async def _objects(work: Explain | Forecast) -> ClusterObjects:
    async with Client(connect(work.kubeconfig or None, work.context or None)) as client:
        return await cluster_objects(client)


def opened_recording(work: OpenRecording) -> dict[str, Any]:
    recording = replay.read(work.file)
    decided = msgspec.json.decode(recording.decisions, type=_Decisions)
    lists = {
        "binds": [_placed(each) for each in decided.binds],
        "evictions": [
            {**_placed(each), "action": each["action"], "for": shown_key(each["for_"]), "message": each["message"]}
            for each in decided.evictions
        ],
        "nominations": [_placed(each) for each in decided.nominations],
        "jobs": [_job(each) for each in decided.jobs if each["pods"].get("Pending")],
    }
    return {
        "id": Path(work.file).name,
        "time": recording.now,
        "policy": recording.policy_name,
        **{name: entries[:MOST_ENTRIES] for name, entries in lists.items()},
        "truncated": any(len(entries) > MOST_ENTRIES for entries in lists.values()),
        "compared": _compared(recording, work) if work.policy else None,
    }


def _compared(recording: replay.Recording, work: OpenRecording) -> dict[str, Any]:
    if work.policy not in PRESETS:  # a path would let a viewer read files of the server
        raise replay.RecordingError(f"policy: expected one of {', '.join(PRESETS)}, found {work.policy!r}")
    registry = installed(tuple(Path(each) for each in work.plugin_dirs))
    other: CycleRecord = replay.again(recording, registry, read_policy(work.policy, registry))
    before, after = bytes(recording.decisions), replay.decisions(other)
    same = replay.same(before, after)
    return {
        "policy": work.policy,
        "same": same,
        "binds": len(other.binds),
        "evictions": len(other.evictions),
        "nominations": len(other.nominations),
        "difference": [] if same else (replay.difference(before, after) or ["the wording differs"])[:MOST_ENTRIES],
    }


def _placed(entry: dict[str, Any]) -> dict[str, Any]:
    return {"pod": entry["pod"], "node": entry["node"], "job": shown_key(entry["job"])}


def _job(entry: dict[str, Any]) -> dict[str, Any]:
    reason = dominant(msgspec.convert(entry["reasons"], list[Reason], strict=False)) if entry["reasons"] else None
    return {
        "job": shown_key(entry["job"]),
        "queue": entry["queue"],
        "phase": entry["phase"],
        "pods": entry["pods"],
        "code": reason.code if reason is not None else "",
        "message": reason.message if reason is not None else "",
    }


if __name__ == "__main__":
    main()
