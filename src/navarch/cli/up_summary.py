"""The last word of `navarch up --until-settled`: what became of the jobs, who had to go for whom, what can never run."""

from __future__ import annotations

from rich.console import Console

from navarch.cli.overview_tables import jobs_table, plain_table, queues_table
from navarch.cli.up_cluster import UpCluster
from navarch.cli.up_story import Story
from navarch.cli.up_view import current


def summary(cluster: UpCluster, story: Story, console: Console, settled: bool, seconds: float) -> None:
    if not console.is_terminal:
        console.width = 200
    found = current(cluster)
    now = cluster.server.store.clock()
    console.print()
    console.print(jobs_table(found.jobs, now, namespaces=True, title="Jobs"))
    console.print()
    console.print(queues_table(found.queues, "Queues"))
    if story.evictions:
        table = plain_table(("JOB", "PODS", "WHY"), "Evicted")
        for (job, why), count in sorted(story.evictions.items()):
            table.add_row(job, str(count), why)
        console.print()
        console.print(table)
    console.print()
    phases: dict[str, int] = {}
    for pod in cluster.server.store.list("pods"):
        phase = (pod.obj.get("status") or {}).get("phase") or "Unknown"
        phases[phase] = phases.get(phase, 0) + 1
    counted = ", ".join(f"{count} {phase}" for phase, count in sorted(phases.items())) or "no pods"
    word = "settled" if settled else "NOT settled"
    console.print(f"{word} after {seconds:.1f} s: {counted}")
