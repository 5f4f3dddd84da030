"""`navarch explain`: why a job waits, what is before it, and what would start it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from navarch.cli.namespace_queues import namespace_as_queue_option
from navarch.cli.plan import fail, moment
from navarch.cli.plugin_dirs import failure_in, plugin_dirs_option
from navarch.cli.policy.mistakes import MISTAKES, tell
from navarch.cli.tables.explanation import show_explanation
from navarch.cli.tables.text import output_console
from navarch.engine.policy import PRESETS, PolicyError
from navarch.engine.registry import RegistrationError
from navarch.explanation.explain import explain as run_explain
from navarch.explanation.names import NotFound
from navarch.offline.manifests import read_paths
from navarch.offline.plan import PlanError

EXAMPLES = """\b
Examples:
  navarch explain train -f examples/two-queues.yaml
  navarch explain ml/bert -f cluster/ -f bert.yaml --policy volcano -o json
"""


@click.command(epilog=EXAMPLES)
@click.argument("job", metavar="[NAMESPACE/]JOB")
@click.option("-f", "--filename", "paths", multiple=True, required=True, metavar="FILE|DIR|-", help="Manifests; may repeat.")
@click.option("--policy", default="navarch", show_default=True, metavar="FILE|PRESET", help=f"One of {', '.join(PRESETS)}, or a file.")
@click.option("--scheduler-name", "scheduler_names", multiple=True, metavar="NAME", help="Whose pending pods; may repeat.  [all]")
@click.option("--now", type=moment, metavar="TIME", help="The moment of the cycle.  [newest time in the input]")
@click.option("--trials", type=click.IntRange(min=1), default=200, show_default=True, help="Run the scheduler at most so often.")
@click.option("--seconds", type=click.FloatRange(min=0.0), default=5.0, show_default=True, help="Search for about so long.")
@click.option("-o", "--output", type=click.Choice(("text", "json", "yaml")), default="text", show_default=True)
@click.option("--keep-going", is_flag=True, help="Explain without the objects that are not valid.")
@namespace_as_queue_option
@plugin_dirs_option
def explain(
    job: str,
    paths: tuple[str, ...],
    policy: str,
    scheduler_names: tuple[str, ...],
    now: float | None,
    trials: int,
    seconds: float,
    output: str,
    keep_going: bool,
    namespace_as_queue: bool,
    plugin_dirs: tuple[Path, ...],
) -> None:
    """Say why JOB waits, what is before it, and what would start it.

    JOB is the name of a PodGroup or of a workload, or pod/NAME. Every answer is proved by running the scheduler on the changed
    input, as `navarch plan` does. Exits with 1 where there is no such job, with 2 where the input cannot be used.
    """
    documents, unread = read_paths(paths)
    try:
        if unread and not keep_going:
            raise PlanError(unread)
        with _progress() as told:
            found = run_explain(
                documents,
                job,
                policy,
                now,
                trials,
                seconds,
                scheduler_names=scheduler_names or None,
                keep_going=keep_going,
                namespace_as_queue=namespace_as_queue,
                plugin_dirs=plugin_dirs,
                progress=told,
            )
    except NotFound as error:
        raise click.ClickException(str(error)) from None
    except PlanError as error:
        fail(error.mistakes)
    except PolicyError as error:
        tell(error, policy, plugin_dirs)
        raise SystemExit(MISTAKES) from None
    except RegistrationError as error:
        raise click.UsageError(str(error)) from None
    except Exception as error:
        failed = failure_in(plugin_dirs, error)
        if failed is None:
            raise  # ours: the traceback is what we need of a report
        raise click.ClickException(f"a plugin failed: {failed}") from error
    match output:
        case "json":
            click.echo(json.dumps(found.to_dict(), indent=2))
        case "yaml":
            import yaml

            click.echo(yaml.safe_dump(found.to_dict(), sort_keys=False, width=120), nl=False)
        case _:
            show_explanation(output_console(), found)


@contextmanager
def _progress() -> Iterator[Callable[[int, int], None] | None]:
    """A bar on standard error while it searches, where that is a terminal."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield None
        return
    columns = (TextColumn("searching"), BarColumn(), MofNCompleteColumn(), TextColumn("trials at most"))
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("", total=None)
        yield lambda done, most: bar.update(task, completed=done, total=most)
