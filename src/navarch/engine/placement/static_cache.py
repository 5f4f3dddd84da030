"""Static answers cached across cycles: masks and raw scores that depend only on labels, taints and other node properties.

The memo belongs to the cluster and every snapshot carries it. An entry is valid while the nodes' version is the same. Its key is
the function's identity and the Shape value, or the shape's rules about nodes where the function reads nothing else, so there is no
explicit invalidation. When the memo is full, the least recently used entries are dropped; the more nodes, the fewer entries fit, so
that memory stays bounded.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING, TypeVar

import numpy as np
import numpy.typing as npt

from navarch.engine.node_functions import NodeFilter, NodeFunction, NodeScorer, TaskClass
from navarch.model.memo import memoised
from navarch.model.resources import BoolArray, FloatArray
from navarch.model.spec import Shape

if TYPE_CHECKING:
    from navarch.engine.session import Session

LIMIT = 4096
LIMIT_BYTES = 512 << 20
A = TypeVar("A", bound=npt.NDArray[np.generic])


def static_mask(session: Session, function: NodeFilter, task: TaskClass) -> BoolArray:
    return static_answer(
        session, ("mask", function.identity(), _read_of(session, function, task)), lambda: function.mask(task, session.nodes)
    )


def static_raw(session: Session, function: NodeScorer, task: TaskClass) -> FloatArray:
    return static_answer(
        session, ("raw", function.identity(), _read_of(session, function, task)), lambda: function.raw(task, session.nodes)
    )


def _read_of(session: Session, function: NodeFunction, task: TaskClass) -> Shape:
    return session.snapshot.shape_node_rules[task.shape_number] if function.reads_only_node_rules else task.shape


def static_answer(session: Session, key: Hashable, compute: Callable[[], A]) -> A:
    """The array under this key; computed again when the nodes have changed."""
    memo = session.snapshot.memo
    found = memoised(session.snapshot, key, session.snapshot.nodes.version, compute)
    if len(memo) > min(LIMIT, LIMIT_BYTES // (found.nbytes or 1)):
        del memo[next(iter(memo))]
    return found
