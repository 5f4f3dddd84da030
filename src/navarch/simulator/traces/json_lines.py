"""Navarch's own form of a trace: JSON Lines, one job a line.

    {"name": "bert", "submit": "2026-01-01T08:00:00Z", "duration": 5400, "pods": [{"count": 4, "gpus": 8, "cpu": 96, "memory": "1Ti"}],
     "queue": "nlp", "minPods": 2, "priority": 10, "walltime": 7200, "checkpoint": 600, "user": "ann"}

`submit` is a time or seconds, `duration` seconds; `start` and `end` may stand for `duration`. Everything after `pods` may be left out.
Amounts are Kubernetes quantities. A name that is not known is a mistake.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from navarch.model.quantity import QuantityError
from navarch.model.resources import parse_amount
from navarch.simulator.jobs import PodSet, TraceJob
from navarch.simulator.traces.reading import LAST_MOMENT, LONGEST, RowError, Trace, TraceReader, Window, lines_of, seconds_of

MOST_PRIORITY = 1_000_000_000
"""Of the priority classes that users may make."""
MOST_PODS = 1_000_000
"""Of one kind in a job."""
MOST_GPUS = 1_000_000
"""Of one pod."""


class Pods(msgspec.Struct, forbid_unknown_fields=True, rename="camel"):
    count: int = 1
    gpus: float = 0
    cpu: str | float = 0
    memory: str | int = 0
    gpu_types: list[str] = []
    node_selector: dict[str, str] = {}


class Line(msgspec.Struct, forbid_unknown_fields=True, rename="camel"):
    name: str
    submit: str | float
    pods: list[Pods]
    duration: float | None = None
    start: str | float | None = None
    end: str | float | None = None
    queue: str = "default"
    min_pods: int | None = None
    priority: int = 0
    walltime: float | None = None
    checkpoint: float | None = None
    user: str = ""


def read(path: str, window: Window) -> Trace:
    reader = TraceReader(path, window)
    names: dict[str, int] = {}
    decoder = msgspec.json.Decoder(Line)
    for number, text in enumerate(lines_of(path), start=1):
        if not text.strip():
            continue
        try:
            line = decoder.decode(text)
            job = _job(line, number)
            if job.name in names:
                raise RowError(f"name: found {job.name!r}, which line {names[job.name]} has")
        except msgspec.DecodeError as error:
            for wrong in list(_unknown_fields(text)) or [f": {error}"]:
                reader.mistake(number, wrong)
            continue
        except RowError as error:
            reader.mistake(number, error)
            continue
        names[job.name] = number
        if reader.holds(job.submit):
            reader.add(job)
    return reader.trace()


def _unknown_fields(text: str) -> Iterator[str]:
    """Mistakes of a line, one for each field that has no meaning; none if it is not JSON."""
    try:
        line = msgspec.json.decode(text)
    except msgspec.DecodeError:
        return
    found: list[tuple[str, object, type[msgspec.Struct]]] = [("", line, Line)]
    pods = line.get("pods") if isinstance(line, dict) else None
    found += [(f"pods[{place}].", each, Pods) for place, each in enumerate(pods if isinstance(pods, list) else [])]
    for where, given, kind in found:
        known = kind.__struct_encode_fields__
        for name in given if isinstance(given, dict) else ():
            if name not in known:
                yield f"{where}{name}: found a field without a meaning, expected one of {', '.join(known)}"


def _job(line: Line, number: int) -> TraceJob:
    for name, text in (("name", line.name), ("queue", line.queue)):
        if not text:
            raise RowError(f"{name}: found nothing, expected a name")
    if abs(line.priority) > MOST_PRIORITY:
        raise RowError(f"priority: found {line.priority}, expected -{MOST_PRIORITY} to {MOST_PRIORITY}")
    submit = _moment(line.submit, "submit")
    if line.duration is None:
        if line.start is None or line.end is None:
            raise RowError("duration: found nothing, expected seconds, or start and end")
        start, end = _moment(line.start, "start"), _moment(line.end, "end")
        if end < start:
            raise RowError(f"end: found {line.end!r}, which is before start ({line.start!r})")
        duration = end - start
    else:
        duration = line.duration
    if not 0 <= duration <= LONGEST:
        raise RowError(f"duration: found {duration:g}, expected seconds from 0 to {LONGEST:g}")
    for name, value in (("walltime", line.walltime), ("checkpoint", line.checkpoint)):
        if value is not None and not 0 < value <= LONGEST:
            raise RowError(f"{name}: found {value:g}, expected seconds above 0, up to {LONGEST:g}")
    pods = tuple(_pods(each, place) for place, each in enumerate(line.pods))
    if not pods:
        raise RowError("pods: found none, expected at least one")
    size = sum(each.count for each in pods)
    if line.min_pods is not None and not 1 <= line.min_pods <= size:
        raise RowError(f"minPods: found {line.min_pods}, expected 1 to {size}")
    return TraceJob(
        name=line.name,
        submit=submit,
        duration=duration,
        pods=pods,
        queue=line.queue,
        min_pods=line.min_pods,
        priority=line.priority,
        walltime=line.walltime,
        checkpoint=line.checkpoint,
        user=line.user,
        line=number,
    )


def _pods(pods: Pods, place: int) -> PodSet:
    if not 1 <= pods.count <= MOST_PODS:
        raise RowError(f"pods[{place}].count: found {pods.count:g}, expected 1 to {MOST_PODS:,}")
    milli = round(1000 * pods.gpus) if abs(pods.gpus) <= MOST_GPUS else -1
    if milli < 0 or (milli > 1000 and milli % 1000) or (pods.gpus and not milli):
        raise RowError(f"pods[{place}].gpus: found {pods.gpus:g}, expected whole GPUs or a part of one, from 0.001 on")
    amounts = {}
    for name, value in (("cpu", pods.cpu), ("memory", pods.memory)):
        try:
            amounts[name] = parse_amount(name, value)
        except QuantityError as error:
            raise RowError(f"pods[{place}].{name}: {error}") from None
        if amounts[name] < 0:
            raise RowError(f"pods[{place}].{name}: found {value}, expected 0 or more")
    whole, part = divmod(milli, 1000)
    return PodSet(
        count=pods.count,
        cpu=amounts["cpu"],
        memory=amounts["memory"],
        gpus=whole,
        gpu_milli=part,
        gpu_types=tuple(pods.gpu_types),
        node_selector=tuple(sorted(pods.node_selector.items())),
    )


def _moment(value: str | float, name: str) -> float:
    if isinstance(value, int | float):
        if not abs(value) <= LAST_MOMENT:
            raise RowError(f"{name}: found {value:g}, expected seconds, or a time such as 2026-01-01T08:00:00Z")
        return float(value)
    try:
        return seconds_of(value)
    except ValueError:
        raise RowError(f"{name}: found {value!r}, expected seconds or a time such as 2026-01-01T08:00:00Z") from None
