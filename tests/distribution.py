"""How the suite is spread over workers: `--dist loadfile`, in an order that keeps both cores busy.

Suites that speak to servers wait most of their time, and the others compute. Every second worker takes suites that wait as long as
there are some, so that neither kind is left over for the end. Within a kind the long ones are first, and files of a few quick tests
end the run.

The tests of a file stay together, and so do those of the folders in `TOGETHER`: each of these starts a kube-apiserver of its own for
its tests, one for each worker that runs some of them.
"""

from __future__ import annotations

from collections import Counter

import pytest
from xdist.remote import Producer
from xdist.scheduler import LoadFileScheduling
from xdist.workermanage import WorkerController

WAITING = ("embedded", "kube", "deploy", "walks", "browser", "live", "web", "envtest")
"""Folders whose tests wait for servers, the longest work first."""
COMPUTING = ("properties", "parity", "scenarios", "unit")
TOGETHER = frozenset({"embedded", "kube", "deploy"})


def folder_of(nodeid: str) -> str:
    """
    >>> folder_of("tests/kube/test_client.py::test_it[a/b]"), folder_of("tests/test_jitter.py::test_it")
    ('kube', '')
    """
    return (["", "", *nodeid.split("::", 1)[0].split("/")[1:-1]] + [""])[2]


def scope_of(nodeid: str) -> str:
    """What one worker runs as a whole.

    >>> scope_of("tests/kube/test_client.py::test_it"), scope_of("tests/live/test_kai.py::test_it")
    ('kube', 'tests/live/test_kai.py')
    """
    folder = folder_of(nodeid)
    return folder if folder in TOGETHER else nodeid.split("::", 1)[0]


def order(items: list[pytest.Item]) -> None:
    """Sort the tests by folder, and the scopes of a folder by their number of tests. Tests of a scope keep their order."""
    sizes = Counter(scope_of(item.nodeid) for item in items)
    folders = {folder: number for number, folder in enumerate((*WAITING, *COMPUTING))}

    def place(item: pytest.Item) -> tuple[int, int, str]:
        scope = scope_of(item.nodeid)
        return folders.get(folder_of(item.nodeid), len(folders)), -sizes[scope], scope

    items.sort(key=place)


class Distribution(LoadFileScheduling):  # type: ignore[misc]  # xdist has no types
    """Hands out scopes in the order of collection, to each worker first those of its kind."""

    def _split_scope(self, nodeid: str) -> str:
        return scope_of(nodeid)

    def _assign_work_unit(self, node: WorkerController) -> None:
        waits = int(node.gateway.id.removeprefix("gw")) % 2 == 0
        fitting = (scope for scope, tests in self.workqueue.items() if (folder_of(next(iter(tests))) in WAITING) == waits)
        scope = next(fitting, None)
        if scope is not None:
            self.workqueue.move_to_end(scope, last=False)
        super()._assign_work_unit(node)


def scheduler(config: pytest.Config, log: Producer) -> Distribution | None:
    if config.getvalue("dist") != "loadfile":
        return None
    config.option.loadscopereorder = False
    return Distribution(config, log)
