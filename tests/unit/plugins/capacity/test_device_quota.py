"""Quotas of device classes in the capacity plugin."""

from __future__ import annotations

from typing import Any

from tests.worlds.plugin_session import World, job_of, place

from navarch.engine.points.protocols import Vote
from navarch.engine.reasons import Reason
from navarch.engine.session import Session
from navarch.plugins.capacity.plugin import Capacity


def claim(world: World, name: str, count: int = 1, device_class: str = "gpu.com", **request: Any) -> None:
    demand = {"name": "r", "exactly": {"count": count, "deviceClassName": device_class, **request}}
    manifest = {"metadata": {"name": name, "namespace": "ns"}, "spec": {"devices": {"requests": [demand]}}}
    world.cluster.put_object("ResourceClaim", "ns", name, manifest)


def world(limit: int = 2) -> World:
    return World().node("n", cpu=9, memory="9Gi").queue("q", capability={"deviceclass/gpu.com": limit})


def with_claim(made: World, job: str, uses: str, count: int = 1, node: str = "", **fields: Any) -> World:
    made.job(job, **fields).pods(job, count, node, cpu=1, claims=(("c", uses),))
    return made


def ask(session: Session, job: str) -> int | Reason:
    (plugin,) = session.plugins
    assert isinstance(plugin, Capacity)
    found = job_of(session, job)
    return plugin.allocatable(found.queue, session.class_of(found.tasks[-1]), 1)


def test_claims_within_the_quota_pass_and_beyond_it_do_not() -> None:
    made = world()
    claim(made, "two", 2)
    claim(made, "three", 3)
    session = with_claim(with_claim(made, "a", "two"), "b", "three").session(Capacity)
    assert ask(session, "a") == 1
    refused = ask(session, "b")
    assert isinstance(refused, Reason)
    assert refused.message == "queue resource quota insufficient: insufficient deviceclass/gpu.com"
    assert refused.figures["gpu.com asked"] == 3


def test_placed_claims_count_until_they_are_undone() -> None:
    made = world()
    claim(made, "one")
    claim(made, "two", 2)
    session = with_claim(with_claim(made, "a", "one"), "b", "two").session(Capacity)
    place(session, "a", "n")
    assert isinstance(ask(session, "b"), Reason)
    job = job_of(session, "a")
    statement = session.statement()
    statement.evict(job.tasks[0])
    assert ask(session, "b") == 1
    statement.discard()
    assert isinstance(ask(session, "b"), Reason)


def test_a_claim_that_pods_share_counts_once() -> None:
    made = world()
    claim(made, "two", 2)
    session = with_claim(made, "a", "two", 3).session(Capacity)
    place(session, "a", "n", 2)
    assert ask(session, "a") == 1


def test_running_pods_classes_without_quota_and_admin_access() -> None:
    made = world(1)
    claim(made, "one")
    claim(made, "other", 100, "nic.com")
    claim(made, "admin", 5, adminAccess=True)
    claim(made, "more")
    with_claim(made, "run", "one", node="n", phase="Running")
    with_claim(with_claim(with_claim(made, "a", "other"), "b", "admin"), "c", "more")
    session = made.session(Capacity)
    assert (ask(session, "a"), ask(session, "b")) == (1, 1)
    assert isinstance(ask(session, "c"), Reason)


def test_admission_counts_what_was_admitted_in_this_cycle() -> None:
    made = world()
    claim(made, "two", 2)
    claim(made, "one")
    fields: dict[str, Any] = {"min_resources": {"cpu": 1}, "phase": "Pending"}
    session = with_claim(with_claim(made, "a", "two", **fields), "b", "one", **fields).session(Capacity)
    (plugin,) = session.plugins
    assert isinstance(plugin, Capacity)
    assert plugin.job_enqueueable(job_of(session, "a")) == Vote.PERMIT
    plugin.job_enqueued(job_of(session, "a"))
    assert isinstance(plugin.job_enqueueable(job_of(session, "b")), Reason)


def test_an_ancestors_quota_counts_for_the_whole_branch() -> None:
    made = World().node("n", cpu=9).queue("root").queue("top", capability={"deviceclass/gpu.com": 1})
    made.queue("x", parent="top").queue("y", parent="top")
    claim(made, "one")
    claim(made, "more")
    with_claim(with_claim(made, "a", "one", queue="x"), "b", "more", queue="y")
    session = made.session(Capacity, switches={"hierarchy": True})
    place(session, "a", "n")
    refused = ask(session, "b")
    assert isinstance(refused, Reason) and refused.figures["queue"] == "top"


def test_the_device_quota_can_be_switched_off() -> None:
    made = world(1)
    claim(made, "two", 2)
    arguments = {"capacity.DynamicResourceAllocationEnable": False}
    assert ask(with_claim(made, "a", "two").session(Capacity, arguments=arguments), "a") == 1
