"""The command `navarch explain`, as a user sees it."""

from __future__ import annotations

import json
from pathlib import Path

import yaml
from click.testing import CliRunner, Result

from navarch.cli.main import main

SAMPLE = Path(__file__).resolve().parents[3] / "examples" / "two-queues.yaml"


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["explain", *arguments, "--seconds", "600"])


def test_text_says_the_cause_first_and_what_would_help() -> None:
    result = run("sweep", "-f", str(SAMPLE))
    lines = result.stdout.splitlines()
    assert lines[0] == "research/sweep pending: Unschedulable"
    assert "blocked by 1 job (none can be left out): research/train" in lines
    assert "  + minMember 2 instead of 6: starts" in lines
    assert "  + 2 more nodes like gpu-1: starts" in lines


def test_json_and_yaml_are_the_same() -> None:
    found = json.loads(run("sweep", "-f", str(SAMPLE), "-o", "json").stdout)
    other = yaml.safe_load(run("sweep", "-f", str(SAMPLE), "-o", "yaml").stdout)
    assert found | {"seconds": 0} == other | {"seconds": 0}
    assert found["complete"] and found["blockers"] == {"jobs": ["research/train"], "minimal": True, "mayTake": []}


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
