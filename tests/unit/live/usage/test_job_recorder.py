"""The live scheduler's history of jobs: what the watch shows becomes rows, once."""

from __future__ import annotations

import asyncio
from pathlib import Path

from msgspec.structs import replace
from tests.worlds.live_parts.cluster_cache import cache, group, pod, put

from navarch.apis.core.objects import from_manifest
from navarch.apis.core.pod_objects import Pod, PodStatus
from navarch.job_history import JobRun, read_history
from navarch.live.cache.cluster_cache import ClusterCache
from navarch.live.usage.job_recorder import JobRecorder


class Scene:
    def __init__(self, path: Path) -> None:
        self.path = path
        self.now = 1000.0
        self.recorder = JobRecorder(path, lambda: self.cache.cluster, lambda: self.now)
        self.cache: ClusterCache = cache(pod_watcher=self.recorder)[0]

    def show(self, name: str, phase: str, *, group: str = "", node: str = "n1") -> None:
        found: Pod = pod(name, node if phase != "Pending" else "", phase, group)
        if phase == "Running":
            status = from_manifest({"phase": phase, "startTime": f"1970-01-01T00:{int(self.now) // 60:02}:00Z"}, PodStatus)
            found = replace(found, status=status)
        put(self.cache, found)

    def written(self) -> dict[str, JobRun]:
        asyncio.run(self.recorder.write(at_once=True))
        return {run.uid: run for run in read_history(self.path)}

    def close(self) -> None:
        asyncio.run(self.recorder.close())


def test_a_gang_is_one_row_that_ends_with_its_last_pod(tmp_path: Path) -> None:
    scene = Scene(tmp_path / "runs.db")
    scene.cache.put(group("g", 2))
    for name in ("a-0", "a-1"):
        scene.show(name, "Pending", group="g")
    assert [(run.uid, run.started, run.finished) for run in scene.written().values()] == [("uid-g", None, None)]
    scene.now = 1200.0
    for name in ("a-0", "a-1"):
        scene.show(name, "Running", group="g")
    scene.now = 1500.0
    scene.show("a-0", "Succeeded", group="g")
    assert scene.written()["uid-g"].finished is None
    scene.now = 1600.0
    scene.show("a-1", "Succeeded", group="g")
    row = scene.written()["uid-g"]
    assert (row.started, row.finished, row.needed, sum(count for count, _, _ in row.pods)) == (1200.0, 1600.0, 2, 2)
    scene.close()


def test_a_gang_ends_as_well_when_what_still_ran_is_deleted(tmp_path: Path) -> None:
    scene = Scene(tmp_path / "runs.db")
    scene.cache.put(group("g", 2))
    for name in ("a-0", "a-1"):
        scene.show(name, "Running", group="g")
    scene.show("a-0", "Succeeded", group="g")
    scene.now = 1700.0
    scene.cache.remove_pod("uid-a-1")
    assert scene.written()["uid-g"].finished == 1700.0
    scene.close()


def test_pods_without_a_gang_are_rows_of_their_own_and_a_deleted_one_has_no_end(tmp_path: Path) -> None:
    scene = Scene(tmp_path / "runs.db")
    scene.show("a", "Running")
    scene.show("b", "Running")
    scene.now = 1100.0
    scene.show("a", "Failed")
    scene.cache.remove_pod("uid-b")
    rows = scene.written()
    assert (rows["uid-a"].finished, rows["uid-b"].finished) == (1100.0, None)
    scene.close()


def test_an_interrupted_scheduler_completes_the_row_that_it_began(tmp_path: Path) -> None:
    first = Scene(tmp_path / "runs.db")
    first.show("a", "Running")
    first.close()
    second = Scene(tmp_path / "runs.db")
    second.show("a", "Running")
    second.now = 2000.0
    second.show("a", "Succeeded")
    assert {(run.uid, run.finished) for run in second.written().values()} == {("uid-a", 2000.0)}
    second.close()
