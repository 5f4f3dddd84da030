"""`navarch run`: schedule the pods of a cluster."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import socket
from pathlib import Path
from typing import Any

import click
from msgspec.structs import replace

from navarch.cli.cluster.metrics_names_option import metrics_names_option
from navarch.cli.cluster.scheduler_flags import SchedulerCommand
from navarch.cli.namespace_queues import namespace_as_queue_option
from navarch.cli.node_pool import check_node_pool, node_pool_options
from navarch.cli.plugin_dirs import plugin_dirs_option
from navarch.cli.policy.shard_option import scheduler_of_shard, shard_option
from navarch.cli.scheduler_names import DEFAULT, names_default_scheduler
from navarch.cli.seconds import Seconds
from navarch.engine.policy import PolicyError
from navarch.engine.registry import RegistrationError
from navarch.kube.auth.incluster import in_cluster
from navarch.kube.connect import Endpoint, connect
from navarch.kube.errors import ConfigError, KubeError
from navarch.kube.listener import raise_descriptor_limit
from navarch.live.ops.election import check_times
from navarch.live.ops.event_loop import run_in_event_loop
from navarch.live.ops.log_lines import log_to_stderr
from navarch.live.run_options import RunOptions
from navarch.version import version

log = logging.getLogger("navarch")


_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


@click.command(cls=SchedulerCommand)
@click.option(
    "--kubeconfig",
    type=click.Path(path_type=Path),
    help="Cluster to schedule; else $KUBECONFIG, the pod's account, ~/.kube/config.",
)
@click.option("--context", help="Context of the kubeconfig.")
@click.option(
    "--policy",
    metavar="FILE|PRESET",
    help="Policy to run; a file is read again when it changes.  [default: navarch]",
)
@shard_option("in the cluster, or in the file of --policy,")
@click.option(
    "--scheduler-name",
    "scheduler_names",
    multiple=True,
    help="spec.schedulerName to serve; may repeat.  [default: navarch; with --shard the name of KAI's Config]",
)
@click.option("--listen", default="0.0.0.0:8080", show_default=True, metavar="ADDR", help="Health and metrics; empty for none.")
@click.option("--leader-elect/--no-leader-elect", default=True, show_default=True, help="One leader among replicas.")
@click.option("--lock-namespace", default="", help="Namespace of the Lease for leader election.  [default: our own]")
@click.option("--lock-name", help="Its name; those that share one take turns.  [default: navarch; with --shard navarch-SHARD]")
@click.option(
    "--lease-duration",
    type=Seconds(min=1),
    default=15.0,
    show_default=True,
    help="Seconds after which a leader that is not heard of is followed by another.",
)
@click.option(
    "--renew-deadline",
    type=Seconds(min=0.1),
    default=10.0,
    show_default=True,
    help="Seconds without renewal after which a leader stops; less than the lease's duration.",
)
@click.option(
    "--retry-period",
    type=Seconds(min=0.01),
    default=2.0,
    show_default=True,
    help="Seconds between two renewals of the lease; other replicas look at it four times as often.",
)
@click.option(
    "--period",
    type=Seconds(min=0.01),
    default=1.0,
    show_default=True,
    help="Seconds between cycles when nothing happens.",
)
@click.option(
    "--record",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="DIR",
    help="Save the cycles that decided something, for `navarch replay`.",
)
@click.option(
    "--history",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Keep which jobs came and how long they ran, for the start times of `navarch explain` and `navarch jobs --eta`.",
)
@click.option(
    "--record-annotation",
    "record_annotations",
    multiple=True,
    metavar="KEY",
    help="An annotation that recordings and /debug/snapshot keep besides those that rules read.",
)
@click.option("--tls-cert-file", "tls_certificate", type=_FILE, metavar="FILE", help="Serve health and metrics over TLS.")
@click.option("--tls-key-file", "tls_key", type=_FILE, metavar="FILE", help="The key of --tls-cert-file.")
@click.option("--protect-metrics", is_flag=True, help="/metrics needs a bearer token that may get that non-resource URL.")
@metrics_names_option
@click.option("--dry-run", is_flag=True, help="Decide and log beside the scheduler in charge, compare, write nothing.")
@click.option(
    "--report",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE.html|FILE.json",
    help="With --dry-run: how its decisions compare with those of the scheduler in charge; written each minute.",
)
@click.option(
    "--ask-extenders",
    is_flag=True,
    help="With --dry-run: ask the HTTP extenders of the policy. They then hear of placements that are not made.",
)
@click.option("--log-format", type=click.Choice(("text", "json")), default="text", show_default=True)
@click.option("--log-level", type=click.Choice(("debug", "info", "warning", "error")), default="info", show_default=True)
@namespace_as_queue_option
@node_pool_options
@plugin_dirs_option
@click.option(
    "--gang-timeout",
    type=Seconds(min=1),
    default=120.0,
    show_default=True,
    help="Seconds after which a gang that is bound in part is released.",
)
@click.option(
    "--cycle-timeout",
    type=Seconds(min=0),
    default=8.0,
    show_default=True,
    help="Seconds after which a cycle is ended and the job at hand is set aside; 0: never.",
)
@click.option(
    "--crash-dir",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="DIR",
    help="Keep which job is at hand: if a call that never returns ends the process, the next one sets that job aside.",
)
@click.option(
    "--gpu-sharing",
    type=click.Choice(("", "annotations")),
    default="",
    metavar="annotations",
    help="How shared GPUs are bound where no binder is installed.",
)
@click.option(
    "--bind-requests/--no-bind-requests",
    default=True,
    show_default=True,
    help="Hand pods of KAI's groups to KAI's binder where its BindRequest is served.",
)
def run(kubeconfig: Path | None, context: str | None, log_format: str, log_level: str, **given: Any) -> None:
    """Schedule the pods of a cluster until stopped.

    Serves pods whose spec.schedulerName is `navarch`, unless other names are given. SIGTERM finishes the writes in flight.
    The kubeconfig's proxy-url is used, or HTTPS_PROXY and NO_PROXY, as kubectl does.
    """
    log_to_stderr(log_format, log_level)
    raise_descriptor_limit()
    named = given["scheduler_names"]
    shard_of_cluster = bool(given["shard"]) and given["policy"] is None
    if given["policy"] is None:
        given["policy"] = f"SchedulingShard/{given['shard']}" if shard_of_cluster else "navarch"
    if given["lock_name"] is None:
        given["lock_name"] = f"navarch-{given['shard']}" if given["shard"] else "navarch"
    given["scheduler_names"] = named or ("navarch",)
    options = RunOptions(**given)
    if not all(options.scheduler_names):
        raise click.UsageError("--scheduler-name: expected a name, found an empty one")
    if not options.lock_name:
        raise click.UsageError("--lock-name: expected a name, found an empty one")
    if (options.tls_certificate is None) != (options.tls_key is None):
        raise click.UsageError("--tls-cert-file, --tls-key-file: expected both or none")
    check_node_pool(options.node_pool_label_key, options.partition_label_value)
    if options.report is not None and not options.dry_run:
        raise click.UsageError("--report: expected --dry-run beside it, which compares with the scheduler in charge")
    if options.ask_extenders and not options.dry_run:
        raise click.UsageError("--ask-extenders: expected --dry-run beside it; a scheduler in charge always asks them")
    try:
        check_times(options.lease_duration, options.renew_deadline, options.retry_period)
    except ValueError as error:
        raise click.UsageError(f"--lease-duration, --renew-deadline, --retry-period: {error}") from None
    try:
        endpoint = connect(kubeconfig, context)
    except ConfigError as error:
        raise click.UsageError(str(error)) from None
    options = replace(options, reached_as=_pod(endpoint.namespace, options))
    from navarch.job_history import HistoryError
    from navarch.live.hangs.crash_folder import CrashFolder, CrashFolderError
    from navarch.live.hangs.process_guard import ProcessGuard
    from navarch.live.ops.dry_run.report import ReportError
    from navarch.live.ops.health import ListenError
    from navarch.live.ops.recording import FolderError
    from navarch.live.scheduler import Scheduler

    try:
        crash_folder = None if options.crash_dir is None else CrashFolder(options.crash_dir)
    except CrashFolderError as error:
        raise click.UsageError(f"--crash-dir {error}") from None

    async def main() -> None:
        nonlocal options
        try:
            text = await _shard_text(endpoint, options.shard) if shard_of_cluster else None
            if options.shard and not named:
                name = scheduler_of_shard(options.policy, text, options.shard, options.plugin_dirs)
                options = replace(options, scheduler_names=(name,))
            scheduler = Scheduler(endpoint, options, policy_text=text, crash_folder=crash_folder)
        except (PolicyError, RegistrationError) as error:
            raise click.UsageError(str(error)) from None
        except FolderError as error:
            raise click.UsageError(f"--record {error}") from None
        except ReportError as error:
            raise click.UsageError(f"--report {error}") from None
        except HistoryError as error:
            raise click.UsageError(f"--history: {error}") from None
        log.info(
            "navarch %s: policy %s, pods of %s, %s%s",
            version(),
            options.policy,
            ", ".join(options.scheduler_names),
            endpoint.server,
            ", dry run" if options.dry_run else "",
        )
        policy = scheduler.policy_file.policy
        meant = [*policy.profiles] or [policy.scheduler_name or str(policy.params.get("schedulerName") or "")]
        for name in meant:
            if name not in ("", *options.scheduler_names) and (name != DEFAULT or names_default_scheduler(policy.document)):
                log.warning("the policy names the scheduler %s, which is not served; add --scheduler-name %s", name, name)
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, scheduler.stop)
        try:
            await scheduler.run()
        except ListenError as error:
            raise click.UsageError(f"--listen {error}") from None
        log.info("stopped")

    with ProcessGuard(options.cycle_timeout, None if crash_folder is None else crash_folder.tracebacks):
        run_in_event_loop(main())
    if crash_folder is not None:
        crash_folder.close()


async def _shard_text(endpoint: Endpoint, shard: str) -> str:
    """KAI's SchedulingShard and Config of the cluster as text of a policy."""
    from navarch.kube.client import Client
    from navarch.live.ops.shard_policy import read_shard

    client = Client(endpoint)
    try:
        return await read_shard(client, shard)
    except KubeError as error:
        raise click.ClickException(f"--shard {shard}: {error}") from None
    finally:
        await client.close()


def _pod(namespace: str, options: RunOptions) -> str:
    """The pod that we run in, as the API server's proxy names it. Empty: none, or its endpoint is on loopback or not in the namespace
    where the state is published."""
    host = options.listen.rpartition(":")[0].strip("[]")
    if not in_cluster() or not options.listen or host in ("localhost", "127.0.0.1", "::1"):
        return ""
    if options.lock_namespace not in ("", namespace):
        return ""
    return f"pods/{os.environ.get('POD_NAME') or socket.gethostname()}"


if __name__ == "__main__":
    run()
