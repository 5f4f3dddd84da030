"""The command `navarch explain`, as a user sees it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner, Result

from navarch.cli.main import main
from navarch.engine.cycle import decide
from navarch.explanation.explain import reading
from navarch.offline.replay import record
from navarch.testing.builders import node, pod, pod_group

SAMPLE = Path(__file__).resolve().parents[3] / "examples" / "two-queues.yaml"


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["explain", *arguments, "--seconds", "600"])


def test_text_says_the_cause_first_and_what_would_help() -> None:
    result = run("sweep", "-f", str(SAMPLE))
    lines = result.stdout.splitlines()
    assert lines[0] == "research/sweep pending: Unschedulable"
    assert "blocked by 1 job (without it the job starts): research/train" in lines
    assert "  + minMember 2 instead of 6: it starts" in lines
    assert "  + 2 more nodes like gpu-1: it starts" in lines


def test_the_namespace_may_stand_beside_the_name() -> None:
    for words in (("sweep", "-n", "research"), ("podgroup/sweep", "-n", "research"), ("research/sweep", "-n", "research")):
        assert run(*words, "-f", str(SAMPLE)).stdout.splitlines()[0] == "research/sweep pending: Unschedulable"
    assert run("pod/sweep-0", "-n", "research", "-f", str(SAMPLE)).stdout.startswith("research/sweep pending")
    assert run("queue", "research", "-f", str(SAMPLE)).stdout == run("queue/research", "-f", str(SAMPLE)).stdout
    assert run("sweep", "serve", "-f", str(SAMPLE)).exit_code == 2
    assert run("queue/research", "-n", "other", "-f", str(SAMPLE)).stdout.startswith("queue research")
    other = run("research/sweep", "-n", "production", "-f", str(SAMPLE))
    assert (other.exit_code, "research/sweep is in namespace research, not in production" in other.stderr) == (2, True)
    assert run("sweep", "-n", "production", "-f", str(SAMPLE)).exit_code == 1


def test_a_job_that_grows_is_asked_about_its_next_pod(tmp_path: Path) -> None:
    path = tmp_path / "elastic.yaml"
    members = [pod(f"a-{number}").in_group("a").cpu(3) for number in range(3)]
    objects = [node("n").cpu(4), pod_group("a", 1).phase("Running"), members[0].on("n"), *members[1:]]
    path.write_text(yaml.safe_dump_all(json.loads(json.dumps(objects))))
    lines = run("a", "-f", str(path)).stdout.splitlines()
    assert lines[:2] == ["default/a running: ClusterFull", "  1 pod holds a node, 2 more wait"]
    assert "  + one more node like n: one more of its pods starts" in lines


def file_with_volcano_job(folder: Path) -> Path:
    path = folder / "job.yaml"
    template = {"spec": {"containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": "5"}}}]}}
    job = {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": "bert", "namespace": "ml", "uid": "7c1f"},
        "spec": {"schedulerName": "navarch", "minAvailable": 3, "tasks": [{"name": "w", "replicas": 3, "template": template}]},
    }
    path.write_text(yaml.safe_dump_all([job, json.loads(json.dumps(node("n").cpu(8)))]))
    return path


def test_a_node_and_a_queue_have_the_names_that_people_gave(tmp_path: Path) -> None:
    path = file_with_volcano_job(tmp_path)
    assert "    3 pods of ml/bert (5 cpu each): one fits" in run("node/n", "-f", str(path)).stdout.splitlines()
    assert "    1. ml/bert: 3 pods, NeverStarts" in run("queue/default", "-f", str(path)).stdout.splitlines()


def test_json_and_yaml_are_the_same() -> None:
    found = json.loads(run("sweep", "-f", str(SAMPLE), "-o", "json").stdout)
    other = yaml.safe_load(run("sweep", "-f", str(SAMPLE), "-o", "yaml").stdout)
    assert found | {"seconds": 0} == other | {"seconds": 0}
    assert found["complete"] and (found["blockers"]["jobs"], found["blockers"]["minimal"]) == (["research/train"], True)
    assert found["blockers"]["mayTake"][0]["reason"] == "it waits too, and is served first"


def test_a_volcano_job_and_a_deployment_have_the_names_that_people_gave(tmp_path: Path) -> None:
    path = file_with_volcano_job(tmp_path)
    told = run("bert", "-f", str(path)).stdout
    assert told.splitlines()[0] == "ml/bert impossible: NeverStarts" and "7c1f" not in told
    found = json.loads(run("ml/bert", "-f", str(path), "-o", "json").stdout)
    assert (found["job"], found["names"]) == ("ml/bert-7c1f", {"ml/bert-7c1f": "ml/bert"})
    sample = run("sweep", "-f", str(SAMPLE)).stdout
    assert "  production/serve in queue production" in sample and "serve-" not in sample


def test_a_job_that_is_not_there() -> None:
    result = run("sweap", "-f", str(SAMPLE))
    assert (result.exit_code, result.stderr) == (1, "Error: there is no job 'sweap' among 3 jobs; did you mean research/sweep?\n")


def test_input_that_cannot_be_used(tmp_path: Path) -> None:
    path = tmp_path / "a.yaml"
    path.write_text("kind: Pod")
    result = run("a", "-f", str(path))
    assert result.exit_code == 2 and "apiVersion: found nothing, expected text" in result.stderr
    result = run("a", "-f", str(SAMPLE), "--policy", "volcanoo")
    assert result.exit_code == 2 and "did you mean 'volcano'?" in result.stderr


def test_a_queue_and_a_node() -> None:
    lines = run("queue/research", "-f", str(SAMPLE)).stdout.splitlines()
    assert lines[0].startswith("queue research: Open") and any("its weight is 2 of 3" in line for line in lines)
    assert run("node/gpu-3", "-f", str(SAMPLE)).stdout.splitlines()[0] == "node gpu-3: ready, 0 pods"
    wrong = run("node/gpu-9", "-f", str(SAMPLE))
    assert wrong.exit_code == 1 and "did you mean gpu-" in wrong.stderr


def test_plan_shows_what_another_policy_would_change() -> None:
    result = CliRunner().invoke(main, ["plan", "-f", str(SAMPLE), "--diff", "volcano"])
    assert result.exit_code == 0 and "places elsewhere: " in result.stdout
    same = CliRunner().invoke(main, ["plan", "-f", str(SAMPLE), "--diff", "navarch"])
    assert same.stdout == "navarch decides the same\n"
    found = json.loads(CliRunner().invoke(main, ["plan", "-f", str(SAMPLE), "--diff", "volcano", "-o", "json"]).stdout)
    assert sorted(found) == ["evicts", "evictsNoLonger", "moves", "starts", "startsNoLonger"]
    wrong = CliRunner().invoke(main, ["plan", "-f", str(SAMPLE), "--diff", "volcanoo"])
    assert wrong.exit_code == 2 and "volcanoo: " in wrong.stderr


def test_the_page_shows_what_the_command_prints(monkeypatch: pytest.MonkeyPatch) -> None:
    page = (SAMPLE.parents[1] / "docs" / "explain.md").read_text()
    monkeypatch.setenv("COLUMNS", "110")
    monkeypatch.chdir(SAMPLE.parents[1])
    command, shown = page.split("```\n")[1], page.split("```\n")[3]
    result = CliRunner().invoke(main, [*command.split()[1:], "--seconds", "600"])
    assert result.stdout.splitlines()[:-1] == shown.splitlines()


def test_the_page_shows_the_start_time_that_the_command_prints(monkeypatch: pytest.MonkeyPatch) -> None:
    page = (SAMPLE.parents[1] / "docs" / "explain.md").read_text()
    monkeypatch.setenv("COLUMNS", "110")
    monkeypatch.chdir(SAMPLE.parents[1])
    shown = page.partition("`navarch explain bert -f examples/start-times.yaml`")[2].split("```\n")[1]
    assert shown.startswith("  start: 50 % by ") and shown in run("bert", "-f", "examples/start-times.yaml").stdout


def test_a_recorded_cycle(tmp_path: Path) -> None:
    heap = reading([node("n").cpu(4), pod("holds").cpu(4).on("n"), pod("wants").cpu(4)])
    rules, run_ = heap.rules, heap.run
    decided = decide(run_.cluster.snapshot(), rules.policy, rules.registry, run_.now, uid="1")
    file = tmp_path / "cycle.json.gz"
    file.write_bytes(record(run_.cluster.snapshot(), rules.policy, run_.now, "1", {}, decided))
    lines = run("wants", "--record", str(file)).stdout.splitlines()
    assert lines[0] == "default/wants pending: ClusterFull"
    assert "blocked by 1 job (without it the job starts): default/holds" in lines
    both = run("wants", "--record", str(file), "-f", str(SAMPLE))
    assert both.exit_code == 2 and "--record stands alone" in both.stderr
    broken = tmp_path / "broken"
    broken.write_text("no recording")
    assert run("wants", "--record", str(broken)).exit_code == 2


def test_no_cluster_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "absent"))
    result = run("wants")
    assert result.exit_code == 2 and "kubeconfig" in result.stderr


def test_a_job_that_never_starts_is_told_once_and_nodes_do_not_contradict_it(tmp_path: Path) -> None:
    path = tmp_path / "a.yaml"
    objects = [
        node("a").gpu(2),
        node("b").gpu(2),
        pod_group("moonshot", 5),
        *(pod(f"moonshot-{i}").in_group("moonshot").gpu(1) for i in range(5)),
    ]
    path.write_text(yaml.safe_dump_all([json.loads(json.dumps(each)) for each in objects]))
    text = run("moonshot", "-f", str(path)).stdout
    assert text.splitlines()[:3] == [
        "default/moonshot impossible: NeverStarts",
        "  cannot start: needs 5 GPUs, the cluster has 4",
        "  never: it does not start on the empty cluster either (proved)",
    ]
    assert text.count("empty cluster") == 1 and "\n  start: " not in text
    assert "nodes: 2 of 2 could take one pod of it" in " ".join(text.split())
    assert "2 Insufficient nvidia.com/gpu, with 4 other pods of this job placed." in " ".join(text.split())
