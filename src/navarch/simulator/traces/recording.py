"""Recordings of a live scheduler (`navarch run --record DIR`) as a trace: what would that week have been under another policy?

A job is submitted when its group was made, and starts when its first pod ran. It ends at the first recording in which no pod of it
waits or runs, or that shows a new group of its name. So a duration is as exact as recordings are dense. A job that runs in the last
recording is taken to end then; one that never ran has no duration and is left out.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from msgspec import Struct

from navarch.model.spec import JobSpec, Shape
from navarch.model.status import IS_TERMINAL
from navarch.offline.replay import Recording, RecordingError
from navarch.offline.replay import read as read_recording
from navarch.simulator.jobs import GPU, PodSet, TraceJob
from navarch.simulator.traces.reading import Trace, TraceError, TraceReader, Window

NEVER_STARTED = "never started in the recordings"


class _Seen(Struct):
    spec: JobSpec
    pods: tuple[PodSet, ...]
    started: float | None = None
    end: float | None = None
    """The first recording that shows it without pods that wait or run; None: none did so far."""
    deadline: float | None = None
    """Seconds after which the last of its pods is ended, if all of them have a deadline."""


def files_in(folder: str) -> list[Path]:
    """Recordings of a folder, or the one file, oldest first."""
    path = Path(folder)
    found = sorted(path.glob("*.json.gz")) if path.is_dir() else [path]
    if not found:
        raise TraceError(folder, ["found no recordings (*.json.gz), expected those of `navarch run --record`"])
    return found


def read(path: str, window: Window) -> Trace:
    seen: dict[str, _Seen] = {}
    replaced: list[tuple[str, _Seen]] = []
    """Jobs whose group was deleted and made again."""
    now = 0.0
    for file in files_in(path):
        try:
            recording = read_recording(file)
        except RecordingError as error:
            raise TraceError(path, [str(error)]) from None
        now = recording.now
        _note(recording, seen, replaced)
    ended = [(key, found, now if found.end is None else found.end) for key, found in (*replaced, *seen.items())]
    reader = TraceReader(path, window)
    for number, (key, found, end) in enumerate(sorted(ended, key=lambda each: (each[1].spec.created, each[0])), start=1):
        if not reader.holds(found.spec.created):
            continue
        if found.started is None or not found.pods:
            reader.leave_out(NEVER_STARTED)
        else:
            reader.add(_job(key, found, end, number))
    return reader.trace()


def _note(recording: Recording, seen: dict[str, _Seen], replaced: list[tuple[str, _Seen]]) -> None:
    """Take down what a recording shows."""
    there = {line.row: line for line in recording.tasks if not IS_TERMINAL[line.spec.status]}
    here = set()
    for job in recording.jobs:
        tasks = [there[row] for row in job.tasks if row in there]
        if job.spec is None or not tasks:
            continue
        here.add(job.key)
        found = seen.get(job.key)
        if found is not None and (found.spec.uid, found.spec.created) != (job.spec.uid, job.spec.created):
            found.end = recording.now if found.end is None else found.end
            replaced.append((job.key, seen.pop(job.key)))
            found = None
        pods = Counter(_pod(recording.shapes[task.shape]) for task in tasks)
        if found is None:
            found = seen[job.key] = _Seen(job.spec, ())
        if sum(each.count for each in found.pods) < sum(pods.values()):
            found.spec, found.pods = job.spec, tuple(PodSet(count, *_amounts(pod)) for pod, count in pods.items())
        if found.started is None:
            found.started = min((task.spec.started for task in tasks if task.spec.started is not None), default=None)
        deadlines = [task.spec.active_deadline for task in tasks if task.spec.active_deadline is not None]
        found.deadline = max(deadlines) if len(deadlines) == len(tasks) else None
        found.end = None  # a failed pod may have been made again
    for key, found in seen.items():
        if key not in here and found.end is None:
            found.end = recording.now


_Pod = tuple[int, int, int, tuple[tuple[str, str], ...]]


def _pod(shape: Shape) -> _Pod:
    asked = dict(shape.requests)
    return asked.get("cpu", 0), asked.get("memory", 0), asked.get(GPU, 0), shape.node_selector


def _amounts(pod: _Pod) -> tuple[int, int, int, int, tuple[str, ...], tuple[tuple[str, str], ...]]:
    cpu, memory, gpu, selector = pod
    return cpu, memory, gpu // 1000, gpu % 1000 if gpu < 1000 else 0, (), selector


def _job(key: str, found: _Seen, end: float, number: int) -> TraceJob:
    spec = found.spec
    assert found.started is not None
    size = sum(each.count for each in found.pods)
    return TraceJob(
        name=f"{key.rpartition('/')[2]}-{number}",
        submit=spec.created,
        duration=max(end - found.started, 0.0),
        pods=found.pods,
        queue=spec.queue,
        min_pods=min(max(spec.min_member, 1), size),
        priority=spec.priority,
        walltime=found.deadline,
        expected=spec.expected_duration,
        user=spec.namespace,
        line=number,
    )
