"""Which queues exist: by objects of several APIs, and without an object."""

from __future__ import annotations

from typing import Any

import pytest

from navarch.apis.dialect import Settings
from navarch.ingest.api_precedence import ApiPrecedence
from navarch.ingest.queues import Queues
from navarch.model.cluster import Cluster
from navarch.model.spec import NamespaceSpec, QueueSpec

VOLCANO = QueueSpec("team", weight=2, dialect="volcano", api_version="scheduling.volcano.sh/v1beta1")
KAI = QueueSpec("team", weight=3, dialect="kai", api_version="scheduling.run.ai/v2")


def made(**settings: Any) -> tuple[Queues, Cluster]:
    cluster = Cluster()
    return Queues(Settings(**settings), cluster), cluster


@pytest.mark.parametrize("order", [(VOLCANO, KAI), (KAI, VOLCANO)])
def test_the_api_of_higher_precedence_wins_in_any_order(order: tuple[QueueSpec, ...]) -> None:
    queues, cluster = made()
    for spec in order:
        queues.put(spec)
    assert cluster.queues["team"] == VOLCANO
    assert queues.remove(VOLCANO) and cluster.queues["team"] == KAI
    assert queues.remove(KAI) and "team" not in cluster.queues
    assert not queues.remove(KAI), "it is gone already"


def test_a_change_that_changes_nothing_is_none() -> None:
    queues, _ = made()
    assert queues.put(VOLCANO) and not queues.put(VOLCANO)
    assert not queues.put(KAI), "the Queue of Volcano wins"


def test_without_implied_queues_the_default_exists_only_while_there_is_no_object() -> None:
    queues, cluster = made(imply_queues=False)
    assert sorted(cluster.queues) == ["default", "root"]
    queues.put(KAI)
    assert sorted(cluster.queues) == ["team"]
    queues.put(VOLCANO)
    assert sorted(cluster.queues) == ["root", "team"], "Volcano's queues have a root"
    queues.remove(VOLCANO)
    queues.remove(KAI)
    assert sorted(cluster.queues) == ["default", "root"]


def test_a_namespace_is_a_queue_while_it_exists_or_holds_a_job() -> None:
    queues, cluster = made(namespace_as_queue=True)
    cluster.put_namespace(NamespaceSpec("team"))
    assert queues.namespace_changed("team") and cluster.queues["team"].dialect == "implied"
    assert not queues.job_added("team") and not queues.job_added("team")
    cluster.remove_namespace("team")
    assert not queues.namespace_changed("team") and "team" in cluster.queues, "its jobs are still there"
    assert not queues.job_removed("team")
    assert queues.job_removed("team") and "team" not in cluster.queues


def test_an_object_replaces_the_implied_queue_of_its_name() -> None:
    queues, cluster = made(namespace_as_queue=True)
    queues.job_added("team")
    queues.put(VOLCANO)
    assert cluster.queues["team"] == VOLCANO
    queues.remove(VOLCANO)
    assert cluster.queues["team"].dialect == "implied"


def test_versions_of_one_api_group_show_the_same_object() -> None:
    values: ApiPrecedence[int] = ApiPrecedence()
    values.put("x", "upstream", "scheduling.k8s.io/v1alpha2", 1)
    assert values.put("x", "upstream", "scheduling.k8s.io/v1beta1", 2) == 2
    assert values.remove("x", "upstream", "scheduling.k8s.io/v1beta1") is None and len(values) == 0
