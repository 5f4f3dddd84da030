"""Filters and scores over nodes: what a plugin gives the engine to choose a node with.

A node function says by its `scope` what its answer depends on. That one word is what lets a plugin in plain Python be
fast, because it tells the engine when an answer is still good:

- STATIC: labels, taints, names: computed once per shape and kept across cycles while nodes and their labels stay;
- ROW: the node's own figures: computed for all nodes once, then only for rows that changed;
- GLOBAL: other pods (affinity, spread): asked again after every placement; the plugin keeps its own counts by the
  allocate and deallocate events, so that asking is a gather and not a scan over pods.

A function that has nothing to say about a class of tasks says so by `applies`, and costs nothing.

Functions are asked about a `TaskClass`, not about each pod: `task.shape` (requests, tolerations, affinity, volumes) is the same
for all pods of it, the rest is that of its first pod. Whoever reads anything else of a pod says so in the plugin's `open`, and
pods that differ in it become different classes; such a function is ROW or GLOBAL, since static answers are kept for a shape:

    self.session.distinguish_labels(["tier"])                 # then self.session.task(task.task).labels.get("tier") in `mask`
    self.session.distinguish_queues()                         # then task.queue
    self.session.distinguish_by(lambda row: ...)              # anything else, from the row of the task
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterable, Sequence
from enum import Enum
from typing import ClassVar

from msgspec import Struct

from navarch.engine.figures import Figures, Rows
from navarch.engine.reasons import Event, Reason
from navarch.model.resources import BoolArray, FloatArray, IntArray
from navarch.model.spec import Shape


class Scope(Enum):
    STATIC = "static"
    ROW = "row"
    GLOBAL = "global"


class TaskClass(Struct, frozen=True, eq=False):
    """Tasks that every node function treats alike: one shape and, where some rule reads pods' labels, what it reads."""

    number: int
    shape: Shape
    shape_number: int
    request: IntArray
    """(R,), one pod included."""
    scoring: IntArray
    """(2,): what scores count for the incoming pod."""
    footprint: IntArray
    """(2,): what a placed pod adds to its node's scoring figures."""
    best_effort: bool
    namespace: str
    labels: int
    """Identity number (namespace and labels) of the class's first task; equal for all in what rules read."""
    task: int
    """Row of the class's first task: `session.task(row)` is the pod, and stands for all in what `Session.distinguish_*` was told."""
    queue: str = ""
    """Queue of the class's first task; of all of them where some rule reads it (`Session.distinguish_queues`)."""
    profile: str = ""
    """By whose node functions it is judged (see `profiles`)."""


class Refusal(Struct, frozen=True):
    """Nodes that one filter turns down for one reason. `unresolvable`: no eviction there could change it."""

    message: str
    refused: BoolArray
    unresolvable: bool | BoolArray = False
    code: str = ""


class Rejection(Struct, frozen=True):
    """A task that no node may take, whatever stands there. `error`: the attempt failed rather than the task did not fit."""

    message: str
    unresolvable: bool = True
    error: bool = False

    def as_reason(self, undone_by: tuple[Event, ...]) -> Reason:
        return Reason("SchedulerError" if self.error else "Unschedulable", self.message, undone_by=undone_by)


class NodeFilter(ABC):
    """Says which nodes a class of tasks may go to. Override `mask` and `explain`; `mask` is the hot one."""

    name: ClassVar[str]
    scope: ClassVar[Scope]
    resolvable: ClassVar[bool] = False
    """True: every refusal of this filter might be undone by an eviction, so no explanation is needed to know."""
    figures_only: ClassVar[bool] = False
    """True: the mask depends on nothing but the columns of `Figures`, so that it can be asked of imagined figures."""
    undone_by: ClassVar[tuple[Event, ...]] = (Event.NODE_ADDED, Event.NODE_CHANGED)
    """What can turn this filter's refusal into a pass."""
    selects_nodes: ClassVar[bool] = False
    """True: the filter applies the node selector and node affinity of the pod."""
    post_filter_text: ClassVar[str] = ""
    """Text for a pod that no node takes, from a filter that may make room itself and cannot (kube-scheduler's PostFilter)."""
    has_last_word: bool = True
    """False: nodes whose refusal an eviction could undo are asked by later filters too, and their words are added."""

    def applies(self, task: TaskClass) -> bool:
        """False: every node passes, and the filter is not asked in this cycle for the class."""
        return True

    def reject(self, task: TaskClass) -> Rejection | None:
        """A word on the task before any node is looked at; asked for each attempt, and only if the filter applies."""
        return None

    def named_nodes(self, task: TaskClass) -> frozenset[str] | None:
        """The nodes that the task itself names: no others are looked at. None: it names none."""
        return None

    @abstractmethod
    def mask(self, task: TaskClass, at: Figures) -> BoolArray:
        """True where the task may go, one answer a column of `at`."""

    def moved_by_own_class(self, task: TaskClass) -> bool:
        """Whether placing a task of the class changes the answer on other nodes for the next of its like."""
        return self.scope is Scope.GLOBAL

    def closes(self, task: TaskClass) -> Sequence[tuple[Rows, int]]:
        """Where all that a placement changes for the next of its like is that the domains of its node are closed to it: for
        each kind of domain the number of every node's, and the number that stands for none. Empty: it may change more."""
        return ()

    def explain(self, task: TaskClass, at: Figures) -> Iterable[Refusal]:
        """Why not, for those who were refused. Called only when a task found no node."""
        return [Refusal(self.name, ~self.mask(task, at))]

    def identity(self) -> Hashable:
        """Equal identities give equal static answers; include the arguments if they matter."""
        return (type(self).__module__, type(self).__qualname__)


class NodeScorer(ABC):
    """Scores nodes for a class of tasks: higher is better. The total is the sum over scorers of weight times score."""

    name: ClassVar[str]
    scope: ClassVar[Scope]
    weight: float = 1.0
    normalises: ClassVar[bool] = False
    """True: `normalise` maps the raw column given its extremes over the feasible nodes."""

    def applies(self, task: TaskClass) -> bool:
        return True

    def problem(self, task: TaskClass) -> str:
        """What is wrong with the task's own wishes, empty if nothing: else the attempt at the task fails."""
        return ""

    @abstractmethod
    def raw(self, task: TaskClass, at: Figures) -> FloatArray:
        """One number a column of `at`."""

    def normalise(self, task: TaskClass, raw: FloatArray, low: float, high: float) -> FloatArray:
        """The score from the raw column; `low` and `high` are its extremes over the feasible nodes."""
        return raw

    def is_level(self, task: TaskClass, nodes: BoolArray) -> bool:
        """Whether a GLOBAL score is the same for all these nodes, and stays so while tasks of the class are placed on them."""
        return False

    def prepare(self, task: TaskClass, feasible: BoolArray) -> None:
        """Called before `raw` with the candidate nodes, for GLOBAL scores whose raw column depends on them."""
        return None

    def identity(self) -> Hashable:
        return (type(self).__module__, type(self).__qualname__)


NodeFunction = NodeFilter | NodeScorer


def first_rejection(filters: Iterable[NodeFilter], task: TaskClass) -> tuple[NodeFilter, Rejection] | None:
    """The last rejection that an eviction might undo, or the first other one: it ends the asking."""
    found: tuple[NodeFilter, Rejection] | None = None
    for rule in filters:
        rejection = rule.reject(task) if rule.applies(task) else None
        if rejection is not None:
            found = rule, rejection
            if rejection.unresolvable or rejection.error:
                break
    return found
