"""`navarch up` as a user meets it: a process that starts, prints a kubeconfig, runs ordinary manifests, and stops."""

from __future__ import annotations

import asyncio
import json
import socket
import stat
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner
from tests.worlds.kube.crds import serve
from tests.worlds.up_process import KUBECTL, NAVARCH, UpProcess, running_up

from navarch.apis.kai.pod_grouper import DEFAULT_QUEUE
from navarch.cli.cluster import embedded_kubeconfig
from navarch.cli.main import main
from navarch.cli.up.cluster import UpCluster, UpOptions
from navarch.cli.up.queues import PARENT, QUEUES
from navarch.kube.client import Client
from navarch.kube.connect import connect
from navarch.live.ops.shard_policy import SHARDS

pytestmark = pytest.mark.live
EXAMPLES = Path(__file__).resolve().parents[3] / "examples"
OWN_PLUGIN = ("--policy", str(EXAMPLES / "power-saving.conf"), "--plugin-dir", str(EXAMPLES / "plugins"))
needs_kubectl = pytest.mark.skipif(KUBECTL is None, reason="kubectl is not in PATH")


@pytest.fixture(scope="module")
def up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[UpProcess]:
    """Three nodes with two GPUs each, where time passes twenty times as fast, and no sample."""
    with running_up(tmp_path_factory.mktemp("up"), "--nodes", "3", "--gpus", "2", "--speed", "20") as found:
        yield found


def test_the_sample_comes_to_rest_and_shows_what_it_promises(tmp_path: Path) -> None:
    """At a speed at which each gang would be over before the next comes, if it held for the steps."""
    command = [*NAVARCH, "up", "--until-settled", "--port", "0", "--speed", "100", "--kubeconfig", str(tmp_path / "k")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    said = done.stdout
    assert "research/pretrain" in said and "evicted (gangreclaim for production/" in said, "a reclaim"
    assert "production/nightly: " in said and "evicted (gangpreempt for production/hotfix)" in said, "a preemption"
    rows = {line.split()[1]: line for line in said.partition("Jobs")[2].splitlines() if len(line.split()) > 9}
    for name in ("pretrain", "serve", "nightly", "hotfix"):
        assert "Completed" in rows[name]
    why = "cannot start: needs 33 GPUs, the cluster has 32"
    assert why in rows["moonshot"], "a job that cannot run, with its reason; its figures may be ten seconds old"
    assert "OutOf" not in said, "no node was given more than it has"
    assert "settled after" in said.splitlines()[-1]


def test_the_export_line_holds_in_any_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    told = UpCluster(UpOptions(kubeconfig=Path("my cluster")))
    assert told.export == f"export KUBECONFIG='{tmp_path}/my cluster'"
    kept = UpCluster(UpOptions(data_dir=Path("kept")))
    assert kept.kubeconfig == tmp_path / "kept" / "kubeconfig"
    asyncio.run(kept.server.store.close())


def test_the_kubeconfig_is_for_its_owner_only(up: UpProcess) -> None:
    assert stat.S_IMODE(up.kubeconfig.stat().st_mode) == 0o600


@needs_kubectl
def test_ordinary_manifests_run(up: UpProcess) -> None:
    labels = {"app": "web"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": "web:1"}]}}
    apps: dict[str, Any] = {
        "apiVersion": "apps/v1",
        "spec": {"replicas": 3, "selector": {"matchLabels": labels}, "template": template},
    }
    daemons = {"selector": {"matchLabels": labels}, "template": template}
    sleeper = {"containers": [{"name": "c", "image": "b", "command": ["sleep", "20"]}], "restartPolicy": "Never"}
    job_spec = {"completions": 4, "parallelism": 2, "template": {"spec": sleeper}}
    manifests = [
        {**apps, "kind": "Deployment", "metadata": {"name": "web"}},
        {**apps, "kind": "StatefulSet", "metadata": {"name": "db"}, "spec": {**apps["spec"], "serviceName": "db"}},
        {"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": "agent"}, "spec": daemons},
        {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "etl"}, "spec": job_spec},
    ]
    up.kubectl("create", "namespace", "plain")
    up.kubectl("-n", "plain", "apply", "-f", "-", manifests=manifests)
    for workload in ("deployment/web", "statefulset/db", "daemonset/agent"):
        up.kubectl("-n", "plain", "rollout", "status", workload, "--timeout=300s")
    up.kubectl("-n", "plain", "wait", "--for=condition=complete", "job/etl", "--timeout=300s")
    assert json.loads(up.kubectl("-n", "plain", "get", "job", "etl", "-o", "json"))["status"]["succeeded"] == 4
    up.kubectl("-n", "plain", "scale", "deployment/web", "--replicas=5")
    up.kubectl("-n", "plain", "wait", "--for=jsonpath={.status.readyReplicas}=5", "deployment/web", "--timeout=300s")
    up.kubectl("-n", "plain", "set", "image", "deployment/web", "c=web:2")
    up.kubectl("-n", "plain", "rollout", "status", "deployment/web", "--timeout=300s")
    up.kubectl("-n", "plain", "rollout", "undo", "deployment/web")
    up.kubectl("-n", "plain", "rollout", "status", "deployment/web", "--timeout=300s")
    images = up.kubectl("-n", "plain", "get", "deployment/web", "-o", "jsonpath={.spec.template.spec.containers[0].image}")
    assert images == "web:1"
    up.kubectl("delete", "namespace", "plain", "--timeout=300s")


@needs_kubectl
def test_jobs_queues_and_nodes_are_shown_from_any_cluster(up: UpProcess) -> None:
    container = {"name": "c", "image": "b", "resources": {"limits": {"nvidia.com/gpu": 2}}}
    labels = {"app": "big"}
    metadata = {"annotations": {"scheduling.k8s.io/group-name": "big"}, "labels": labels}
    pods = {"metadata": metadata, "spec": {"containers": [container]}}
    volcano = "scheduling.volcano.sh/v1beta1"
    template = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": {"name": "big"}}
    manifests = [
        {"apiVersion": volcano, "kind": "Queue", "metadata": {"name": "team"}, "spec": {"weight": 3}},
        {"apiVersion": volcano, "kind": "PodGroup", "metadata": {"name": "big"}, "spec": {"minMember": 4, "queue": "team"}},
        {**template, "spec": {"replicas": 4, "selector": {"matchLabels": labels}, "template": pods}},
    ]
    up.kubectl("apply", "-f", "-", manifests=manifests)
    group = "podgroup.scheduling.volcano.sh/big"
    up.kubectl("wait", "--for=jsonpath={.status.replicas}=4", "replicaset/big", "--timeout=300s")
    up.kubectl("wait", "--for=jsonpath={.status.conditions[0].type}=Unschedulable", group, "--timeout=300s")
    (job,) = [each for each in json.loads(up.navarch("jobs", "-o", "json"))["items"] if each["name"] == "big"]
    assert (job["queue"], job["minMember"], job["pods"]["pending"]) == ("team", 4, 4)
    assert job["why"].startswith("cannot start: needs 8 GPUs, the cluster has 6")
    assert "big" in up.navarch("jobs", "-n", "default") and "big" not in up.navarch("jobs", "-n", "kube-system")
    queues = {each["name"]: each for each in yaml.safe_load(up.navarch("queues", "-o", "yaml"))["items"]}
    assert queues["team"]["weight"] == 3 and queues["team"]["request"]["nvidia.com/gpu"] == "8"
    assert queues["team"]["jobs"]["waiting"] == 1
    nodes = json.loads(up.navarch("nodes", "-o", "json"))["items"]
    assert [each["name"] for each in nodes] == ["node-000", "node-001", "node-002"]
    assert nodes[0]["free"]["nvidia.com/gpu"] == "2" and nodes[0]["status"] == "Ready"
    up.kubectl("delete", "replicaset/big", group, "queue.scheduling.volcano.sh/team")


@needs_kubectl
def test_short_names_mean_volcanos_objects(up: UpProcess) -> None:
    for name in ("podgroup", "podgroups", "pg"):
        assert "scheduling.volcano.sh" in up.kubectl("explain", name).splitlines()[0]
    up.kubectl("wait", "--for=create", "queue.scheduling.volcano.sh/default", "--timeout=120s")
    assert "queue.scheduling.volcano.sh/default" in up.kubectl("get", "queue", "-o", "name")
    assert "priorityclass.scheduling.k8s.io" in up.kubectl("get", "pc", "-o", "name")


@pytest.mark.parametrize(
    ("options", "why"),
    [
        (["--nodes", "0"], "the sample is left out: the cluster has no nodes"),
        (["--policy", "kube-scheduler"], "the sample is left out: it shows queues and gangs, and the policy places single pods"),
    ],
)
def test_a_sample_that_does_not_fit_is_left_out_with_the_reason(options: list[str], why: str, tmp_path: Path) -> None:
    command = [*NAVARCH, "up", "--until-settled", "--kubeconfig", str(tmp_path / "k"), *options]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 1 and why in done.stdout


@needs_kubectl
def test_a_node_fails_on_demand_and_comes_back(up: UpProcess) -> None:
    up.kubectl("annotate", "node", "node-002", "navarch.io/fail=not-ready")
    up.kubectl("wait", "--for=condition=Ready=false", "node/node-002", "--timeout=300s")
    assert "NotReady" in up.navarch("nodes")
    up.kubectl("annotate", "node", "node-002", "navarch.io/fail-")
    up.kubectl("wait", "--for=condition=Ready", "node/node-002", "--timeout=300s")


@needs_kubectl
def test_a_drained_node_is_left_by_its_pods_and_taken_again(up: UpProcess) -> None:
    up.kubectl("create", "deployment", "moves", "--image=web", "--replicas=6")
    up.kubectl("rollout", "status", "deployment/moves", "--timeout=300s")
    up.kubectl("drain", "node-000", "--ignore-daemonsets", "--timeout=300s")
    up.kubectl("rollout", "status", "deployment/moves", "--timeout=300s")
    nodes = up.kubectl("get", "pods", "-l", "app=moves", "-o", "jsonpath={.items[*].spec.nodeName}").split()
    assert "node-000" not in nodes
    assert "SchedulingDisabled" in up.navarch("nodes")
    up.kubectl("uncordon", "node-000")
    up.kubectl("delete", "deployment/moves", "--timeout=300s")


def test_settling_without_a_sample_makes_no_sense() -> None:
    result = CliRunner().invoke(main, ["up", "--until-settled", "--no-sample"])
    assert result.exit_code == 2
    assert "cannot go with --no-sample" in result.output


def test_a_node_file_with_a_mistake_is_refused_with_its_field(tmp_path: Path) -> None:
    path = tmp_path / "nodes.yaml"
    path.write_text(yaml.safe_dump({"kind": "NodeSet", "metadata": {"name": "g"}, "spec": {"count": -1}}))
    result = CliRunner().invoke(main, ["up", "--node-file", str(path), "--kubeconfig", str(tmp_path / "k")])
    assert result.exit_code == 2
    assert "NodeSet g: spec.count: found -1, expected a whole number of at least 0" in result.output


async def test_under_kais_policy_there_are_the_queues_of_a_fresh_installation(tmp_path: Path) -> None:
    options = UpOptions(nodes=1, gpus=1, sample=False, policy="kai", kubeconfig=tmp_path / "k")
    async with UpCluster(options) as cluster:
        store = cluster.server.store
        assert [record.name for record in store.list(QUEUES)] == [PARENT, DEFAULT_QUEUE]
        pod = {
            "metadata": {"name": "half", "annotations": {"gpu-fraction": "0.5"}},
            "spec": {"schedulerName": "kai-scheduler", "containers": [{"name": "c", "image": "x"}]},
        }
        cluster.server.operations.create(cluster.server.operations.kind("pods"), "default", pod)
        async with asyncio.timeout(120):
            while not store.list("pods")[0].obj["spec"].get("nodeName"):
                await asyncio.sleep(0.05)


async def test_a_shard_of_a_file_or_of_the_cluster_is_the_policy(tmp_path: Path) -> None:
    shard = {"apiVersion": "kai.scheduler/v1", "kind": "SchedulingShard", "metadata": {"name": "blue"}, "spec": {"kValue": 0.5}}
    about = {"apiVersion": "kai.scheduler/v1", "metadata": {"name": "c"}}
    config = {**about, "kind": "Config", "spec": {"global": {"schedulerName": "mine"}}}
    path = tmp_path / "shards.yaml"
    path.write_text(yaml.safe_dump_all([shard, config]))
    base = UpOptions(nodes=1, gpus=1, sample=False, kubeconfig=tmp_path / "k", data_dir=tmp_path / "data", shard="blue")
    async with UpCluster(replace(base, policy=str(path))) as cluster:
        assert cluster.policy.chosen == "it is KAI's SchedulingShard blue" and cluster.scheduler is not None
        assert cluster.scheduler.options.scheduler_names[-1] == "mine"
        async with Client(connect(cluster.kubeconfig)) as client:
            await serve(client, SHARDS, "SchedulingShard")
            await client.create(SHARDS, shard)
    async with UpCluster(replace(base, policy="SchedulingShard/blue")) as cluster:
        assert cluster.policy.source == "SchedulingShard/blue" and cluster.policy.dialect == "kai"
    result = CliRunner().invoke(main, ["up", "--shard", "blue"])
    assert result.exit_code == 2 and "--shard: expected --data-dir" in result.output


async def test_a_plugin_of_your_own_decides_in_the_embedded_cluster(tmp_path: Path) -> None:
    going = {"kind": "NodeSet", "metadata": {"name": "a"}, "spec": {"count": 1, "labels": {"example.com/switch-off": ""}}}
    staying = {"kind": "NodeSet", "metadata": {"name": "b"}, "spec": {"count": 1}}
    (tmp_path / "nodes.yaml").write_text(yaml.safe_dump_all([going, staying]))
    options = UpOptions(
        node_file=tmp_path / "nodes.yaml",
        sample=False,
        kubeconfig=tmp_path / "k",
        policy=str(EXAMPLES / "power-saving.conf"),
        plugin_dirs=(EXAMPLES / "plugins",),
    )
    async with UpCluster(options) as cluster:
        operations, store = cluster.server.operations, cluster.server.store
        for name in ("a", "b"):
            pod = {"metadata": {"name": name}, "spec": {"schedulerName": "navarch", "containers": [{"name": "c", "image": "x"}]}}
            operations.create(operations.kind("pods"), "default", pod)
        async with asyncio.timeout(120):
            while not all(pod.obj["spec"].get("nodeName") for pod in store.list("pods")):
                await asyncio.sleep(0.05)
        assert {pod.obj["spec"]["nodeName"] for pod in store.list("pods")} == {"b-000"}


def test_a_policy_that_names_a_plugin_of_your_own_is_looked_through(up: UpProcess) -> None:
    for command in ("jobs", "queues", "nodes"):
        up.navarch(command, *OWN_PLUGIN)
    without = CliRunner().invoke(main, ["nodes", *OWN_PLUGIN[:2], "--kubeconfig", str(up.kubeconfig)])
    assert without.exit_code == 2 and "power-saving" in without.output


def test_a_directory_with_a_plugin_that_cannot_be_read_is_refused(up: UpProcess, tmp_path: Path) -> None:
    (tmp_path / "broken.py").write_text("import nothing_of_this_name")
    for command, config in (("up", tmp_path / "k"), ("nodes", up.kubeconfig)):
        result = CliRunner().invoke(main, [command, "--plugin-dir", str(tmp_path), "--kubeconfig", str(config)])
        assert result.exit_code == 2 and "broken.py:1 cannot be imported" in result.output


def test_a_port_that_is_taken_is_named_with_a_way_out(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        result = CliRunner().invoke(main, ["up", "--no-sample", "--port", str(port), "--kubeconfig", str(tmp_path / "k")])
    assert result.exit_code == 1
    assert f"port {port} of this machine is in use already; --port 0 takes any free one" in result.output


def test_a_second_up_leaves_the_kubeconfig_of_the_first(up: UpProcess) -> None:
    before = up.kubeconfig.read_bytes()
    result = CliRunner().invoke(main, ["up", "--no-sample", "--no-web", "--kubeconfig", str(up.kubeconfig)])
    assert result.exit_code == 1 and f"{up.kubeconfig} is the kubeconfig of a `navarch up` that runs" in result.output
    assert up.kubeconfig.read_bytes() == before


async def test_a_second_up_without_a_name_has_a_kubeconfig_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    usual = tmp_path / "up" / "kubeconfig"
    monkeypatch.setattr("navarch.cli.up.cluster.USUAL_KUBECONFIG", usual)
    async with UpCluster(UpOptions(nodes=1)) as first:
        before = usual.read_bytes()
        async with UpCluster(UpOptions(nodes=1)) as second:
            assert (second.is_second, second.kubeconfig) == (True, usual.with_name(f"kubeconfig-{second.server.port}"))
            assert usual.read_bytes() == before and not first.is_second
    async with UpCluster(UpOptions(nodes=1)) as third:  # what an earlier one left is written over
        assert (third.is_second, third.kubeconfig) == (False, usual)


def test_a_kubeconfig_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    path = tmp_path / "file" / "kubeconfig"
    result = CliRunner().invoke(main, ["up", "--no-sample", "--no-web", "--kubeconfig", str(path)])
    assert (result.exit_code, "the cluster cannot start: " in result.output) == (1, True)
    assert str(tmp_path / "file") in result.output and "Traceback" not in result.output


def test_without_a_home_directory_the_same_is_said() -> None:
    """A container whose user is a number that no account has, and no $HOME."""
    script = """
import os, pwd
from unittest.mock import patch
os.environ.pop("HOME", None)
with patch.object(pwd, "getpwuid", side_effect=KeyError):
    from navarch.cli.main import main
    main(["nodes"])
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 2 and "no API server is configured" in done.stderr, done.stderr


@pytest.mark.parametrize("exists", [True, False])
def test_a_kubeconfig_of_navarch_up_that_was_not_exported_is_named(
    exists: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    usual = tmp_path / "up" / "kubeconfig"
    if exists:
        usual.parent.mkdir()
        usual.touch()
    monkeypatch.setattr(embedded_kubeconfig, "USUAL_KUBECONFIG", usual)
    monkeypatch.setenv("HOME", str(tmp_path))
    result = CliRunner().invoke(main, ["nodes"])
    assert result.exit_code == 2 and "no API server is configured" in result.output
    assert (f"export KUBECONFIG={usual}" in result.output) == exists
