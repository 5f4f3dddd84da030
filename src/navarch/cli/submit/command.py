"""`navarch submit`: a gang from the command line, as a Volcano Job or as a Job with its PodGroup."""

from __future__ import annotations

import asyncio
import json
import shlex
import sys
import time
from collections.abc import Iterable
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import click
import yaml

from navarch.cli.cluster.embedded_kubeconfig import reminder
from navarch.cli.cluster.failure import cluster_failure
from navarch.cli.submit.follow import follow
from navarch.cli.submit.objects import JOBS, POD_GROUP_APIS, VOLCANO_JOBS, Submission, batch_job, one_pod, pod_group, volcano_job
from navarch.cli.submit.refusals import refused, unreadable
from navarch.cli.submit.workloads import WORKLOADS, Found
from navarch.engine.arguments import WrongKind, duration
from navarch.kube.client import Client
from navarch.kube.connect import connect
from navarch.kube.errors import AlreadyExists, ConfigError, KubeError
from navarch.kube.resources import Resource
from navarch.object_types import Manifest
from navarch.views.job_names import VOLCANO_JOB

EXAMPLES = """\b
Examples:
  navarch submit --name train --gang 8 --gpus 1 --queue research --image pytorch -- torchrun train.py
  navarch submit --name train --gang 8 --gpus 1 --image pytorch --wait -- sleep 60     # and say why it waits
  navarch submit --name try --gpu-fraction 0.5 --image jupyter --wait=started          # a part of a GPU
  navarch submit --name train --gang 8 --image pytorch --dry-run -o yaml > train.yaml  # only the manifests
"""
QUEUES = Resource("scheduling.volcano.sh", "v1beta1", "queues", namespaced=False)


def _pairs(ctx: click.Context, parameter: click.Parameter, given: tuple[str, ...]) -> dict[str, str]:
    found = {}
    for each in given:
        name, equals, value = each.partition("=")
        if not name or not equals:
            raise click.BadParameter(f"found {each!r}, expected NAME=VALUE", ctx, parameter)
        found[name] = value
    return found


def _seconds(ctx: click.Context, parameter: click.Parameter, given: str | None) -> float | None:
    if given is None:
        return None
    try:
        return duration(given)
    except WrongKind as error:
        raise click.BadParameter(f"found {given!r}, expected {error}", ctx, parameter) from None


def _duration(ctx: click.Context, parameter: click.Parameter, given: str) -> str:
    _seconds(ctx, parameter, given or None)
    return given


def _some_text(ctx: click.Context, parameter: click.Parameter, given: str) -> str:
    if not given.strip():
        raise click.BadParameter(f"found {given!r}, expected a text that is not empty", ctx, parameter)
    return given


@click.command(epilog=EXAMPLES)
@click.option("--name", required=True, help="Name of the job.")
@click.option("--image", required=True, callback=_some_text, help="Image of its container.")
@click.option("--gang", type=click.IntRange(min=1), default=1, show_default=True, help="Number of pods.")
@click.option("--min", "minimum", type=click.IntRange(min=1), help="Start with so many of them; the others join later.  [all]")
@click.option("--gpus", type=click.IntRange(min=0), default=0, help="GPUs of each pod.")
@click.option("--gpu-fraction", default="", metavar="PART", help="A part of a GPU for each pod, such as 0.5.")
@click.option("--cpu", default="", help="Processors of each pod, such as 4 or 500m.")
@click.option("--memory", default="", help="Memory of each pod, such as 16Gi.")
@click.option("--request", "requests", multiple=True, callback=_pairs, metavar="RESOURCE=AMOUNT", help="More of each pod; may repeat.")
@click.option("--queue", default="", help="Queue of the job.  [the cluster's default]")
@click.option("--priority-class", default="", help="PriorityClass of the job.")
@click.option("--env", "environment", multiple=True, callback=_pairs, metavar="NAME=VALUE", help="Environment; may repeat.")
@click.option("-l", "--label", "labels", multiple=True, callback=_pairs, metavar="NAME=VALUE", help="Labels; may repeat.")
@click.option("--node-selector", multiple=True, callback=_pairs, metavar="NAME=VALUE", help="Labels of nodes; may repeat.")
@click.option(
    "--duration",
    "lasts",
    default="",
    callback=_duration,
    metavar="TIME",
    help="How long it runs, such as 90m; some policies start short jobs first.",
)
@click.option("--scheduler-name", default="navarch", show_default=True)
@click.option("-n", "--namespace", help="Namespace of the job.  [that of the context]")
@click.option("--kind", type=click.Choice(("auto", "job", "volcanojob")), default="auto", show_default=True, help="What to create.")
@click.option("--dry-run", is_flag=True, help="Create nothing; print what would be created.")
@click.option("-o", "--output", type=click.Choice(("name", "yaml", "json")), default="name", show_default=True)
@click.option(
    "--wait", type=click.Choice(("started", "finished")), is_flag=False, flag_value="finished", help="Follow it with reasons."
)
@click.option("--timeout", callback=_seconds, metavar="TIME", help="With --wait: give up after this time; the job stays.")
@click.option("--kubeconfig", type=click.Path(path_type=Path), help="Cluster to use; else as kubectl finds it.")
@click.option("--context", help="Context of the kubeconfig.")
@click.argument("command", nargs=-1, metavar="[-- COMMAND [ARGUMENT]...]")
def submit(
    namespace: str | None,
    kind: str,
    dry_run: bool,
    output: str,
    wait: str | None,
    timeout: float | None,
    kubeconfig: Path | None,
    context: str | None,
    cpu: str,
    memory: str,
    requests: dict[str, str],
    lasts: str,
    **given: Any,
) -> None:
    """Submit a job: pods that start together or not at all.

    Creates a Volcano Job where the cluster serves it, else a Job with a PodGroup of an API that the cluster serves. Exits with 1 if a
    job that is waited for fails, or does not start or end in time.
    """
    if given["minimum"] is not None and given["minimum"] > given["gang"]:
        raise click.UsageError(f"--min {given['minimum']} is more than --gang {given['gang']}")
    if given["gpus"] and given["gpu_fraction"]:
        raise click.UsageError("--gpus and --gpu-fraction exclude each other: a GPU is whole or shared")
    wanted = {**({"cpu": cpu} if cpu else {}), **({"memory": memory} if memory else {}), **requests}

    def submission(where: str) -> Submission:
        return Submission(namespace=where, requests=wanted, duration=lasts, **given)

    try:
        endpoint = connect(kubeconfig, context)
    except ConfigError as error:
        if not dry_run:
            raise click.UsageError(f"{error}{'' if kubeconfig or context else reminder()}") from None
        made = _objects(submission(namespace or "default"), kind == "volcanojob", POD_GROUP_APIS[0])
        _refuse(unreadable(made, submission(namespace or "default")))
        _print(made, output if output != "name" else "yaml")
        return

    async def work() -> int:
        async with Client(endpoint) as client:
            return await _submit(client, submission(namespace or endpoint.namespace), kind, dry_run, output, wait, timeout)

    try:
        code = asyncio.run(work())
    except KubeError as error:
        raise cluster_failure(error, kubeconfig, context) from None
    except KeyboardInterrupt:
        click.echo(f"the job goes on; to end it: navarch cancel {shlex.quote(given['name'])}", err=True)
        code = 130
    raise SystemExit(code)


async def _submit(
    client: Client, wanted: Submission, kind: str, dry_run: bool, output: str, wait: str | None, timeout: float | None
) -> int:
    as_volcano = kind == "volcanojob" or (kind == "auto" and await client.discovery.serves(VOLCANO_JOBS))
    group_api = None if as_volcano else await client.discovery.first_served(POD_GROUP_APIS)
    if not as_volcano and group_api is None and wanted.least > 1:
        apis = ", ".join(api.group for api in POD_GROUP_APIS)
        raise click.ClickException(
            f"the cluster serves no PodGroup ({apis}), so no gang can start as one; `navarch install` brings them"
        )
    await _check_queue(client, wanted.queue)
    made = _objects(wanted, as_volcano, group_api)
    _refuse(unreadable(made, wanted))
    resource = VOLCANO_JOBS if as_volcano else JOBS
    resources = [resource, *([] if group_api is None else [group_api])]
    _refuse(await refused(client, list(zip(resources, made, strict=True)), one_pod(made[0]), wanted))
    if dry_run:
        _print(made, output if output != "name" else "yaml")
        return 0
    try:
        job = await client.create(resource, made[0], namespace=wanted.namespace)
    except AlreadyExists:
        raise click.ClickException(
            f"there is a job {wanted.name!r} in {wanted.namespace} already; `navarch cancel {wanted.name}` ends it"
        ) from None
    created = [{**job, "apiVersion": made[0]["apiVersion"], "kind": "Job"}]
    if group_api is not None:
        try:
            group = await client.create(group_api, pod_group(wanted, group_api, created[0]), namespace=wanted.namespace)
        except KubeError:
            await client.delete(JOBS, wanted.name, namespace=wanted.namespace, propagation="Background")
            raise
        created.append({**group, "apiVersion": group_api.api_version, "kind": "PodGroup"})
    if output == "name":
        for each, api in zip(created, (resource, group_api)):
            assert api is not None
            click.echo(f"{each['kind'].lower()}.{api.group}/{wanted.name} created")
    else:
        _print(created, output)
    if wait is None:
        return 0
    found = Found(next(each for each in WORKLOADS if each.kind == (VOLCANO_JOB if as_volcano else "Job")), created[0])

    def tell(text: str) -> None:
        click.echo(f"{time.strftime('%H:%M:%S')}  {text}", err=output != "name")
        sys.stdout.flush()

    done = await follow(client, found, wanted.least, until_started=wait == "started", timeout=timeout, tell=tell)
    if done is None:
        click.echo(
            f"{found} is not {wait} in time; it stays submitted. `navarch explain {wanted.name}` says what would start it", err=True
        )
    return 0 if done else 1


def _refuse(mistakes: Iterable[str]) -> None:
    found = list(mistakes)
    if found:
        click.echo("\n".join((*found, "nothing was created")), err=True)
        raise SystemExit(2)


async def _check_queue(client: Client, queue: str) -> None:
    """Say that a queue does not exist, as far as the user may list queues. The job is created all the same: the queue may follow."""
    if not queue:
        return
    try:
        known = sorted(each["metadata"]["name"] for each in (await client.list(QUEUES)).items)
    except KubeError:
        return
    if known and queue not in known:
        near = get_close_matches(queue, known, n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"these are: {', '.join(known[:10])}"
        click.echo(f"warning: there is no queue {queue!r} (the job waits for it); {hint}", err=True)


def _objects(wanted: Submission, as_volcano: bool, group_api: Resource | None) -> list[Manifest]:
    if as_volcano:
        return [volcano_job(wanted)]
    return [batch_job(wanted, group_api), *([pod_group(wanted, group_api)] if group_api is not None else [])]


def _print(objects: list[Manifest], output: str) -> None:
    if output == "json":
        click.echo(json.dumps(objects[0] if len(objects) == 1 else {"apiVersion": "v1", "kind": "List", "items": objects}, indent=2))
    else:
        click.echo(yaml.safe_dump_all(objects, sort_keys=False, width=120), nl=False)
