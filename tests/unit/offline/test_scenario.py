"""A recorded cycle becomes a scenario that decides the same."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner
from tests.worlds.scenarios import check, manifests

from navarch.cli.main import main
from navarch.engine.cycle import decide
from navarch.ingest.expected_duration import EXPECTED_DURATION
from navarch.ingest.settings import settings_for
from navarch.installed import installed
from navarch.offline.inventory import Inventory
from navarch.offline.manifests import Document
from navarch.offline.policies import read_policy
from navarch.offline.replay import record

SMALL: dict[str, Any] = {
    "nodes": {
        "n1": {"cpu": 8, "gpu": 4, "labels": {"pool": "a"}},
        "n2": {"cpu": 8, "gpu": 4, "taints": [{"key": "x", "effect": "NoSchedule"}]},
    },
    "queues": {"team": {"weight": 2, "capability": {"cpu": "12"}}},
    "classes": {"high": 10},
    "jobs": {
        "runs": {"pods": 1, "cpu": 2, "gpu": 1, "queue": "team", "runs": ["n1"]},
        "starts": {"pods": 2, "cpu": 1, "gpu": 1, "queue": "team", "class": "high", "spec": {"nodeSelector": {"pool": "a"}}},
        "waits": {"pods": 3, "cpu": 2, "gpu": 4, "queue": "team"},
    },
}


def recorded(tmp_path: Path, policy_name: str = "navarch", scenario: dict[str, Any] = SMALL) -> Path:
    registry = installed(())
    policy = read_policy(policy_name, registry)
    cluster = Inventory([Document(each) for each in manifests(scenario)], settings_for(policy)).cluster
    snapshot = cluster.snapshot(policy.semantics.node_order)
    decided = decide(snapshot, policy, registry, 1000.0, "cycle-1")
    file = tmp_path / "cycle-1.json.gz"
    file.write_bytes(record(cluster.snapshot(policy.semantics.node_order), policy, 1000.0, "cycle-1", {}, decided))
    return file


@pytest.mark.parametrize("anonymous", [False, True])
def test_the_scenario_decides_what_was_decided(tmp_path: Path, anonymous: bool) -> None:
    given = ["replay", str(recorded(tmp_path)), "--to-scenario", *(["--anonymous"] if anonymous else [])]
    result = CliRunner().invoke(main, given)
    assert result.exit_code == 0, result.output
    (scenario,) = yaml.safe_load(result.stdout)
    assert scenario["policy"] == "navarch"
    assert sum(scenario["cycles"][0]["bound"].values()) == 2
    assert len(scenario["cycles"][0]["waits"]) == 1
    assert check(scenario) == []
    assert ("team" in result.stdout) != anonymous
    assert ("starts" in result.stdout) != anonymous


def test_expected_durations_are_kept_as_the_time_that_is_left(tmp_path: Path) -> None:
    def job(gpu: int, time: str, **more: Any) -> dict[str, Any]:
        return {"pods": 1, "gpu": gpu, "annotations": {EXPECTED_DURATION: time}, **more}

    jobs = {"runs": job(6, "1h", runs=["n1"]), "large": job(8, "1h"), "long": job(2, "2h"), "short": job(2, "30m")}
    file = recorded(tmp_path, "easy", {"nodes": {"n1": {"cpu": 8, "gpu": 8}}, "jobs": jobs})
    result = CliRunner().invoke(main, ["replay", str(file), "--to-scenario"])
    (scenario,) = yaml.safe_load(result.stdout)
    assert scenario["cycles"][0]["bound"] == {"short": 1}
    assert scenario["jobs"]["long"]["annotations"] == {EXPECTED_DURATION: "7200s"}
    assert check(scenario) == []


def test_values_of_taints_are_made_anonymous(tmp_path: Path) -> None:
    taint = {"key": "team", "value": "secret", "effect": "NoSchedule"}
    tolerated = {"spec": {"tolerations": [{"key": "team", "operator": "Equal", "value": "secret", "effect": "NoSchedule"}]}}
    jobs = {"inside": {"pods": 1, "cpu": 1, **tolerated}, "outside": {"pods": 1, "cpu": 1}}
    file = recorded(tmp_path, scenario={"nodes": {"n1": {"cpu": 8, "taints": [taint]}}, "jobs": jobs})
    result = CliRunner().invoke(main, ["replay", str(file), "--to-scenario", "--anonymous"])
    assert "secret" not in result.output
    (scenario,) = yaml.safe_load(result.stdout)
    assert scenario["cycles"][0]["bound"] == {"job-1": 1}
    assert scenario["nodes"]["node-1"]["taints"][0]["value"] == "value-1"
    assert check(scenario) == []


def test_a_reason_is_kept_where_a_name_of_a_job_is_part_of_a_word(tmp_path: Path) -> None:
    jobs = {"runs": {"pods": 1, "cpu": 6, "runs": ["n1"]}, "i": {"pods": 1, "cpu": 4}}
    file = recorded(tmp_path, scenario={"nodes": {"n1": {"cpu": 8}, "n2": {"cpu": 2}}, "jobs": jobs})
    (scenario,) = yaml.safe_load(CliRunner().invoke(main, ["replay", str(file), "--to-scenario"]).stdout)
    assert scenario["cycles"][0]["waits"] == {"i": "Insufficient cpu"}
    assert check(scenario) == []


def test_a_text_that_names_another_job_is_left_out(tmp_path: Path) -> None:
    times = {"runs": "1h", "large": "1h", "long": "2h"}
    jobs: dict[str, Any] = {"runs": {"gpu": 6, "runs": ["n1"]}, "large": {"gpu": 8}, "long": {"gpu": 2}}
    jobs = {name: {"pods": 1, "annotations": {EXPECTED_DURATION: times[name]}, **job} for name, job in jobs.items()}
    file = recorded(tmp_path, "easy", {"nodes": {"n1": {"cpu": 8, "gpu": 8}}, "jobs": jobs})
    (scenario,) = yaml.safe_load(CliRunner().invoke(main, ["replay", str(file), "--to-scenario"]).stdout)
    assert set(scenario["cycles"][0]["waits"]) == {"large"}


def test_a_value_that_is_the_name_of_a_resource_is_kept(tmp_path: Path) -> None:
    select = {"spec": {"nodeSelector": {"pool": "cpu"}}}
    jobs = {"runs": {"pods": 1, "cpu": 6, "runs": ["n1"]}, "waits": {"pods": 1, "cpu": 4, **select}}
    nodes = {name: {"cpu": cpu, "labels": {"pool": "cpu"}} for name, cpu in (("n1", 8), ("n2", 2))}
    file = recorded(tmp_path, scenario={"nodes": nodes, "jobs": jobs})
    (scenario,) = yaml.safe_load(CliRunner().invoke(main, ["replay", str(file), "--to-scenario", "--anonymous"]).stdout)
    assert scenario["cycles"][0]["waits"] == {"job-2": "Insufficient cpu"}
    assert check(scenario) == []


def test_a_file_that_is_no_recording_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "other.json"
    file.write_text("{}")
    result = CliRunner().invoke(main, ["replay", str(file), "--to-scenario"])
    assert result.exit_code == 2
    assert "expected a recording" in result.stderr
