"""An author is told in a sentence what is wrong with a plugin."""

from __future__ import annotations

import random

import numpy as np
import pytest

from navarch.engine.arguments import Argument
from navarch.engine.extension_points import Key
from navarch.engine.figures import Figures
from navarch.engine.job import Job
from navarch.engine.node_functions import NodeFilter, NodeScorer, Scope, TaskClass
from navarch.engine.plugin import Plugin
from navarch.installed import installed
from navarch.model.resources import CPU, BoolArray, FloatArray
from navarch.testing import check_plugin


class Oldest(Plugin):
    name = "oldest"

    def job_order(self, job: Job) -> Key:
        return job.spec.created


def test_a_good_plugin_has_no_problems() -> None:
    assert check_plugin(Oldest) == []


@pytest.mark.parametrize("name", ["gang", "priority", "conformance", "proportion", "binpack", "drf"])
def test_our_own_plugins_pass(name: str) -> None:
    plugin = installed().plugin(name)
    assert plugin is not None
    assert check_plugin(plugin) == []


def test_a_misspelt_point() -> None:
    class Misspelt(Plugin):
        name = "misspelt"

        def job_oder(self, job: Job) -> Key:
            return 0

    assert check_plugin(Misspelt) == ["method 'job_oder' is no extension point; did you mean 'job_order'?"]


def test_a_wrong_signature() -> None:
    class Wrong(Plugin):
        name = "wrong"

        def queue_order(self, queue: object) -> int:
            return 0

    assert check_plugin(Wrong) == ["queue_order takes queue; expected left, right"]


def test_no_name() -> None:
    class Nameless(Plugin):
        pass

    assert "has no name" in check_plugin(Nameless)[0]


def test_a_default_of_the_wrong_kind() -> None:
    class Default(Plugin):
        name = "default"
        arguments = (Argument("weight", "int", "heavy"),)

    assert check_plugin(Default) == [
        "argument 'weight': its default does not fit its kind: found the string 'heavy', expected an integer"
    ]


def scorer(scope_: Scope, function: object) -> type[Plugin]:
    class Score(NodeScorer):
        name, scope = "score", scope_

        def raw(self, task: TaskClass, at: Figures) -> FloatArray:
            return function(at)  # type: ignore[operator, no-any-return]

    class Scoring(Plugin):
        name = "scoring"

        def node_scorers(self) -> list[NodeScorer]:
            return [Score()]

    return Scoring


def test_a_static_score_that_reads_figures() -> None:
    problems = check_plugin(scorer(Scope.STATIC, lambda at: at.used[CPU] * 1.0))
    assert problems == ["score (static) changes with a node's figures: its scope is row, not static"]


def test_a_row_score_that_looks_at_other_rows() -> None:
    problems = check_plugin(scorer(Scope.ROW, lambda at: at.used[CPU] * 1.0 / at.used[CPU].sum()))
    assert problems[0].startswith("score (row) answers differently for a row alone than among all rows")


def test_a_score_of_the_wrong_shape() -> None:
    assert "expected one value a node" in check_plugin(scorer(Scope.ROW, lambda at: np.float64(1.0)))[0]


def test_a_random_score() -> None:
    rng = random.Random()
    problems = check_plugin(scorer(Scope.GLOBAL, lambda at: np.full(at.used.shape[1], rng.random())))
    assert problems[0].startswith("two sessions over the same cluster give different answers")


def test_a_filter_that_answers_numbers() -> None:
    class Numbers(NodeFilter):
        name, scope = "numbers", Scope.ROW

        def mask(self, task: TaskClass, at: Figures) -> BoolArray:
            return at.used[CPU]  # type: ignore[return-value]

    class Filtering(Plugin):
        name = "filtering"

        def node_filters(self) -> list[NodeFilter]:
            return [Numbers()]

    assert check_plugin(Filtering) == ["numbers (row) answers with int64; expected booleans"]


def test_an_answer_of_the_wrong_kind() -> None:
    class Wordy(Plugin):
        name = "wordy"

        def job_valid(self, job: Job) -> str:
            return "no"

        def allocatable(self, queue: object, task: TaskClass, count: int) -> None:
            return None

    assert check_plugin(Wordy) == [
        "job_valid answers with 'no'; expected a Reason or None",
        "allocatable answers with None; expected a number or a Reason",
    ]
