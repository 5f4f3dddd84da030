"""Node functions: the filters and scorers by which the engine chooses a node.

The `scope` of a node function says what its answer depends on. It lets a plugin in plain Python be fast, because it tells the
engine how long an answer stays valid:

- STATIC: labels, taints, names: computed once per shape and kept across cycles while nodes and their labels stay;
- ROW: the node's own figures: computed for all nodes once, then only for rows that changed;
- GLOBAL: other pods (affinity, spread): asked again after every placement; the plugin keeps its own counts by the
  allocate and deallocate events, so that asking is a gather and not a scan over pods.

A function whose `applies` returns False for a class of tasks is not called for it.

Functions are asked about a `TaskClass`, not about each pod: `task.shape` (requests, tolerations, affinity, volumes) is the same
for all pods of the class; other fields are those of its first pod. A function that reads other fields of a pod must declare them
in the plugin's `open`; pods that differ in them then become different classes. Such a function is ROW or GLOBAL, because static
answers are cached by shape:

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
    """Tasks that every node function treats equally: they have one shape and agree in the labels that rules read."""

    number: int
    shape: Shape
    shape_number: int
    request: IntArray
    """(R,), one pod included."""
    charge: IntArray
    """(R,): what one task counts for in the accounts of jobs and queues: the request, and its parts of GPUs."""
    scoring: IntArray
    """(2,): what scores count for the incoming pod."""
    footprint: IntArray
    """(2,): what a placed pod adds to its node's scoring figures."""
    best_effort: bool
    namespace: str
    labels: int
    """Identity number (namespace and labels) of the class's first task; equal for all in what rules read."""
    task: int
    """Row of the class's first task. `session.task(row)` represents all pods in the fields given to `Session.distinguish_*`."""
    queue: str = ""
    """Queue of the class's first task; of all of them where some rule reads it (`Session.distinguish_queues`)."""
    profile: str = ""
    """The profile whose node functions apply (see `profiles`)."""


class Refusal(Struct, frozen=True):
    """Nodes that one filter refuses for one reason. `unresolvable`: no eviction there could change it."""

    message: str
    refused: BoolArray
    unresolvable: bool | BoolArray = False
    code: str = ""


class Rejection(Struct, frozen=True):
    """A task that every node refuses, independent of the pods there. `error`: the attempt failed with an error.
    `undone_by`: the events that undo it; empty: those of the filter."""

    message: str
    unresolvable: bool = True
    error: bool = False
    undone_by: tuple[Event, ...] = ()
    reason: str = "Unschedulable"
    """The code of the refusal: another one where no new node would take the task either."""

    @property
    def code(self) -> str:
        return "SchedulerError" if self.error else self.reason

    def as_reason(self, undone_by: tuple[Event, ...]) -> Reason:
        return Reason(self.code, self.message, undone_by=self.undone_by or undone_by)


class NodeFilter(ABC):
    """Decides which nodes a class of tasks may use. Override `mask` and `explain`; `mask` is performance critical."""

    name: ClassVar[str]
    scope: ClassVar[Scope]
    resolvable: ClassVar[bool] = False
    """True: every refusal of this filter might be undone by an eviction, so no explanation is needed to know."""
    figures_only: ClassVar[bool] = False
    """True: the mask depends on nothing but the columns of `Figures`, so that it also holds for hypothetical figures."""
    undone_by: ClassVar[tuple[Event, ...]] = (Event.NODE_ADDED, Event.NODE_CHANGED)
    """What can turn this filter's refusal into a pass."""
    selects_nodes: ClassVar[bool] = False
    """True: the filter applies the node selector and node affinity of the pod."""
    reads_only_node_rules: ClassVar[bool] = False
    """True, for STATIC filters: the answer is the same for pods with the same rules about nodes (`model.tables.shapes.node_rules`)."""
    configuration: Hashable = ()
    """The plugin's arguments in the policy, set by the engine: static answers are cached with them."""
    has_last_word: bool = True
    """False: later filters also check nodes whose refusal an eviction could undo, and add their reasons."""

    def applies(self, task: TaskClass) -> bool:
        """False: every node passes, and the filter is not asked in this cycle for the class."""
        return True

    def reject(self, task: TaskClass) -> Rejection | None:
        """A rejection of the task before any node is filtered. Called for each attempt, and only if the filter applies."""
        return None

    def post_filter(self, task: TaskClass) -> str:
        """Called for a pod that no node takes. The filter may make room for its next attempt (kube-scheduler's PostFilter). Returns
        what it did, or why it did nothing."""
        return ""

    def named_nodes(self, task: TaskClass) -> frozenset[str] | None:
        """The nodes that the task itself names; only these are filtered. None: it names no node."""
        return None

    @abstractmethod
    def mask(self, task: TaskClass, at: Figures) -> BoolArray:
        """True where the node passes, one value for each column of `at`."""

    def mask_now(self, task: TaskClass, at: Figures) -> BoolArray | None:
        """For ROW filters that know what is being released: where the task fits beside the pods that are leaving. A node that passes
        `mask` and not this is promised, not given. None: the filter makes no such difference."""
        return None

    def moved_by_own_class(self, task: TaskClass) -> bool:
        """Whether placing a task of the class changes the answer on other nodes for the next task of the class."""
        return self.scope is Scope.GLOBAL

    def closes(self, task: TaskClass) -> Sequence[tuple[Rows, int]]:
        """For filters where a placement only excludes its domains for the next task of the class: (domain number of every node,
        the number that means no domain), for each kind of domain. Empty: a placement may change more."""
        return ()

    def explain(self, task: TaskClass, at: Figures) -> Iterable[Refusal]:
        """The reasons of the nodes that refuse. Called only when a task found no node."""
        return [Refusal(self.name, ~self.mask(task, at))]

    def identity(self) -> Hashable:
        """Equal identities give equal static answers. The class and the plugin's arguments are in it; add what else matters."""
        return (type(self), self.configuration)


class NodeScorer(ABC):
    """Scores nodes for a class of tasks: higher is better. The total is the sum over scorers of weight times score."""

    name: ClassVar[str]
    scope: ClassVar[Scope]
    weight: float = 1.0
    configuration: Hashable = ()
    reads_only_node_rules: ClassVar[bool] = False
    """See `NodeFilter.reads_only_node_rules`."""
    normalises: ClassVar[bool] = False
    """True: `normalise` maps the raw column given its extremes over the feasible nodes."""

    def applies(self, task: TaskClass) -> bool:
        return True

    def problem(self, task: TaskClass) -> str:
        """An error in the task's own preferences; empty if there is none. An error fails the attempt."""
        return ""

    @abstractmethod
    def raw(self, task: TaskClass, at: Figures) -> FloatArray:
        """One number for each column of `at`."""

    def normalise(self, task: TaskClass, raw: FloatArray, low: float, high: float) -> FloatArray:
        """The score from the raw column; `low` and `high` are its extremes over the feasible nodes."""
        return raw

    def is_level(self, task: TaskClass, nodes: BoolArray) -> bool:
        """Whether a GLOBAL score is the same for all these nodes, and stays so while tasks of the class are placed on them."""
        return False

    def prepare(self, task: TaskClass, feasible: BoolArray) -> None:
        """Called before `raw` with the candidate nodes, for GLOBAL scores whose raw column depends on them."""
        return None

    def placement(self, tasks: Sequence[TaskClass], nodes: BoolArray) -> int | None:
        """How good it is, from 0 to 100, to give a group of tasks these nodes, which are one domain of its topology. None: this score
        does not compare domains."""
        return None

    def failure(self, task: TaskClass) -> Reason | None:
        """After a node was chosen by a GLOBAL score: why the scores do not count, so that the task is not placed."""
        return None

    def identity(self) -> Hashable:
        return (type(self), self.configuration)


NodeFunction = NodeFilter | NodeScorer


def first_rejection(filters: Iterable[NodeFilter], task: TaskClass) -> tuple[NodeFilter, Rejection] | None:
    """The last rejection that an eviction might undo, or the first other one, after which no filter is asked."""
    found: tuple[NodeFilter, Rejection] | None = None
    for rule in filters:
        rejection = rule.reject(task) if rule.applies(task) else None
        if rejection is not None:
            found = rule, rejection
            if rejection.unresolvable or rejection.error:
                break
    return found
