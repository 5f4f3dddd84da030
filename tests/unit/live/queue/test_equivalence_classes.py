"""Equivalence classes: which jobs a pod that ends activates, which back-off activates, and no capacity stays free."""

from __future__ import annotations

from random import Random
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.worlds.small_cluster import shape

from navarch.engine.reasons import Event
from navarch.live.queue.equivalence_classes import equivalence_key, selected_label_keys
from navarch.live.queue.scheduling_queue import BATCH, BATCH_INTERVAL, SchedulingQueue
from navarch.model.resources import requests_from
from navarch.model.spec import (
    JobSpec,
    LabelSelector,
    PodAffinity,
    PodTerm,
    Requests,
    Requirement,
    Shape,
    SpreadConstraint,
    SubGroupSpec,
    TaskSpec,
)

ONE_CPU = requests_from({"cpu": 1, "memory": "1Gi"})


def add_class(queue: SchedulingQueue, count: int, *, now: float = 0.0, requests: Requests = ONE_CPU) -> list[str]:
    names = [f"ns/{number:05d}" for number in range(count)]
    for age, name in enumerate(names):
        queue.add_unschedulable(
            name, (Event.POD_REMOVED, Event.NODE_ADDED), 1, now, equivalence="same", requests=requests, created=float(age)
        )
    return names


def awake(queue: SchedulingQueue, names: list[str]) -> list[str]:
    asleep = set(queue.inactive())
    return [name for name in names if name not in asleep]


def test_a_pod_that_ends_activates_as_many_jobs_as_may_fit_oldest_first() -> None:
    queue = SchedulingQueue()
    names = add_class(queue, 1000)
    assert queue.activate_on(Event.POD_REMOVED, requests_from({"cpu": "250m", "memory": "1Mi"})) == 1
    assert awake(queue, names) == names[:1]
    assert queue.activate_on(Event.POD_REMOVED, requests_from({"cpu": 4, "memory": "1Gi"})) == 5
    assert awake(queue, names) == names[:6]


def test_a_job_that_failed_again_keeps_its_age() -> None:
    queue = SchedulingQueue()
    names = add_class(queue, 10)
    queue.activate_on(Event.POD_REMOVED, ONE_CPU)
    for age in (0, 1):
        queue.add_unschedulable(
            names[age], (Event.POD_REMOVED, Event.NODE_ADDED), 1, 5.0, equivalence="same", requests=ONE_CPU, created=float(age)
        )
    queue.activate_on(Event.POD_REMOVED, ONE_CPU)
    assert awake(queue, names) == names[:2]


def test_an_event_without_an_amount_activates_every_job() -> None:
    queue = SchedulingQueue()
    add_class(queue, 100)
    assert queue.activate_on(Event.NODE_ADDED) == 100


def test_jobs_without_requests_are_all_activated() -> None:
    queue = SchedulingQueue()
    add_class(queue, 100, requests=())
    assert queue.activate_on(Event.POD_REMOVED, ONE_CPU) == 100


def test_back_off_activates_a_large_class_in_batches() -> None:
    queue = SchedulingQueue()
    names = add_class(queue, 3 * BATCH)
    assert queue.flush_backoff(1.0) == BATCH
    assert queue.next_retry == 1.0 + BATCH_INTERVAL
    tried = awake(queue, names)
    for age, name in enumerate(tried):
        queue.add_unschedulable(
            name, (Event.POD_REMOVED, Event.NODE_ADDED), 1, 1.0, equivalence="same", requests=ONE_CPU, created=float(age)
        )
    assert queue.flush_backoff(1.0 + BATCH_INTERVAL) == 2 * BATCH, "the next, and as many of the eldest beside them"
    assert awake(queue, names) == names[: 2 * BATCH]


def test_back_off_also_activates_as_many_of_the_oldest_jobs() -> None:
    queue = SchedulingQueue()
    for age, name in enumerate(("eldest", "elder", "young", "youngest")):
        queue.add_unschedulable(
            name, (Event.POD_REMOVED,), 1, float(3 - age), equivalence="same", requests=ONE_CPU, created=float(age)
        )
    assert queue.flush_backoff(1.0) == 2
    assert set(queue.inactive()) == {"elder", "young"}


def test_the_last_batch_of_a_large_class_waits_its_interval() -> None:
    queue = SchedulingQueue()
    add_class(queue, 2 * BATCH - 6)
    assert queue.flush_backoff(1.0) == BATCH
    assert queue.next_retry == 1.0 + BATCH_INTERVAL
    assert queue.flush_backoff(1.0 + BATCH_INTERVAL) == BATCH - 6


def test_a_job_that_came_and_went_between_cycles_is_forgotten() -> None:
    queue = SchedulingQueue()
    add_class(queue, 2)
    queue.update("new")
    arrived = list(queue.arrivals)
    queue.forget("new")
    assert (arrived, list(queue.arrivals)) == (["new"], [])


def test_each_job_of_a_small_class_is_tried_when_its_own_back_off_ends() -> None:
    queue = SchedulingQueue()
    queue.add_unschedulable("a", (), 1, 0.0, equivalence="same")
    queue.add_unschedulable("b", (), 1, 0.25, equivalence="same")
    assert queue.flush_backoff(1.0) == 1
    assert queue.next_retry == 1.25
    assert queue.flush_backoff(1.25) == 1


def test_while_all_activated_jobs_are_placed_twice_as_many_follow() -> None:
    queue = SchedulingQueue()
    names = add_class(queue, 20)
    assert queue.pop_more() == 0
    assert queue.activate_on(Event.POD_REMOVED, requests_from({"cpu": "250m"})) == 1
    queue.placed(names[0])
    assert queue.pop_more() == 2
    for name in names[1:3]:
        queue.placed(name)
    assert queue.pop_more() == 4
    assert awake(queue, names) == names[:7]
    queue.placed(names[3])
    queue.add_unschedulable(names[4], (Event.POD_REMOVED, Event.NODE_ADDED), 1, 0.0, equivalence="same", requests=ONE_CPU, created=4.0)
    assert queue.pop_more() == 0
    queue.placed("ns/never-waited")
    assert queue.pop_more() == 0


def test_the_memory_of_a_class_does_not_grow_with_its_failures() -> None:
    queue = SchedulingQueue()
    for _ in range(50):
        add_class(queue, 20)
    (found,) = queue.classes
    assert len(found) == 20 and found.entries <= 2 * 20 + 17


@given(st.integers(0, 2**32))
@settings(max_examples=200, deadline=None)
def test_no_capacity_stays_free_that_a_job_of_a_class_could_use(seed: int) -> None:
    """One node, pods that end one by one, several classes. Trying only active jobs fills the node as far as trying all."""
    rng = Random(seed)
    queue = SchedulingQueue()
    kinds = [{"cpu": rng.randint(1, 5), "memory": rng.randint(1, 5)} for _ in range(3)]
    waiting = {f"{kind}-{number:02d}": kinds[kind] for kind in range(3) for number in range(rng.randint(0, 30))}
    running: list[dict[str, int]] = []
    room = {"cpu": 12, "memory": 12}

    def fits(requests: dict[str, int]) -> bool:
        return all(room[name] - sum(pod[name] for pod in running) >= amount for name, amount in requests.items())

    def cycle() -> None:
        asleep = set(queue.inactive())
        for name in sorted(waiting):
            if name in asleep:
                continue
            requests = waiting[name]
            if fits(requests):
                running.append(requests)
                del waiting[name]
                queue.forget(name)
            else:
                kind, number = name.split("-")
                asked = tuple(requests.items())
                queue.add_unschedulable(name, (Event.POD_REMOVED,), 1, 0.0, equivalence=kind, requests=asked, created=float(number))

    cycle()
    for _ in range(60):
        for _ in range(rng.randint(1, 2)):
            if running:
                queue.activate_on(Event.POD_REMOVED, tuple(running.pop(rng.randrange(len(running))).items()))
        cycle()
        assert not [name for name, requests in waiting.items() if fits(requests)]


def job(name: str, **more: Any) -> JobSpec:
    return JobSpec(f"ns/{name}", "q", 1, "ns", name, created=float(len(name)), **more)


def pod(name: str, **more: Any) -> TaskSpec:
    return TaskSpec(uid=name, namespace="ns", name=name, shape=shape(cpu=1), job=f"ns/{name}", **more)


def key(of: JobSpec, *tasks: TaskSpec, label_keys: frozenset[str] = frozenset()) -> object:
    return equivalence_key(of, [1] * len(tasks), tasks, b"", label_keys=label_keys)


def test_names_and_ages_do_not_tell_equivalence_apart_and_demands_do() -> None:
    first = key(job("a"), pod("a"))
    assert first == key(job("bb"), pod("bb", labels={"job-name": "bb"}))
    assert first != key(job("a", priority=1), pod("a"))
    assert first != key(job("a", annotations={"sla-waiting-time": "1h"}), pod("a"))
    assert first == key(job("a", annotations={"kubectl.kubernetes.io/last-applied-configuration": "{}"}), pod("a"))
    assert first != key(job("a"), pod("a", gates=("wait",)))
    assert first != key(job("a"), pod("a"), pod("b"))
    assert first != equivalence_key(job("a"), [2], [pod("a")], b"")
    assert first != key(job("a", tried_once=True), pod("a"))


def test_a_number_that_another_shape_has_now_is_no_equivalence() -> None:
    assert key(job("a"), pod("a")) != key(job("a"), replace(pod("a"), shape=shape(cpu=2)))


def test_the_division_into_sub_groups_is_part_of_the_equivalence_key() -> None:
    parts = (SubGroupSpec("left", 1), SubGroupSpec("right", 1))
    both = [pod("a", sub_group="left"), pod("b", sub_group="right")]
    one = [pod("a", sub_group="left"), pod("b", sub_group="left")]
    assert key(job("a", sub_groups=parts), *both) != key(job("a", sub_groups=parts), *one)
    by_label = (SubGroupSpec("any", 1, selector=LabelSelector(), match_label_keys=("part",)),)
    both = [pod("a", labels={"part": "1"}), pod("b", labels={"part": "2"})]
    one = [pod("a", labels={"part": "1"}), pod("b", labels={"part": "1"})]
    assert key(job("a", sub_groups=by_label), *both) != key(job("a", sub_groups=by_label), *one)


def test_labels_tell_equivalence_apart_where_rules_of_pods_read_them() -> None:
    label_keys = frozenset({"app"})
    first = key(job("a"), pod("a", labels={"app": "x", "job-name": "a"}), label_keys=label_keys)
    assert first == key(job("b"), pod("b", labels={"app": "x", "job-name": "b"}), label_keys=label_keys)
    assert first != key(job("b"), pod("b", labels={"app": "y", "job-name": "b"}), label_keys=label_keys)
    assert first != key(job("b"), pod("b"), label_keys=label_keys)


def test_labels_are_read_by_what_is_required_of_other_pods() -> None:
    def term(*keys: str) -> PodTerm:
        return PodTerm("zone", LabelSelector(tuple(Requirement(key, "Exists") for key in keys)))

    affinity = PodAffinity(
        required=(term("a"),), preferred=((1, term("b")),), anti_required=(term("c", "d"),), anti_preferred=((1, term("e")),)
    )
    spread = (
        SpreadConstraint(1, "zone", hard=True, selector=term("f").selector),
        SpreadConstraint(1, "zone", hard=False, selector=term("g").selector),
        SpreadConstraint(1, "zone", hard=True),
    )
    assert selected_label_keys([shape(cpu=1), Shape(pod_affinity=affinity), Shape(spread=spread)]) == set("acdf")


def test_members_are_compared_whatever_their_order() -> None:
    chief, worker = pod("c", role="chief"), pod("w", role="worker")
    assert key(job("a"), chief, worker) == key(job("b"), worker, chief)


def test_a_large_gang_stands_for_itself() -> None:
    assert key(job("a"), *(pod(f"p{number}") for number in range(65))) is None
