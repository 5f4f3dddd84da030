"""The objects that `navarch submit` makes, as `navarch plan` and the cluster's controllers read them."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

import navarch
from navarch.cli.main import main
from navarch.cli.submit.follow import progress
from navarch.cli.submit.objects import POD_GROUP_APIS, Submission, batch_job, command, pod_group, volcano_job
from navarch.kube.resources import Resource
from navarch.testing.builders import node, queue
from navarch.views.workloads import ended

WANTED = Submission(
    "train", "ml", "pytorch", ("python", "train.py"), gang=4, gpus=1, requests={"cpu": "2"}, queue="research", labels={"team": "nlp"}
)
NODES = [node("a").cpu(8).gpu(2), node("b").cpu(8).gpu(2), queue("research")]


@pytest.mark.parametrize("api", POD_GROUP_APIS, ids=lambda api: api.group)
def test_a_job_and_its_group_are_one_gang_in_every_api(api: Resource) -> None:
    objects = [batch_job(WANTED, api), pod_group(WANTED, api), *NODES]
    (cycle,) = navarch.plan(objects).to_dict()["cycles"]
    (job,) = cycle["jobs"]
    assert (job["job"], job["queue"], job["minMember"]) == ("ml/train", "research", 4)
    assert len(cycle["binds"]) == 4
    (cycle,) = navarch.plan([*objects[:2], NODES[0], NODES[2]]).to_dict()["cycles"]
    assert cycle["binds"] == [], "one node is too small for all of them"


def test_a_volcano_job_is_the_same_gang() -> None:
    (cycle,) = navarch.plan([volcano_job(WANTED), *NODES]).to_dict()["cycles"]
    (job,) = cycle["jobs"]
    assert (job["queue"], job["minMember"], len(cycle["binds"])) == ("research", 4, 4)


def test_the_group_goes_with_its_job() -> None:
    job = {**batch_job(WANTED, POD_GROUP_APIS[0]), "metadata": {"name": "train", "uid": "u1", "namespace": "ml"}}
    (owner,) = pod_group(WANTED, POD_GROUP_APIS[0], job)["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["name"], owner["uid"], owner["controller"]) == ("Job", "train", "u1", True)
    asked = command("AbortJob", job)
    assert (asked["action"], asked["target"]["uid"]) == ("AbortJob", "u1")


def test_a_minimum_below_the_gang_starts_with_what_there_is() -> None:
    elastic = Submission("e", "ml", "i", gang=6, minimum=2, gpus=1)
    (cycle,) = navarch.plan([volcano_job(elastic), *NODES]).to_dict()["cycles"]
    assert len(cycle["binds"]) == 4
    assert volcano_job(elastic)["spec"]["policies"] == [], "it goes on if one of its pods is evicted"


def test_a_part_of_a_gpu_is_an_annotation() -> None:
    template = volcano_job(Submission("n", "ml", "i", gpu_fraction="0.5"))["spec"]["tasks"][0]["template"]
    assert template["metadata"]["annotations"] == {"gpu-fraction": "0.5"} and "resources" not in template["spec"]["containers"][0]


def test_a_dry_run_needs_no_cluster(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("KUBECONFIG", "")
    monkeypatch.setenv("HOME", str(tmp_path))
    typed = "submit --name train --gang 8 --gpus 1 --queue research --image IMG --dry-run -o yaml -- python train.py --epochs 3"
    result = CliRunner().invoke(main, typed.split())
    assert result.exit_code == 0, result.output
    job, group = yaml.safe_load_all(result.stdout)
    assert job["spec"]["template"]["spec"]["containers"][0]["command"] == ["python", "train.py", "--epochs", "3"]
    assert group["spec"] == {"minMember": 8, "queue": "research"}


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ("--gang 2 --min 3", "--min 3 is more than --gang 2"),
        ("--gpus 1 --gpu-fraction 0.5", "exclude each other"),
        ("--env A", "found 'A', expected NAME=VALUE"),
        ("--wait --timeout soon", "found 'soon'"),
    ],
)
def test_impossible_values_are_refused(typed: str, said: str) -> None:
    result = CliRunner().invoke(main, ["submit", "--name", "a", "--image", "i", *typed.split()])
    assert result.exit_code == 2 and said in result.output


def test_progress_names_the_shortest_reason() -> None:
    def waits(message: str) -> dict[str, object]:
        return {"status": {"phase": "Pending", "conditions": [{"type": "PodScheduled", "status": "False", "message": message}]}}

    assert progress([waits("no room for the gang: no room"), waits("no room")]) == "2 pending: no room"
    assert progress([{"spec": {"nodeName": "n"}, "status": {"phase": "Pending"}}]) == "1 starting"
    assert progress([]) == "no pods yet"


@pytest.mark.parametrize(
    ("status", "done"),
    [
        ({}, None),
        ({"state": {"phase": "Running"}}, None),
        ({"state": {"phase": "Completed"}}, True),
        ({"state": {"phase": "Aborted"}}, False),
        ({"conditions": [{"type": "Complete", "status": "True"}]}, True),
        ({"conditions": [{"type": "Failed", "status": "True"}]}, False),
    ],
)
def test_a_job_of_either_kind_has_ended_or_not(status: dict[str, object], done: bool | None) -> None:
    assert ended({"status": status}) is done
