"""`navarch uninstall`: remove what `navarch install` applied, and nothing of another system.

The CRDs stay, unless they are asked for: deleting a CRD deletes every queue and every PodGroup of the cluster. The namespace stays
unless it is asked for: other objects may live in it. An object of the same name that carries the labels of another installation is
kept.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

import click

from navarch.cli.cluster.embedded_kubeconfig import reminder
from navarch.cli.cluster.failure import cluster_failure
from navarch.cli.install import RESOURCES, belongs_to_install
from navarch.kube.client import Client
from navarch.kube.connect import connect
from navarch.kube.errors import ConfigError, KubeError, NotFound, NotServed
from navarch.kube.resources import CRDS, LEASES, Resource
from navarch.manifests.installation import INSTANCE, NAME, NAMESPACE, Installation
from navarch.views.leader_pages import SECRETS
from navarch.views.published_state import CONFIG_MAPS

EXAMPLES = """\b
Examples:
  navarch uninstall --dry-run                      # what would be removed
  navarch uninstall --delete-namespace
  navarch uninstall --name pool-b --namespace pool-b
"""


@click.command(epilog=EXAMPLES)
@click.option("--namespace", default=NAMESPACE, show_default=True, help="Where the scheduler runs.")
@click.option("--name", default=NAME, show_default=True, help="What its objects are called.")
@click.option("--delete-namespace", is_flag=True, help="Remove the namespace as well, with all that is in it.")
@click.option("--delete-crds", is_flag=True, help="Remove the CRDs that `navarch install` made, with every object of their kinds.")
@click.option("--yes", is_flag=True, help="Do not ask before the CRDs are removed.")
@click.option("--kubeconfig", type=click.Path(path_type=Path), help="Cluster to remove it from; else as kubectl finds it.")
@click.option("--context", help="Context of the kubeconfig.")
@click.option("--dry-run", is_flag=True, help="Print what would be removed, and remove nothing.")
def uninstall(
    namespace: str,
    name: str,
    delete_namespace: bool,
    delete_crds: bool,
    yes: bool,
    kubeconfig: Path | None,
    context: str | None,
    dry_run: bool,
) -> None:
    """Remove the scheduler, its permissions and its configuration from a cluster.

    Running pods are not affected. Pending pods stay pending until another scheduler serves their name. CRDs and the namespace stay
    unless the options say otherwise.
    """
    if delete_crds and not (yes or dry_run):
        click.confirm("Every queue and every PodGroup of these CRDs is deleted with them. Continue?", abort=True)
    installation = Installation(namespace=namespace, name=name, policy="", web=True)
    wanted = [(RESOURCES[item["kind"]], item["metadata"]["name"]) for item in reversed(installation.objects())]
    wanted = [(resource, found) for resource, found in wanted if resource not in (CRDS, RESOURCES["Namespace"])]
    wanted += [(CONFIG_MAPS, f"{name}-state"), (SECRETS, f"{name}-pages"), (LEASES, name)]
    if delete_crds:
        wanted += [(CRDS, crd["metadata"]["name"]) for crd in installation.crds()]
    if delete_namespace:
        wanted.append((RESOURCES["Namespace"], namespace))
    try:
        asyncio.run(_remove(wanted, installation, kubeconfig, context, dry_run))
    except ConfigError as error:
        raise click.UsageError(f"{error}{'' if kubeconfig or context else reminder()}") from None
    except KubeError as error:
        raise cluster_failure(error, kubeconfig, context) from None


async def _remove(
    wanted: list[tuple[Resource, str]], installation: Installation, kubeconfig: Path | None, context: str | None, dry_run: bool
) -> None:
    removed = 0
    async with Client(connect(kubeconfig, context)) as client:
        for resource, name in wanted:
            outcome = await _remove_one(client, resource, name, installation, dry_run)
            if outcome:
                removed += outcome == "deleted"
                click.echo(f"{resource.plural}/{name} {outcome}{' (dry run)' if dry_run else ''}")
    if not removed:
        where = f"{installation.name} in the namespace {installation.namespace}"
        raise click.ClickException(f"nothing of {where} was found; --name and --namespace name another installation")


async def _remove_one(client: Client, resource: Resource, name: str, installation: Installation, dry_run: bool) -> str:
    """What became of it; empty: it was not there."""
    namespace = installation.namespace if resource.namespaced else None
    try:
        found = await client.get(resource, name, namespace=namespace)
    except (NotFound, NotServed):
        return ""
    labels = found["metadata"].get("labels") or {}
    if resource == CRDS:
        if not belongs_to_install(found):
            return "kept: another system installed it"
    elif labels.get(INSTANCE, installation.name) != installation.name:
        return f"kept: it belongs to the installation {labels[INSTANCE]}"
    if not dry_run:
        try:
            await client.delete(resource, name, namespace=namespace)
        except NotFound:
            return ""
    return "deleted"
