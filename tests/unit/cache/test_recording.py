"""A recording holds what a cycle read, and deciding it again gives the same bytes; whatever rows were free at the time."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.small_world import add_job, shape, with_nodes

from navarch import replay
from navarch.cache import recording as recordings
from navarch.cache.cycle import Cycle, run_cycle
from navarch.cache.recording import Recorder, encoded
from navarch.engine.policy import load
from navarch.installed import installed
from navarch.model.cluster import Cluster
from navarch.model.spec import NamespaceSpec, QueueSpec

POLICY = {
    "actions": "allocate, backfill, preempt",
    "tiers": [
        {"plugins": [{"name": "priority"}, {"name": "gang"}]},
        {"plugins": [{"name": "predicates"}, {"name": "proportion"}, {"name": "nodeorder"}]},
    ],
}


def world(sizes: list[int], removed: list[int]) -> Cluster:
    cluster = with_nodes(("n1", {"cpu": 4}), ("n2", {"cpu": 8}))
    for i, size in enumerate(sizes):
        add_job(cluster, f"job{i}", [shape(cpu=1 + i % 3)] * size, priority=i % 2, created=float(i))
    for number in removed:
        for spec in [s for s in cluster.tasks.specs if s is not None and s.job == f"ns/job{number % max(len(sizes), 1)}"][:1]:
            cluster.remove_task(spec.uid)
    add_job(cluster, "late", [shape(cpu=2)] * 2, created=99.0)
    return cluster


@settings(max_examples=40, deadline=None)
@given(st.lists(st.integers(1, 5), max_size=6), st.lists(st.integers(0, 5), max_size=8), st.booleans())
def test_the_same_policy_decides_the_same_bytes(sizes: list[int], removed: list[int], hold: bool) -> None:
    cluster = world(sizes, removed)
    registry = installed()
    policy = load(POLICY, registry.catalogue(), "test")
    cluster.jobs.hold("ns/job0", hold)
    cycle = run_cycle(cluster, policy, registry, 1000.0, 1, "cycle-1")
    recording = replay.read(encoded(cycle))
    assert replay.decisions(replay.again(recording, registry)) == bytes(recording.decisions)


def test_what_kubectl_keeps_in_annotations_is_left_out() -> None:
    cluster = world([1], [])
    spec = next(s for s in cluster.tasks.specs if s is not None)
    secret = {"kubectl.kubernetes.io/last-applied-configuration": '{"env": "hush"}', "kept": "yes"}
    cluster.put_task(replace(spec, annotations=secret))
    registry = installed()
    cycle = run_cycle(cluster, load(POLICY, registry.catalogue(), "test"), registry, 0.0, 1, "c")
    text = gzip.decompress(encoded(cycle)).decode()
    assert "hush" not in text
    assert '"kept":"yes"' in text


def test_what_people_put_passwords_into_is_left_out() -> None:
    cluster = world([1], [])
    told = {"kubectl.kubernetes.io/last-applied-configuration": "hush", "kept": "yes"}
    cluster.put_node(replace(next(spec for spec in cluster.nodes.specs if spec is not None), annotations=told))
    cluster.put_namespace(NamespaceSpec("ns", annotations=told))
    cluster.put_queue(QueueSpec("team", annotations=told))
    csi = {"driver": "d", "volumeHandle": "v", "volumeAttributes": {"password": "hush"}}
    cluster.put_object("PersistentVolume", "", "v", {"metadata": {"name": "v", "annotations": told}, "spec": {"csi": csi}})
    cluster.put_object("StorageClass", "", "c", {"metadata": {"name": "c"}, "parameters": {"restuserkey": "hush"}})
    usage = {"clientType": "prometheus", "connectionString": "http://me:hush@prometheus:9090/path"}
    registry = installed()
    policy = load({**POLICY, "usageDBConfig": usage}, registry.catalogue(), "test")
    recorded = encoded(run_cycle(cluster, policy, registry, 0.0, 1, "c"))
    text = gzip.decompress(recorded).decode()
    assert "hush" not in text
    assert text.count('"kept":"yes"') == 4 and '"volumeHandle":"v"' in text and "http://prometheus:9090/path" in text
    recording = replay.read(recorded)
    assert replay.decisions(replay.again(recording, registry)) == bytes(recording.decisions)


@pytest.mark.parametrize("content", [b"", b"not gzip", gzip.compress(b"{}", mtime=0), gzip.compress(b"nonsense", mtime=0)])
def test_what_is_no_recording_is_named(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "broken.json.gz"
    file.write_bytes(content)
    with pytest.raises(replay.RecordingError, match=r"broken\.json\.gz: expected a recording"):
        replay.read(file)


def test_a_difference_is_told_line_by_line() -> None:
    cluster = world([2], [])
    registry = installed()
    cycle = run_cycle(cluster, load(POLICY, registry.catalogue(), "test"), registry, 0.0, 1, "c")
    recording = replay.read(encoded(cycle))
    nothing = load({**POLICY, "actions": "backfill"}, registry.catalogue(), "other")
    after = replay.decisions(replay.again(recording, registry, nothing))
    lines = replay.difference(recording.decisions, after)
    assert any(line.startswith("bind ns/job0") and line.endswith("-> nothing") for line in lines), lines
    assert any(line.startswith("job ns/job0: ") for line in lines)
    for line in lines:
        before, arrow, then = line.partition(": ")[2].partition(" -> ")
        assert not arrow or before != then, f"{line!r} does not say what is different"


@pytest.mark.parametrize("error", [OSError("no space left"), TypeError("cannot be encoded")])
async def test_a_recording_that_fails_is_logged_with_its_cycle(
    error: Exception, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fails(cycle: Cycle) -> bytes:
        raise error

    registry = installed()
    cycle = run_cycle(world([1], []), load(POLICY, registry.catalogue(), "test"), registry, 0.0, 7, "c")
    monkeypatch.setattr(recordings, "encoded", fails)
    recorder = Recorder(tmp_path)
    assert recorder.take(cycle)
    await recorder.finish()
    assert "cycle 7 was not recorded" in caplog.text and str(error) in caplog.text
    monkeypatch.undo()
    assert recorder.take(cycle), "the next cycles are recorded"
    await recorder.finish()
    assert len(list(tmp_path.iterdir())) == 1
