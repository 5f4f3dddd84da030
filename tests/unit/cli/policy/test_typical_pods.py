"""`navarch policy typical-pods`: pods of a history or a trace, in the form that a policy file takes."""

from __future__ import annotations

import json
from pathlib import Path

import yaml
from click.testing import CliRunner

from navarch.cli.main import main
from navarch.engine.policy import load
from navarch.installed import installed
from navarch.job_history import JobHistory, JobRun

TRACE = Path(__file__).resolve().parents[4] / "examples" / "traces" / "two-teams.jsonl"


def test_pods_of_a_trace_are_counted_and_a_policy_takes_the_list() -> None:
    told = CliRunner().invoke(main, ["policy", "typical-pods", f"jsonl:{TRACE}"])
    assert told.exit_code == 0, told.output
    arguments = yaml.safe_load(told.stdout)
    counts = [entry["count"] for entry in arguments["fragmentation.typicalPods"]]
    assert counts == sorted(counts, reverse=True) and counts[0] > 1
    plugin = {"name": "fragmentation", "arguments": arguments}
    load({"actions": "allocate", "tiers": [{"plugins": [{"name": "gang"}, plugin]}]}, installed().catalogue())


def test_pods_of_a_history_are_counted(tmp_path: Path) -> None:
    path = tmp_path / "history.db"
    history = JobHistory(path)
    selector = (("nvidia.com/gpu.product", "A100"),)
    pods = ((2, (("cpu", 4000), ("nvidia.com/gpu", 8000)), selector), (1, (("cpu", 1000),), ()))
    history.write([JobRun(uid=f"j{i}", submitted=float(i), namespace="n", queue="q", pods=pods) for i in range(3)])
    history.close()
    told = CliRunner().invoke(main, ["policy", "typical-pods", f"history:{path}", "-o", "json"])
    assert told.exit_code == 0, told.output
    assert json.loads(told.stdout) == {
        "fragmentation.typicalPods": [
            {"cpu": 4.0, "gpu": 8.0, "types": ["A100"], "count": 6},
            {"cpu": 1.0, "gpu": 0.0, "count": 3},
        ]
    }


def test_a_file_that_is_not_there_is_named() -> None:
    for source, said in (("history:nowhere.db", "nowhere.db"), ("jsonl:nowhere.jsonl", "nowhere.jsonl"), ("nothing", "KIND:FILE")):
        told = CliRunner().invoke(main, ["policy", "typical-pods", source])
        assert told.exit_code == 2 and said in told.stderr
