"""A report: a page that needs nothing from anywhere, and the same data as JSON and CSV."""

from __future__ import annotations

import csv
import hashlib
import json
import re
from importlib.resources import files
from pathlib import Path

from navarch.simulator.failures import NodeFailures
from navarch.simulator.report.data import report_data
from navarch.simulator.report.write import write_report
from navarch.simulator.simulate import simulate

TRACE = Path(__file__).resolve().parents[4] / "examples" / "traces" / "two-teams.jsonl"


def test_a_report_holds_page_json_and_csv(tmp_path: Path) -> None:
    result = simulate(f"jsonl:{TRACE}", "h100=4x8gpu", ["fifo", "easy"])
    write_report(result, tmp_path, "two teams </script>")
    data = json.loads((tmp_path / "report.json").read_text())
    assert data["order"] == ["fifo", "easy"]
    assert data["policies"] == result.to_dict()["policies"]
    assert data["series"]["easy"]["queues"].keys() == {"nlp", "vision"}
    with (tmp_path / "jobs.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == sum(run.measures.finished for run in result.runs)
    page = (tmp_path / "index.html").read_text()
    assert not re.search(r"""(src|href)=["']?(https?:)?//""", page)
    assert "two teams \\u003c/script>" in page
    assert "/*DATA*/" not in page and "/*UPLOT_JS*/" not in page


def test_figures_of_groups_are_means_over_the_seeds_too() -> None:
    failures = NodeFailures(between=20000.0, repair=7200.0)
    result = simulate(f"jsonl:{TRACE}", "h100=4x8gpu", ["fifo"], seeds=(1, 2), failures=failures)
    data = report_data(result, "two seeds")
    each = [run.measures.details()["byQueue"]["nlp"]["queueing"]["mean"] for run in result.runs]
    assert each[0] != each[1], "the seeds make no difference"
    assert data["details"]["fifo"]["byQueue"]["nlp"]["queueing"]["mean"] == sum(each) / 2
    assert data["seeds"] == [1, 2]


def test_vendored_files_are_what_their_list_says() -> None:
    vendor = files("navarch.simulator.report") / "vendor"
    listed = re.findall(r"([0-9a-f]{64})  (\S+)", (vendor / "README.md").read_text())
    assert [name for _, name in listed] == ["uPlot.iife.min.js", "uPlot.min.css"]
    for digest, name in listed:
        assert hashlib.sha256((vendor / name).read_bytes()).hexdigest() == digest
