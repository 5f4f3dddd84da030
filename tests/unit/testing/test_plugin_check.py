"""An author is told in a sentence what is wrong with a plugin."""

from __future__ import annotations

import random
from collections.abc import Callable
from pkgutil import resolve_name
from typing import Any

import numpy as np
import pytest

from navarch.engine.arguments import Argument
from navarch.engine.figures import Figures
from navarch.engine.job import Job
from navarch.engine.node_functions import NodeFilter, NodeScorer, Scope, TaskClass
from navarch.engine.plugin import Plugin
from navarch.engine.points.order_key import OrderKey
from navarch.engine.points.protocols import Change
from navarch.engine.session import Session
from navarch.model.resources import CPU, BoolArray, FloatArray
from navarch.plugins import PLACES
from navarch.testing import check_plugin
from navarch.testing.next_cycle_check import DIFFERS


class Oldest(Plugin):
    name = "oldest"

    def job_order(self, job: Job) -> OrderKey:
        return job.spec.created


def test_a_good_plugin_has_no_problems() -> None:
    assert check_plugin(Oldest) == []


@pytest.mark.parametrize("place", sorted(PLACES.values()))
def test_our_own_plugins_pass(place: str) -> None:
    assert check_plugin(resolve_name(place)) == []


def test_a_misspelt_point_is_named_with_the_right_one() -> None:
    class Misspelt(Plugin):
        name = "misspelt"

        def job_oder(self, job: Job) -> OrderKey:
            return 0

    assert check_plugin(Misspelt) == ["method 'job_oder' is no extension point; did you mean 'job_order'?"]


def test_a_misspelt_method_of_every_plugin_is_named_with_the_right_one() -> None:
    class Misspelt(Plugin):
        name = "misspelt"

        def next_cylce(self) -> bool:
            return True

    assert check_plugin(Misspelt) == ["method 'next_cylce' is no extension point; did you mean 'next_cycle'?"]


def test_a_wrong_signature_is_named_with_the_right_one() -> None:
    class Wrong(Plugin):
        name = "wrong"

        def queue_order(self, queue: object) -> int:
            return 0

    assert check_plugin(Wrong) == ["queue_order takes queue; expected left, right"]


def test_a_plugin_without_a_name_is_refused() -> None:
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


def test_the_default_of_a_duration_is_seconds() -> None:
    class Patient(Plugin):
        name = "patient"
        arguments = (Argument("wait", "duration", 90.0),)

    class Wordy(Plugin):
        name = "wordy"
        arguments = (Argument("wait", "duration", "90s"),)

    assert check_plugin(Patient) == []
    assert check_plugin(Wordy) == ["argument 'wait': its default does not fit its kind: found '90s', expected seconds"]


def scorer(scope_: Scope, function: Callable[[Figures], Any]) -> type[Plugin]:
    class Score(NodeScorer):
        name, scope = "score", scope_

        def raw(self, task: TaskClass, at: Figures) -> FloatArray:
            answer: FloatArray = function(at)  # some tests give another type on purpose
            return answer

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
    (problem,) = check_plugin(scorer(Scope.ROW, lambda at: 1.0))
    assert "test_plugin_check.py:" in problem
    assert problem.endswith("answers with float 1.0; expected a numpy array of finite numbers, one for each of 7 nodes")


def test_a_random_score_is_found() -> None:
    rng = random.Random()
    problems = check_plugin(scorer(Scope.GLOBAL, lambda at: np.full(at.used.shape[1], rng.random())))
    assert problems[0].startswith("two sessions over the same cluster give different answers")


def test_a_filter_that_answers_numbers() -> None:
    class Numbers(NodeFilter):
        name, scope = "numbers", Scope.ROW

        def mask(self, task: TaskClass, at: Figures) -> BoolArray:
            numbers: Any = at.used[CPU]
            mask: BoolArray = numbers
            return mask

    class Filtering(Plugin):
        name = "filtering"

        def node_filters(self) -> list[NodeFilter]:
            return [Numbers()]

    (problem,) = check_plugin(Filtering)
    assert problem.startswith("plugin filtering (")
    assert problem.endswith("numbers.mask answers with int64 (7,); expected a numpy array of booleans, one for each of 7 nodes")


def test_an_answer_of_the_wrong_kind() -> None:
    class Wordy(Plugin):
        name = "wordy"

        def job_valid(self, job: Job) -> str:
            return "no"

    (problem,) = check_plugin(Wordy)
    assert problem.startswith("plugin wordy (")
    assert problem.endswith("job_valid answers with str 'no'; expected a Reason or None")


def reading(scope_: Scope, look: Callable[[Session, int], bool], before: Callable[[Session], None]) -> type[Plugin]:
    """A filter that lets pods go nowhere if `look` says so of the pod."""

    class Reads(NodeFilter):
        name, scope = "reads", scope_

        def __init__(self, session: Session) -> None:
            self.session = session

        def mask(self, task: TaskClass, at: Figures) -> BoolArray:
            return np.full(at.used.shape[1], look(self.session, task.task))

    class Reading(Plugin):
        name = "reading"

        def open(self) -> None:
            before(self.session)

        def node_filters(self) -> list[NodeFilter]:
            return [Reads(self.session)]

    return Reading


def nothing(session: Session) -> None: ...


def spot(session: Session, task: int) -> bool:
    return session.task(task).labels.get("tier") == "spot"


def noted(session: Session, task: int) -> bool:
    return "example.com/note" in session.task(task).annotations


def others(session: Session, task: int) -> bool:
    job = session.job_of(task)
    return job is not None and job.queue.name == "other"


def test_a_filter_that_reads_labels_says_so_first() -> None:
    assert check_plugin(reading(Scope.ROW, spot, nothing)) == [
        "reads (row) reads the label 'tier' of pods of one task class: `open` must call self.session.distinguish_labels(['tier'])"
    ]
    assert check_plugin(reading(Scope.ROW, spot, lambda session: session.distinguish_labels(["tier"]))) == []
    assert check_plugin(reading(Scope.ROW, spot, lambda session: session.distinguish_by(lambda task: spot(session, task)))) == []


def test_a_filter_that_reads_annotations_says_so_first() -> None:
    assert check_plugin(reading(Scope.ROW, noted, nothing)) == [
        "reads (row) reads the annotation 'example.com/note' of pods of one task class: `open` must call self.session.distinguish_by"
    ]
    assert check_plugin(reading(Scope.ROW, noted, lambda session: session.distinguish_by(lambda task: noted(session, task)))) == []


def test_a_filter_that_reads_queues_says_so_first() -> None:
    (problem,) = check_plugin(reading(Scope.GLOBAL, others, nothing))
    assert problem.startswith("reads (global) answers differently for pods of one task class")
    assert check_plugin(reading(Scope.GLOBAL, others, lambda session: session.distinguish_queues())) == []


def test_a_static_filter_that_reads_pods_is_reported() -> None:
    told = check_plugin(reading(Scope.STATIC, spot, lambda session: session.distinguish_labels(["tier"])))
    assert told == [
        "reads (static) reads the label 'tier' of pods, but static answers are kept for all pods of a shape: its scope is row"
    ]
    (queue,) = check_plugin(reading(Scope.STATIC, others, lambda session: session.distinguish_queues()))
    assert queue == "reads (static) answers differently for pods of one shape: its scope is row"


class CountsPlaced(Plugin):
    """Orders jobs by how many tasks the cycle has placed. It forgets nothing."""

    name = "counts-placed"

    def open(self) -> None:
        self.placed = 0

    def next_cycle(self) -> bool:
        return True

    def on_allocate(self, change: Change) -> None:
        self.placed += len(change.tasks)

    def on_deallocate(self, change: Change) -> None:
        self.placed -= len(change.tasks)

    def job_order(self, job: Job) -> OrderKey:
        return job.spec.priority if self.placed < 2 else -job.spec.priority


class Forgets(CountsPlaced):
    name = "forgets"

    def next_cycle(self) -> bool:
        self.placed = 0
        return True


class AtNight(Plugin):
    """Prefers other nodes at night. Answers about nodes are kept while their figures stay."""

    name = "at-night"

    def next_cycle(self) -> bool:
        return True

    def node_scorers(self) -> list[NodeScorer]:
        return [ByHour(self)]


class ByHour(NodeScorer):
    name = "by-hour"
    scope = Scope.ROW

    def __init__(self, plugin: Plugin) -> None:
        self._session = plugin.session

    def raw(self, task: TaskClass, at: Figures) -> FloatArray:
        rows = np.arange(at.used.shape[1]) if isinstance(at.rows, slice) else at.rows
        found: FloatArray = np.array(rows, dtype=np.float64)
        return found if self._session.now % 86400 < 43200 else -found


class LosesItself(CountsPlaced):
    name = "loses-itself"

    def next_cycle(self) -> bool:
        raise ValueError("where was I?")


@pytest.mark.parametrize("kind", [CountsPlaced, AtNight])
def test_a_plugin_that_goes_on_must_decide_as_a_new_one(kind: type[Plugin]) -> None:
    assert check_plugin(kind) == [DIFFERS]


def test_a_plugin_that_forgets_the_last_cycle_may_go_on() -> None:
    assert check_plugin(Forgets) == []


def test_a_next_cycle_that_raises_is_reported() -> None:
    (problem,) = check_plugin(LosesItself)
    assert "failed in next_cycle: ValueError: where was I?" in problem
