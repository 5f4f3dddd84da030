"""What `navarch plan --cluster` decides for: the objects of the live cluster and of files, under the policy that runs there."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import click

from navarch.cli.cluster.embedded_kubeconfig import reminder
from navarch.cli.cluster.failure import cluster_failure
from navarch.cli.cluster.source import Source, read_source
from navarch.cli.policy.mistakes import MISTAKES, tell
from navarch.engine.policy import PolicyError
from navarch.engine.registry import RegistrationError
from navarch.installed import installed
from navarch.kube.errors import ConfigError, KubeError
from navarch.views.published_state import StateAddress
from navarch.views.running_policy import RunningPolicy, running_policy


@dataclass(frozen=True)
class PlannedCluster:
    source: Source
    running: RunningPolicy


def planned_cluster(
    paths: tuple[str, ...],
    policy: str | None,
    kubeconfig: Path | None,
    context: str | None,
    state: str,
    scheduler_names: tuple[str, ...],
    now: float | None,
    plugin_dirs: tuple[Path, ...],
) -> PlannedCluster:
    """What was not seen, and a policy that differs from the running one, is told on standard error."""
    try:
        source = read_source(paths, True, kubeconfig, context, StateAddress.parse(state), scheduler_names, now)
        running = running_policy(policy, source.state, installed(plugin_dirs))
    except ConfigError as error:
        raise click.UsageError(f"{error}{'' if kubeconfig or context else reminder()}") from None
    except KubeError as error:
        raise cluster_failure(error, kubeconfig, context) from None
    except PolicyError as error:
        tell(error, policy or "the policy", plugin_dirs)
        raise SystemExit(MISTAKES) from None
    except RegistrationError as error:
        raise click.UsageError(str(error)) from None
    for note in (*source.notes, *running.notes):
        click.echo(note, err=True)
    return PlannedCluster(source, running)
