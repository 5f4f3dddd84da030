"""`navarch queues` where the cluster is divided over a tree: quota, limit, fair share and usage, each queue below its parent."""

from __future__ import annotations

from tests.worlds.kai_cluster import CLUSTER, NOW, group, queue, worker, workers

from navarch.cli.tables.columns import plain, table_lines
from navarch.cli.tables.overview import queues_form
from navarch.ingest.settings import settings_for
from navarch.installed import installed
from navarch.live.usage.source import put_usage
from navarch.offline.inventory import Inventory
from navarch.offline.manifests import Document
from navarch.offline.policies import read_policy
from navarch.views.overview import Overview, overview

TEAMS = [queue("vision", limit=12), queue("speech", priority=200)]
JOBS = [group("a"), worker("a-0", "a", 8).on("gpu-1"), group("b", 2), *workers("b", 2)]


def seen(usage: dict[str, dict[str, float]] | None = None) -> Overview:
    policy = read_policy("kai", installed())
    cluster = Inventory([Document(each) for each in (*CLUSTER, *TEAMS, *JOBS)], settings_for(policy)).cluster
    put_usage(cluster, usage or {})
    return overview(cluster, policy, installed(), NOW, lambda namespace, name: None)


def test_a_parent_counts_what_is_below_it_once() -> None:
    rows = {row.name: row.to_dict() for row in seen().queues}
    assert list(rows) == ["org", "speech", "vision"]
    assert rows["org"]["allocated"]["nvidia.com/gpu"] == rows["vision"]["allocated"]["nvidia.com/gpu"] == "8"
    assert rows["org"]["request"]["nvidia.com/gpu"] == "24"
    assert rows["org"]["jobs"] == rows["vision"]["jobs"] == {"waiting": 1, "running": 1}


def test_a_queue_shows_its_bounds_and_its_share() -> None:
    rows = {row.name: row.to_dict() for row in seen().queues}
    vision = rows["vision"]
    assert (vision["parent"], vision["quota"], vision["limit"], vision["priority"]) == ("org", {"gpu": "8"}, {"gpu": "12"}, 100)
    assert vision["fairShare"]["nvidia.com/gpu"] == "12"
    assert "usage" not in vision, "it is not recorded"
    assert rows["speech"]["priority"] == 200


def test_usage_is_a_column_where_it_is_known() -> None:
    def printed(usage: dict[str, dict[str, float]]) -> list[str]:
        rows = seen(usage).queues
        return [plain(line) for line in table_lines(queues_form(rows), rows, None)]

    head, org, speech, _ = printed({"vision": {"gpu": 0.25, "cpu": 0.0}})
    assert " ".join(head.split()) == ("QUEUE SHARE RUNNING WAITING ALLOCATED FAIR SHARE REQUEST QUOTA LIMIT PRIORITY USAGE")
    assert org.startswith("org ") and speech.startswith("  speech ")
    assert "gpu 25.0%" in printed({"vision": {"gpu": 0.25}})[3]
    assert "USAGE" not in printed({})[0]


def test_a_running_group_is_called_running() -> None:
    assert {job.name: job.phase for job in seen().jobs} == {"a": "Running", "b": "Inqueue"}
