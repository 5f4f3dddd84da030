"""The Standard Workload Format of the Parallel Workloads Archive: 18 numbers a line, comments after semicolons.

Read are job number, submit time, run time, processors, requested time, requested memory (KB a processor), user and queue. A processor
is a core. Where the header gives MaxProcs and MaxNodes, a job's cores come in pods of a node's size and one for the rest; otherwise in
pods of one core. UnixStartTime is the moment zero of the file. Jobs that never ran (a run time or size of -1 or 0) are left out.
"""

from __future__ import annotations

import re

from navarch.simulator.jobs import PodSet, TraceJob
from navarch.simulator.traces.reading import LAST_MOMENT, LONGEST, RowError, Trace, TraceReader, Window, lines_of, number

FIELDS = (
    "job",
    "submit",
    "wait",
    "run",
    "used_processors",
    "used_cpu_time",
    "used_memory",
    "processors",
    "requested_time",
    "memory",
    "status",
    "user",
    "group",
    "executable",
    "queue",
    "partition",
    "preceding_job",
    "think_time",
)
_HEADER = re.compile(r";\s*(UnixStartTime|MaxProcs|MaxNodes)\s*:\s*(\d+)")
NEVER_RAN = "never ran"


def read(path: str, window: Window) -> Trace:
    reader = TraceReader(path, window)
    header: dict[str, int] = {}
    for line, text in enumerate(lines_of(path), start=1):
        if text.lstrip().startswith(";"):
            found = _HEADER.match(text.lstrip())
            if found is not None and found[1] == "UnixStartTime" and int(found[2]) > LAST_MOMENT:
                reader.mistake(line, f"UnixStartTime: found {found[2]}, expected seconds from 0 to {LAST_MOMENT:.0f}")
            elif found is not None:
                header[found[1]] = int(found[2])
            continue
        values = text.split()
        if not values:
            continue
        if len(values) != len(FIELDS):
            reader.mistake(line, f": found {len(values)} fields, expected {len(FIELDS)}")
            continue
        row = dict(zip(FIELDS, values))
        try:
            zero = header.get("UnixStartTime", 0)
            submit = number(row, "submit", most=LAST_MOMENT - zero) + zero
            cores = int(number(row, "processors", least=-1, whole=True))
            if cores <= 0:
                cores = int(number(row, "used_processors", least=-1, whole=True))
            run = number(row, "run", least=-1, most=LONGEST)
            walltime = number(row, "requested_time", least=-1, most=LONGEST)
            memory = int(max(number(row, "memory", least=-1), 0)) * 1024
            name = int(number(row, "job", whole=True))
        except RowError as error:
            reader.mistake(line, error)
            continue
        if not reader.holds(submit):
            continue
        if cores <= 0 or run <= 0:
            reader.leave_out(NEVER_RAN)
            continue
        reader.add(
            TraceJob(
                name=f"job-{name:06d}-{line}",
                submit=submit,
                duration=run,
                pods=_pods(cores, memory, header),
                queue=f"queue-{row['queue']}" if row["queue"] != "-1" else "default",
                walltime=walltime if walltime > 0 else None,
                user=f"user-{row['user']}" if row["user"] != "-1" else "",
                line=line,
            )
        )
    return reader.trace()


def _pods(cores: int, memory: int, header: dict[str, int]) -> tuple[PodSet, ...]:
    """`memory` is a core's."""
    nodes = header.get("MaxNodes", 0)
    size = max(header.get("MaxProcs", 0) // nodes, 1) if nodes else 1
    whole, rest = divmod(cores, size)
    sets = (PodSet(whole, cpu=1000 * size, memory=memory * size), PodSet(1, cpu=1000 * rest, memory=memory * rest))
    return tuple(each for each in sets if each.count and each.cpu)
