"""`navarch jobs`, `queues` and `nodes` for users with few rights: they show what the user may list, and name the rest."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from tests.worlds.embedded.objects import pod
from tests.worlds.embedded.server import Http, ServerThread, http_of

from navarch.cli.main import main
from navarch.embedded.api.faults import Faults

pytestmark = pytest.mark.live
VOLCANO = "/apis/scheduling.volcano.sh/v1beta1"
REFUSED = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/4 nodes are available"}


@pytest.fixture
def api(thread: ServerThread, tmp_path: Path) -> Iterator[Http]:
    """A namespace with a gang that waits in a queue."""
    assert thread.server is not None
    client = http_of(thread.server, tmp_path)
    member = pod("worker", schedulerName="navarch")
    member["metadata"]["annotations"] = {"scheduling.k8s.io/group-name": "gang"}
    volcano = {"apiVersion": "scheduling.volcano.sh/v1beta1"}
    for path, body in (
        ("/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}}),
        (f"{VOLCANO}/queues", {**volcano, "kind": "Queue", "metadata": {"name": "research"}, "spec": {"weight": 1}}),
        (
            f"{VOLCANO}/namespaces/team/podgroups",
            {**volcano, "kind": "PodGroup", "metadata": {"name": "gang"}, "spec": {"minMember": 1, "queue": "research"}},
        ),
        ("/api/v1/namespaces/team/pods", member),
    ):
        made = client.post(path, body)
        assert made.code == 201, made.message
    client.patch("/api/v1/namespaces/team/pods/worker/status", {"status": {"conditions": [REFUSED]}})
    yield client
    client.close()


@pytest.fixture
def faults(thread: ServerThread) -> Faults:
    assert thread.server is not None
    return thread.server.faults


def navarch(api: Http, *words: str) -> Result:
    return CliRunner().invoke(main, [*words, "--kubeconfig", str(api.kubeconfig)])


def forbid_all_but_one_namespace(faults: Faults) -> None:
    """A path of one namespace has that namespace between version and kind."""
    for path in ("/api/v1/pods", "/api/v1/nodes", "/queues", "/priorityclasses"):
        faults.errors(403, path=path)
    for version in ("v1alpha1", "v1alpha2", "v1beta1", "v2alpha2"):
        faults.errors(403, path=f"/{version}/podgroups")


def row(said: Result) -> dict[str, str]:
    """Column -> what the job's row has there."""
    assert said.exit_code == 0, said.output
    head, *lines = said.stdout.splitlines()
    (line,) = [line for line in lines if line.startswith("gang")]
    names = head.split()
    return dict(zip(names, line.split(maxsplit=len(names) - 1)))


def test_rights_in_one_namespace_are_enough_for_its_jobs(api: Http, faults: Faults) -> None:
    forbid_all_but_one_namespace(faults)
    said = navarch(api, "jobs", "-n", "team")
    found = row(said)
    assert (found["KIND"], found["QUEUE"]) == ("PodGroup", "research"), "a queue that may not be looked at is not said to be absent"
    assert found["WHY"] == "0/4 nodes are available"
    assert said.stderr == "", "nothing of it is missing"


def test_a_group_that_may_not_be_seen_is_not_said_to_be_absent(api: Http, faults: Faults) -> None:
    faults.errors(403, path="/podgroups")
    said = navarch(api, "jobs", "-n", "team")
    assert (row(said)["QUEUE"], row(said)["WHY"]) == ("?", "0/4 nodes are available")
    (told,) = said.stderr.splitlines()
    assert told.startswith("not shown, since they may not be listed: podgroups.") and "podgroups.scheduling.volcano.sh" in told


def test_a_forbidden_kind_that_is_not_served_is_not_reported(api: Http, faults: Faults) -> None:
    """An API server looks at rights first. Kubernetes' own groups are served in another version here."""
    faults.errors(403, path="/apis/scheduling.k8s.io/v1beta1/podgroups")
    said = navarch(api, "queues")
    assert (said.exit_code, said.stderr) == (0, "")


def test_kinds_that_are_missing_from_a_table_are_told_in_one_line(api: Http, faults: Faults) -> None:
    faults.errors(403, path="/priorityclasses")
    faults.errors(403, path="/apis/scheduling.run.ai/v2/queues")
    (told,) = navarch(api, "queues").stderr.splitlines()
    assert "priorityclasses.scheduling.k8s.io, queues.scheduling.run.ai (" in told


@pytest.mark.parametrize(
    ("words", "path", "hint"),
    [
        (("jobs", "-A"), "/api/v1/pods", "-n NAMESPACE"),
        (("jobs", "-n", "team"), "/pods", "Forbidden"),
        (("queues",), "/api/v1/pods", "Forbidden"),
        (("queues",), "/api/v1/nodes", "Forbidden"),
        (("nodes",), "/api/v1/nodes", "Forbidden"),
    ],
)
def test_without_the_right_to_look_there_is_no_empty_answer(
    api: Http, faults: Faults, words: tuple[str, ...], path: str, hint: str
) -> None:
    faults.errors(403, path=path)
    said = navarch(api, *words)
    assert said.exit_code == 1 and said.stdout == ""
    assert said.stderr.startswith("Error: GET ") and hint in said.stderr
