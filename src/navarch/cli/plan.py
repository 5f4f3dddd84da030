"""`navarch plan`: what the scheduler would decide for these manifests, as tables for people or as JSON for programs."""

from __future__ import annotations

import gc
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn

import click

from navarch.apis.errors import ObjectError
from navarch.cli.cluster.state_option import state_option
from navarch.cli.cycle_timeout import limits_cycles
from navarch.cli.namespace_queues import namespace_as_queue_option
from navarch.cli.node_pool import check_node_pool, node_pool_options
from navarch.cli.plugin_dirs import failure_in, plugin_dirs_option
from navarch.cli.policy.mistakes import MISTAKES, tell
from navarch.cli.policy.shard_option import shard_option, shard_policy
from navarch.cli.scheduler_names import waiting_for_others
from navarch.cli.tables.document import print_document
from navarch.cli.tables.plan import show
from navarch.cli.watched_files import watched
from navarch.engine.policy import PRESETS, Policy, PolicyError
from navarch.engine.policy.kai_shard import GROUP
from navarch.engine.registry import RegistrationError
from navarch.explanation.policy_difference import PolicyDifference, policy_difference
from navarch.offline.inputs import read_moment
from navarch.offline.manifests import read_paths
from navarch.offline.node_metrics import metrics_file
from navarch.offline.plan import Plan, PlanError
from navarch.offline.plan import plan as run_plan

EXAMPLES = """\b
Examples:
  navarch plan -f examples/two-queues.yaml
  navarch plan --cluster -f new-job.yaml       # what would happen to it now, in the cluster of the kubeconfig
  kubectl get nodes,pods,priorityclasses -A -o yaml | navarch plan -f - -f new-job.yaml   # PodGroups and Queues too, by full name
  navarch plan -f cluster/ -f new-job.yaml --cycles 3 -o json
  navarch plan -f examples/two-queues.yaml --diff volcano
  navarch plan -f cluster/ --policy usage.yaml --metrics load.yaml
  navarch plan -f cluster/ --shard default     # as KAI's scheduler of that SchedulingShard
"""


def moment(text: str) -> float:
    """Seconds since the epoch, or a time such as 2026-01-01T12:00:00Z (UTC if no zone is given)."""
    try:
        return read_moment(text)
    except ValueError:
        expected = "seconds since the epoch or a time such as 2026-01-01T12:00:00Z"
        raise click.BadParameter(f"found {text!r}, expected {expected}") from None


@contextmanager
def collector_paused() -> Iterator[None]:
    """Reading makes many objects and no garbage. Without the collector the command takes 10 to 20 % less time (40,000 pods in JSON).
    Only a command may do this: it owns its process."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


@click.command(epilog=EXAMPLES)
@click.option("-f", "--filename", "paths", multiple=True, metavar="FILE|DIR|-", help="Manifests; may repeat.")
@click.option("--cluster", is_flag=True, help="The objects of the cluster of the kubeconfig as well, and its scheduler's policy.")
@click.option("--kubeconfig", type=click.Path(path_type=Path), help="With --cluster: the cluster; else as kubectl finds it.")
@click.option("--context", help="Context of the kubeconfig.")
@state_option
@click.option(
    "--policy",
    metavar="FILE|PRESET",
    help=f"One of {', '.join(PRESETS)}, or a file.  [navarch; with --cluster that of the running scheduler]",
)
@shard_option("in the input, or in the file of --policy,")
@click.option("--cycles", type=click.IntRange(min=1), default=1, show_default=True, help="How many cycles to run.")
@click.option(
    "--scheduler-name",
    "scheduler_names",
    multiple=True,
    metavar="NAME",
    help="Decide only its pods; may repeat.  [all; with --cluster those of its scheduler]",
)
@click.option("--now", type=moment, metavar="TIME", help="The moment of the cycle.  [newest time in the input]")
@click.option("--metrics", metavar="FILE", help="Load of nodes, for policies that read it; see docs/plan.md.")
@click.option("-o", "--output", type=click.Choice(("table", "json", "yaml")), default="table", show_default=True)
@click.option("--keep-going", is_flag=True, help="Leave out objects that are not valid.")
@namespace_as_queue_option
@node_pool_options
@plugin_dirs_option
@click.option("--diff", metavar="FILE|PRESET", help="Show what another policy would decide differently.")
@click.option("-v", "--verbose", is_flag=True, help="Show timings and every reason of every job.")
@watched
@limits_cycles
@collector_paused()
def plan(
    paths: tuple[str, ...],
    cluster: bool,
    kubeconfig: Path | None,
    context: str | None,
    state: str,
    policy: str | None,
    shard: str,
    cycles: int,
    scheduler_names: tuple[str, ...],
    now: float | None,
    metrics: str | None,
    output: str,
    keep_going: bool,
    namespace_as_queue: bool,
    node_pool_label_key: str,
    partition_label_value: str,
    plugin_dirs: tuple[Path, ...],
    diff: str | None,
    verbose: bool,
) -> None:
    """Decide for manifests in files, without a cluster, or with the objects of a cluster (--cluster). Nothing is written there.

    Reads YAML and JSON, several documents in a file, lists as kubectl prints them, whole directories, or standard input (-).
    Jobs, Deployments, ReplicaSets, StatefulSets, DaemonSets, Volcano Jobs and workloads of Kubeflow, Ray, JobSet and
    LeaderWorkerSet are expanded into their pods, unless these are in the input. Exits with 2 and lists every mistake
    if something in the input is not valid.
    """
    if not paths and not cluster:
        raise click.UsageError("expected -f FILE with manifests, or --cluster")
    if (kubeconfig or context or state) and not cluster:
        raise click.UsageError("--kubeconfig, --context, --state: expected --cluster beside them")
    check_node_pool(node_pool_label_key, partition_label_value)
    asked = policy or "navarch"
    chosen: str | Policy = asked
    of_shard: Policy | None = None
    names: Sequence[str] | None = scheduler_names or None
    if cluster:
        from navarch.cli.cluster.planned_cluster import planned_cluster

        found = planned_cluster(paths, policy, shard, kubeconfig, context, state, scheduler_names, now, plugin_dirs)
        documents, unread, names, now = found.source.documents, found.source.unread, found.source.scheduler_names, found.source.now
        chosen, namespace_as_queue = found.running.policy, namespace_as_queue or found.running.parameters.namespace_as_queue
        node_pool_label_key, partition_label_value = found.running.node_pool(node_pool_label_key, partition_label_value)
        keep_going = True  # objects of a cluster are not the user's to mend
    else:
        documents, unread = read_paths(paths)
        try:
            of_shard = shard_policy(policy, shard, documents, plugin_dirs)
        except PolicyError as error:
            tell(error, policy or "the input", plugin_dirs)
            raise SystemExit(MISTAKES) from None
        chosen = of_shard or chosen
    try:
        loads = metrics_file(metrics) if metrics else None
    except ObjectError as error:
        raise click.UsageError(str(error)) from None
    try:
        if unread and not keep_going:
            # Report the mistakes of the other files as well, then fail.
            rest = run_plan(documents, chosen, keep_going=True, plugin_dirs=plugin_dirs)
            raise PlanError(unread + rest.mistakes)

        def planned(chosen: str | Policy) -> Plan:
            return run_plan(
                documents,
                chosen,
                cycles,
                names,
                now,
                keep_going=keep_going,
                namespace_as_queue=namespace_as_queue,
                node_pool_label_key=node_pool_label_key,
                partition_label_value=partition_label_value,
                plugin_dirs=plugin_dirs,
                metrics=loads,
            )

        result = planned(chosen)
        asked = diff or asked
        other = planned(diff) if diff else None
    except PlanError as error:
        fail(error.mistakes)
    except PolicyError as error:
        for unreadable in unread:
            click.echo(str(unreadable), err=True)
        tell(error, asked, plugin_dirs)
        raise SystemExit(MISTAKES) from None
    except RegistrationError as error:
        raise click.UsageError(str(error)) from None
    except Exception as error:
        failed = failure_in(plugin_dirs, error)
        if failed is None:
            raise  # not from a plugin: a bug report needs the traceback
        raise click.ClickException(f"a plugin failed: {failed}") from error
    if of_shard is not None:
        result.ignored = {kind: count for kind, count in result.ignored.items() if not kind.startswith(GROUP)}
    _remark(result, [*unread, *result.mistakes])
    if result.scheduler_names is not None:
        for line in waiting_for_others((each.manifest for each in documents), result.scheduler_names):
            click.echo(line, err=True)
    if not any(each.manifest.get("kind") == "Node" for each in documents):
        click.echo("no Node is in the input: nothing can be placed", err=True)
    if other is not None:
        _print_difference(policy_difference(result, other), output, diff or "")
        return
    if output == "table":
        show(result, verbose=verbose)
    else:
        print_document(result.to_dict(), output, sort_keys=True)


def _print_difference(found: PolicyDifference, output: str, other: str) -> None:
    if print_document(found.to_dict(), output, sort_keys=True):
        return
    lines = [f"starts: {each}" for each in found.starts]
    lines += [f"starts no longer: {each}" for each in found.starts_no_longer]
    lines += [f"evicts: {each}" for each in found.evicts]
    lines += [f"evicts no longer: {each}" for each in found.evicts_no_longer]
    lines += [f"places elsewhere: {each.pod} on {each.after} instead of {each.before}" for each in found.moves]
    click.echo("\n".join(lines or [f"{other} decides the same"]))


def fail(mistakes: list[ObjectError]) -> NoReturn:
    for mistake in mistakes:
        click.echo(str(mistake), err=True)
    count = len(mistakes)
    ending = "s" if count > 1 else ""
    click.echo(f"{count} mistake{ending} in the input; --keep-going decides without what is wrong", err=True)
    raise SystemExit(MISTAKES)


def _remark(result: Plan, left_out: list[ObjectError]) -> None:
    """Print what was not used to standard error, so that programs can read standard output."""
    for mistake in left_out:
        click.echo(f"left out: {mistake}", err=True)
    for warning in result.warnings:
        click.echo(f"warning: {warning}", err=True)
    if result.ignored:
        kinds = ", ".join(f"{count} {kind}" for kind, count in result.ignored.items())
        click.echo(f"not used in scheduling: {kinds}", err=True)
