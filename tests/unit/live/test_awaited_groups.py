"""Pods of KAI's scheduler wait for the PodGroup that KAI's pod grouper makes, where there is one, and for a bounded time."""

from __future__ import annotations

from typing import Any, cast

from tests.worlds.kai_objects import group, node, pod, queue
from tests.worlds.live_parts.kai_core import BEGIN, KaiCore

from navarch.apis.kai.awaited_groups import BOUND
from navarch.explanation.awaited_group import waits_for_group
from navarch.explanation.explain import reading
from navarch.ingest.absent_jobs import absent
from navarch.kube.client import Client
from navarch.live.writers.bind_requests import BindRequests
from navarch.model.timestamps import rfc3339

OWNER = {"apiVersion": "batch/v1", "kind": "Job", "name": "train", "uid": "u1", "controller": True}


def ungrouped(name: str, created: float = BEGIN, **spec: Any) -> dict[str, Any]:
    made = pod(name, "")
    made["metadata"] |= {"annotations": {}, "creationTimestamp": rfc3339(created), "ownerReferences": [OWNER]}
    made["metadata"]["labels"] = {"kai.scheduler/queue": "a"}
    made["spec"] |= spec
    return made


def grouped(manifest: dict[str, Any], name: str) -> dict[str, Any]:
    return {**manifest, "metadata": {**manifest["metadata"], "annotations": {"pod-group-name": name}}}


def made_group(name: str = "pg-train-u1", created: float = BEGIN) -> dict[str, Any]:
    """As KAI's pod grouper writes it."""
    made = group(name, "a")
    made["metadata"] |= {"creationTimestamp": rfc3339(created), "ownerReferences": [OWNER]}
    made["metadata"]["annotations"] = {"kai.scheduler/top-owner-metadata": "name: train"}
    return made


def world(kai: bool = True) -> KaiCore:
    return KaiCore(node("n", 8), kai=kai)


def test_a_pod_is_bound_in_the_group_that_the_grouper_makes() -> None:
    made = world()
    made.show(ungrouped("train-x"))
    assert made.decide() == []
    made.show_group(made_group())
    assert made.decide() == [], "the group is not named on the pod yet"
    made.show(grouped(ungrouped("train-x"), "pg-train-u1"))
    assert made.decide() == [("train-x", "ns/pg-train-u1")]


def test_without_signs_of_kai_no_pod_waits() -> None:
    made = world(kai=False)
    made.show(ungrouped("train-x"))
    assert made.decide() == [("train-x", "ns/job/train")]


def test_groups_that_it_made_are_a_sign_of_the_grouper() -> None:
    made = world(kai=False)
    made.show_group(group("by-hand", "a"))
    made.show(ungrouped("train-x"))
    assert len(made.decide()) == 1, "users write groups as well"

    made = world(kai=False)
    made.show_group(made_group("pg-other-u2"))
    made.show(ungrouped("train-x"))
    assert made.decide() == []


def test_a_wait_ends_and_the_pods_that_come_then_do_not_wait_for_a_grouper_that_is_gone() -> None:
    made = world()
    made.show(ungrouped("train-x"))
    made.now += BOUND - 1
    assert made.decide() == []
    made.now += 1
    assert made.decide() == [("train-x", "ns/job/train")]

    later = {"metadata": {"ownerReferences": [{**OWNER, "name": "next", "uid": "u2"}]}}
    second = ungrouped("next-x", made.now)
    second["metadata"] |= later["metadata"]
    made.show(second)
    assert made.decide() == [("next-x", "ns/job/next")]

    made.now += 1
    made.show_group(made_group("pg-back-u3", made.now))
    third = ungrouped("third-x", made.now)
    third["metadata"]["ownerReferences"] = [{**OWNER, "name": "third", "uid": "u4"}]
    made.show(third)
    assert made.decide() == [], "the grouper is there again"


def test_pods_on_nodes_count_at_once() -> None:
    made = world()
    made.show({**ungrouped("train-x", nodeName="n"), "status": {"phase": "Running"}})
    jobs = made.cache.cluster.jobs
    assert jobs.specs[jobs.rows.of["ns/job/train"]] is not None


def test_pods_of_other_schedulers_and_pods_without_the_grouper_are_not_its_business() -> None:
    made = world()
    skipped = ungrouped("skipped")
    skipped["metadata"]["annotations"] = {"kai.scheduler/skip-podgrouper": "true"}
    for manifest in (skipped, ungrouped("other", schedulerName="default-scheduler")):
        made.show(manifest)
    assert made.cache.shadows.awaiting == {}


def test_what_a_waiting_pod_is_told_names_the_end_of_the_wait() -> None:
    made = world()
    made.show(ungrouped("train-x"))
    (key,) = made.cache.shadows.awaiting
    told = absent(key, None, [1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0], awaited_since=made.cache.shadows.awaiting[key]).reasons[0]
    assert told.message == (
        "it waits for the PodGroup that KAI's pod grouper makes, until 2026-01-01T00:00:30Z at most; then it is grouped without one"
    )


def test_explain_names_the_end_of_the_wait_while_it_lasts() -> None:
    objects = [node("n"), queue("dep"), queue("a", "dep"), ungrouped("train-x"), made_group("pg-other-u2")]

    def notes(now: float, *more: dict[str, Any], installed: bool = False) -> list[str]:
        read = reading([*objects[:4], *more], "kai", now, "kai-scheduler")
        return waits_for_group(read, "ns/train", installed=installed)

    assert notes(BEGIN) == []
    other = grouped(ungrouped("other-x"), "pg-other-u2")
    for found in (notes(BEGIN + 5, installed=True), notes(BEGIN + 5, objects[4], other)):
        assert len(found) == 1 and "until 2026-01-01T00:00:30Z at most" in found[0]
    assert notes(BEGIN + BOUND, installed=True) == []


def test_where_kai_is_installed_all_pods_of_its_scheduler_go_by_its_binder() -> None:
    for kai in (True, False):
        made = world(kai)
        requests = BindRequests(cast(Client, None), made.cache, lambda: True, enabled=True)
        made.show(ungrouped("train-x", BEGIN - BOUND))
        made.decide()
        assert requests.used_for("ns/job/train") is kai
