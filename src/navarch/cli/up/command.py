"""`navarch up`: an embedded cluster with a scheduler, a sample workload and a live view."""

from __future__ import annotations

import errno
from pathlib import Path
from typing import Any

import click

from navarch.cli.cluster.metrics_names_option import metrics_names_option
from navarch.cli.cluster.scheduler_flags import SchedulerCommand
from navarch.cli.namespace_queues import namespace_as_queue_option
from navarch.cli.plugin_dirs import plugin_dirs_option
from navarch.cli.policy.shard_option import shard_option
from navarch.live.ops.event_loop import run_in_event_loop

DIALECTS = ("volcano", "kai", "kube-batch", "coscheduling", "kubernetes")
EXAMPLES = """\b
Examples:
  navarch up                                   # a small GPU cluster and a workload that shows what scheduling does
  navarch up --nodes 100 --gpus 8 --no-sample  # an empty one
  navarch up --until-settled --speed 20        # run the sample, print a summary, stop
  navarch up --data-dir ./cluster              # the state survives a restart
"""


@click.command(cls=SchedulerCommand, epilog=EXAMPLES)
@click.option("--nodes", type=click.IntRange(min=0), default=4, show_default=True, help="How many hollow nodes.")
@click.option("--gpus", type=click.IntRange(min=0), default=8, show_default=True, help="GPUs of each node.")
@click.option(
    "--node-file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Nodes from a file instead: Node, NodeSet, or List.",
)
@click.option("--data-dir", type=click.Path(file_okay=False, path_type=Path), help="Keep the cluster's state here.")
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="Port of the API server; 0: any free one.")
@click.option("--kubeconfig", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE", help="Where to write the kubeconfig.")
@click.option("--no-sample", is_flag=True, help="Start without the sample workload.")
@click.option("--speed", type=click.FloatRange(min=0.01), default=1.0, show_default=True, help="Factor of the cluster's time.")
@click.option("--policy", metavar="FILE|PRESET", help="Policy of the scheduler.  [default: navarch]")
@shard_option("in the cluster of --data-dir, or in the file of --policy,")
@plugin_dirs_option
@namespace_as_queue_option
@metrics_names_option
@click.option("--web-port", type=click.IntRange(0, 65535), default=0, help="Port of the dashboard; 0: any free one.")
@click.option("--no-web", is_flag=True, help="Start without the dashboard.")
@click.option(
    "--dialect", type=click.Choice(DIALECTS), help="What `kubectl get podgroup|pg|queue` means.  [kai under its policy, else volcano]"
)
@click.option("--until-settled", is_flag=True, help="Stop when the sample has settled, with a summary.")
def up(no_sample: bool, no_web: bool, **given: Any) -> None:
    """Start an embedded cluster with a scheduler in it.

    One process runs a Kubernetes API server on loopback, hollow nodes (pods start and end there, but run nothing), controllers
    and the live scheduler. Use kubectl with the printed kubeconfig, and open the printed address of the dashboard in a browser.
    """
    if given["until_settled"] and no_sample:
        raise click.UsageError("--until-settled waits for the sample: it cannot go with --no-sample")
    if given["shard"] and given["policy"] is None and given["data_dir"] is None:
        raise click.UsageError("--shard: expected --data-dir with a cluster that has the SchedulingShard, or --policy with a file")
    given["policy"] = given["policy"] or (f"SchedulingShard/{given['shard']}" if given["shard"] else "navarch")
    from navarch.cli.policy.mistakes import MISTAKES, tell
    from navarch.cli.up.cluster import UpOptions
    from navarch.cli.up.kubeconfig_file import KubeconfigInUse
    from navarch.cli.up.running import run_cluster
    from navarch.embedded.node_sets import NodeSetError
    from navarch.embedded.storage.sqlite_log import DataDirInUse, set_aside_if_broken
    from navarch.engine.policy import PolicyError
    from navarch.engine.registry import RegistrationError

    options = UpOptions(sample=not no_sample, web=not (no_web or given["until_settled"]), **given)
    if options.data_dir is not None and (said := set_aside_if_broken(options.data_dir / "store.db")):
        click.echo(said, err=True)
    try:
        code = run_in_event_loop(run_cluster(options))
    except PolicyError as error:
        tell(error, options.policy, options.plugin_dirs)
        raise SystemExit(MISTAKES) from None
    except (NodeSetError, RegistrationError) as error:
        raise click.UsageError(str(error)) from None
    except KubeconfigInUse as error:
        raise click.ClickException(str(error)) from None
    except DataDirInUse as error:
        raise click.ClickException(f"{error}; another `navarch up` runs with it: stop that one, or name another --data-dir") from None
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            raise click.ClickException(f"port {options.port} of this machine is in use already; --port 0 takes any free one") from None
        raise click.ClickException(f"the cluster cannot start: {error}") from None
    raise SystemExit(code)
