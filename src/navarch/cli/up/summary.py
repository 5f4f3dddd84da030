"""The summary of `navarch up --until-settled`: jobs, queues, evictions, and jobs that cannot run."""

from __future__ import annotations

from rich.console import Console

from navarch.cli.tables.columns import print_rows
from navarch.cli.tables.overview import jobs_form, queues_form
from navarch.cli.tables.text import print_line, print_table
from navarch.cli.up.cluster import UpCluster
from navarch.cli.up.event_log import EventLog
from navarch.cli.up.view import current


def summary(cluster: UpCluster, events: EventLog, console: Console, settled: bool, seconds: float) -> bool:
    """Returns whether any pod has run."""
    found = current(cluster)
    now = cluster.server.store.clock()
    print_line(console)
    print_line(console, "Jobs", "bold")
    print_rows(console, jobs_form(now, namespaces=True), found.jobs)
    print_line(console)
    print_line(console, "Queues", "bold")
    print_rows(console, queues_form(found.queues), found.queues)
    if events.evictions:
        evicted = [(job, str(count), why) for (job, why), count in sorted(events.evictions.items())]
        print_line(console)
        print_table(console, "Evicted", ("JOB", "PODS", "WHY"), evicted)
    else:
        print_line(console)
    phases: dict[str, int] = {}
    for pod in cluster.server.store.list("pods"):
        phase = (pod.obj.get("status") or {}).get("phase") or "Unknown"
        phases[phase] = phases.get(phase, 0) + 1
    counted = ", ".join(f"{count} {phase}" for phase, count in sorted(phases.items())) or "no pods"
    word = "settled" if settled else "NOT settled"
    print_line(console, f"{word} after {seconds:.1f} s: {counted}")
    ran = any(phases.get(phase) for phase in ("Running", "Succeeded", "Failed"))
    if not ran:
        print_line(console, "no pod has run: the jobs above say why")
    return ran
