"""Completion as a shell asks for it: commands, options, presets, and names from the cluster."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner
from tests.worlds.up_process import KUBECTL, UpProcess, running_up

from navarch.cli.main import main

SHELLS = ["bash", "zsh", "fish"]


def completed(words: str, kubeconfig: Path | None = None) -> list[str]:
    """What bash is told for these words; the last one is being typed."""
    environment = {"_NAVARCH_COMPLETE": "bash_complete", "COMP_WORDS": f"navarch {words}", "COMP_CWORD": str(len(words.split(" ")))}
    result = CliRunner().invoke(main, prog_name="navarch", env={**environment, "KUBECONFIG": str(kubeconfig or "/nonexistent")})
    return [line.partition(",")[2] for line in result.stdout.splitlines() if line]


@pytest.mark.parametrize("shell", SHELLS)
def test_every_shell_has_its_script(shell: str) -> None:
    result = CliRunner().invoke(main, ["completion", shell])
    assert result.exit_code == 0 and "_NAVARCH_COMPLETE" in result.stdout


def test_commands_options_and_presets_are_completed() -> None:
    assert completed("su") == ["submit", "suspend"]
    assert "--pending" in completed("jobs --pe")
    for words in ("plan --policy k", "run --policy k", "up --policy k", "simulate --policy k", "explain --policy k", "plan --diff k"):
        assert completed(words) == ["kube-batch", "kube-batch-early", "kai", "kube-scheduler"], words


def test_without_a_cluster_there_are_no_names_and_no_message() -> None:
    assert completed("jobs tr") == []


@pytest.fixture(scope="module")
def up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[UpProcess]:
    with running_up(tmp_path_factory.mktemp("completion"), "--nodes", "2", "--gpus", "1") as found:
        yield found


def named(words: str, up: UpProcess) -> list[str]:
    """What the cluster completes. A server that needs more than two seconds completes nothing, so a busy machine asks again."""
    until = time.monotonic() + 120
    while not (found := completed(words, up.kubeconfig)):
        assert time.monotonic() < until, words
    return found


@pytest.mark.live
@pytest.mark.skipif(KUBECTL is None, reason="kubectl is not in PATH")
def test_names_come_from_the_cluster(up: UpProcess) -> None:
    up.navarch("submit", "--name", "train", "--image", "i", "--", "sleep", "100000")
    for command in ("jobs", "explain", "cancel", "suspend"):
        assert named(f"{command} tr", up)[0] == "train"
    assert named("nodes node", up) == ["node-000", "node-001"]
    assert named("jobs -n kube-s", up) == ["kube-system"]
    up.kubectl("wait", "--for=create", "queues.scheduling.volcano.sh/default", "--timeout=300s")  # the scheduler makes it
    assert named("submit --queue def", up) == ["default"]
