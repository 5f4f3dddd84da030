"""START of `navarch jobs --eta`."""

from __future__ import annotations

from typing import Any

from navarch.cli.cluster.start_estimate import StartEstimate
from navarch.cli.tables.overview import jobs_form
from navarch.ingest.settings import settings_for
from navarch.installed import installed
from navarch.offline.inventory import Inventory
from navarch.offline.manifests import Document
from navarch.offline.policies import read_policy
from navarch.testing.builders import node, pod, pod_group
from navarch.views.jobs import JobRow
from navarch.views.overview import overview

NOW = 100_000.0


def rows(deadline: int | None) -> dict[str, JobRow]:
    registry = installed(())
    policy = read_policy("fifo-skip", registry)
    running = pod("runs-0").gpu(4).in_group("runs").on("n1").phase("Running")
    running.child("status")["startTime"] = "1970-01-02T03:30:00Z"
    if deadline is not None:
        running.child("spec")["activeDeadlineSeconds"] = deadline
    waiting = [pod_group("waits"), pod("waits-0").gpu(4).in_group("waits"), pod_group("big", 1), pod("big-0").gpu(8).in_group("big")]
    objects: list[Any] = [node("n1").gpu(4), pod_group("runs"), running, *waiting]
    cluster = Inventory([Document(each) for each in objects], settings_for(policy)).cluster
    found = overview(cluster, policy, registry, NOW, lambda namespace, name: None).jobs
    return {row.name: row for row in StartEstimate([], 600.0).rows(found, cluster, policy, registry, NOW, [])}


def start(row: JobRow) -> str:
    column = next(each for each in jobs_form(NOW, namespaces=False, starts=True).columns if each.heading == "START")
    return column.cell(row)


def test_start_is_the_time_until_it_starts() -> None:
    found = rows(7600)
    assert start(found["waits"]) == "1h50m"
    assert found["waits"].to_dict()["eta"]["p50"] == "1970-01-02T05:36:40Z"
    assert (start(found["runs"]), start(found["big"])) == ("-", "-")


def test_without_a_basis_the_row_says_so() -> None:
    found = rows(None)
    assert start(found["waits"]) == "?"
    assert found["waits"].to_dict()["etaReason"] == "no job has a walltime, an expected duration or a history"
    assert found["waits"].to_dict()["eta"] is None
