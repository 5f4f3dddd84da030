"""What `navarch plan --cluster` decides for: the objects of the live cluster and of files, under the policy that runs there."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from pathlib import Path

import click

from navarch.cli.cluster.embedded_kubeconfig import reminder
from navarch.cli.cluster.failure import cluster_failure
from navarch.cli.cluster.source import Source, read_source
from navarch.cli.policy.mistakes import MISTAKES, tell
from navarch.engine.policy import Policy, PolicyError, load
from navarch.engine.registry import RegistrationError, Registry
from navarch.installed import installed
from navarch.kube.client import Client
from navarch.kube.connect import connect
from navarch.kube.errors import ConfigError, KubeError
from navarch.live.ops.shard_policy import read_shard
from navarch.offline.policies import read_policy
from navarch.views.published_state import Parameters, StateAddress
from navarch.views.running_policy import RunningPolicy, running_policy


@dataclass(frozen=True)
class PlannedCluster:
    source: Source
    running: RunningPolicy


def planned_cluster(
    paths: tuple[str, ...],
    policy: str | None,
    shard: str,
    kubeconfig: Path | None,
    context: str | None,
    state: str,
    scheduler_names: tuple[str, ...],
    now: float | None,
    plugin_dirs: tuple[Path, ...],
) -> PlannedCluster:
    """What was not seen, and a policy that differs from the running one, is told on standard error. `shard`: KAI's SchedulingShard of
    the cluster, or of the file that `policy` names, is the policy."""
    try:
        source = read_source(paths, True, kubeconfig, context, StateAddress.parse(state), scheduler_names, now)
        registry = installed(plugin_dirs)
        if shard:
            parameters = source.state.parameters if source.state is not None else Parameters()
            text = None if policy else asyncio.run(_shard_text(kubeconfig, context, shard))
            running = RunningPolicy(_of_shard(policy, shard, text, registry), parameters, (), ())
        else:
            running = running_policy(policy, source.state, registry)
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


async def _shard_text(kubeconfig: Path | None, context: str | None, shard: str) -> str:
    async with Client(connect(kubeconfig, context)) as client:
        return await read_shard(client, shard)


def _of_shard(policy: str | None, shard: str, text: str | None, registry: Registry) -> Policy:
    if text is None:
        return read_policy(policy, registry, shard)
    return load(text, registry.catalogue(), f"SchedulingShard/{shard}", shard=shard)
