"""When a gang counts as half bound for too long: by the time since we saw it so, while we lead."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from msgspec.structs import replace
from tests.worlds.live_parts.cluster_cache import cache, group, pod, put

from navarch.apis.core.objects import from_manifest
from navarch.apis.core.pod_objects import Pod, PodStatus
from navarch.live.cache.assumed_pods import AssumedBind
from navarch.live.cache.cluster_cache import ClusterCache
from navarch.live.half_bound_gangs import HalfBoundGangs
from navarch.model.spec import TaskSpec

BOUND = {"conditions": [{"type": "PodScheduled", "status": "True", "lastTransitionTime": "2026-01-01T00:00:10Z"}]}


def half_bound() -> ClusterCache:
    made, _ = cache()
    made.put(group("g", 2))
    bound = pod("a", "n1", group="g")
    put(made, replace(bound, status=from_manifest(BOUND, PodStatus)))
    put(made, pod("b", group="g"))
    return made


def younger(name: str) -> Pod:
    """Made after the others were bound."""
    found = pod(name, group="g")
    return replace(found, metadata=replace(found.metadata, creation_timestamp=datetime(2026, 1, 1, 0, 0, 20, tzinfo=UTC)))


def test_a_half_bound_gang_is_released_after_the_time_out() -> None:
    released = list[tuple[str, list[TaskSpec]]]()
    gangs = HalfBoundGangs(half_bound(), lambda job, tasks, now: released.append((job, tasks)), 10.0)
    for now in (100.0, 105.0):
        gangs.check(now)
    assert (released, len(gangs)) == ([], 1)
    gangs.check(110.0)
    assert [(job, [task.name for task in tasks]) for job, tasks in released] == [("default/g", ["a"])]


def test_a_member_that_is_made_anew_meanwhile_does_not_make_it_a_gang_that_was_whole() -> None:
    released, made = list[str](), half_bound()
    gangs = HalfBoundGangs(made, lambda job, tasks, now: released.append(job), 10.0)
    gangs.check(100.0)
    made.remove_pod("uid-b")
    gangs.check(101.0)
    put(made, younger("c"))
    for now in (102.0, 109.0):
        gangs.check(now)
    assert released == []
    gangs.check(110.0)
    assert released == ["default/g"]
    for now in (111.0, 120.0):  # its budget has kept what is bound
        gangs.check(now)
    assert released == ["default/g"] * 2


def test_a_half_bound_gang_is_released_if_its_waiting_member_is_deleted() -> None:
    released, made = list[tuple[str, list[str]]](), half_bound()
    gangs = HalfBoundGangs(made, lambda job, tasks, now: released.append((job, [task.name for task in tasks])), 10.0)
    gangs.check(100.0)
    made.remove_pod("uid-b")
    for now in (101.0, 109.0):
        gangs.check(now)
    assert (released, len(gangs)) == ([], 1)
    gangs.check(110.0)
    assert released == [("default/g", ["a"])]


@pytest.mark.parametrize(("accepted", "expected"), [("a", ["default/g"]), ("ab", [])])
def test_a_gang_whose_start_was_seen_needs_no_check_while_the_member_waits(accepted: str, expected: list[str]) -> None:
    """The member is deleted before any check. If both bindings were accepted, the gang was complete and lost a member."""
    made, _ = cache()
    made.put(group("g", 2))
    put(made, pod("a", group="g"))
    put(made, pod("b", group="g"))
    released = list[str]()
    gangs = HalfBoundGangs(made, lambda job, tasks, now: released.append(job), 10.0)
    gangs.bind(["default/g"])
    for name in accepted:
        put(made, replace(pod(name, "n1", group="g"), status=from_manifest(BOUND, PodStatus)))
        gangs.bound("default/g", f"uid-{name}")
    made.remove_pod("uid-b")
    for now in (100.0, 110.0):
        gangs.check(now)
    assert released == expected


def test_a_gang_that_was_whole_and_lost_a_member_is_not_half_bound() -> None:
    released, made = list[str](), half_bound()
    gangs = HalfBoundGangs(made, lambda job, tasks, now: released.append(job), 10.0)
    gangs.check(100.0)
    put(made, replace(pod("b", "n1", group="g"), status=from_manifest(BOUND, PodStatus)))
    gangs.check(101.0)
    made.remove_pod("uid-b")
    put(made, younger("c"))
    for now in (102.0, 200.0):
        gangs.check(now)
    assert released == []


def with_roles(bound: str, waits: str, covered: bool) -> ClusterCache:
    """Two of `bound` stand and one of `waits` waits, where a master and a worker are needed; the minimum covers both, or not."""
    made, _ = cache()
    made.put(replace(group("g", 2 if covered else 1), roles=(("master", 1), ("worker", 1))))
    for name, role, node in (("a", bound, "n1"), ("b", bound, "n1"), ("c", waits, "")):
        found = pod(name, node, group="g")
        annotations = {**(found.metadata.annotations or {}), "volcano.sh/task-spec": role}
        status = from_manifest(BOUND if node else {}, PodStatus)
        put(made, replace(found, metadata=replace(found.metadata, annotations=annotations), status=status))
    return made


@pytest.mark.parametrize(
    ("bound", "waits", "covered", "released"),
    [
        ("worker", "master", True, [("default/g", ["a", "b"])]),
        ("worker", "worker", True, []),
        ("worker", "master", False, []),
    ],
    ids=["a role is missing", "no pod has the role", "roles that do not count"],
)
def test_a_gang_that_lacks_a_role_is_half_bound_whatever_its_number(
    bound: str, waits: str, covered: bool, released: list[tuple[str, list[str]]]
) -> None:
    found = list[tuple[str, list[str]]]()
    made = with_roles(bound, waits, covered)
    gangs = HalfBoundGangs(made, lambda job, tasks, now: found.append((job, sorted(task.name for task in tasks))), 10.0)
    for now in (100.0, 111.0):
        gangs.check(now)
    assert found == released


def test_under_a_policy_without_gangs_nothing_is_half_bound_and_no_time_runs() -> None:
    released, applies = list[str](), [True]
    gangs = HalfBoundGangs(half_bound(), lambda job, tasks, now: released.append(job), 10.0, lambda: applies[0])
    assert gangs.is_starting("default/g") and not gangs.is_starting("default/none")
    gangs.check(100.0)
    applies[0] = False
    gangs.check(120.0)
    assert (released, len(gangs), gangs.is_starting("default/g")) == ([], 0, False)
    applies[0] = True
    gangs.check(121.0)
    assert released == []


def test_a_gang_that_stands_does_not_start() -> None:
    made = half_bound()
    gangs = HalfBoundGangs(made, lambda job, tasks, now: None, 10.0)
    assert gangs.is_starting("default/g")
    put(made, replace(pod("b", "n1", group="g"), status=from_manifest(BOUND, PodStatus)))
    assert not gangs.is_starting("default/g")


def test_the_time_out_starts_again_with_the_lead() -> None:
    released = list[str]()
    gangs = HalfBoundGangs(half_bound(), lambda job, tasks, now: released.append(job), 10.0)
    now = 200.0
    gangs.check(now - 100.0)
    gangs.start_leading(now)
    gangs.check(now + 9.0)
    assert released == []
    gangs.check(now + 1000.0)
    assert released == ["default/g"]


@pytest.mark.parametrize("bound", [("a",), ()], ids=["one is bound", "none is"])
def test_a_preparation_is_waited_for_while_it_advances(bound: tuple[str, ...]) -> None:
    """A preparation may last for ten minutes; a gang without a bound pod may take them."""
    made, _ = cache()
    made.put(group("g", 2))
    for name in ("a", "b"):
        found = pod(name, "n1" if name in bound else "", group="g")
        put(made, replace(found, status=from_manifest(BOUND, PodStatus)) if name in bound else found)
        if name not in bound:
            made.assumed.binds[f"uid-{name}"] = AssumedBind(f"uid-{name}", "default", name, "n1", "default/g", 0.0)
            made.refresh(f"uid-{name}")
    released, got_on = list[tuple[float, list[str]]](), [float("-inf")]
    now = 100.0
    gangs = HalfBoundGangs(
        made, lambda job, tasks, at: released.append((at, [task.name for task in tasks])), 10.0, prepared_at=lambda job: got_on[0]
    )
    for now in (100.0, 109.0):
        gangs.check(now)
    got_on[0] = 109.0  # one of its two volumes has come
    for now in (110.0, 118.0, 119.0):
        gangs.check(now)
    assert released == ([(119.0, ["a"])] if bound else [])


def test_a_member_that_is_made_anew_and_prepared_does_not_make_a_gang_half_bound() -> None:
    """It was whole and lost a member; the one in its place waits for a volume."""
    made, _ = cache()
    made.put(group("g", 2))
    put(made, replace(pod("a", "n1", group="g"), status=from_manifest(BOUND, PodStatus)))
    put(made, younger("c"))
    made.assumed.binds["uid-c"] = AssumedBind("uid-c", "default", "c", "n1", "default/g", 0.0)
    made.refresh("uid-c")
    released = list[str]()
    gangs = HalfBoundGangs(made, lambda job, tasks, now: released.append(job), 10.0, prepared_at=lambda job: float("-inf"))
    for now in (100.0, 200.0):
        gangs.check(now)
    assert (released, len(gangs)) == ([], 0)
