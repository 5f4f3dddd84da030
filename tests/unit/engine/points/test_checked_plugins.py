"""A plugin from outside: wrong answers are refused with its name, file and line; a mistake of it never stops scheduling for all."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tests.worlds.plugin_session import World

from navarch.actions.allocate import Allocate
from navarch.engine.cycle import decide
from navarch.engine.figures import Figures
from navarch.engine.job import Job
from navarch.engine.node_functions import NodeFilter, NodeScorer, Scope, TaskClass
from navarch.engine.plugin import Plugin
from navarch.engine.policy.values import PluginOption, Policy
from navarch.engine.record import CycleRecord
from navarch.engine.registry import RegistrationError, Registry

pytestmark = pytest.mark.contained


def run(kind: type[Plugin], **arguments: object) -> CycleRecord:
    made = World().node("n1", cpu=8).node("n2", cpu=8).queue("q")
    for job in ("a", "b", "c"):
        made.job(job, "q").pods(job, 1, cpu=1)
    policy = Policy(("allocate",), ((PluginOption(kind.name, arguments=arguments),),))
    return decide(made.cluster.snapshot(), policy, Registry([kind], [Allocate]), 0.0)


def scoring(raw: Callable[[Figures], Any]) -> type[Plugin]:
    class Score(NodeScorer):
        name, scope = "score", Scope.ROW

        def raw(self, task: TaskClass, at: Figures) -> Any:
            return raw(at)

    class Scoring(Plugin):
        name = "scoring"

        def node_scorers(self) -> list[NodeScorer]:
            return [Score()]

    return Scoring


def ordering(key: Callable[[Job], Any]) -> type[Plugin]:
    class Ordering(Plugin):
        name = "ordering"

        def job_order(self, job: Job) -> Any:
            return key(job)

    return Ordering


def writes(at: Figures) -> Any:
    at.used[0] = 0
    return np.zeros(at.used.shape[1])


@pytest.mark.parametrize(
    ("plugin", "found"),
    [
        (scoring(lambda at: [1.0, 2.0]), "list [1.0, 2.0]"),
        (scoring(lambda at: "best"), "str 'best'"),
        (scoring(lambda at: np.zeros(1)), "float64 (1,)"),
        (scoring(lambda at: np.full(at.used.shape[1], np.nan)), "numbers that are not finite"),
        (scoring(lambda at: np.array(["a"] * at.used.shape[1])), "<U1 (2,)"),
        (scoring(writes), "read-only"),
        (ordering(lambda job: float("nan")), "float nan"),
        (ordering(lambda job: None), "NoneType None"),
        (ordering(lambda job: {"a": 1}), "dict {'a': 1}"),
    ],
    ids=["list", "text", "shape", "nan", "dtype", "writes", "nan-key", "no-key", "dict-key"],
)
def test_a_preference_with_a_wrong_answer_costs_at_most_itself(plugin: type[Plugin], found: str) -> None:
    record = run(plugin)
    told = [*record.warnings, *(failure.error for failure in record.failures)]
    assert any(found in text for text in told)
    assert all("test_checked_plugins.py:" in f"{each.where} {each.error}" for each in record.failures)


def test_a_preference_that_always_fails_is_left_out() -> None:
    class Exits(Plugin):
        """Calls sys.exit when the session opens."""

        name = "exits"

        def open(self) -> None:
            sys.exit("bye")

        def job_order(self, job: Job) -> int:
            return 0

    record = run(Exits)
    assert len(record.binds) == 3
    (warning,) = record.warnings
    assert warning.startswith("plugin exits (test_checked_plugins.py:")
    assert warning.endswith("failed: SystemExit: bye; the orders and scores of plugin exits are left out of this cycle")


def test_a_rule_that_always_fails_refuses_by_its_name() -> None:
    class Forbids(Plugin):
        name = "forbids"

        def open(self) -> None:
            raise RuntimeError("no licence server")

        def job_valid(self, job: Job) -> None:
            return None

    record = run(Forbids)
    assert record.binds == []
    messages = {reason.message for job in record.jobs for reason in job.reasons}
    assert re.fullmatch(r"plugin forbids \(test_checked_plugins.py:\d+\) failed: RuntimeError: no licence server; .*", messages.pop())
    assert not messages


def test_a_filter_with_a_wrong_answer_refuses_its_job() -> None:
    class Numbers(NodeFilter):
        name, scope = "numbers", Scope.STATIC

        def mask(self, task: TaskClass, at: Figures) -> Any:
            return np.ones(at.used.shape[1])

    class Filtering(Plugin):
        name = "filtering"

        def node_filters(self) -> list[NodeFilter]:
            return [Numbers()]

    record = run(Filtering)
    assert record.binds == []
    assert {failure.job for failure in record.failures} == {"ns/a", "ns/b", "ns/c"}
    assert "numbers.mask answers with float64 (2,); expected a numpy array of booleans" in record.failures[0].error


def test_static_answers_are_kept_apart_by_the_arguments_of_the_plugin() -> None:
    class Preferred(NodeScorer):
        name, scope = "preferred", Scope.STATIC

        def __init__(self, node: str) -> None:
            self.node = node

        def raw(self, task: TaskClass, at: Figures) -> Any:
            return np.array([float(name == self.node) for name in NAMES])[at.rows]

    class Prefers(Plugin):
        name = "prefers"

        def node_scorers(self) -> list[NodeScorer]:
            return [Preferred(str(self.option.arguments["node"]))]

    NAMES = ("n1", "n2")
    made = World().node("n1", cpu=8).node("n2", cpu=8).queue("q").job("a", "q").pods("a", 1, cpu=1)
    registry = Registry([Prefers], [Allocate])
    for node in ("n1", "n2", "n1"):
        policy = Policy(("allocate",), ((PluginOption("prefers", arguments={"node": node}),),))
        record = decide(made.cluster.snapshot(), policy, registry, 0.0)
        assert [bind.node for bind in record.binds] == [node]


def test_a_queue_is_not_text() -> None:
    record = run(ordering(lambda job: 0 if job.queue == "research" else 1))
    assert "compare its name: queue.name == 'research'" in record.failures[0].error


def test_a_misspelt_method_is_refused_when_the_plugin_is_registered() -> None:
    class Misspelt(Plugin):
        name = "misspelt"

        def job_ordr(self, job: Job) -> int:
            return 0

    with pytest.raises(
        RegistrationError, match=r"plugin misspelt \(.*test_checked_plugins.py\): method 'job_ordr' .*mean 'job_order'"
    ):
        Registry().add_plugin(Misspelt)


def test_a_wrong_signature_is_refused_when_the_plugin_is_registered() -> None:
    class Short(Plugin):
        name = "short"

        def queue_order(self, left: object) -> int:
            return 0

    with pytest.raises(RegistrationError, match="queue_order takes left; expected left, right"):
        Registry().add_plugin(Short)


def test_the_time_of_a_plugin_is_told() -> None:
    record = run(scoring(lambda at: np.zeros(at.used.shape[1])))
    assert len(record.binds) == 3
    assert record.timings["scoring (asked)"] > 0
