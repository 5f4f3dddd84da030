"""The first hour of a platform engineer: what is typed, and what a terminal of 80 columns and 24 lines shows.

The story: check the policy file of the scheduler in charge, try Navarch beside it, compare, install it, look at what it publishes,
read recordings, and remove it again. In between come common mistakes."""

from __future__ import annotations

import json
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.worlds.kube.ports import held_port
from tests.worlds.terminal import Terminal, terminal
from tests.worlds.up_process import KUBECTL, NAVARCH, UpProcess, running_up

pytestmark = pytest.mark.live
needs_kubectl = pytest.mark.skipif(KUBECTL is None, reason="kubectl is not in PATH")
VOLCANO_CONF = """\
actions: "enqueue, allocate, backfill"
tiers:
- plugins:
  - name: priority
  - name: gang
- plugins:
  - name: predicates
  - name: proportion
  - name: our-own-plugin
"""


@pytest.fixture(scope="module")
def up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[UpProcess]:
    """The cluster of the story: Navarch is in charge of it, under the policy of KAI."""
    with running_up(tmp_path_factory.mktemp("walk"), "--nodes", "2", "--gpus", "4", "--policy", "kai", "--speed", "20") as found:
        yield found


def typed(*command: str, code: int = 0, kubeconfig: Path | str = "/nowhere", keys: str = "") -> str:
    """All that the terminal printed for a command, in one line: where lines break is not what is read."""
    with terminal([*NAVARCH, *command], {"KUBECONFIG": str(kubeconfig)}) as screen:
        if keys:
            screen.until("Image of the scheduler")
            screen.type(keys)
        assert screen.ended() == code, screen.text
        assert "Traceback" not in screen.text
        assert all(len(line) <= 80 for line in screen.lines)
        return " ".join(screen.printed.decode().split())


def test_a_policy_file_is_checked_before_anything_runs(tmp_path: Path) -> None:
    conf = tmp_path / "volcano.conf"
    conf.write_text(VOLCANO_CONF)
    said = typed("policy", "check", str(conf), code=2)
    assert "unknown plugin 'our-own-plugin'" in said
    assert "the line `compat: volcano` would have it read as Volcano reads it" in said
    conf.write_text(f"compat: volcano\n{VOLCANO_CONF}")
    said = typed("policy", "check", str(conf))
    assert said.index("our-own-plugin") < said.index("Actions, in order"), "what is skipped comes first"
    typed("policy", "check", str(conf), "--fail-on-warning", code=1)
    conf.write_text(VOLCANO_CONF.replace("  - name: gang", "\t- name: gang"))
    assert "found a tab where only spaces may indent" in typed("policy", "check", str(conf), code=2)
    conf.write_bytes(b"\xff\xfe\x00")
    assert "it is not UTF-8 text" in typed("policy", "check", str(conf), code=2)


def test_a_cluster_that_is_not_there_is_one_line(tmp_path: Path) -> None:
    config = tmp_path / "config"
    config.write_text(
        "apiVersion: v1\nkind: Config\ncurrent-context: a\nclusters: [{name: a, cluster: {server: 'http://127.0.0.1:1'}}]\n"
        "users: [{name: a, user: {}}]\ncontexts: [{name: a, context: {cluster: a, user: a}}]\n"
    )
    said = typed("jobs", kubeconfig=config, code=1)
    assert said.startswith("Error: cannot reach http://127.0.0.1:1: Connection refused; is the cluster running")


def test_a_data_directory_is_used_once_and_a_broken_one_is_kept(tmp_path: Path) -> None:
    data = str(tmp_path / "data")
    with running_up(tmp_path, "--data-dir", data, "--nodes", "1"):
        said = typed("up", "--no-sample", "--no-web", "--data-dir", data, code=1)
        assert "another `navarch up` runs with it: stop that one, or name another --data-dir" in said
    (tmp_path / "data" / "store.db").write_bytes(b"not a database at all" * 500)
    with terminal([*NAVARCH, "up", "--no-sample", "--no-web", "--data-dir", data]) as screen:
        screen.until(lambda text: "Ctrl-C" in text or "nodes" in text)
        assert b"is kept as" in bytes(screen.printed)
        screen.type("\x03")
        assert screen.ended() == 0
    assert (tmp_path / "data" / "store.db.broken-1").exists()


def published(up: UpProcess) -> str:
    """The state of the scheduler, as soon as it is there."""
    end = time.monotonic() + 120
    command = (
        "get",
        "configmap",
        "navarch-state",
        "-n",
        "navarch-system",
        "--ignore-not-found",
        "-o",
        "jsonpath={.data.state\\.json}",
    )
    while not (found := up.kubectl(*command)):
        assert time.monotonic() < end, "nothing was published"
        time.sleep(0.2)
    return found


@needs_kubectl
def test_clients_use_what_the_scheduler_publishes(up: UpProcess) -> None:
    state = json.loads(published(up))
    assert state["policy"]["name"] == "kai" and "kai-scheduler" in state["schedulerNames"]
    assert "FAIR SHARE" in typed("queues", "-o", "wide", kubeconfig=up.kubeconfig)
    said = typed("queues", "--policy", "volcano", kubeconfig=up.kubeconfig)
    assert "--policy volcano differs from the policy that runs (kai" in said


@contextmanager
def dry_run(kubeconfig: Path, port: int, *options: str) -> Iterator[Terminal]:
    command = [*NAVARCH, "run", "--dry-run", "--listen", f"127.0.0.1:{port}", *options]
    with terminal(command, {"KUBECONFIG": str(kubeconfig)}) as screen:
        yield screen


@needs_kubectl
def test_a_dry_run_says_what_it_would_do_and_compares(up: UpProcess, tmp_path: Path) -> None:
    report = tmp_path / "comparison.json"
    huge = {"name": "c", "image": "i", "resources": {"requests": {"nvidia.com/gpu": "9"}, "limits": {"nvidia.com/gpu": "9"}}}
    spec = {"schedulerName": "theirs", "containers": [huge]}
    up.kubectl("apply", "-f", "-", manifests=[{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "huge"}, "spec": spec}])
    options = ("--scheduler-name", "theirs", "--policy", "navarch", "--report", str(report))
    with held_port() as port, dry_run(up.kubeconfig, port, *options) as screen:
        screen.until(lambda _: b"dry run: default/huge waits: cannot start: one pod needs 9 GPUs" in bytes(screen.printed))
        said = typed("jobs", "--state", f"http://127.0.0.1:{port}", kubeconfig=up.kubeconfig)
        assert "huge" in said and "never" in said
        screen.process.send_signal(signal.SIGINT)
        assert screen.ended() == 0
    found = json.loads(report.read_text())
    assert found["summary"]["refused"] == 1 and found["waiting"][0]["code"] == "NeverStarts"
    up.kubectl("delete", "pod", "huge", "--wait=false")


@needs_kubectl
def test_install_asks_for_an_image_and_uninstall_takes_all_of_it_back(up: UpProcess) -> None:
    said = typed("install", "--name", "walk", "--namespace", "walk", kubeconfig=up.kubeconfig, keys="registry.example.com/n:1\r")
    assert "docker build -f deploy/Dockerfile" in said and "deployments/walk created" in said
    image = up.kubectl("get", "deployment", "walk", "-n", "walk", "-o", "jsonpath={.spec.template.spec.containers[0].image}")
    assert image == "registry.example.com/n:1"
    assert "deployments/walk deleted (dry run)" in typed(
        "uninstall", "--name", "walk", "--namespace", "walk", "--dry-run", kubeconfig=up.kubeconfig
    )
    said = typed("uninstall", "--name", "walk", "--namespace", "walk", "--delete-namespace", kubeconfig=up.kubeconfig)
    assert "clusterroles/walk deleted" in said and "namespaces/walk deleted" in said
    assert "nothing of walk" in typed("uninstall", "--name", "walk", "--namespace", "walk", code=1, kubeconfig=up.kubeconfig)


@needs_kubectl
def test_a_job_is_planned_for_the_cluster_and_cycles_are_replayed(up: UpProcess, tmp_path: Path) -> None:
    job = tmp_path / "job.yaml"
    job.write_text(
        "apiVersion: v1\nkind: Pod\nmetadata: {name: new, labels: {kai.scheduler/queue: default-queue}}\n"
        "spec: {schedulerName: kai-scheduler, containers: [{name: c, image: i, resources: {requests: {cpu: '1'}}}]}\n"
    )
    assert "default/new" in typed("plan", "--cluster", "-f", str(job), kubeconfig=up.kubeconfig)
    assert "no Node is in the input" in typed("plan", "-f", str(job))
    cycles = tmp_path / "cycles"
    command = [*NAVARCH, "run", "--dry-run", "--listen=", "--record", str(cycles), "--scheduler-name", "other", "--policy", "navarch"]
    spec = {"schedulerName": "other", "containers": [{"name": "c", "image": "i"}]}
    with terminal(command, {"KUBECONFIG": str(up.kubeconfig)}) as screen:
        screen.until(lambda _: b"leading:" in bytes(screen.printed))
        up.kubectl("apply", "-f", "-", manifests=[{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "seen"}, "spec": spec}])
        screen.until(lambda _: b"would bind default/seen" in bytes(screen.printed))
        screen.process.send_signal(signal.SIGINT)
        assert screen.ended() == 0
    said = typed("replay", str(cycles))
    assert "1 cycles: 1 the same, 0 differ" in said and "1 then, 1 now" in said
    typed("replay", str(cycles), "--policy", "volcano", code=0)
    up.kubectl("delete", "pod", "seen", "--wait=false")
    assert subprocess.run([*NAVARCH, "replay", str(tmp_path)], capture_output=True, check=False).returncode == 2
