"""Navarch's own form of a trace: JSON Lines, one job a line.

    {"name": "bert", "submit": "2026-01-01T08:00:00Z", "duration": 5400, "pods": [{"count": 4, "gpus": 8, "cpu": 96, "memory": "1Ti"}],
     "queue": "nlp", "minPods": 2, "priority": 10, "walltime": 7200, "checkpoint": 600, "user": "ann"}

`submit` is a time or seconds, `duration` seconds; `start` and `end` may stand for `duration`. Everything after `pods` may be left out.
Amounts are Kubernetes quantities. A name that is not known is a mistake.
"""

from __future__ import annotations

import math
from datetime import UTC, datetime

import msgspec

from navarch.model.quantity import QuantityError
from navarch.model.resources import parse_amount
from navarch.simulator.jobs import PodSet, TraceJob
from navarch.simulator.traces.reading import RowError, Trace, TraceReader, Window, lines_of


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
            reader.mistake(number, f": {error}")
            continue
        except RowError as error:
            reader.mistake(number, error)
            continue
        names[job.name] = number
        if reader.holds(job.submit):
            reader.add(job)
    return reader.trace()


def _job(line: Line, number: int) -> TraceJob:
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
    for name, value in (("duration", duration), ("walltime", line.walltime), ("checkpoint", line.checkpoint)):
        if value is not None and not (math.isfinite(value) and value >= 0):
            raise RowError(f"{name}: found {value}, expected seconds of 0 or more")
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
    if pods.count < 1:
        raise RowError(f"pods[{place}].count: found {pods.count}, expected 1 or more")
    milli = round(1000 * pods.gpus)
    if milli < 0 or (milli > 1000 and milli % 1000):
        raise RowError(f"pods[{place}].gpus: found {pods.gpus:g}, expected whole GPUs or a part of one")
    amounts = {}
    for name, value in (("cpu", pods.cpu), ("memory", pods.memory)):
        try:
            amounts[name] = parse_amount(name, value)
        except QuantityError as error:
            raise RowError(f"pods[{place}].{name}: {error}") from None
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
        if not math.isfinite(value):
            raise RowError(f"{name}: found {value}, expected a time or seconds")
        return float(value)
    try:
        found = datetime.fromisoformat(value)
    except ValueError:
        raise RowError(f"{name}: found {value!r}, expected seconds or a time such as 2026-01-01T08:00:00Z") from None
    return (found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp()
