"""What a live cycle names."""

from __future__ import annotations

from tests.worlds.small_cluster import with_nodes

from navarch.engine.policy import preset
from navarch.installed import installed
from navarch.live.cycle import run_cycle
from navarch.model.resources import requests_from
from navarch.model.spec import DeviceRequest, JobSpec, QueueShare, QueueSpec, Shape, TaskSpec


def test_gpus_that_are_shared_anew_have_names_that_no_other_cycle_gives() -> None:
    """KAI's binder knows a GPU by that name alone, whichever scheduler chose it and on whichever node it is."""
    half = Shape(requests=requests_from({"cpu": "1"}), devices=DeviceRequest(fraction=500))
    free = QueueShare(-1.0, -1.0, 1.0)
    groups: list[str] = []
    for uid in ("one-7", "two-7"):
        cluster = with_nodes(("n", {"cpu": 8, "nvidia.com/gpu": 2}))
        cluster.put_queue(QueueSpec("q", state="Open", shares={"cpu": free, "memory": free, "gpu": free}))
        cluster.put_job(JobSpec("ns/j", "q", 1, "ns", "j", "j", "kai"))
        cluster.put_task(TaskSpec("p", "ns", "p", half, "ns/j"))
        (bind,) = run_cycle(cluster, preset("kai", installed().catalogue()), installed(), 0.0, 7, uid).record.binds
        groups += bind.gpu_groups
    assert groups == ["one-7-1", "two-7-1"]
