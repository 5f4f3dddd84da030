"""Families of jobs that wait: who is woken when a pod ends, who by the clock, and that no room stays empty over it."""

from __future__ import annotations

from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.small_world import shape

from navarch.engine.reasons import Event
from navarch.live.queue.equivalence_classes import equivalence_class_of, labels_read
from navarch.live.queue.scheduling_queue import PAUSE, TRIED, SchedulingQueue
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


def family(holding: SchedulingQueue, count: int, *, now: float = 0.0, asks: Requests = ONE_CPU) -> list[str]:
    names = [f"ns/{number:05d}" for number in range(count)]
    for age, name in enumerate(names):
        holding.failed(name, (Event.POD_REMOVED, Event.NODE_ADDED), 1, now, alike="same", asks=asks, age=float(age))
    return names


def awake(holding: SchedulingQueue, names: list[str]) -> list[str]:
    asleep = set(holding.asleep())
    return [name for name in names if name not in asleep]


def test_a_pod_that_ends_wakes_as_many_as_may_fit_in_its_place_the_eldest_first() -> None:
    holding = SchedulingQueue()
    names = family(holding, 1000)
    assert holding.wake(Event.POD_REMOVED, requests_from({"cpu": "250m", "memory": "1Mi"})) == 1
    assert awake(holding, names) == names[:1]
    assert holding.wake(Event.POD_REMOVED, requests_from({"cpu": 4, "memory": "1Gi"})) == 5
    assert awake(holding, names) == names[:6]


def test_who_failed_again_is_the_first_again() -> None:
    holding = SchedulingQueue()
    names = family(holding, 10)
    holding.wake(Event.POD_REMOVED, ONE_CPU)
    for age in (0, 1):
        holding.failed(names[age], (Event.POD_REMOVED, Event.NODE_ADDED), 1, 5.0, alike="same", asks=ONE_CPU, age=float(age))
    holding.wake(Event.POD_REMOVED, ONE_CPU)
    assert awake(holding, names) == names[:2]


def test_what_may_let_anyone_start_wakes_everyone() -> None:
    holding = SchedulingQueue()
    family(holding, 100)
    assert holding.wake(Event.NODE_ADDED) == 100


def test_jobs_that_ask_for_nothing_are_all_woken() -> None:
    holding = SchedulingQueue()
    family(holding, 100, asks=())
    assert holding.wake(Event.POD_REMOVED, ONE_CPU) == 100


def test_the_clock_tries_a_few_of_a_large_family_and_then_the_others() -> None:
    holding = SchedulingQueue()
    names = family(holding, 3 * TRIED)
    assert holding.expire(1.0) == TRIED
    assert holding.next_expiry == 1.0 + PAUSE
    tried = awake(holding, names)
    for age, name in enumerate(tried):
        holding.failed(name, (Event.POD_REMOVED, Event.NODE_ADDED), 1, 1.0, alike="same", asks=ONE_CPU, age=float(age))
    assert holding.expire(1.0 + PAUSE) == 2 * TRIED, "the next, and as many of the eldest beside them"
    assert awake(holding, names) == names[: 2 * TRIED]


def test_whoever_the_clock_wakes_has_as_many_elders_beside_it() -> None:
    holding = SchedulingQueue()
    for age, name in enumerate(("eldest", "elder", "young", "youngest")):
        holding.failed(name, (Event.POD_REMOVED,), 1, float(3 - age), alike="same", asks=ONE_CPU, age=float(age))
    assert holding.expire(1.0) == 2
    assert set(holding.asleep()) == {"elder", "young"}


def test_the_rest_of_a_large_family_waits_its_turn_even_when_it_is_small() -> None:
    holding = SchedulingQueue()
    family(holding, 2 * TRIED - 6)
    assert holding.expire(1.0) == TRIED
    assert holding.next_expiry == 1.0 + PAUSE
    assert holding.expire(1.0 + PAUSE) == TRIED - 6


def test_who_came_and_went_while_no_cycle_ran_is_not_remembered() -> None:
    holding = SchedulingQueue()
    family(holding, 2)
    holding.changed("new")
    holding.forget("new")
    assert not holding._come


def test_each_of_a_small_family_is_tried_when_its_own_back_off_ends() -> None:
    holding = SchedulingQueue()
    holding.failed("a", (), 1, 0.0, alike="same")
    holding.failed("b", (), 1, 0.25, alike="same")
    assert holding.expire(1.0) == 1
    assert holding.next_expiry == 1.25
    assert holding.expire(1.25) == 1


def test_while_all_who_are_woken_get_a_place_twice_as_many_are_woken_next() -> None:
    holding = SchedulingQueue()
    names = family(holding, 20)
    assert holding.more() == 0
    assert holding.wake(Event.POD_REMOVED, requests_from({"cpu": "250m"})) == 1
    holding.placed(names[0])
    assert holding.more() == 2
    for name in names[1:3]:
        holding.placed(name)
    assert holding.more() == 4
    assert awake(holding, names) == names[:7]
    holding.placed(names[3])
    holding.failed(names[4], (Event.POD_REMOVED, Event.NODE_ADDED), 1, 0.0, alike="same", asks=ONE_CPU, age=4.0)
    assert holding.more() == 0
    holding.placed("ns/never-waited")
    assert holding.more() == 0


def test_what_is_kept_of_a_family_does_not_grow_with_its_failures() -> None:
    holding = SchedulingQueue()
    for _ in range(50):
        family(holding, 20)
    (kin,) = holding._kin.values()
    assert len(kin._by_time) <= 2 * 20 + 17
    assert len(kin._by_age) <= 2 * 20 + 17


@given(st.integers(0, 2**32))
@settings(max_examples=200, deadline=None)
def test_no_room_stays_empty_that_one_of_the_family_could_use(seed: int) -> None:
    """One node, pods that end one by one, several families. Trying only those who are awake fills it as far as trying all."""
    rng = Random(seed)
    holding = SchedulingQueue()
    kinds = [{"cpu": rng.randint(1, 5), "memory": rng.randint(1, 5)} for _ in range(3)]
    waiting = {f"{kind}-{number:02d}": kinds[kind] for kind in range(3) for number in range(rng.randint(0, 30))}
    running: list[dict[str, int]] = []
    room = {"cpu": 12, "memory": 12}

    def fits(asks: dict[str, int]) -> bool:
        return all(room[name] - sum(pod[name] for pod in running) >= amount for name, amount in asks.items())

    def cycle() -> None:
        asleep = set(holding.asleep())
        for name in sorted(waiting):
            if name in asleep:
                continue
            asks = waiting[name]
            if fits(asks):
                running.append(asks)
                del waiting[name]
                holding.forget(name)
            else:
                number, requests = name.split("-"), tuple(asks.items())
                holding.failed(name, (Event.POD_REMOVED,), 1, 0.0, alike=number[0], asks=requests, age=float(number[1]))

    cycle()
    for _ in range(60):
        for _ in range(rng.randint(1, 2)):
            if running:
                holding.wake(Event.POD_REMOVED, tuple(running.pop(rng.randrange(len(running))).items()))
        cycle()
        assert not [name for name, asks in waiting.items() if fits(asks)]


def job(name: str, **more: object) -> JobSpec:
    return JobSpec(f"ns/{name}", "q", 1, "ns", name, created=float(len(name)), **more)  # type: ignore[arg-type]


def pod(name: str, **more: object) -> TaskSpec:
    return TaskSpec(uid=name, namespace="ns", name=name, shape=shape(cpu=1), job=f"ns/{name}", **more)  # type: ignore[arg-type]


def kin(of: JobSpec, *tasks: TaskSpec, read: frozenset[str] = frozenset()) -> object:
    return equivalence_class_of(of, [1] * len(tasks), tasks, b"", read=read)


def test_names_and_ages_do_not_tell_kin_apart_and_demands_do() -> None:
    first = kin(job("a"), pod("a"))
    assert first == kin(job("bb"), pod("bb", labels={"job-name": "bb"}))
    assert first != kin(job("a", priority=1), pod("a"))
    assert first != kin(job("a", annotations={"sla-waiting-time": "1h"}), pod("a"))
    assert first == kin(job("a", annotations={"kubectl.kubernetes.io/last-applied-configuration": "{}"}), pod("a"))
    assert first != kin(job("a"), pod("a", gates=("wait",)))
    assert first != kin(job("a"), pod("a"), pod("b"))
    assert first != equivalence_class_of(job("a"), [2], [pod("a")], b"")
    assert first != kin(job("a", tried_once=True), pod("a"))


def test_a_number_that_another_shape_has_now_does_not_make_kin() -> None:
    assert kin(job("a"), pod("a")) != kin(job("a"), replace(pod("a"), shape=shape(cpu=2)))


def test_who_is_in_which_part_tells_kin_apart() -> None:
    parts = (SubGroupSpec("left", 1), SubGroupSpec("right", 1))
    both = [pod("a", sub_group="left"), pod("b", sub_group="right")]
    one = [pod("a", sub_group="left"), pod("b", sub_group="left")]
    assert kin(job("a", sub_groups=parts), *both) != kin(job("a", sub_groups=parts), *one)
    by_label = (SubGroupSpec("any", 1, selector=LabelSelector(), match_label_keys=("part",)),)
    both = [pod("a", labels={"part": "1"}), pod("b", labels={"part": "2"})]
    one = [pod("a", labels={"part": "1"}), pod("b", labels={"part": "1"})]
    assert kin(job("a", sub_groups=by_label), *both) != kin(job("a", sub_groups=by_label), *one)


def test_labels_tell_kin_apart_where_rules_of_pods_read_them() -> None:
    read = frozenset({"app"})
    first = kin(job("a"), pod("a", labels={"app": "x", "job-name": "a"}), read=read)
    assert first == kin(job("b"), pod("b", labels={"app": "x", "job-name": "b"}), read=read)
    assert first != kin(job("b"), pod("b", labels={"app": "y", "job-name": "b"}), read=read)
    assert first != kin(job("b"), pod("b"), read=read)


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
    assert labels_read([shape(cpu=1), Shape(pod_affinity=affinity), Shape(spread=spread)]) == set("acdf")


def test_members_are_compared_whatever_their_order() -> None:
    chief, worker = pod("c", role="chief"), pod("w", role="worker")
    assert kin(job("a"), chief, worker) == kin(job("b"), worker, chief)


def test_a_large_gang_stands_for_itself() -> None:
    assert kin(job("a"), *(pod(f"p{number}") for number in range(65))) is None
