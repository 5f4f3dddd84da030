"""What the tables of a cluster take from the state that the scheduler publishes."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from msgspec.structs import replace

from navarch.cli.cluster.listing import Listed
from navarch.cli.cluster.reading import overview_of
from navarch.installed import installed
from navarch.offline.manifests import Document
from navarch.offline.policies import read_policy
from navarch.testing.builders import node, pod, pod_group, queue
from navarch.views.overview import Overview
from navarch.views.prospects import Prospect
from navarch.views.published_state import (
    Cause,
    Parameters,
    PublishedState,
    QueueShare,
    WaitingJob,
    WaitingPage,
    published_policy,
)

SHARES = [QueueShare("q", 0.75, deserved={"cpu": "4"}, allocated={"cpu": "3"})]
MISSING = {"actions": "allocate", "tiers": [{"plugins": [{"name": "gang"}, {"name": "of-our-own"}]}]}


def published(document: dict[str, Any] | None = None) -> PublishedState:
    policy = published_policy(read_policy("navarch", installed()))
    if document is not None:
        policy = replace(policy, name="ours", hash="x", document=document)
    return PublishedState("1", ["navarch"], policy, Parameters(), SHARES, "me", "2026-01-01T00:00:00Z")


def shown(state: PublishedState | None) -> tuple[Overview, list[str]]:
    manifests = [node("n").cpu(8), queue("q"), pod_group("g", 1).queue("q"), pod("g-0").cpu(64).in_group("g").scheduler("navarch")]
    listed = Listed([Document(each) for each in manifests])
    told: list[str] = []
    return asyncio.run(overview_of(listed, None, installed(), told.append, state=state)), told


def test_shares_are_the_schedulers_where_its_policy_cannot_be_read_here() -> None:
    found, told = shown(published(MISSING))
    (row,) = (each for each in found.queues if each.name == "q")
    assert (row.to_dict()["deserved"], row.share) == ({"cpu": "4"}, 0.75)
    assert row.to_dict()["request"]["cpu"] == "64", "what it requests is counted from the objects"
    assert [job.prospect for job in found.jobs] == [None], "another policy would order them"
    assert len(told) == 1 and told[0].startswith("the policy that runs (ours) cannot be read here: ")


@pytest.mark.parametrize("state", [None, published()])
def test_shares_are_computed_where_the_policy_can_be_read(state: PublishedState | None) -> None:
    found, told = shown(state)
    (row,) = (each for each in found.queues if each.name == "q")
    assert row.share != 0.75 and told == []
    assert [job.prospect is not None for job in found.jobs] == [True]


def test_a_waiting_job_is_found_by_its_key_whatever_its_workload_is_named() -> None:
    group = pod_group("bert-7c1f", 1).queue("q")
    group["metadata"]["ownerReferences"] = [{"apiVersion": "v1", "kind": "Job", "name": "bert", "uid": "7c1f", "controller": True}]
    manifests = [node("n").cpu(8), queue("q"), group, pod("bert-0").cpu(64).in_group("bert-7c1f").scheduler("navarch")]
    listed, told = Listed([Document(each) for each in manifests]), list[str]()
    key = "default/bert-7c1f"
    waiting = WaitingJob(key, key, "q", 2, 5, 2, 1, 1, 0, "held", Cause("NeverStarts", "cannot start: too large", "request less"))
    page = WaitingPage("2026-01-01T00:00:00Z", 1, [waiting])
    (row,) = asyncio.run(overview_of(listed, None, installed(), told.append, state=published(), waiting=page)).jobs
    assert (row.name, row.kind, row.why, row.prospect) == (
        "bert",
        "VolcanoJob",
        "cannot start: too large",
        Prospect(2, 5, "cannot start: too large"),
    )
