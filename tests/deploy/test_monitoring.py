"""Alerts and dashboard of the chart: every series that they name is exposed, and a real Prometheus loads and answers them."""

from __future__ import annotations

import asyncio
import json
import re
import shutil
import subprocess
import time
import urllib.parse
import urllib.request
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner
from prometheus_client import generate_latest
from tests.worlds.deploy.charts import CHART, helm, needs_helm

from navarch.cli.main import main
from navarch.kube.connect import Endpoint
from navarch.live.run_options import RunOptions
from navarch.live.scheduler import Scheduler

ALERTS = CHART / "files" / "alerts.yaml"
DASHBOARD = json.loads((CHART / "files" / "dashboard.json").read_text(encoding="utf-8"))
RULES = [rule for group in yaml.safe_load(ALERTS.read_text(encoding="utf-8"))["groups"] for rule in group["rules"]]
SERIES = re.compile(r"\b(?:navarch|process)_[a-z_]+\b")
NOTHING_YET = {"navarch_job_failures_total", "navarch_task_failures_total", "navarch_bad_objects_total", "navarch_cache_drift_total"}
"""Counters with labels that have no series until the first failure."""
needs_prometheus = pytest.mark.skipif(
    shutil.which("prometheus") is None or shutil.which("promtool") is None,
    reason="prometheus, promtool not installed (Debian: prometheus)",
)


def expressions() -> list[str]:
    panels = [target["expr"] for panel in DASHBOARD["panels"] for target in panel.get("targets", ())]
    return [*panels, *(rule["expr"] for rule in RULES)]


def named() -> set[str]:
    return {name for each in expressions() for name in SERIES.findall(each)}


@pytest.fixture
async def scheduler() -> AsyncIterator[Scheduler]:
    made = Scheduler(Endpoint("http://127.0.0.1:1"), RunOptions(listen="", leader_elect=False))
    await made.operator_server.health.start("127.0.0.1:0")
    yield made
    await made.operator_server.health.stop()


async def test_every_series_that_is_named_is_exposed(scheduler: Scheduler) -> None:
    text = generate_latest(scheduler.metrics.registry).decode()
    exposed = {line.split()[2] for line in text.splitlines() if line.startswith("# TYPE ")}
    histograms = {line.split()[2] for line in text.splitlines() if line.startswith("# TYPE ") and line.endswith(" histogram")}
    known = exposed | {f"{name}{part}" for name in histograms for part in ("_bucket", "_sum", "_count")}
    assert named() <= known


def test_every_alert_says_what_it_means() -> None:
    for rule in RULES:
        assert rule["labels"]["severity"] in ("critical", "warning", "info")
        assert rule["annotations"]["summary"]
    assert len({rule["alert"] for rule in RULES}) == len(RULES)


def test_panels_have_places_of_their_own() -> None:
    numbers = [panel["id"] for panel in DASHBOARD["panels"]]
    assert len(set(numbers)) == len(numbers)
    cells = [
        (x, y)
        for panel in DASHBOARD["panels"]
        for x in range(panel["gridPos"]["x"], panel["gridPos"]["x"] + panel["gridPos"]["w"])
        for y in range(panel["gridPos"]["y"], panel["gridPos"]["y"] + panel["gridPos"]["h"])
    ]
    assert len(set(cells)) == len(cells)


def template(*arguments: str) -> subprocess.CompletedProcess[str]:
    return helm("template", "navarch", str(CHART), "--kube-version=1.36.0", *arguments)


def ask(base: str, path: str, **query: str) -> Any:
    with urllib.request.urlopen(f"{base}{path}?{urllib.parse.urlencode(query)}", timeout=30) as reply:
        return json.load(reply)


@needs_prometheus
async def test_a_real_prometheus_loads_the_rules_and_has_the_series(scheduler: Scheduler, tmp_path: Path) -> None:
    scheduler.metrics.leading.set(1)
    config = {
        "global": {"scrape_interval": "200ms", "evaluation_interval": "200ms"},
        "rule_files": [str(ALERTS)],
        "scrape_configs": [
            {"job_name": "navarch", "static_configs": [{"targets": [f"127.0.0.1:{scheduler.operator_server.health.port}"]}]}
        ],
    }
    (tmp_path / "prometheus.yml").write_text(yaml.safe_dump(config))
    arguments = [f"--config.file={tmp_path / 'prometheus.yml'}", f"--storage.tsdb.path={tmp_path / 'data'}"]
    command = ["prometheus", *arguments, "--web.listen-address=127.0.0.1:0"]

    def work() -> None:
        checked = subprocess.run(["promtool", "check", "rules", str(ALERTS)], capture_output=True, text=True, check=False)
        assert checked.returncode == 0, checked.stdout + checked.stderr
        with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
            try:
                assert process.stderr is not None
                said = ""
                while not (where := re.search(r'msg="Listening on" address=(\S+)', said)) or "Server is ready" not in said:
                    line = process.stderr.readline()
                    assert line, f"Prometheus did not start:\n{said}"
                    said += line
                check(f"http://{where[1]}")
            finally:
                process.terminate()

    def check(base: str) -> None:
        deadline = time.monotonic() + 120
        while not ask(base, "/api/v1/query", query="navarch_leading")["data"]["result"]:
            assert time.monotonic() < deadline, "nothing was scraped"
            time.sleep(0.2)
        (group,) = ask(base, "/api/v1/rules")["data"]["groups"]
        assert [rule["name"] for rule in group["rules"]] == [rule["alert"] for rule in RULES]
        for each in expressions():
            query = each.replace("$job", ".*")
            assert ask(base, "/api/v1/query", query=query)["status"] == "success", each
        # Histograms by label and gauges of queues have no series before the first cycle.
        labels = set(ask(base, "/api/v1/label/__name__/values")["data"])
        late = {"navarch_cycle_part_duration_seconds_sum", "navarch_queue_share", "navarch_queue_resource", "navarch_evictions_total"}
        assert named() - labels <= NOTHING_YET | late

    await asyncio.to_thread(work)


@needs_helm
def test_the_chart_wraps_both() -> None:
    shown = template("--set=prometheusRule.enabled=true", "--set=grafanaDashboard.enabled=true")
    assert shown.returncode == 0, shown.stderr
    found = {f"{item['kind']}/{item['metadata']['name']}": item for item in yaml.safe_load_all(shown.stdout) if item}
    assert found["PrometheusRule/navarch"]["spec"]["groups"][0]["rules"] == RULES
    board = found["ConfigMap/navarch-dashboard"]
    assert json.loads(board["data"]["navarch.json"]) == DASHBOARD
    assert board["metadata"]["labels"]["grafana_dashboard"] == "1"


@needs_helm
def test_a_policy_with_mistakes_is_refused_before_anything_changes(tmp_path: Path) -> None:
    broken = tmp_path / "broken.conf"
    broken.write_text("actions: [allocate\n")
    refused = template(f"--set-file=policy={broken}")
    assert refused.returncode != 0 and "policy: expected YAML" in refused.stderr
    wrong = tmp_path / "wrong.conf"
    wrong.write_text("actions: alocate\ntiers:\n- plugins: [{name: gang}]\n")
    arguments = (f"--set-file=policy={wrong}", "--set=extraArgs={--plugin-dir=/plugins}")
    shown = template(*arguments)
    found = {f"{item['kind']}/{item['metadata']['name']}": item for item in yaml.safe_load_all(shown.stdout) if item}
    job, text = found["Job/navarch-policy-check"], found["ConfigMap/navarch-policy-check"]
    for item in (job, text):
        assert item["metadata"]["annotations"]["helm.sh/hook"] == "pre-install,pre-upgrade"
    (container,) = job["spec"]["template"]["spec"]["containers"]
    assert container["args"] == ["policy", "check", "/etc/navarch/policy.yaml", "--plugin-dir=/plugins"]
    # What the Job runs, here: it fails, and so does the hook.
    mounted = tmp_path / "policy.yaml"
    mounted.write_text(text["data"]["policy.yaml"])
    done = CliRunner().invoke(main, ["policy", "check", str(mounted)])
    assert done.exit_code == 2 and "did you mean 'allocate'" in done.output
    off = template(f"--set-file=policy={wrong}", "--set=policyCheck.enabled=false")
    assert "policy-check" not in off.stdout
