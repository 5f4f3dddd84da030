"""NodePorts: two pods cannot listen on one port of one host.

In a dry run the ports of a node are a set, as in kube-scheduler: where two pods hold the same one, it is free once either goes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial

import numpy as np

from navarch.engine.figures import Figures, Rows
from navarch.engine.node_functions import NodeFilter, Refusal, Scope, TaskClass
from navarch.engine.reasons import Event
from navarch.engine.session import Session
from navarch.model.resources import BoolArray, IntArray
from navarch.model.spec import HostPort
from navarch.plugins.predicates.pods.placed_pods import placed_pods, watch_pods

MESSAGE = "node(s) didn't have free ports for the requested pod ports"
ANY = "0.0.0.0"


class UsedPorts:
    """(protocol, port) -> address -> how many pods of each node hold it."""

    def __init__(self, session: Session) -> None:
        self.size = len(session.nodes)
        self._used: dict[tuple[str, int], dict[str, IntArray]] = {}
        placed = self._placed = placed_pods(session)
        for shape, rows in placed.of_shapes(lambda shape: shape.ports):
            nodes = placed.where[rows]
            for port in shape.ports:
                np.add.at(self._column(port), nodes, 1)
        placed.listen(self._moved)

    def _column(self, port: HostPort) -> IntArray:
        addresses = self._used.setdefault((port.protocol, port.port), {})
        found = addresses.get(port.ip)
        if found is None:
            found = addresses[port.ip] = np.zeros(self.size, dtype=np.int64)
        return found

    def _moved(self, task: TaskClass, tasks: Sequence[int], nodes: Sequence[int], step: int) -> None:
        journal = self._placed.journal
        for port in task.shape.ports:
            column = self._column(port)
            for node in nodes:
                if journal is None:
                    column[node] += step
                else:
                    journal.append(partial(column.__setitem__, node, int(column[node])))
                    column[node] = column[node] + 1 if step > 0 else 0

    def free(self, ports: Iterable[HostPort], rows: Rows | slice) -> BoolArray:
        """Of these nodes, those where none of the ports is in use."""
        out: BoolArray = np.ones(self.size, dtype=bool)[rows]
        for port in ports:
            for address, nodes in self._used.get((port.protocol, port.port), {}).items():
                if address == port.ip or ANY in (address, port.ip):
                    out &= nodes[rows] <= 0
        return out


class NodePorts(NodeFilter):
    name = "NodePorts"
    scope = Scope.ROW
    resolvable = True
    undone_by = (Event.POD_REMOVED, Event.NODE_ADDED)

    def __init__(self, session: Session) -> None:
        self.session = session
        watch_pods(session, lambda shape: shape.ports)

    def applies(self, task: TaskClass) -> bool:
        return bool(task.shape.ports)

    def mask(self, task: TaskClass, at: Figures) -> BoolArray:
        free = self.session.shared(UsedPorts).free(task.shape.ports, at.rows)
        return free if at.added is None else free & (at.added == 0)

    def explain(self, task: TaskClass, at: Figures) -> Iterable[Refusal]:
        return [Refusal(MESSAGE, ~self.mask(task, at), code="NodePorts")]
