"""What kinds of GPU a node has may change while its labels stay: a device plugin starts after the node, a driver announces."""

from __future__ import annotations

from navarch.engine.cycle import decide
from navarch.engine.policy import PRESETS, load
from navarch.installed import installed
from navarch.model.cluster import Cluster
from navarch.model.spec import DeviceRequest, JobSpec, NodeSpec, QueueShare, QueueSpec, Requests, Shape, Taint, TaskSpec
from navarch.model.status import TaskStatus

SLICE = "nvidia.com/mig-1g.5gb"
ROOM: Requests = (("cpu", 8000), ("memory", 8 << 30), ("pods", 100))
GPU: Requests = (("nvidia.com/gpu", 1000),)


def cluster(shape: Shape, allocatable: Requests) -> Cluster:
    made = Cluster()
    free = QueueShare(-1.0, -1.0, 1.0)
    made.put_queue(QueueSpec("q", state="Open", shares={"cpu": free, "memory": free, "gpu": free}))
    made.put_node(NodeSpec("n", allocatable=allocatable))
    made.put_job(JobSpec("ns/j", "q", 1, "ns", "j", "j", "kai", preemptable=True, phase="Inqueue"))
    made.put_task(TaskSpec("p", "ns", "p", shape, "ns/j", "", TaskStatus.PENDING, phase="Pending"))
    return made


def bound(made: Cluster) -> list[str]:
    registry = installed()
    policy = load(PRESETS["kai"], registry.catalogue())
    return [each.node for each in decide(made.snapshot(), policy, registry, 0.0).binds]


def test_slices_that_a_node_gets_later_are_seen() -> None:
    made = cluster(Shape(requests=((SLICE, 1000),)), ROOM)
    made.put_node(NodeSpec("large enough", allocatable=(*ROOM, (SLICE, 1000)), taints=(Taint("keep", "out"),)))
    assert bound(made) == []
    made.put_node(NodeSpec("n", allocatable=(*ROOM, (SLICE, 1000))))
    assert bound(made) == ["n"]


def test_devices_that_a_driver_announces_later_are_seen() -> None:
    made = cluster(Shape(devices=DeviceRequest(fraction=500)), (*ROOM, *GPU))
    announced = {"spec": {"nodeName": "n", "driver": "gpu.nvidia.com", "devices": [{"name": "gpu-0"}]}}
    assert bound(made) == ["n"]
    made.put_object("ResourceSlice", "", "s", announced)
    assert bound(made) == []
