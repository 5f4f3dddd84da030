"""`navarch install`: install the scheduler in a cluster, or print the manifests.

Objects are applied server-side under one field manager, so a second run changes only what differs and keeps fields of other managers.
A CRD that another system installed (Volcano's chart, KAI's) is not changed, because that system may serve more versions of it. A role
binding of another installation is not taken over either: the scheduler of that installation would lose its rights.
"""

from __future__ import annotations

import asyncio
import re
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
import yaml

from navarch.cli.cluster.failure import cluster_failure
from navarch.cli.policy.mistakes import MISTAKES, tell
from navarch.engine.policy import PolicyError
from navarch.installed import installed
from navarch.kube.client import Client, PatchType
from navarch.kube.connect import connect
from navarch.kube.errors import ConfigError, Forbidden, KubeError, NotFound, NotServed
from navarch.kube.resources import CRDS, Resource
from navarch.manifests.installation import DIALECTS, NAME, NAMESPACE, Installation
from navarch.object_types import Manifest
from navarch.offline.policies import read_policy
from navarch.version import version

FIELD_MANAGER = "navarch-install"
DEFAULT_IMAGE = f"navarch:{version()}"
MAKE_IMAGE = f"""\
no registry has the image of the scheduler. To make one, in a checkout of Navarch, with a registry that your nodes can reach:
  docker build -f deploy/Dockerfile -t REGISTRY/{DEFAULT_IMAGE} .
  docker push REGISTRY/{DEFAULT_IMAGE}
  navarch install --image REGISTRY/{DEFAULT_IMAGE}"""
SERVED_SECONDS = 60.0
RBAC = "rbac.authorization.k8s.io"
RESOURCES = {
    "ClusterRole": Resource(RBAC, "v1", "clusterroles", namespaced=False),
    "ClusterRoleBinding": Resource(RBAC, "v1", "clusterrolebindings", namespaced=False),
    "ConfigMap": Resource("", "v1", "configmaps"),
    "CustomResourceDefinition": CRDS,
    "Deployment": Resource("apps", "v1", "deployments"),
    "Namespace": Resource("", "v1", "namespaces", namespaced=False),
    "NetworkPolicy": Resource("networking.k8s.io", "v1", "networkpolicies"),
    "PodDisruptionBudget": Resource("policy", "v1", "poddisruptionbudgets"),
    "Role": Resource(RBAC, "v1", "roles"),
    "RoleBinding": Resource(RBAC, "v1", "rolebindings"),
    "Service": Resource("", "v1", "services"),
    "ServiceAccount": Resource("", "v1", "serviceaccounts"),
    "ServiceMonitor": Resource("monitoring.coreos.com", "v1", "servicemonitors"),
}


@click.command()
@click.option("--print", "print_only", is_flag=True, help="Write the objects to the terminal as YAML; touch no cluster.")
@click.option("--namespace", default=NAMESPACE, show_default=True, help="Where the scheduler runs.")
@click.option("--name", default=NAME, show_default=True, help="What everything is called; for a second one beside the first.")
@click.option("--image", help=f"Image of the scheduler. No registry has one: build it first.  [default: {DEFAULT_IMAGE}]")
@click.option("--replicas", type=click.IntRange(min=1), help="Number of replicas; one of them is the leader.  [default: 2]")
@click.option("--scheduler-name", "scheduler_names", multiple=True, help="spec.schedulerName to serve; may repeat.")
@click.option("--policy", type=click.Path(exists=True, dir_okay=False, path_type=Path), help="Policy file to run with.")
@click.option(
    "--dialect",
    "dialects",
    multiple=True,
    type=click.Choice(tuple(DIALECTS)),
    help="Install only these CRDs; may repeat.  [default: all]",
)
@click.option("--web", is_flag=True, help="Install the dashboard as well (docs/dashboard.md).")
@click.option(
    "--kubeconfig",
    type=click.Path(path_type=Path),
    help="Cluster to install into; else $KUBECONFIG, the pod's account, ~/.kube/config.",
)
@click.option("--context", help="Context of the kubeconfig.")
@click.option("--dry-run", is_flag=True, help="Let the API server check everything and store nothing.")
@click.argument("run_options", nargs=-1, type=click.UNPROCESSED, metavar="[-- RUN OPTIONS]")
def install(
    print_only: bool,
    namespace: str,
    name: str,
    image: str | None,
    replicas: int | None,
    scheduler_names: tuple[str, ...],
    policy: Path | None,
    dialects: tuple[str, ...],
    web: bool,
    kubeconfig: Path | None,
    context: str | None,
    dry_run: bool,
    run_options: tuple[str, ...],
) -> None:
    """Install the scheduler, its permissions and the CRDs it reads into a cluster.

    It needs an image that the nodes can pull (--image). `docker build -f deploy/Dockerfile` in a checkout of Navarch makes one.

    Arguments after -- are added to the command line of `navarch run` in the cluster: -- --log-format=json
    """
    _check_name(name)
    _check_run_options(run_options)
    if policy is not None:
        _check(policy)
    installation = Installation(
        namespace=namespace,
        name=name,
        image=image,
        replicas=replicas,
        scheduler_names=scheduler_names,
        policy=policy.read_text(encoding="utf-8") if policy else None,
        run_options=run_options,
        dialects=dialects or tuple(DIALECTS),
        web=web,
    )
    if print_only:
        click.echo(as_yaml(installation.objects()), nl=False)
        return
    if image is None:
        click.echo(MAKE_IMAGE, err=True)
        if sys.stdin.isatty() and not dry_run:
            given = click.prompt("Image of the scheduler", default=DEFAULT_IMAGE, err=True)
            installation = replace(installation, image=given)
        else:
            click.echo(f"Without --image the pods of the scheduler wait until their nodes have {DEFAULT_IMAGE}.", err=True)
    try:
        asyncio.run(_install(installation, kubeconfig, context, dry_run))
    except ConfigError as error:
        raise click.UsageError(str(error)) from None
    except KubeError as error:
        raise cluster_failure(error, kubeconfig, context) from error


def _check_name(name: str) -> None:
    if not re.fullmatch(r"[a-z]([a-z0-9-]{0,38}[a-z0-9])?", name):
        raise click.UsageError(f"--name: expected at most 40 letters a to z, digits and dashes, first a letter, found {name!r}")


def _check_run_options(given: tuple[str, ...]) -> None:
    """Check the arguments of `navarch run`. A misspelt option would only show in the log of a pod that does not start."""
    from navarch.cli.run import run

    try:
        run.make_context("navarch run", list(given), resilient_parsing=False)
    except click.exceptions.Exit:
        raise click.UsageError("after --: expected options of `navarch run` that it runs with") from None
    except click.BadParameter as error:
        if error.param is not None and error.param.name == "plugin_dirs":
            return  # a directory of the image, not of this machine
        raise click.UsageError(f"after --: {error.format_message()}") from None
    except click.UsageError as error:
        raise click.UsageError(f"after --: {error.format_message()}") from None


def _check(policy: Path) -> None:
    """A name that is not known here is only a warning: the image may have more plugins."""
    try:
        read_policy(policy.absolute(), installed())
    except PolicyError as error:
        tell(error, str(policy), None)
        if not all(mistake.not_here for mistake in error.mistakes):
            raise SystemExit(MISTAKES) from None
        click.echo("warning: unless its image has more plugins than there are here, the scheduler will not start", err=True)


class _Plain(yaml.CSafeDumper):
    """Writes a repeated value again instead of an anchor: easier to read and to diff."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def as_yaml(objects: list[Manifest]) -> str:
    """The objects as one stream of YAML documents that kubectl applies."""
    return yaml.dump_all(objects, Dumper=_Plain, sort_keys=False, explicit_start=True, width=120)


async def _install(installation: Installation, kubeconfig: Path | None, context: str | None, dry_run: bool) -> None:
    async with Client(connect(kubeconfig, context)) as client:
        namespace_made = True
        for item in installation.objects():
            resource = RESOURCES[item["kind"]]
            label = f"{resource.plural}/{item['metadata']['name']}"
            if item["kind"] == "ServiceMonitor" and not await client.discovery.serves(resource):
                click.echo(f"{label} left out: {resource.group} is not served here")
                continue
            if dry_run and resource.namespaced and not namespace_made:
                click.echo(f"{label} not checked: the namespace {installation.namespace} does not exist yet")
                continue
            outcome = await apply(client, item, dry_run=dry_run)
            if item["kind"] == "Namespace":
                namespace_made = outcome != "created"
            click.echo(f"{label} {outcome}{' (dry run)' if dry_run else ''}")
        if not dry_run:
            for crd in installation.crds():
                await until_served(client, crd["metadata"]["name"])


async def apply(client: Client, item: Manifest, *, dry_run: bool = False) -> str:
    """Bring one object to the given state. Returns created, configured, unchanged or kept."""
    resource = RESOURCES[item["kind"]]
    name, namespace = item["metadata"]["name"], item["metadata"].get("namespace")
    try:
        before = await client.get(resource, name, namespace=namespace)
    except (NotFound, NotServed):
        before = None
    if before is not None and resource == CRDS and not belongs_to_install(before):
        return "kept: another system installed it"
    if before is not None and item["kind"] == "ClusterRoleBinding":
        _check_owner(before, item)
    after = await client.patch(
        resource,
        name,
        item,
        PatchType.APPLY,
        namespace=namespace,
        field_manager=FIELD_MANAGER,
        force=True,
        dry_run=dry_run,
    )
    if before is None:
        return "created"
    same = before["metadata"]["resourceVersion"] == after["metadata"]["resourceVersion"]
    return "unchanged" if same else "configured"


def _check_owner(existing: dict[str, Any], wanted: Manifest) -> None:
    now, then = ({each.get("namespace") for each in binding.get("subjects") or ()} for binding in (existing, wanted))
    if now and now != then:
        others = ", ".join(sorted(map(str, now)))
        raise click.ClickException(
            f"ClusterRoleBinding {wanted['metadata']['name']}: it belongs to the installation in {others}. "
            "Expected another --name for one more beside it, or its namespace to change it"
        )


def belongs_to_install(existing: dict[str, Any]) -> bool:
    """Whether `navarch install` made the object."""
    return any(entry.get("manager") == FIELD_MANAGER for entry in existing["metadata"].get("managedFields") or ())


async def until_served(client: Client, name: str) -> None:
    """Wait until new CRDs are established, served and in discovery. This takes a moment after they are accepted, and a queue that is
    created earlier would be refused."""
    deadline = time.monotonic() + SERVED_SECONDS
    while True:
        crd = await client.get(CRDS, name)
        conditions = {item["type"]: item for item in crd.get("status", {}).get("conditions") or ()}
        if conditions.get("Established", {}).get("status") == "True" and await _is_answered_for(client, crd["spec"]):
            return
        if time.monotonic() > deadline:
            refused = conditions.get("NamesAccepted", {}).get("message", "no reason given")
            raise click.ClickException(f"CRD {name}: not served after {SERVED_SECONDS:.0f} s ({refused})")
        await asyncio.sleep(0.1)


async def _is_answered_for(client: Client, spec: dict[str, Any]) -> bool:
    for served in spec["versions"]:
        kind = Resource(spec["group"], served["name"], spec["names"]["plural"])
        if served["served"]:
            try:
                await client.transport.request("GET", kind.path(), params={"limit": "1"})
            except NotFound:
                return False
            except Forbidden:
                pass  # an account that may install may lack the right to read
            if not await client.discovery.serves(kind):
                return False
    return True
