"""Pods that hold a node and whose requests cannot be read. Such a node takes no more pods until the pod is gone or can be read.

In the model the pod holds all that its node has, and the node is cordoned. So a refusal says "unschedulable" instead of naming a
resource, and pods that request nothing are refused as well. The pod belongs to no job, so no action evicts it.
"""

from __future__ import annotations

from collections.abc import Callable

from msgspec.structs import replace

from navarch.apis.core.pod_objects import Pod
from navarch.model.spec import NodeSpec, Shape, TaskSpec
from navarch.model.status import TaskStatus

HIGHEST_PRIORITY = (1 << 31) - 1


class UnreadablePods:
    """`put_task` and `put_node` change the model. `put_node` calls `node` for what to put."""

    def __init__(self, put_task: Callable[[TaskSpec], None], put_node: Callable[[NodeSpec], None]) -> None:
        self._put_task = put_task
        self._put_node = put_node
        self._tasks: dict[str, TaskSpec] = {}
        self._nodes: dict[str, NodeSpec] = {}
        """The nodes of these pods as their objects say, if they are known."""

    def __contains__(self, uid: str) -> bool:
        return uid in self._tasks

    def __len__(self) -> int:
        return len(self._tasks)

    @property
    def nodes(self) -> set[str]:
        return {task.node for task in self._tasks.values()}

    def put(self, pod: Pod, node: NodeSpec | None) -> None:
        """`node` is the pod's node as the model has it now."""
        meta = pod.metadata
        uid, name = meta.uid or pod.key, pod.spec.node_name or ""
        node = self._nodes.get(name, node)
        self.remove(uid)
        task = self._tasks[uid] = TaskSpec(
            uid=uid,
            namespace=meta.namespace or "default",
            name=meta.name,
            shape=Shape(),
            node=name,
            status=TaskStatus.RUNNING,
            priority=HIGHEST_PRIORITY,
            pod_priority=HIGHEST_PRIORITY,
            preemptable=False,
            labels=meta.label_map,
            created=meta.created,
        )
        self._put_task(task)
        if node is not None:
            self._put_node(node)

    def remove(self, uid: str) -> None:
        """The pod is gone, or can be read now."""
        task = self._tasks.pop(uid, None)
        node = self._nodes.pop(task.node, None) if task is not None else None
        if node is not None:
            self._put_node(node)

    def node(self, node: NodeSpec) -> NodeSpec:
        """The node to put into the model: full and cordoned if such a pod is on it. The pod may be known before its node."""
        here = [task for task in self._tasks.values() if task.node == node.name]
        if not here:
            return node
        self._nodes[node.name] = node
        held = tuple(amount for amount in node.allocatable if amount[0] != "pods")
        for task in here:
            self._put_task(replace(task, shape=Shape(requests=held)))
        return replace(node, unschedulable=True)

    def node_gone(self, name: str) -> None:
        """What the pods on it hold is no longer known."""
        if self._nodes.pop(name, None) is not None:
            for task in [task for task in self._tasks.values() if task.node == name]:
                self._put_task(task)
