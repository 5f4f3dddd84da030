"""Completion in a shell: `navarch completion bash|zsh|fish`, and the names that options and arguments may have.

Names of namespaces, jobs, queues and nodes are asked of the cluster while the user waits for the Tab key. So an answer that does not
come within two seconds, or a cluster that refuses, is no completion and no message. What a parameter may be follows from its name, the
same in all commands.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import click
from click.shell_completion import CompletionItem, get_completion_class

from navarch.kube.resources import Resource

Complete = Callable[[click.Context, str], list[CompletionItem]]
PATIENCE: Final = 2.0
SHELLS: Final = ("bash", "zsh", "fish")
_NAMESPACES: Final = (Resource("", "v1", "namespaces", namespaced=False),)
_NODES: Final = (Resource("", "v1", "nodes", namespaced=False),)
_QUEUES: Final = (
    Resource("scheduling.volcano.sh", "v1beta1", "queues", namespaced=False),
    Resource("scheduling.run.ai", "v2", "queues", namespaced=False),
)
_JOBS: Final = (
    Resource("batch.volcano.sh", "v1alpha1", "jobs"),
    Resource("batch", "v1", "jobs"),
    Resource("apps", "v1", "deployments"),
    Resource("apps", "v1", "statefulsets"),
    Resource("scheduling.volcano.sh", "v1beta1", "podgroups"),
)

EXAMPLES = """\b
Examples:
  source <(navarch completion bash)                                # in this shell; into ~/.bashrc for all
  navarch completion zsh > "${fpath[1]}/_navarch"                  # then start zsh again
  navarch completion fish > ~/.config/fish/completions/navarch.fish
"""


@click.command(epilog=EXAMPLES)
@click.argument("shell", type=click.Choice(SHELLS))
def completion(shell: str) -> None:
    """Print the script that completes commands, options, policies, namespaces, jobs, queues and nodes in a shell."""
    from navarch.cli.main import main

    made = get_completion_class(shell)
    assert made is not None
    click.echo(made(main, {}, "navarch", "_NAVARCH_COMPLETE").source())


class _Completed(click.types.StringParamType):
    """A text that is completed by a function of the context and what is typed."""

    def __init__(self, complete: Complete) -> None:
        self._complete = complete

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        return self._complete(ctx, incomplete)


def add_completions(name: str, command: click.Command) -> None:
    """Let the parameters of a command be completed."""
    table = {**COMPLETIONS, **({"words": _jobs} if name == "explain" else {})}
    for parameter in command.params:
        complete = table.get(parameter.name or "")
        if complete is not None and isinstance(parameter.type, click.types.StringParamType):
            parameter.type = _Completed(complete)


def _policies(ctx: click.Context, typed: str) -> list[CompletionItem]:
    """Presets, and files as the shell completes them."""
    from navarch.engine.policy import PRESETS

    found = [CompletionItem(name) for name in PRESETS if name.startswith(typed)]
    return found or [CompletionItem(typed, type="file")]


def _namespaces(ctx: click.Context, typed: str) -> list[CompletionItem]:
    return _names(ctx, _NAMESPACES, typed)


def _jobs(ctx: click.Context, typed: str) -> list[CompletionItem]:
    """Workloads and PodGroups of the namespace."""
    return _names(ctx, _JOBS, typed)


def _queues(ctx: click.Context, typed: str) -> list[CompletionItem]:
    return _names(ctx, _QUEUES, typed)


def _rows(ctx: click.Context, typed: str) -> list[CompletionItem]:
    """What `navarch jobs`, `queues` or `nodes` lists, whichever is typed."""
    return _names(ctx, {"queues": _QUEUES, "nodes": _NODES}.get(ctx.info_name or "", _JOBS), typed)


COMPLETIONS: Final[Mapping[str, Complete]] = {
    "policy": _policies,
    "policies": _policies,
    "diff": _policies,
    "namespace": _namespaces,
    "queue": _queues,
    "jobs": _jobs,
    "names": _rows,
}
"""Name of a parameter -> what completes it."""


def _names(ctx: click.Context, resources: Sequence[Resource], typed: str) -> list[CompletionItem]:
    found: Iterable[str] = ()
    with contextlib.suppress(Exception):
        found = asyncio.run(asyncio.wait_for(_listed(ctx.params, resources), PATIENCE))
    return [CompletionItem(name) for name in sorted(set(found)) if name.startswith(typed)]


async def _listed(given: dict[str, Any], resources: Sequence[Resource]) -> list[str]:
    from navarch.kube.client import Client
    from navarch.kube.connect import connect
    from navarch.kube.errors import KubeError

    kubeconfig = given.get("kubeconfig")
    endpoint = connect(Path(kubeconfig) if kubeconfig else None, given.get("context"))
    where = None if given.get("all_namespaces") else given.get("namespace") or endpoint.namespace
    found: list[str] = []
    async with Client(endpoint) as client:
        for resource in resources:
            with contextlib.suppress(KubeError):
                listing = await client.list(resource, namespace=where if resource.namespaced else None)
                found += (each["metadata"]["name"] for each in listing.items)
    return found
