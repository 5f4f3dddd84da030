"""The option --shard: which SchedulingShard of KAI is the policy."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TypeVar

import click

from navarch.engine.policy import Policy, PolicyError, load
from navarch.engine.policy.kai_shard import SHARD, is_shard
from navarch.engine.policy.values import Mistake
from navarch.installed import installed
from navarch.offline.manifests import Document
from navarch.offline.policies import policy_text, read_policy

Command = TypeVar("Command", bound=Callable[..., object])


def shard_option(where: str) -> Callable[[Command], Command]:
    """`where`: what the shard is looked for in, for the help."""
    return click.option("--shard", default="", metavar="NAME", help=f"KAI's SchedulingShard of this name {where} is the policy.")


def scheduler_of_shard(policy: str, text: str | None, shard: str, plugin_dirs: tuple[Path, ...]) -> str:
    """The scheduler name that the policy of a shard serves. `text`: the objects of a cluster; None: those in the file `policy`."""
    found = load(policy_text(policy) if text is None else text, installed(plugin_dirs).catalogue(), policy, shard=shard)
    return str(found.params["schedulerName"])


def shard_policy(policy: str | None, shard: str, documents: Iterable[Document], plugin_dirs: tuple[Path, ...]) -> Policy | None:
    """The policy of a SchedulingShard: of the file that --policy names, else of the input. None: the input has none, or --policy says
    what to run. Which shard of the input is used, or is not, is told on standard error."""
    if policy:
        return read_policy(policy, installed(plugin_dirs), shard) if shard else None
    found = [dict(document.manifest) for document in documents if is_shard(document.manifest)]
    names = sorted(each["metadata"]["name"] for each in found if each["kind"] == SHARD)
    if not shard and len(names) != 1:
        if names:
            click.echo(f"the input has {SHARD} {', '.join(names)}: --shard NAME decides as one of them", err=True)
        return None
    if not shard:
        click.echo(f"policy: {SHARD} {names[0]} of the input; --policy names another", err=True)
    objects = {"apiVersion": "v1", "kind": "List", "items": found}
    if not found:
        raise PolicyError("the input", [Mistake(f"found no {SHARD}, expected {shard}")])
    return load(objects, installed(plugin_dirs).catalogue(), f"{SHARD}/{shard or names[0]}", shard=shard)
