"""The first hour of a researcher: what is typed, and what a terminal of 80 columns and 24 lines shows.

Waits are for what the screen shows, never for a time."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.worlds.terminal import DOWN, ENTER, ESCAPE, TAB, terminal
from tests.worlds.up_process import KUBECTL, NAVARCH, UpProcess, running_up

pytestmark = pytest.mark.live
needs_kubectl = pytest.mark.skipif(KUBECTL is None, reason="kubectl is not in PATH")


@pytest.fixture(scope="module")
def up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[UpProcess]:
    """One node with one GPU beside one with four, where time passes twenty times as fast."""
    folder = tmp_path_factory.mktemp("walk")
    (folder / "nodes.yaml").write_text(
        "kind: NodeSet\nmetadata: {name: single}\nspec: {count: 1, gpus: 1}\n---\n"
        "kind: NodeSet\nmetadata: {name: quad}\nspec: {count: 1, gpus: 4}\n"
    )
    with running_up(folder, "--node-file", str(folder / "nodes.yaml"), "--speed", "20") as found:
        yield found


def typed(up: UpProcess, *command: str, code: int = 0) -> list[str]:
    """What the terminal shows after a command."""
    with terminal([*NAVARCH, *command], {"KUBECONFIG": str(up.kubeconfig)}) as screen:
        assert screen.ended() == code, screen.text
        return screen.text.splitlines()


def typed_until(up: UpProcess, *command: str, holds: Callable[[list[str]], bool]) -> list[str]:
    """Type the command again until it shows what is waited for: statuses follow the pods a moment later."""
    until = time.monotonic() + 120
    while not holds(shown := typed(up, *command)):
        assert time.monotonic() < until, shown
        time.sleep(0.2)
    return shown


def cancel(up: UpProcess, job: str) -> None:
    """Cancel the only job, and wait until it is gone: the next test begins with an empty cluster."""
    assert typed(up, "cancel", job) == [f"volcanojob/{job} cancelled"]
    typed_until(up, "jobs", holds=lambda shown: "no jobs found" in " ".join(shown))


def test_the_live_view_scrolls_filters_and_opens_a_job(tmp_path: Path) -> None:
    command = [*NAVARCH, "up", "--nodes", "4", "--gpus", "2", "--kubeconfig", str(tmp_path / "k")]
    with terminal(command) as screen:
        shown = screen.until("pretrain")
        assert f"export KUBECONFIG={tmp_path / 'k'}"[:79] in shown
        assert "? keys   q stops" in screen.lines[23], "the keys are on the last line"
        screen.type("?")
        screen.until("Tab                the next list")
        screen.type("?")
        screen.until("pretrain")
        screen.type("/pretr")
        screen.until("/pretr_")
        screen.type(ENTER)
        screen.until(lambda text: "filter: pretr" in text and "Jobs 1" in text)
        screen.type(ENTER)
        shown = screen.until(lambda text: "PodGroup research/pretrain" in text and "POD" in text)
        assert "pretrain-" in shown and "Esc back" in screen.lines[23]
        screen.type(ESCAPE)
        screen.until("Tab queues")
        screen.type(ESCAPE)
        screen.until(lambda text: "filter:" not in text)
        screen.type(TAB + TAB)
        screen.until(lambda text: all(f"node-00{number}  Ready" in text for number in range(4)))
        screen.type(DOWN + TAB)
        screen.until("EVENT")
        screen.type("q")
        assert screen.ended() == 0
        assert "stopped. The cluster was in memory" in screen.text and "To come back: navarch up" in screen.text


def test_a_gang_is_submitted_followed_and_cancelled(up: UpProcess) -> None:
    shown = typed(
        up, "submit", "--name", "train", "--gang", "4", "--gpus", "1", "--image", "i", "--wait=started", "--", "sleep", "100000"
    )
    assert shown[0] == "job.batch.volcano.sh/train created" and shown[-1].endswith("volcanojob/train started")
    head, row = typed_until(up, "jobs", holds=lambda shown: "Running" in shown[-1].split())
    assert head.split()[:3] == ["JOB", "PHASE", "RUNNING"] and max(len(head), len(row)) <= 80
    assert row.split()[:3] == ["train", "Running", "4"]
    assert typed(up, "jobs", "-o", "name") == ["job.batch.volcano.sh/train"]
    assert "did you mean 'train'?" in " ".join(typed(up, "jobs", "trian", code=1))
    cancel(up, "train")


def test_rows_are_printed_again_when_they_change(up: UpProcess) -> None:
    with terminal([*NAVARCH, "jobs", "-w"], {"KUBECONFIG": str(up.kubeconfig)}) as screen:
        screen.until("no jobs found")
        typed(up, "submit", "--name", "late", "--gang", "2", "--image", "i", "--wait=started", "--", "sleep", "100000")
        screen.until(lambda text: "late  Running  2" in " ".join(text.split()).replace(" ", "  "))
        typed(up, "cancel", "late")
        shown = screen.until("Deleted")
        assert shown.count("JOB") == 1, "the header is printed once"
        screen.type("\x03")
        assert screen.ended() in (0, 130, -2)
    typed_until(up, "jobs", holds=lambda shown: "no jobs found" in " ".join(shown))


def test_a_job_is_explained_by_the_name_that_it_was_given(up: UpProcess) -> None:
    typed(up, "submit", "--name", "large", "--gang", "9", "--gpus", "1", "--image", "i")
    for name in ("large", "volcanojob/large"):
        assert "never: it does not start on the empty cluster either (proved)" in " ".join(typed(up, "explain", name))
    _, row, why = typed_until(up, "jobs", "large", holds=lambda shown: "never" in " ".join(shown))
    assert row.split()[0] == "large" and why.strip() == "cannot start: needs 9 GPUs, the cluster has 5"
    cancel(up, "large")


@needs_kubectl
def test_halves_of_a_gpu_share_it_and_nodes_say_so(up: UpProcess) -> None:
    def half(name: str, fraction: str = "0.5") -> dict[str, object]:
        spec = {"containers": [{"name": "c", "image": "i"}], "nodeSelector": {"kubernetes.io/hostname": "single-000"}}
        return {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name, "annotations": {"gpu-fraction": fraction}, "labels": {"walk": "halves"}},
            "spec": spec,
        }

    up.kubectl("apply", "-f", "-", manifests=[half("ana"), half("ben")])
    up.kubectl("wait", "--for=jsonpath={.status.phase}=Running", "pod/ana", "pod/ben", "--timeout=300s")
    up.kubectl("apply", "-f", "-", manifests=[half("cem"), half("dot", "abc")])
    up.kubectl("wait", "--for=condition=PodScheduled=False", "pod/cem", "--timeout=300s")
    rows = {line.split()[0]: line.split() for line in typed(up, "nodes")}
    assert rows["single-000"][2] == "1/1" and rows["quad-000"][2] == "0/4"
    assert "dot: metadata.annotations[gpu-fraction]: found 'abc'" in "".join(typed(up, "jobs")), "folded at the edge"
    assert "trial runs of the scheduler" in " ".join(typed(up, "explain", "cem")), "the unreadable pod of another does not matter"
    up.kubectl("delete", "pods", "-l", "walk=halves", "--timeout=300s")


@needs_kubectl
def test_a_deployment_keeps_its_name(up: UpProcess) -> None:
    up.kubectl("create", "deployment", "web", "--image=web", "--replicas=2")
    up.kubectl("rollout", "status", "deployment/web", "--timeout=300s")
    shown = typed(up, "jobs", "web", "-o", "yaml")
    assert "  name: web" in shown and "  kind: Deployment" in shown
    up.kubectl("delete", "deployment", "web", "--timeout=300s")


def test_a_command_that_does_not_exist_is_answered_with_the_nearest(up: UpProcess) -> None:
    assert "Did you mean 'submit'?" in " ".join(typed(up, "sumbit", code=2))
