"""The outcome of a bind: accepted, refused or unknown; and what the watch had shown by then."""

from __future__ import annotations

from typing import cast

import msgspec
import pytest
from msgspec.structs import replace
from tests.worlds.live_parts.binder import Ends, Scene, scene, status
from tests.worlds.live_parts.cluster_cache import pod, put
from tests.worlds.live_parts.fake_pool import Submitted

from navarch.kube.client import Client
from navarch.kube.errors import (
    ApiError,
    Conflict,
    Forbidden,
    NotFound,
    NotServed,
    OutcomeUnknown,
    ServerFault,
    Status,
    TooManyRequests,
    Unreachable,
)
from navarch.live.cache.assumed_pods import AssumedBind
from navarch.live.cache.cluster_cache import ClusterCache
from navarch.live.writers.bind_requests import BindRequests
from navarch.live.writers.binder import binding_write
from navarch.model.objects.bind_requests import BindRequestSpec
from navarch.model.spec import JobSpec, ObjectSpec
from navarch.model.status import TaskStatus


def refused(kind: type[ApiError], code: int) -> ApiError:
    return kind(Status(code=code, reason="", message="no"))


def test_yes_leaves_the_pod_assumed_until_the_watch_shows_it() -> None:
    _, made, submitted, ends, bind = scene()
    submitted.end()
    assert (ends.heard, bind.written, status(made)) == (["bound"], True, TaskStatus.BINDING)
    put(made, pod("a", "n1"))
    assert (made.assumed.binds, status(made)) == ({}, TaskStatus.BOUND)


async def test_a_pod_that_is_not_there_gives_its_place_back_and_waits_before_it_is_tried_again() -> None:
    _, made, submitted, ends, bind = scene()
    submitted.end(refused(NotFound, 404))
    assert (ends.heard, status(made), made.assumed.binds) == (["failed"], TaskStatus.PENDING, {})
    assert list(made.assumed.postponed) == [bind.uid]


def test_everything_else_is_asked_for_and_the_place_is_kept_meanwhile() -> None:
    refusals = refused(Conflict, 409), refused(Forbidden, 403), refused(NotServed, 404), refused(ApiError, 405)
    unknown = OutcomeUnknown("cut"), Unreachable("no connection"), ServerFault(Status(code=500, reason="", message="store"))
    for outcome, delay in (*((each, 0) for each in refusals), *((each, 1) for each in unknown)):
        _, made, submitted, ends, _ = scene()
        submitted.end(outcome)
        assert (ends.heard, status(made)) == ([f"ask after {delay}"], TaskStatus.BINDING)


def test_a_refusal_after_an_attempt_that_may_have_been_carried_out_is_asked_for() -> None:
    for outcome in (refused(Forbidden, 403), TooManyRequests(Status(code=429, reason="", message="later"))):
        _, made, submitted, ends, _ = scene()
        submitted.writes[0].maybe_done = True
        submitted.end(outcome)
        assert (ends.heard, status(made)) == (["ask after 1"], TaskStatus.BINDING)


def test_a_lost_answer_that_the_watch_has_given_already_is_a_yes() -> None:
    _, made, submitted, ends, _ = scene()
    put(made, pod("a", "n1"))
    submitted.end(OutcomeUnknown("cut"))
    assert ends.heard == ["bound"]


@pytest.mark.parametrize(("answered_5xx_before", "announced"), [(False, []), (True, ["a"])])
def test_the_same_binding_by_another_scheduler_is_not_announced(answered_5xx_before: bool, announced: list[str]) -> None:
    """Unless the refusal may be that of our own second attempt. Both as the watch shows it and as the resync finds it."""
    for seen in (True, False):
        core, made, submitted, ends, bind = scene()
        submitted.writes[0].maybe_done = answered_5xx_before
        if seen:
            put(made, pod("a", "n1"))
        submitted.end(refused(Conflict, 409))
        if not seen:
            core.bind_succeeded(bind)
        assert (ends.heard[-1], bind.written) == ("bound", True)
        assert ends.announced == announced


async def test_a_pod_that_was_deleted_is_dropped_whether_sent_or_not() -> None:
    made = Scene()
    made.cache.remove_pod("uid-a")
    made.submitted.end(refused(NotFound, 404))
    assert made.ends.heard == ["dropped"]
    put(made.cache, pod("a"))
    late = made.assume("a")
    made.binder.outbox.pause()
    made.binder.bind(late)
    made.cache.remove_pod("uid-a")
    made.binder.outbox.resume()
    assert (made.ends.heard, len(made.submitted.writes)) == (["dropped", "dropped"], 1)


@pytest.mark.parametrize(("node", "end"), [("n1", "bound"), ("n2", "dropped")])
@pytest.mark.parametrize("prepared", [True, False])
def test_preparations_stay_if_another_scheduler_bound_the_pod_to_the_same_node(node: str, end: str, prepared: bool) -> None:
    """The leader before us, with a binding that came late: the pod needs its devices there. That one announces it."""
    made = Scene()
    put(made.cache, pod("b"))
    late = made.assume("b")
    made.binder.outbox.pause()
    if prepared:
        made.binder.bind(late)
    put(made.cache, pod("b", node))
    made.binder.outbox.resume()
    if not prepared:
        made.core.bind_failed(late, "the pod is gone", 0.0)
    assert (made.ends.heard, len(made.submitted.writes), made.ends.announced) == ([end], 1, [])


def test_the_body_is_a_binding_with_the_pods_uid_and_the_gpus_it_shares() -> None:
    bind = AssumedBind("uid-a", "default", "a", "n1", "j", 0.0, gpu_groups=("g1", "g2"))
    plain = msgspec.json.decode(binding_write(bind).body)
    assert plain["metadata"] == {"name": "a", "namespace": "default", "uid": "uid-a"}
    assert plain["target"] == {"apiVersion": "v1", "kind": "Node", "name": "n1"}
    marked = msgspec.json.decode(binding_write(bind, label_gpus=True).body)
    assert marked["metadata"]["labels"] == {"runai-gpu-group/g1": "g1", "runai-gpu-group/g2": "g2"}
    assert marked["metadata"]["annotations"] == {"runai-gpu-group": "g1,g2", "received-resource-type": "Fraction"}
    assert binding_write(bind).path == "/api/v1/namespaces/default/pods/a/binding"


def test_annotations_of_the_decision_are_part_of_the_binding() -> None:
    bind = AssumedBind("uid-a", "default", "a", "n1", "j", 0.0, annotations=(("volcano.sh/gpu-index", "0,1"),))
    assert msgspec.json.decode(binding_write(bind).body)["metadata"]["annotations"] == {"volcano.sh/gpu-index": "0,1"}


def test_predicted_numa_zones_are_part_of_the_binding_and_of_the_request() -> None:
    placement = (("node-0", (("cpu", 1500), ("nvidia.com/gpu", 1000))),)
    told = [{"zone": "node-0", "amount": {"cpu": "1500m", "nvidia.com/gpu": "1"}}]
    bind = AssumedBind("uid-a", "default", "a", "n1", "j", 0.0, numa_placement=placement)
    annotations = msgspec.json.decode(binding_write(bind).body)["metadata"]["annotations"]
    assert msgspec.json.decode(annotations["kai.scheduler/numa-placement-predicted"]) == told
    made = Scene(served=True)
    requests = BindRequests(cast(Client, None), made.cache, lambda: True, enabled=True)
    write = requests.write(bind)
    assert write is not None and msgspec.json.decode(write.body)["spec"]["predictedNUMAZones"] == told


def delegated() -> tuple[ClusterCache, Submitted, Ends, AssumedBind]:
    made = Scene(served=True)
    made.submitted.end()
    made.ends.heard.clear()
    made.cache.put(JobSpec("default/g", "default", namespace="default", name="g", dialect="kai"))
    bind = made.assume("a", "default/g")
    made.binder.bind(bind)
    assert made.submitted.writes[-1].path.endswith("/bindrequests")
    return made.cache, made.submitted, made.ends, bind


async def test_a_request_that_was_written_is_looked_for_if_the_watch_never_shows_it() -> None:
    _, submitted, ends, bind = delegated()
    submitted.end()
    assert (ends.heard, bind.written) == (["bound"], True)


async def test_a_request_that_is_refused_is_asked_for() -> None:
    for outcome, delay in ((refused(Forbidden, 403), 0), (refused(Conflict, 409), 0), (Unreachable("no connection"), 5)):
        made, submitted, ends, _ = delegated()
        submitted.end(outcome)
        assert (ends.heard, status(made)) == ([f"ask after {delay}"], TaskStatus.BINDING)


async def test_a_request_is_announced_once() -> None:
    """When it was written; and not again when its pod is found bound."""
    made = Scene(served=True)
    made.submitted.end()
    made.cache.put(JobSpec("default/g", "default", namespace="default", name="g", dialect="kai"))
    put(made.cache, pod("b"))
    bind = made.assume("b", "default/g")
    made.binder.bind(bind)
    made.submitted.end()
    made.core.bind_succeeded(bind)
    assert made.ends.announced == ["a", "b"]


async def test_a_request_that_may_have_been_written_keeps_its_place_until_that_is_known() -> None:
    unknown = (OutcomeUnknown("cut"), False), (ServerFault(Status(code=500, reason="", message="store")), False)
    for outcome, answered_5xx_before in (*unknown, (refused(Conflict, 409), True)):
        made, submitted, ends, _ = delegated()
        submitted.writes[-1].maybe_done = answered_5xx_before
        submitted.end(outcome)
        assert (ends.heard, status(made)) == (["ask after 5"], TaskStatus.BINDING)


async def test_a_pod_that_shares_a_gpu_is_not_bound_directly_because_its_group_went_meanwhile() -> None:
    made = Scene(served=True)
    job = JobSpec("default/g", "default", namespace="default", name="g", dialect="kai")
    made.cache.put(job)
    put(made.cache, pod("b"))
    bind = made.assume("b", "default/g")
    made.binder.outbox.pause()
    made.binder.bind(bind)
    made.cache.remove(job)
    made.binder.outbox.resume()
    assert made.submitted.writes[-1].path.endswith("/bindrequests")


@pytest.mark.parametrize(("dialect", "served"), [("kai", False), ("volcano", True)])
async def test_pods_of_other_dialects_are_bound_directly(dialect: str, served: bool) -> None:
    """Otherwise the pod would wait for a request that no binder carries out."""
    made = Scene(served=served)
    made.cache.put(JobSpec("default/g", "default", namespace="default", name="g", dialect=dialect))
    put(made.cache, pod("b"))
    made.binder.bind(made.assume("b", "default/g"))
    assert made.submitted.writes[-1].path.endswith("/pods/b/binding")


async def test_a_pod_keeps_its_place_from_the_request_to_the_binding_whatever_is_shown_first() -> None:
    """Requests and pods are watched apart: that a request was carried out may be shown before the binding that it led to."""
    made, submitted, _, _ = delegated()
    made.pods["default", "a"] = pod("a")
    submitted.end()
    for phase in ("", "Pending", "Succeeded"):
        request = BindRequestSpec("default", "a", "n1", phase=phase)
        made.put(ObjectSpec("BindRequest", "default", "a", request))
        assert (made.assumed.binds, status(made)) == ({}, TaskStatus.BINDING), phase
    put(made, pod("a", "n1"))
    assert status(made) == TaskStatus.BOUND
    # Another pod of that name is not what the request was for.
    made.remove_pod("uid-a")
    another = pod("a")
    put(made, replace(another, metadata=replace(another.metadata, uid="uid-other")))
    task = made.cluster.task("uid-other")
    assert task is not None and task.status == TaskStatus.PENDING
