"""How the suite is spread over workers: `--dist loadfile`, in an order that keeps both cores busy.

Suites that speak to servers wait most of their time, and the others compute. Every second worker takes suites that wait as long as
there are some, and the others take those that compute. A worker for which no suite of its kind is left takes from the other. Within a
kind the long ones are first, so that files of a few quick tests end the run.

The tests of a file stay together, and so do those of the folders in `TOGETHER`: the tests of each share a kube-apiserver, which every
worker that runs some of them would have to start.
"""

from __future__ import annotations

from collections import Counter

import pytest
from xdist.remote import Producer
from xdist.scheduler import LoadFileScheduling
from xdist.workermanage import WorkerController

TOGETHER = ("tests/embedded/", "tests/kube/", "tests/deploy/")
WAITING = (
    *TOGETHER,
    "tests/walks/",
    "tests/browser/",
    "tests/unit/cli/test_up.py",
    "tests/live/test_fencing.py",
    "tests/live/test_hostile_tenants.py",
    "tests/live/test_concurrent_schedulers.py",
    "tests/parity/test_live_",
    "tests/live/",
    "tests/web/",
    "tests/envtest/",
)
"""Where paths of tests that wait for servers begin, the longest work first."""
COMPUTING = ("tests/properties/", "tests/parity/", "tests/scenarios/", "tests/unit/")


def waits(nodeid: str) -> bool:
    """
    >>> waits("tests/unit/cli/test_up.py::test_it"), waits("tests/unit/cli/test_plan.py::test_it")
    (True, False)
    """
    return nodeid.startswith(WAITING)


def scope_of(nodeid: str) -> str:
    """What one worker runs as a whole: a file, or one of the folders in `TOGETHER`.

    >>> scope_of("tests/kube/test_client.py::test_it[a/b]"), scope_of("tests/live/test_kai.py::test_it")
    ('tests/kube/', 'tests/live/test_kai.py')
    """
    folder = next((folder for folder in TOGETHER if nodeid.startswith(folder)), "")
    return folder or nodeid.split("::", 1)[0]


def order(items: list[pytest.Item]) -> None:
    """Sort the tests by where they are, and the scopes there by their number of tests. Tests of a scope keep their order."""
    sizes = Counter(scope_of(item.nodeid) for item in items)
    prefixes = (*WAITING, *COMPUTING)

    def place(item: pytest.Item) -> tuple[int, int, str]:
        nodeid, scope = item.nodeid, scope_of(item.nodeid)
        found = next((number for number, prefix in enumerate(prefixes) if nodeid.startswith(prefix)), len(prefixes))
        return found, -sizes[scope], scope

    items.sort(key=place)


class Distribution(LoadFileScheduling):  # type: ignore[misc]  # xdist has no types
    """Hands out scopes in the order of collection, to each worker first those of its kind."""

    def _split_scope(self, nodeid: str) -> str:
        return scope_of(nodeid)

    def _assign_work_unit(self, node: WorkerController) -> None:
        takes_waiting = int(node.gateway.id.removeprefix("gw")) % 2 == 0
        fitting = (scope for scope, tests in self.workqueue.items() if waits(next(iter(tests))) == takes_waiting)
        scope = next(fitting, None)
        if scope is not None:
            self.workqueue.move_to_end(scope, last=False)
        super()._assign_work_unit(node)


def scheduler(config: pytest.Config, log: Producer) -> Distribution | None:
    if config.getvalue("dist") != "loadfile":
        return None
    config.option.loadscopereorder = False
    return Distribution(config, log)
