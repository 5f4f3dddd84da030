"""`navarch explain`: why a job waits, what is before it, and what would start it; and how a queue or a node stands."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from navarch.apis.errors import ObjectError
from navarch.cli.cluster.embedded_kubeconfig import reminder
from navarch.cli.cluster.failure import cluster_failure
from navarch.cli.cluster.leader import leaders_view
from navarch.cli.cluster.source import read_source
from navarch.cli.cluster.state_option import state_option
from navarch.cli.cluster.workloads import standing_of
from navarch.cli.cycle_timeout import limits_cycles
from navarch.cli.history_file import history_option
from navarch.cli.namespace_queues import namespace_as_queue_option
from navarch.cli.node_pool import check_node_pool, node_pool_options
from navarch.cli.plan import collector_paused, fail, moment
from navarch.cli.plugin_dirs import failure_in, plugin_dirs_option
from navarch.cli.policy.mistakes import MISTAKES, tell
from navarch.cli.tables.document import print_document
from navarch.cli.tables.explanation import show_explanation, show_node, show_queue
from navarch.cli.tables.text import output_console
from navarch.engine.policy import PRESETS, PolicyError
from navarch.engine.registry import RegistrationError
from navarch.explanation.awaited_group import waits_for_group
from navarch.explanation.explain import Reading, explain_read, reading
from navarch.explanation.names import NotFound, is_kind, names_in, near
from navarch.explanation.node_report import explain_node
from navarch.explanation.queues import explain_queue
from navarch.explanation.recorded import explain_recorded
from navarch.explanation.result import Explanation, NodeExplanation, QueueExplanation
from navarch.installed import installed
from navarch.job_history import HistoryError, read_history
from navarch.kube.errors import ConfigError, KubeError
from navarch.offline.node_metrics import metrics_file
from navarch.offline.plan import PlanError
from navarch.offline.replay import RecordingError, read
from navarch.views.published_state import StateAddress
from navarch.views.running_policy import running_policy

EXAMPLES = """\b
Examples:
  navarch explain ml/bert                               # in the cluster of the kubeconfig
  navarch explain sweep -f examples/two-queues.yaml     # in files
  navarch explain new -f new-job.yaml --cluster         # before it is submitted
  navarch explain queue/research -f examples/two-queues.yaml
  navarch explain bert --record cycle-000042.json.gz    # in a recorded cycle
"""
_REPORTS = ("queue", "node")
"""Kinds that have no namespace."""
Answer = Explanation | QueueExplanation | NodeExplanation


@click.command(epilog=EXAMPLES)
@click.argument("words", nargs=-1, required=True, metavar="[NAMESPACE/]JOB|pod/NAME|queue/NAME|node/NAME")
@click.option("-f", "--filename", "paths", multiple=True, metavar="FILE|DIR|-", help="Manifests instead of a cluster; may repeat.")
@click.option("--cluster", is_flag=True, help="With -f: the objects of the cluster as well.")
@click.option("--record", type=click.Path(exists=True, dir_okay=False, path_type=Path), help="A recorded cycle instead.")
@click.option("-n", "--namespace", help="Namespace of the job.  [that of the name, or of the only such job]")
@click.option("--kubeconfig", type=click.Path(path_type=Path), help="Cluster to look at; else as kubectl finds it.")
@click.option("--context", help="Context of the kubeconfig.")
@click.option(
    "--policy", metavar="FILE|PRESET", help=f"One of {', '.join(PRESETS)}, or a file.  [that of the running scheduler; navarch]"
)
@state_option
@click.option("--scheduler-name", "scheduler_names", multiple=True, metavar="NAME", help="Whose pending pods; may repeat.")
@click.option("--now", type=moment, metavar="TIME", help="The moment of the cycle.  [in files: the newest time in them]")
@click.option("--metrics", metavar="FILE", help="Load of nodes, for policies that read it; see docs/plan.md.")
@click.option("--trials", type=click.IntRange(min=1), default=200, show_default=True, help="Run the scheduler at most so often.")
@click.option("--seconds", type=click.FloatRange(min=0.0), default=5.0, show_default=True, help="Search for about so long.")
@click.option("--ask-extenders", is_flag=True, help="Ask the HTTP extenders of the policy in every trial.")
@history_option
@click.option("-o", "--output", type=click.Choice(("text", "json", "yaml")), default="text", show_default=True)
@click.option("--keep-going", is_flag=True, help="Explain without the objects that are not valid.")
@namespace_as_queue_option
@node_pool_options
@plugin_dirs_option
@limits_cycles
def explain(
    words: tuple[str, ...],
    paths: tuple[str, ...],
    cluster: bool,
    record: Path | None,
    namespace: str | None,
    kubeconfig: Path | None,
    context: str | None,
    policy: str | None,
    state: str,
    scheduler_names: tuple[str, ...],
    now: float | None,
    metrics: str | None,
    trials: int,
    seconds: float,
    ask_extenders: bool,
    history: Path | None,
    output: str,
    keep_going: bool,
    namespace_as_queue: bool,
    node_pool_label_key: str,
    partition_label_value: str,
    plugin_dirs: tuple[Path, ...],
) -> None:
    """Say why a job waits, what is before it, and what would start it.

    A job is a PodGroup, a workload, or pod/NAME. queue/NAME says what a queue is owed and how that came about, node/NAME why a node
    takes nothing. Every answer is proved by running the scheduler on the changed objects, as `navarch plan` does. Exits with 1 where
    there is no such job, with 2 where the input cannot be used.
    """
    if record is not None and (paths or cluster):
        raise click.UsageError("--record stands alone: a recorded cycle has all its objects in it")
    check_node_pool(node_pool_label_key, partition_label_value)
    name = _in_namespace(_one_name(words), namespace)
    try:
        loads = metrics_file(metrics) if metrics else None
    except ObjectError as error:
        raise click.UsageError(str(error)) from None
    try:
        with _progress() as progress:
            if record is not None:
                found: Answer = explain_recorded(
                    read(record), name, policy, trials, seconds, plugin_dirs=plugin_dirs, progress=progress, history=history or ()
                )
            else:
                address = StateAddress.parse(state)
                source = read_source(
                    paths, cluster or not paths, kubeconfig, context, address, scheduler_names, now, with_waiting=True
                )
                running = running_policy(policy, source.state, installed(plugin_dirs))
                source.notes += running.notes
                namespace_as_queue = namespace_as_queue or running.parameters.namespace_as_queue
                pool_key, pool = running.node_pool(node_pool_label_key, partition_label_value)
                if source.unread and not keep_going:
                    raise PlanError(source.unread)
                going = keep_going or cluster or not paths  # objects of a cluster are not the user's to mend
                kind, _, rest = name.partition("/")
                past = read_history(history) if history is not None else ()
                with collector_paused():
                    heap = reading(
                        source.documents,
                        running.policy,
                        source.now,
                        source.scheduler_names,
                        going,
                        namespace_as_queue,
                        plugin_dirs,
                        loads,
                        pool_key,
                        pool,
                        ask_extenders,
                    )
                gc.freeze()  # what was read stays: a collection during the search would look at all of it
                if kind in _REPORTS and rest:
                    found = _of_queue(heap, rest) if kind == "queue" else _of_node(heap, rest)
                    found.notes += heap.rules.not_asked
                else:
                    try:
                        found = explain_read(heap, name, trials, seconds, progress=progress, history=past, may_fork=True)
                    except NotFound as error:
                        told = "" if paths else _standing(name, kubeconfig, context)
                        raise (NotFound(f"{name}: {told}") if told and not error.is_answer else error) from None
                    if found.cause.code == "NoPods" and not paths and (told := _standing(name, kubeconfig, context)):
                        found.cause.message = told
                    known = source.waiting.jobs if source.waiting is not None else ()
                    found.notes += [leaders_view(each) for each in known if each.job == found.job][:1]
                    if cluster or not paths:
                        found.notes += waits_for_group(heap, found.job, installed=source.kai_is_installed)
                found.notes += source.notes
    except ConfigError as error:
        raise click.UsageError(f"{error}{'' if kubeconfig or context else reminder()}") from None
    except (RecordingError, HistoryError) as error:
        raise click.UsageError(str(error)) from None
    except NotFound as error:
        raise click.ClickException(str(error)) from None
    except KubeError as error:
        raise cluster_failure(error, kubeconfig, context) from None
    except PlanError as error:
        fail(error.mistakes)
    except PolicyError as error:
        tell(error, policy or "navarch", plugin_dirs)
        raise SystemExit(MISTAKES) from None
    except RegistrationError as error:
        raise click.UsageError(str(error)) from None
    except Exception as error:
        failed = failure_in(plugin_dirs, error)
        if failed is None:
            raise  # ours: the traceback is what we need of a report
        raise click.ClickException(f"a plugin failed: {failed}") from error
    _print(found, output)


def _one_name(words: Sequence[str]) -> str:
    """`queue/research`, also where it was given as two words."""
    if len(words) == 2 and (words[0] in _REPORTS or is_kind(words[0])):
        return "/".join(words)
    if len(words) > 1:
        raise click.UsageError(f"one job is explained at a time, found {', '.join(words)}")
    return words[0]


def _in_namespace(name: str, namespace: str | None) -> str:
    """The name with a namespace that was given beside it, as kubectl takes it. Queues and nodes have none."""
    *kind, plain = name.split("/")
    if not namespace or kind[:1] in ([each] for each in _REPORTS):
        return name
    if kind and not is_kind(kind[0]) and kind[-1] != namespace:
        raise click.UsageError(f"{name} is in namespace {kind[-1]}, not in {namespace}")
    return "/".join([*(each for each in kind if is_kind(each)), namespace, plain])


def _standing(name: str, kubeconfig: Path | None, context: str | None) -> str:
    """Why the workload of that name has no pods; empty: that is not known."""
    *before, plain = name.split("/")
    return standing_of(plain, next((each for each in before if not is_kind(each)), None), kubeconfig, context)


def _of_queue(heap: Reading, name: str) -> QueueExplanation:
    known = sorted(heap.run.cluster.queues)
    if name not in known:
        raise NotFound(f"there is no queue {name!r} among {len(known)} queues", near(name, known))
    found = explain_queue(heap.run, name)
    found.names = names_in(heap.run.cluster, (each.job for each in found.waiting))
    return found


def _of_node(heap: Reading, name: str) -> NodeExplanation:
    known = sorted(heap.run.cluster.nodes.rows.of)
    if name not in known:
        raise NotFound(f"there is no node {name!r} among {len(known)} nodes", near(name, known))
    found = explain_node(heap.run, name)
    found.names = names_in(heap.run.cluster, (job for each in found.waiting for job in each.jobs))
    return found


def _print(found: Answer, output: str) -> None:
    if print_document(found.to_dict(), output):
        return
    console = output_console()
    match found:
        case Explanation():
            show_explanation(console, found)
        case QueueExplanation():
            show_queue(console, found)
        case NodeExplanation():
            show_node(console, found)


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
