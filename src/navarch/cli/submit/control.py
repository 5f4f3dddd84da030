"""`navarch cancel`, `suspend` and `resume`: what a user does to a job that is there."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import click

from navarch.cli.cluster.embedded_kubeconfig import reminder
from navarch.cli.cluster.failure import cluster_failure
from navarch.cli.submit.objects import command
from navarch.cli.submit.workloads import Found, find
from navarch.kube.client import Client, PatchType
from navarch.kube.connect import connect
from navarch.kube.errors import ConfigError, KubeError, NotFound
from navarch.kube.resources import Resource
from navarch.views.job_names import VOLCANO_JOB
from navarch.views.workloads import ended

COMMANDS = Resource("bus.volcano.sh", "v1alpha1", "commands")
Act = Callable[[Client, Found], Awaitable[str]]
"""Does it to one job; returns the word for what was done."""


def _options(command_of: Callable[..., None]) -> Callable[..., None]:
    decorated = command_of
    for option in reversed(
        (
            click.argument("jobs", nargs=-1, required=True, metavar="JOB..."),
            click.option("-n", "--namespace", help="Namespace of the jobs.  [that of the context]"),
            click.option("--kubeconfig", type=click.Path(path_type=Path), help="Cluster to use; else as kubectl finds it."),
            click.option("--context", help="Context of the kubeconfig."),
        )
    ):
        decorated = option(decorated)
    return decorated


def _each(act: Act, jobs: tuple[str, ...], namespace: str | None, kubeconfig: Path | None, context: str | None) -> None:
    """Find all jobs first, so that a mistake in a name changes nothing."""

    async def work() -> None:
        endpoint = connect(kubeconfig, context)
        async with Client(endpoint) as client:
            found = [await find(client, job, namespace or endpoint.namespace) for job in jobs]
            for each in found:
                click.echo(f"{each} {await act(client, each)}")

    try:
        asyncio.run(work())
    except ConfigError as error:
        raise click.UsageError(f"{error}{'' if kubeconfig or context else reminder()}") from None
    except KubeError as error:
        raise cluster_failure(error, kubeconfig, context) from None


@click.command(epilog="\b\nExamples:\n  navarch cancel train\n  navarch cancel volcanojob/train job/etl -n ml\n")
@_options
def cancel(**given: Any) -> None:
    """End jobs: delete the workload with its pods and its PodGroup.

    A name means a Volcano Job, a Job, a workload of Kubeflow, Ray, JobSet or LeaderWorkerSet, a Deployment, StatefulSet, ReplicaSet or
    Pod. KIND/NAME says which.
    """

    async def act(client: Client, found: Found) -> str:
        name, namespace, uid = (found.obj["metadata"][each] for each in ("name", "namespace", "uid"))
        await client.delete(found.kind.resource, name, namespace=namespace, uid=uid, propagation="Background")
        return "cancelled"

    _each(act, **given)


@click.command(epilog="\b\nExamples:\n  navarch suspend train\n  navarch resume train\n")
@_options
def suspend(**given: Any) -> None:
    """Remove the pods of jobs until they are resumed.

    Works for Volcano Jobs (by a Command to Volcano's controller), Jobs, JobSets, RayClusters and Kubeflow's jobs.
    """
    _each(functools.partial(_set_suspended, suspended=True), **given)


@click.command(epilog="\b\nExamples:\n  navarch resume train\n")
@_options
def resume(**given: Any) -> None:
    """Let suspended jobs run again: they wait for their pods to be placed, like a new job."""
    _each(functools.partial(_set_suspended, suspended=False), **given)


async def _set_suspended(client: Client, found: Found, *, suspended: bool) -> str:
    name, namespace = found.obj["metadata"]["name"], found.obj["metadata"]["namespace"]
    word = "suspended" if suspended else "resumed"
    over, state = ended(found.obj), ((found.obj.get("status") or {}).get("state") or {}).get("phase")
    if over is not None and state != "Aborted":  # a Volcano Job that is suspended counts as ended, and can be resumed
        return f"has {'completed' if over else 'failed'}: there is nothing to {'suspend' if suspended else 'resume'}"
    if found.kind.kind == VOLCANO_JOB:
        if (state in ("Aborting", "Aborted")) == suspended:
            return f"is {word} already" if suspended else "is not suspended"
        try:
            await client.create(COMMANDS, command("AbortJob" if suspended else "ResumeJob", found.obj), namespace=namespace)
        except NotFound:
            raise click.ClickException(f"{found}: the cluster does not serve {COMMANDS}, by which Volcano's Jobs are {word}") from None
        return word
    if not found.kind.suspend:
        kinds = "Volcano Jobs, Jobs, JobSets, RayClusters and Kubeflow's jobs"
        raise click.ClickException(f"{found}: a {found.kind.kind} cannot be suspended, only {kinds} can; scale it to 0 instead")
    body: Any = suspended
    for part in reversed(found.kind.suspend):
        body = {part: body}
    await client.patch(found.kind.resource, name, body, PatchType.MERGE, namespace=namespace)
    return word
