"""`navarch policy typical-pods`: the pods that came, as the list that `fragmentation` keeps room for."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import TYPE_CHECKING

import click
import yaml

from navarch.cli.policy.mistakes import MISTAKES
from navarch.job_history import GPU, HistoryError, read_history

if TYPE_CHECKING:
    from navarch.simulator.jobs import PodSet

HISTORY = "history:"
EXAMPLES = """\b
Examples:
  navarch policy typical-pods history:/var/lib/navarch/history.db >> policy.yaml
  navarch policy typical-pods recording:recordings/
  navarch policy typical-pods jsonl:examples/traces/two-teams.jsonl -o json
"""


@click.command("typical-pods", short_help="Count the pods of a history or trace for the plugin fragmentation.", epilog=EXAMPLES)
@click.argument("source", metavar="KIND:FILE")
@click.option("-o", "--output", type=click.Choice(("yaml", "json")), default="yaml", show_default=True)
def typical_pods_command(source: str, output: str) -> None:
    """Print the kinds of pods that came, the most frequent first, as the argument `fragmentation.typicalPods` of a policy file.

    KIND:FILE is `history:FILE`, which `navarch run --history FILE` writes, or a trace as `navarch simulate` reads it.
    """
    from navarch.simulator.arrivals import typical_pods  # here, so that the other commands do not load the simulator
    from navarch.simulator.traces import TraceError

    try:
        pods = _of_history(source.removeprefix(HISTORY)) if source.startswith(HISTORY) else _of_trace(source)
        found = sorted(typical_pods(pods), key=lambda entry: -int(str(entry["count"])))
    except (HistoryError, TraceError) as error:
        click.echo(str(error), err=True)
        raise SystemExit(MISTAKES) from None
    listed = {"fragmentation.typicalPods": [{name: value for name, value in entry.items() if value != []} for entry in found]}
    click.echo(json.dumps(listed, indent=2) if output == "json" else yaml.safe_dump(listed, sort_keys=False).rstrip())


def _of_trace(source: str) -> Iterable[PodSet]:
    from navarch.simulator.traces import read_trace

    return (pods for job in read_trace(source, None).jobs for pods in job.pods)


def _of_history(path: str) -> Iterable[PodSet]:
    from navarch.simulator.jobs import GPU_TYPE, PodSet

    for job in read_history(path):
        for count, requests, selector in job.pods:
            amounts, types = dict(requests), tuple(value for name, value in selector if name == GPU_TYPE)
            yield PodSet(count, cpu=amounts.get("cpu", 0), gpus=amounts.get(GPU, 0) // 1000, gpu_types=types)
