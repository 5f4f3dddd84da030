"""A recording holds what a cycle read, and deciding it again gives the same bytes; whatever rows were free at the time."""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Sequence
from pathlib import Path

import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.worlds.small_cluster import add_job, shape, with_nodes

from navarch.cli.replay import replay as replay_command
from navarch.engine.policy import load
from navarch.installed import installed
from navarch.live.cycle import Cycle, run_cycle
from navarch.live.ops import recording as recordings
from navarch.live.ops.recording import CycleRecorder, encoded
from navarch.model.cluster import Cluster
from navarch.model.node_load import NODE_LOAD, NodeLoad
from navarch.model.objects.bind_requests import BindRequestSpec
from navarch.model.objects.numa import CpuSpec, CpuTopologySpec, NodeNumaSpec, NumaZoneSpec
from navarch.model.objects.queue_usage import QUEUE_USAGE
from navarch.model.objects.topologies import HyperNodeSpec, LevelSpec, MemberSpec, TopologySpec
from navarch.model.spec import NamespaceSpec, QueueSpec
from navarch.offline import replay
from navarch.version import version

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


def test_kubectls_annotations_are_left_out() -> None:
    cluster = world([1], [])
    spec = next(s for s in cluster.tasks.specs if s is not None)
    applied = {"kubectl.kubernetes.io/last-applied-configuration": '{"env": "hush"}'}
    secret = {**applied, "volcano.sh/kept": "yes", "example.com/token": "hush"}
    cluster.put_task(replace(spec, annotations=secret))
    registry = installed()
    cycle = run_cycle(cluster, load(POLICY, registry.catalogue(), "test"), registry, 0.0, 1, "c")
    text = gzip.decompress(encoded(cycle)).decode()
    assert "hush" not in text
    assert '"volcano.sh/kept":"yes"' in text


def test_fields_that_may_hold_passwords_are_left_out() -> None:
    cluster = world([1], [])
    told = {"kubectl.kubernetes.io/last-applied-configuration": "hush", "volcano.sh/kept": "yes", "example.com/token": "hush"}
    cluster.put_node(replace(next(spec for spec in cluster.nodes.specs if spec is not None), annotations=told))
    cluster.put_namespace(NamespaceSpec("ns", annotations=told))
    cluster.put_queue(QueueSpec("team", annotations=told))
    csi = {"driver": "d", "volumeHandle": "v", "volumeAttributes": {"password": "hush"}}
    cluster.put_object("PersistentVolume", "", "v", {"metadata": {"name": "v", "annotations": told}, "spec": {"csi": csi}})
    cluster.put_object("StorageClass", "", "c", {"metadata": {"name": "c"}, "parameters": {"restuserkey": "hush"}})
    flex = {"flexVolume": {"driver": "d", "options": {"password": "hush"}}, "mountOptions": ["password=hush"]}
    cluster.put_object("PersistentVolume", "", "w", {"metadata": {"name": "w"}, "spec": flex})
    config = [{"opaque": {"driver": "d", "parameters": {"password": "hush"}}}]
    cluster.put_object("DeviceClass", "", "d", {"metadata": {"name": "d"}, "spec": {"config": config, "selectors": []}})
    claim = {"spec": {"devices": {"requests": [], "config": config}}, "status": {"allocation": {"devices": {"config": config}}}}
    cluster.put_object("ResourceClaim", "ns", "r", {"metadata": {"name": "r", "namespace": "ns"}, **claim})
    usage = {"clientType": "prometheus", "connectionString": "http://me:hush@prometheus:9090/path"}
    registry = installed()
    policy = load({**POLICY, "usageDBConfig": usage}, registry.catalogue(), "test")
    recorded = encoded(run_cycle(cluster, policy, registry, 0.0, 1, "c"))
    text = gzip.decompress(recorded).decode()
    assert "hush" not in text
    assert text.count('"volcano.sh/kept":"yes"') == 4 and '"volumeHandle":"v"' in text and "http://prometheus:9090/path" in text
    recording = replay.read(recorded)
    assert replay.decisions(replay.again(recording, registry)) == bytes(recording.decisions)


@pytest.mark.parametrize("content", [b"", b"not gzip", gzip.compress(b"{}", mtime=0), gzip.compress(b"nonsense", mtime=0)])
def test_a_file_that_is_no_recording_is_named(tmp_path: Path, content: bytes) -> None:
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


def test_bytes_that_are_no_recording_are_refused(tmp_path: Path) -> None:
    registry = installed()
    cycle = run_cycle(world([1], []), load(POLICY, registry.catalogue(), "test"), registry, 0.0, 7, "c")
    good = recordings.encoded(cycle)
    plain = json.loads(gzip.decompress(good))
    assert replay.decisions(replay.again(replay.read(gzip.decompress(good)), registry)) == bytes(replay.read(good).decisions)
    middle = len(good) // 2
    for name, content, said in (
        ("cut", good[:middle], "ended before the end-of-stream marker"),
        ("damaged", good[:middle] + bytes(255 - each for each in good[middle : middle + 20]) + good[middle + 20 :], ""),
        ("empty", b"", "Input data was truncated"),
        ("another", b"apiVersion: v1\n", "malformed"),
        ("later", json.dumps({"format": 2, "unheard": "of"}).encode(), "expected a recording of format 1, found one of format 2"),
        ("part", json.dumps({**plain, "decisions": {"binds": []}}).encode(), "expected decisions with claims, evictions, jobs"),
    ):
        (tmp_path / name).write_bytes(content)
        done = CliRunner().invoke(replay_command, [str(tmp_path / name)])
        assert done.exit_code == 2, done.output
        assert done.output.startswith(f"{tmp_path / name}: expected ") and said in done.output
    (tmp_path / "classes").write_text(json.dumps({**plain, "objects": [["Thing", "ns", "a", "navarch.model.spec:Gone", {}]]}))
    done = CliRunner().invoke(replay_command, [str(tmp_path / "classes")])
    assert (done.exit_code, done.output) == (
        2,
        "Thing ns/a: this Navarch has no 'navarch.model.spec:Gone', another recorded it\n",
    )


def test_objects_come_back_as_the_values_that_they_were() -> None:
    values: dict[str, object] = {
        "BindRequest": BindRequestSpec("ns", "p", "n1", claims=(("c", {"devices": {}}),)),
        "HyperNode": HyperNodeSpec("s0", 1, "", (MemberSpec(name="n1"),)),
        NODE_LOAD: NodeLoad({"10m": 50.0}, {"10m": 40.0}, 3.0),
        "NodeResourceTopology": NodeNumaSpec("n1", "restricted", "pod", (NumaZoneSpec("zone-0", 0, (("cpu", 2000),)),)),
        "Numatopology": CpuTopologySpec("n1", "static", "restricted", (CpuSpec(0, 0, 0, 0),), 1),
        QUEUE_USAGE: {"cpu": 0.5},
        "Topology": TopologySpec("net", (LevelSpec("zone"),)),
    }
    cluster, registry = world([1], []), installed()
    for kind, value in values.items():
        cluster.put_object(kind, "", "a", value)
    good = encoded(run_cycle(cluster, load(POLICY, registry.catalogue(), "test"), registry, 0.0, 7, "c"))
    plain = json.loads(gzip.decompress(good))
    for line in plain["objects"]:
        line[3] = f"navarch.model.spec:{line[3]}" if line[3] else ""
    for recorded in (good, json.dumps(plain).encode()):  # as this version writes them, and with the module, as older ones did
        found = replay.restored(replay.read(recorded)).objects
        assert {kind: found[kind]["", "a"] for kind in values} == values


def test_a_difference_to_what_another_version_decided_says_so(tmp_path: Path) -> None:
    registry = installed()
    cycle = run_cycle(world([1], []), load(POLICY, registry.catalogue(), "test"), registry, 0.0, 7, "c")
    plain = gzip.decompress(recordings.encoded(cycle)).decode()
    assert plain.count(f'"version":"{version()}"') == 1
    file = tmp_path / "old"
    for recorded, note in ((version(), ""), ("0.0.1", f"recorded by navarch 0.0.1, decided again by {version()}\n")):
        file.write_text(plain.replace(f'"version":"{version()}"', f'"version":"{recorded}"'))
        same = CliRunner().invoke(replay_command, [str(file)])
        assert (same.exit_code, same.stderr) == (0, "")
        other = CliRunner().invoke(replay_command, [str(file), "--policy=kai"])
        assert (other.exit_code, other.stderr) == (1, note)


def test_a_folder_that_cannot_be_written_is_refused_at_the_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(recordings.FolderError, match="expected a folder that can be written: Not a directory"):
        CycleRecorder(tmp_path / "file" / "below")
    monkeypatch.setattr(os, "access", lambda path, mode: False)  # the user of the tests may write everywhere
    with pytest.raises(recordings.FolderError, match="it is not writable for user"):
        CycleRecorder(tmp_path)


@pytest.mark.parametrize("error", [OSError("no space left"), TypeError("cannot be encoded")])
async def test_a_recording_that_fails_is_logged_with_its_cycle(
    error: Exception, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fails(cycle: Cycle, more_annotations: Sequence[str]) -> bytes:
        raise error

    registry = installed()
    cycle = run_cycle(world([1], []), load(POLICY, registry.catalogue(), "test"), registry, 0.0, 7, "c")
    monkeypatch.setattr(recordings, "encoded", fails)
    recorder = CycleRecorder(tmp_path)
    assert recorder.take(cycle)
    await recorder.finish()
    assert "cycle 7 was not recorded" in caplog.text and str(error) in caplog.text
    monkeypatch.undo()
    assert recorder.take(cycle), "the next cycles are recorded"
    await recorder.finish()
    assert len(list(tmp_path.iterdir())) == 1


def test_annotations_that_rules_do_not_read_are_kept_on_request() -> None:
    cluster = world([1], [])
    spec = next(s for s in cluster.tasks.specs if s is not None)
    cluster.put_task(replace(spec, annotations={"example.com/tier": "gold", "example.com/token": "hush"}))
    registry = installed()
    cycle = run_cycle(cluster, load(POLICY, registry.catalogue(), "test"), registry, 0.0, 1, "c")
    assert "example.com" not in gzip.decompress(encoded(cycle)).decode()
    text = gzip.decompress(encoded(cycle, ["example.com/tier"])).decode()
    assert "gold" in text and "hush" not in text
