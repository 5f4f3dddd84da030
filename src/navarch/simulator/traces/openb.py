"""Alibaba's GPU cluster trace of 2023 ("openb"), one row a pod.

Every pod is a job of its own. A pod with one GPU and `gpu_milli` below 1000 shares that GPU, any other takes whole ones. `gpu_spec`
lists the GPU types that will do, with `|` between them. Times are seconds since the beginning of the trace; lists without times give
jobs that all come at once and never end, for use with `--arrivals`.
"""

from __future__ import annotations

import math

from navarch.simulator.jobs import PodSet, TraceJob
from navarch.simulator.traces.reading import LAST_MOMENT, RowError, Trace, TraceReader, Window, number, rows_of

COLUMNS = ("name", "cpu_milli", "memory_mib", "num_gpu", "gpu_milli")
OPTIONAL = ("gpu_spec", "qos", "pod_phase", "creation_time", "deletion_time", "scheduled_time")
WHOLE = 1000


def read(path: str, window: Window) -> Trace:
    reader = TraceReader(path, window)
    names: dict[str, int] = {}
    for line, row in rows_of(path, reader.mistake, COLUMNS, OPTIONAL):
        try:
            name = row["name"]
            if not name:
                raise RowError("name: found nothing, expected the name of a pod")
            if name in names:
                raise RowError(f"name: found {name!r}, which line {names[name]} has as well")
            names[name] = line
            pods = (_pods(row),)
            submit, duration = _times(row)
        except RowError as error:
            reader.mistake(line, error)
            continue
        if reader.holds(submit):
            reader.add(TraceJob(name=name, submit=submit, duration=duration, pods=pods, user=row.get("qos", ""), line=line))
    return reader.trace()


def _pods(row: dict[str, str]) -> PodSet:
    gpus = int(number(row, "num_gpu", whole=True))
    milli = int(number(row, "gpu_milli", whole=True))
    if milli > WHOLE or (gpus and not milli) or (gpus > 1 and milli < WHOLE):
        expected = "1000" if gpus > 1 else "1 to 1000" if gpus else "0 to 1000"
        raise RowError(f"gpu_milli: found {milli}, expected {expected} for {gpus} GPUs")
    shares = gpus == 1 and milli < WHOLE
    spec = row.get("gpu_spec") or ""
    return PodSet(
        cpu=int(number(row, "cpu_milli", whole=True)),
        memory=int(number(row, "memory_mib", whole=True)) << 20,
        gpus=0 if shares else gpus,
        gpu_milli=milli if shares else 0,
        gpu_types=tuple(sorted(set(spec.split("|")))) if spec and gpus else (),
    )


def _times(row: dict[str, str]) -> tuple[float, float]:
    """When it was made, and how long it lived."""
    if not row.get("creation_time"):
        return 0.0, math.inf
    begin = number(row, "creation_time", most=LAST_MOMENT)
    if not row.get("deletion_time"):
        return begin, math.inf
    end = number(row, "deletion_time", most=LAST_MOMENT)
    if end < begin:
        raise RowError(f"deletion_time: found {end:g}, expected a time from creation_time {begin:g} on")
    return begin, end - begin
