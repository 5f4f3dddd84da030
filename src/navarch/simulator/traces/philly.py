"""Microsoft's Philly trace, one row a job: timestamp, duration in seconds, num_gpus, gpu_time, cluster (the virtual cluster).

A job of more than 8 GPUs becomes pods of 8 on nodes of their own and one pod for the rest, as the trace's cluster ran it. Times in
the file are UTC.
"""

from __future__ import annotations

from navarch.simulator.jobs import PodSet, TraceJob
from navarch.simulator.traces.reading import LONGEST, RowError, Trace, TraceReader, Window, moment, number, rows_of

COLUMNS = ("timestamp", "duration", "num_gpus", "gpu_time", "cluster")
GPUS_PER_NODE = 8


def read(path: str, window: Window) -> Trace:
    reader = TraceReader(path, window)
    sizes: dict[int, tuple[PodSet, ...]] = {}
    for line, row in rows_of(path, reader.mistake, COLUMNS):
        try:
            submit = moment(row, "timestamp")
            if not reader.holds(submit):
                continue
            gpus = int(number(row, "num_gpus", least=1, whole=True))
            queue = row["cluster"]
            if not queue:
                raise RowError("cluster: found nothing, expected the name of a virtual cluster")
            duration = number(row, "duration", most=LONGEST)
        except RowError as error:
            reader.mistake(line, error)
            continue
        pods = sizes.get(gpus)
        if pods is None:
            pods = sizes[gpus] = pods_of(gpus)
        reader.add(TraceJob(name=f"job-{line:06d}", submit=submit, duration=duration, pods=pods, queue=queue, line=line))
    return reader.trace()


def pods_of(gpus: int) -> tuple[PodSet, ...]:
    """
    >>> [(each.count, each.gpus) for each in pods_of(20)]
    [(2, 8), (1, 4)]
    """
    whole, rest = divmod(gpus, GPUS_PER_NODE)
    sets = (PodSet(whole, gpus=GPUS_PER_NODE), PodSet(1, gpus=rest))
    return tuple(each for each in sets if each.count and each.gpus)
