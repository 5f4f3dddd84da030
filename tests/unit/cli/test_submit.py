"""`navarch submit`, `cancel`, `suspend` and `resume` against the embedded cluster."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import Any

import pytest
from tests.worlds.up_process import UpProcess, running_up

pytestmark = pytest.mark.live


@pytest.fixture(scope="module")
def up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[UpProcess]:
    """Two nodes with four GPUs each, where time passes twenty times as fast."""
    with running_up(tmp_path_factory.mktemp("submit"), "--nodes", "2", "--gpus", "4", "--speed", "20") as found:
        yield found


def job(up: UpProcess, name: str) -> dict[str, Any]:
    (found,) = json.loads(up.navarch("jobs", name, "-o", "json"))["items"]
    return dict(found)


def submit(up: UpProcess, name: str, *options: str) -> str:
    return up.navarch("submit", "--name", name, "--image", "i", *options)


def test_a_gang_is_submitted_and_followed_to_its_end(up: UpProcess) -> None:
    said = submit(up, "short", "--gang", "8", "--gpus", "1", "--wait", "--timeout", "5m", "--", "sleep", "20")
    assert said.startswith("job.batch.volcano.sh/short created\n") and said.endswith("volcanojob/short completed\n")
    assert job(up, "short")["kind"] == "VolcanoJob"
    assert up.navarch("suspend", "short") == "volcanojob/short has completed: there is nothing to suspend\n"
    again = up.invoke("submit", "--name", "short", "--image", "i")
    assert again.exit_code == 1 and "`navarch cancel short` ends it" in again.output
    assert up.navarch("cancel", "short") == "volcanojob/short cancelled\n"


def test_a_gang_that_waits_says_why_and_stays(up: UpProcess) -> None:
    waits = up.invoke("submit", "--name", "large", "--image", "i", "--gang", "9", "--gpus", "1", "--wait=started", "--timeout", "3s")
    assert waits.exit_code == 1 and "volcanojob/large is not started in time; it stays submitted" in waits.output
    absent = up.invoke("submit", "--name", "lost", "--image", "i", "--queue", "defalt")
    assert absent.exit_code == 0 and "there is no queue 'defalt' (the job waits for it); did you mean 'default'?" in absent.output
    about = "involvedObject.kind=Job,involvedObject.name=large"
    events = "get", "events", "--field-selector", about, "-o", "jsonpath={.items[*].reason}"
    deadline = time.monotonic() + 120
    while "Unschedulable" not in (said := up.kubectl(*events)) and time.monotonic() < deadline:
        time.sleep(0.2)
    assert "Unschedulable" in said, "the Job itself carries the events, not only its PodGroup"
    up.navarch("cancel", "large", "volcanojob/lost")


def test_kubernetes_own_job_has_its_group(up: UpProcess) -> None:
    said = submit(up, "plain", "--kind", "job", "--gang", "2", "--wait=started", "--timeout", "5m", "--", "sleep", "100000")
    assert said.startswith("job.batch/plain created\npodgroup.scheduling.volcano.sh/plain created\n")
    found = job(up, "job/plain")
    assert (found["kind"], found["minMember"], found["pods"]["running"]) == ("Job", 2, 2)
    assert up.navarch("suspend", "plain") == "job/plain suspended\n"
    assert up.navarch("resume", "plain") == "job/plain resumed\n"
    up.navarch("cancel", "plain")


def test_a_volcano_job_is_suspended_and_resumed_by_its_controller(up: UpProcess) -> None:
    submit(up, "pause", "--gang", "2", "--gpus", "1", "--wait=started", "--timeout", "5m", "--", "sleep", "100000")
    assert up.navarch("suspend", "pause") == "volcanojob/pause suspended\n"
    pods = "get", "pods", "-l", "volcano.sh/job-name=pause", "-o", "name"
    up.kubectl("wait", "--for=jsonpath={.status.state.phase}=Aborted", "jobs.batch.volcano.sh/pause", "--timeout=300s")
    assert up.kubectl(*pods) == ""
    assert up.navarch("suspend", "pause") == "volcanojob/pause is suspended already\n"
    assert up.navarch("resume", "pause") == "volcanojob/pause resumed\n"
    up.kubectl("wait", "--for=jsonpath={.status.state.phase}=Running", "jobs.batch.volcano.sh/pause", "--timeout=300s")
    assert up.navarch("resume", "pause") == "volcanojob/pause is not suspended\n"
    up.navarch("cancel", "pause")


def test_names_that_mean_nothing_or_too_much_change_nothing(up: UpProcess) -> None:
    for kind in ("job", "volcanojob"):
        submit(up, "twice", "--kind", kind, "--", "sleep", "100000")
    twice = up.invoke("cancel", "twice")
    assert twice.exit_code == 1 and "'twice' means several: volcanojob/twice, job/twice; say which" in twice.output
    absent = up.invoke("cancel", "job/twice", "absent")
    assert absent.exit_code == 1 and "there is no job 'absent' in the namespace default" in absent.output
    assert up.navarch("cancel", "job/twice", "volcanojob/twice").count("cancelled") == 2
    wrong = up.invoke("suspend", "cronjob/x")
    assert wrong.exit_code == 1 and "'cronjob' is no kind of workload" in wrong.output


@pytest.mark.parametrize("kind", ["job", "volcanojob"])
@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--cpu", "banana"], "--cpu banana: expected a quantity such as 500m, 2 or 1.5Gi"),
        (["--memory", "-1"], "--memory -1: expected a quantity of 0 or more"),
        (["--image", ""], "found '', expected a text that is not empty"),
        (["--gpu-fraction", "2.5"], "--gpu-fraction 2.5: expected a part of one device"),
        (["--request", "nvidia.com/gpu=1.5"], "--request nvidia.com/gpu=1.5: "),
        (["--label", "a b=c"], "--label a b=c: "),
        (["--node-selector", "zone=a b"], "--node-selector zone=a b: "),
        (["--name", "A_b"], "--name A_b: "),
        (["--duration", "soon"], "found 'soon'"),
        (["--priority-class", "hihg"], "--priority-class hihg: there is no such PriorityClass"),
    ],
)
def test_what_no_pod_could_have_is_refused_with_its_option(up: UpProcess, kind: str, options: list[str], said: str) -> None:
    given = ["--name", "wrong", "--image", "i", "--kind", kind, *options]
    found = up.invoke("submit", *given)
    assert found.exit_code == 2 and said in found.output, found.output
    assert "wrong" not in [each["name"] for each in json.loads(up.navarch("jobs", "-o", "json"))["items"]]
    assert up.invoke("submit", "--dry-run", *given).exit_code == 2
