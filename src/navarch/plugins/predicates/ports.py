"""NodePorts: two pods cannot listen on one port of one host.

Used ports are a set a node, as in kube-scheduler: where two pods hold the same port, it is free once either of them goes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from navarch.engine.figures import Figures, Rows
from navarch.engine.node_functions import NodeFilter, Refusal, Scope, TaskClass
from navarch.engine.reasons import Event
from navarch.engine.session import Session
from navarch.model.resources import BoolArray
from navarch.model.spec import HostPort
from navarch.plugins.predicates.placed_pods import placed_pods, watch_pods

MESSAGE = "node(s) didn't have free ports for the requested pod ports"
ANY = "0.0.0.0"


class UsedPorts:
    """(protocol, port) -> address -> nodes where it is taken."""

    def __init__(self, session: Session) -> None:
        self.size = len(session.nodes)
        self._used: dict[tuple[str, int], dict[str, BoolArray]] = {}
        placed = placed_pods(session)
        for shape, rows in placed.of_shapes(lambda shape: shape.ports):
            nodes = placed.where[rows]
            for port in shape.ports:
                self._column(port)[nodes] = True
        placed.listen(self._moved)

    def _column(self, port: HostPort) -> BoolArray:
        addresses = self._used.setdefault((port.protocol, port.port), {})
        found = addresses.get(port.ip)
        if found is None:
            found = addresses[port.ip] = np.zeros(self.size, dtype=bool)
        return found

    def _moved(self, task: TaskClass, tasks: Sequence[int], nodes: Sequence[int], step: int) -> None:
        for port in task.shape.ports:
            self._column(port)[nodes] = step > 0

    def free(self, ports: Iterable[HostPort], rows: Rows | slice) -> BoolArray:
        """Of these nodes, those where none of the ports is in use."""
        out: BoolArray = np.ones(self.size, dtype=bool)[rows]
        for port in ports:
            for address, nodes in self._used.get((port.protocol, port.port), {}).items():
                if address == port.ip or ANY in (address, port.ip):
                    out &= ~nodes[rows]
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
