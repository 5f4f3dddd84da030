"""Recordings of a live scheduler (`navarch run --record DIR`) as a trace: what would that week have been under another policy?

A job is submitted when its group was made, starts when its first pod ran, and ends at the first recording that lacks it. So a duration
is as exact as recordings are dense. A job that runs in the last recording is taken to end then; one that never ran has no duration and
is left out.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from msgspec import Struct

from navarch.model.spec import JobSpec, Shape
from navarch.offline.replay import Recording, RecordingError
from navarch.offline.replay import read as read_recording
from navarch.simulator.jobs import GPU, PodSet, TraceJob
from navarch.simulator.traces.reading import Trace, TraceError, TraceReader, Window

NEVER_STARTED = "never started in the recordings"


class _Seen(Struct):
    spec: JobSpec
    pods: tuple[PodSet, ...]
    started: float | None = None
    last: float = 0.0
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
    ended: list[tuple[str, _Seen, float]] = []
    now = 0.0
    for file in files_in(path):
        try:
            recording = read_recording(file)
        except RecordingError as error:
            raise TraceError(path, [str(error)]) from None
        now = recording.now
        here = _note(recording, seen)
        ended += [(key, seen.pop(key), now) for key in list(seen) if key not in here]
    ended += [(key, found, now) for key, found in seen.items()]
    reader = TraceReader(path, window)
    for number, (key, found, end) in enumerate(sorted(ended, key=lambda each: (each[1].spec.created, each[0])), start=1):
        if not reader.holds(found.spec.created):
            continue
        if found.started is None or not found.pods:
            reader.leave_out(NEVER_STARTED)
        else:
            reader.add(_job(key, found, end, number))
    return reader.trace()


def _note(recording: Recording, seen: dict[str, _Seen]) -> set[str]:
    """Take down what a recording shows; keys of the jobs in it."""
    shapes = {line.row: recording.shapes[line.shape] for line in recording.tasks}
    tasks = {line.row: line.spec for line in recording.tasks}
    here = set()
    for line in recording.jobs:
        if line.spec is None or not line.tasks:
            continue
        here.add(line.key)
        found = seen.get(line.key)
        pods = Counter(_pod(shapes[row]) for row in line.tasks if row in shapes)
        sets = tuple(PodSet(count, *_amounts(pod)) for pod, count in pods.items())
        if found is None or sum(each.count for each in found.pods) < sum(pods.values()):
            started = None if found is None else found.started
            found = seen[line.key] = _Seen(line.spec, sets, started)
        starts = [spec.started for row in line.tasks if row in tasks and (spec := tasks[row]).started is not None]
        if found.started is None and starts:
            found.started = min(start for start in starts if start is not None)
        deadlines = [tasks[row].active_deadline for row in line.tasks if row in tasks]
        known = [each for each in deadlines if each is not None]
        found.deadline = max(known) if known and len(known) == len(deadlines) else None
        found.last = recording.now
    return here


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
