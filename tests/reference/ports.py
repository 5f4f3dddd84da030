"""NodePorts: a host port is held by one pod of a node."""

from __future__ import annotations

from tests.reference.cluster import Object, Port, host_ports, name_of
from tests.reference.plugin import Plugin
from tests.reference.status import SKIP, SUCCESS, Status, unschedulable

ANY_ADDRESS = "0.0.0.0"


def conflict(wanted: Port, held: Port) -> bool:
    same_door = wanted[1:] == held[1:]
    return same_door and (ANY_ADDRESS in (wanted[0], held[0]) or wanted[0] == held[0])


class NodePorts(Plugin):
    def pre_filter(self) -> Status:
        return SUCCESS if host_ports(self.pod) else SKIP

    def filter(self, node: Object) -> Status:
        held = self.cluster.ports_on(name_of(node))
        if any(conflict(want, have) for want in host_ports(self.pod) for have in held):
            return unschedulable("node(s) didn't have free ports for the requested pod ports")
        return SUCCESS
