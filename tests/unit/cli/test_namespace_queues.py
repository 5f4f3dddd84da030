"""--namespace-as-queue means the same in every command that reads objects."""

from __future__ import annotations

import importlib

import click
import pytest

from navarch.cli.cluster.listing import Listed
from navarch.cli.cluster.reading import overview_of
from navarch.cli.main import COMMANDS
from navarch.cli.up.cluster import UpOptions
from navarch.installed import installed
from navarch.offline.manifests import Document
from navarch.testing.builders import namespace, node, pod


@pytest.mark.parametrize("name", ["plan", "explain", "run", "up", "jobs", "queues", "nodes"])
def test_the_option_is_there(name: str) -> None:
    module, _, attribute = COMMANDS[name][0].partition(":")
    command: click.Command = getattr(importlib.import_module(module), attribute)
    (option,) = (each for each in command.params if each.name == "namespace_as_queue")
    assert option.get_default(click.Context(command)) is False


@pytest.mark.parametrize("as_queue", [True, False])
async def test_jobs_are_listed_in_the_queue_of_their_namespace(as_queue: bool) -> None:
    documents = [Document(each) for each in (node("n").cpu("4"), namespace("team"), namespace("idle"), pod("a", "team").cpu("1"))]
    found = await overview_of(Listed(documents), "navarch", installed(), print, namespace_as_queue=as_queue)
    assert [row.queue for row in found.jobs] == (["team"] if as_queue else ["default"])
    assert ({"team", "idle"} <= {row.name for row in found.queues}) is as_queue


def test_navarch_up_takes_it() -> None:
    assert UpOptions(namespace_as_queue=True).namespace_as_queue
