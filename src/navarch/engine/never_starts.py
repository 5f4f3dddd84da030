"""Jobs that can never start on the nodes there are, whatever ends: found without a trial, by a bound on room.

Each pod of a gang is one that some number of nodes could take if they were empty. Where all pods of the job together find fewer such
places than the gang needs, it does not start on the empty cluster. The bound is generous: it forgets that pods of different kinds
compete for the same node, it looks at no queue, and it counts nodes that are cordoned or not ready as open. So it may miss a job that
never starts, but what it finds is sure.

Conditions, events, `navarch jobs` and `navarch explain` all tell what is found here, in one sentence: a resource or a label that no
node has and the nearest one, or the amounts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from typing import TYPE_CHECKING

import numpy as np

from navarch.engine.reasons import Event, Reason
from navarch.model.node_facts import node_column, node_fact
from navarch.model.resources import BoolArray, IntArray, format_amount
from navarch.model.spec import NodeSpec, Shape
from navarch.model.status import TaskStatus

if TYPE_CHECKING:
    from navarch.engine.job import Job
    from navarch.engine.session import Session

_UNDONE_BY = (Event.NODE_ADDED, Event.NODE_CHANGED, Event.JOB_CHANGED, Event.POD_CHANGED)


def never_starts(session: Session, job: Job) -> Reason | None:
    """Why the job does not start even on empty nodes; None: it might."""
    pending = list(job.tasks_in(TaskStatus.PENDING))
    needed = min(max(1, job.min_member) - job.ready_count, len(pending))
    if needed <= 0 or not len(session.nodes.names):
        return None  # in the second case figures of nodes are not those of empty ones
    if session.shard_is_hard and session.shard_problems:
        return None  # the nodes are there, and the shard can get them
    places, room = session.shared(EmptyPlaces), 0
    counts = Counter(session.class_of(task).number for task in pending)
    first: dict[int, int] = {}
    for task in pending:
        number = session.class_of(task).number
        if number not in first:
            first[number] = task
            room += min(counts[number], places.of(task))
            if room >= needed:
                return None
    tightest = min(first.values(), key=lambda task: (places.of(task), session.task(task).name))
    text = _why(session, job, pending, needed, room, tightest, places.open_to(tightest))
    return Reason("NeverStarts", f"cannot start: {text}", figures={"room": room, "needed": needed}, undone_by=_UNDONE_BY)


class EmptyPlaces:
    """How many pods of a class all nodes could take if they were empty. Computed once a class and session."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._places: dict[int, int] = {}
        closed = node_column(session.snapshot, "cordoned or not ready", lambda spec: spec.unschedulable or not spec.ready, np.bool_)
        self._closed: BoolArray = closed

    def of(self, task: int) -> int:
        """By labels, taints and amounts alone."""
        number = self._session.class_of(task).number
        found = self._places.get(number)
        if found is None:
            found = self._places[number] = self._count(task)
        return found

    def open_to(self, task: int) -> BoolArray:
        """(nodes,): those that labels and taints leave open to it."""
        view = self._session.view(self._session.class_of(task))
        found: BoolArray = view.static | self._closed
        return found

    def _count(self, task: int) -> int:
        session = self._session
        kind = session.class_of(task)
        if _absent_label(session, session.task(task).shape):
            return 0
        open_to = np.flatnonzero(self.open_to(task))
        if not len(open_to) and _waits_for_objects(session.task(task).shape):
            return len(session.status)
        dims = np.flatnonzero(kind.request > 0)
        if not len(dims):
            return len(session.status) if len(open_to) else 0
        size = session.snapshot.nodes.allocatable[np.ix_(dims, open_to)]
        each = size // kind.request[dims, None]
        if (claimed := session.left_to_claims(dims)) is not None:
            each = np.where(claimed[:, open_to], len(session.status), each)
        each = each.min(axis=0)
        return int(np.maximum(each, 0).sum())


def _waits_for_objects(shape: Shape) -> bool:
    """Whether objects that are no nodes decide where it may go. A claim that is missing now can come."""
    return shape.volumes is not None or bool(shape.claims)


def _why(session: Session, job: Job, pending: Sequence[int], needed: int, room: int, tightest: int, open_to: BoolArray) -> str:
    """`tightest`: a task of the class with the fewest places, `open_to`: the nodes for it."""
    shape, request = session.task(tightest).shape, session.class_of(tightest).request
    allocatable = session.snapshot.nodes.allocatable
    offered = _offered(session, allocatable)
    names, claimable = session.snapshot.resource_names, session.claimable_dims
    offered += [names[dim] for dim in sorted(claimable)]
    absent = [name for name, amount in shape.requests if amount > 0 and name not in offered]
    if absent:
        return f"no node offers {absent[0]}{_near(absent[0], offered)}"
    if text := _absent_label(session, shape):
        return text
    if not open_to.any():
        errors = job.fit_errors.get(tightest)
        return errors.text(session.semantics).rstrip(".") if errors else "labels, affinity and taints leave it no node"
    most = allocatable[:, open_to].max(axis=1)
    for dim in (dim for dim in np.flatnonzero(request > most).tolist() if dim not in claimable):
        which = "largest node" if open_to.all() else "largest node that it may use"
        return f"one pod needs {_amount(names[dim], request[dim])}, the {which} has {format_amount(names[dim], int(most[dim]))}"
    least = np.sort(np.stack([session.class_of(task).request for task in pending]), axis=0)[:needed].sum(axis=0)
    total = allocatable[:, open_to].sum(axis=1)
    lacking = [dim for dim in np.flatnonzero(least > total).tolist() if dim not in claimable]
    for dim in sorted(lacking, key=lambda dim: (names[dim] in ("cpu", "memory", "pods"), names[dim])):
        which = "the cluster has" if open_to.all() else "the nodes that it may use have"
        return f"needs {_amount(names[dim], least[dim])}, {which} {format_amount(names[dim], int(total[dim]))}"
    return f"the empty cluster has room for {room} of the {needed} pods that it needs"


def _offered(session: Session, allocatable: IntArray) -> list[str]:
    some = allocatable.max(axis=1, initial=0) > 0
    return [name for name, there in zip(session.snapshot.resource_names, some.tolist()) if there]


def _amount(name: str, amount: int) -> str:
    """
    >>> _amount("nvidia.com/gpu", 33000), _amount("cpu", 500500), _amount("memory", 1 << 30), _amount("example.com/fpga", 2000)
    ('33 GPUs', '500.5 CPUs', '1Gi of memory', '2 example.com/fpga')
    """
    text = f"{int(amount) / 1000:.12g}" if name == "cpu" else format_amount(name, int(amount))
    word = "GPU" if name.endswith("/gpu") else "CPU" if name == "cpu" else ""
    if word:
        return f"{text} {word}" if text == "1" else f"{text} {word}s"
    return f"{text} of memory" if name == "memory" else f"{text} {name}"


def _absent_label(session: Session, shape: Shape) -> str:
    """What its node selector or its only required term of node affinity wants that no node has; empty: nothing of the kind."""
    wanted: list[tuple[str, tuple[str, ...]]] = [(key, (value,)) for key, value in shape.node_selector]
    required = shape.node_affinity.required if shape.node_affinity is not None else None
    if required is not None and len(required) == 1:
        tests = (each for each in required[0].expressions if each.operator in ("In", "Exists"))
        wanted += ((each.key, each.values if each.operator == "In" else ()) for each in tests)
    if not wanted:
        return ""
    known = node_fact(session.snapshot, "labels and their values", _label_values)
    for key, values in wanted:
        if key not in known:
            return f"no node has the label {key}{_near(key, known)}"
        if values and known[key].isdisjoint(values):
            said = f"{key}={values[0]}" if len(values) == 1 else f"{key} with the value {' or '.join(values)}"
            near = get_close_matches(values[0], sorted(known[key]), n=1)
            return f"no node has the label {said}" + (f"; did you mean {key}={near[0]}?" if near else "")
    return ""


def _label_values(specs: Sequence[NodeSpec]) -> Mapping[str, set[str]]:
    found: dict[str, set[str]] = {}
    for spec in specs:
        for key, value in spec.labels.items():
            found.setdefault(key, set()).add(value)
    return found


def _near(name: str, known: Iterable[str]) -> str:
    near = get_close_matches(name, sorted(known), n=1, cutoff=0.75)
    return f"; did you mean {near[0]}?" if near else ""
