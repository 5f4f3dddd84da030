"""The plugin in a session: scores of nodes, the choice of a GPU, type pressure, and answers kept from cycle to cycle."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.reference import fgd
from tests.reference.fgd import SlowNode
from tests.worlds.plugin_session import World, job_of, place

from navarch.engine.cycle import decide
from navarch.engine.policy import load
from navarch.engine.policy.presets import PRESETS
from navarch.engine.session import Session
from navarch.installed import installed
from navarch.model.spec import DeviceRequest
from navarch.plugins.fragmentation.plugin import GPU_TYPE_LABEL, Fragmentation
from navarch.plugins.fragmentation.typical_pods import PodKind, counted, most_frequent

HALVES_AND_WHOLES = [{"cpu": 4, "gpu": 0.5}, {"cpu": 4, "gpu": 1}]


def arguments(rule: str = "packing", pods: list[dict[str, Any]] | None = None, **more: Any) -> dict[str, Any]:
    return {
        "fragmentation.score": rule,
        "fragmentation.typicalPods": pods or HALVES_AND_WHOLES,
        **{f"fragmentation.{name}": value for name, value in more.items()},
    }


def opened(world: World, **given: Any) -> Session:
    session = world.session(Fragmentation, arguments=arguments(**given), compat="kai")
    session.share_devices()
    return session


def scores(session: Session, job: str = "new") -> dict[str, float]:
    view = session.view(session.class_of(job_of(session, job).tasks[0]))
    return dict(zip(session.nodes.names, view.totals(np.ones(len(session.nodes), dtype=bool)).tolist()))


def best(found: dict[str, float]) -> str:
    return max(found, key=lambda name: found[name])


def shared(world: World, job: str, node: str, group: str, fraction: int) -> World:
    return world.pods(job, node=node, cpu=1, devices=DeviceRequest(fraction=fraction), gpu_groups=(group,))


def test_a_half_joins_the_half_that_is_taken() -> None:
    world = World().node("empty", cpu=32, gpu=2).node("half", cpu=32, gpu=2).queue("q").job("old").job("new")
    shared(world, "old", "half", "g", 500).pods("new", cpu=4, devices=DeviceRequest(fraction=500))
    for rule in ("packing", "fgd"):
        assert best(scores(opened(world, rule=rule))) == "half", rule


def test_where_pods_leave_again_a_node_without_pods_is_left_to_large_ones() -> None:
    found = {}
    for ends in (None, 3600.0):
        world = World().node("empty", cpu=16, gpu=8).node("begun", cpu=96, gpu=8).queue("q")
        world.job("old", expected_duration=ends).job("new", expected_duration=ends)
        world.pods("old", node="begun", cpu=4, gpu=4).pods("new", cpu=4, gpu=1)
        found[ends] = best(scores(opened(world, pods=[{"cpu": 4, "gpu": 1}])))
    assert found == {None: "empty", 3600.0: "begun"}, "without ends the node with the least cpu left fits best"


def test_the_gpu_within_a_node_is_the_one_that_loses_least() -> None:
    pods = [{"cpu": 1, "gpu": 0.47, "count": 3}, {"cpu": 1, "gpu": 0.32, "count": 3}]
    world = World().node("n", cpu=32, gpu=3).queue("q").job("old").job("new")
    shared(shared(world, "old", "n", "a", 530), "old", "n", "b", 650)
    world.pods("new", cpu=1, devices=DeviceRequest(fraction=320))
    session = opened(world, pods=pods)
    assert session.devices is not None
    kind = session.class_of(job_of(session, "new").tasks[0])
    assert session.devices.choose(kind, 0, True) == (("b",), False), "470 stays free for a pod of 470"


def test_pods_that_may_choose_leave_scarce_types_to_those_that_may_not() -> None:
    pods = [{"cpu": 4, "gpu": 1, "count": 1}, {"cpu": 4, "gpu": 1, "types": ["T4"], "count": 1}]
    world = World().node("a-t4", {GPU_TYPE_LABEL: "T4"}, cpu=32, gpu=2).node("b-v100", {GPU_TYPE_LABEL: "V100"}, cpu=32, gpu=2)
    world.queue("q").job("new").pods("new", cpu=4, gpu=1).job("typed")
    world.pods("typed", cpu=4, gpu=1, node_selector=((GPU_TYPE_LABEL, "T4"),))
    pressed, free = opened(world, pods=pods), opened(world, pods=pods, typePressure=0)
    assert best(scores(pressed)) == "b-v100"
    assert scores(pressed)["a-t4"] < scores(free)["a-t4"], "a pod that may choose is kept off"
    assert scores(pressed)["b-v100"] == scores(free)["b-v100"], "nothing presses on the least wanted type"
    assert scores(pressed, "typed")["a-t4"] == scores(free, "typed")["a-t4"], "a pod without a choice sees no difference"


def test_cpu_pods_keep_off_gpus_whose_cpu_others_need() -> None:
    world = World().node("gpus", cpu=8, gpu=2).node("plain", cpu=8).queue("q").job("new").pods("new", cpu=4)
    for rule in ("packing", "fgd"):
        assert best(scores(opened(world, rule=rule))) == "plain", rule


@settings(max_examples=40)
@given(st.data())
def test_exact_fgd_is_the_published_score_with_best_fit_below(data: st.DataObject) -> None:
    entries = [{"cpu": 2, "gpu": 0.5}, {"cpu": 4, "gpu": 1}, {"cpu": 1}, {"cpu": 8, "gpu": 2}]  # four: weights are exact floats
    pods = most_frequent(counted(entries), 1.0)
    taken = data.draw(st.lists(st.lists(st.sampled_from([250, 500, 1000]), max_size=3), min_size=2, max_size=4))
    cores = data.draw(st.lists(st.integers(4, 12), min_size=len(taken), max_size=len(taken)))
    world = World().queue("q").job("old").job("new")
    slow = {}
    for number, (parts, cpu) in enumerate(zip(taken, cores)):
        name = f"n{number}"
        world.node(name, cpu=cpu, gpu=3)
        for slot, part in enumerate(parts):
            if part == 1000:
                world.pods("old", node=name, cpu=1, gpu=1)
            else:
                shared(world, "old", name, f"{name}-{slot}", part)
        free = [1000 - part for part in parts] + [1000] * (3 - len(parts))
        slow[name] = SlowNode(1000 * (cpu - len(parts)), tuple(free))
    fraction = data.draw(st.sampled_from([0, 250, 500]))
    pod = PodKind(2000, fraction or 1000, 1)
    world.pods("new", cpu=2, devices=DeviceRequest(fraction=fraction)) if fraction else world.pods("new", cpu=2, gpu=1)
    found = scores(opened(world, rule="fgd", pods=entries, coverage=1.0, cpuShare=0.5))
    for name, node in slow.items():
        gain = fgd.gain(node, pod, pods)
        if gain is not None:
            left = (node.cpu - 2000) / (1000 * max(cores)) / 2 + (sum(node.gpus) - (fraction or 1000)) / 3000 / 2
            assert found[name] == pytest.approx(fgd.score(gain) + 0.99 * (1 - left))


def test_answers_that_are_kept_are_those_of_a_fresh_session() -> None:
    world = World().queue("q").job("old").job("new")
    for number in range(4):
        world.node(f"n{number}", cpu=16 + number, gpu=2)
    world.pods("new", 6, cpu=4, gpu=1).job("part").pods("part", cpu=1, devices=DeviceRequest(fraction=470))
    for step in range(3):
        kept = opened(world)
        first = {job: scores(kept, job) for job in ("new", "part")}
        place(kept, "new", f"n{step}")
        moved = {job: scores(kept, job) for job in ("new", "part")}
        world.cluster.memo.clear()
        fresh = opened(world)
        assert {job: scores(fresh, job) for job in ("new", "part")} == first
        place(fresh, "new", f"n{step}")
        assert {job: scores(fresh, job) for job in ("new", "part")} == moved
        world.pods("old", node=f"n{step}", cpu=2, gpu=1)
        shared(world, "old", f"n{step}", f"g{step}", 470)


def test_a_run_of_equal_pods_is_placed_as_one_by_one() -> None:
    def names(count: int) -> list[str]:
        world = World().node("a", cpu=64, gpu=4).node("b", cpu=9, gpu=4).node("c", cpu=64, gpu=2).queue("q").job("new")
        session = opened(world.pods("new", 6, cpu=4, gpu=1))
        task = session.class_of(job_of(session, "new").tasks[0])
        out: list[str] = []
        while len(out) < 6:
            chosen, _ = session.view(task).choose(min(count, 6 - len(out)))
            for row in chosen:
                place(session, "new", session.nodes.names[row])
            out += [session.nodes.names[row] for row in chosen]
        return out

    assert names(6) == names(1)


def test_random_takes_every_node_in_its_turn_and_the_same_again_for_a_seed() -> None:
    def drawn(seed: int) -> list[str]:
        world = World().queue("q").job("new").pods("new", 30, cpu=1)
        for number in range(5):
            world.node(f"n{number}", cpu=30)
        session = opened(world, rule="random", seed=seed)
        out = []
        for _ in range(30):
            out.append(best(scores(session)))
            place(session, "new", out[-1])
        return out

    assert drawn(1) == drawn(1) != drawn(2)
    assert len(set(drawn(1))) == 5


def test_best_fit_takes_the_node_with_least_left() -> None:
    world = World().node("big", cpu=64, gpu=8).node("small", cpu=8, gpu=1).queue("q").job("new").pods("new", cpu=4, gpu=1)
    assert best(scores(opened(world, rule="best-fit", cpuShare=0.5))) == "small"


def test_the_preset_places_parts_and_wholes_through_whole_cycles() -> None:
    world = World().node("a", cpu=64, gpu=2).node("b", cpu=64, gpu=2)
    world.queue("q")
    for number in range(4):
        world.job(f"half-{number}", min_member=1, created=float(number)).pods(
            f"half-{number}", cpu=4, devices=DeviceRequest(fraction=500), created=float(number)
        )
    world.job("whole", min_member=1, created=9.0).pods("whole", cpu=4, gpu=2, created=9.0)
    registry = installed()
    record = decide(world.cluster.snapshot(), load(PRESETS["packing"], registry.catalogue(), "packing"), registry, 10.0)
    where = {bind.job: bind.node for bind in record.binds}
    halves = {where[f"ns/half-{number}"] for number in range(4)}
    assert len(where) == 5 and len(halves) == 1 and where["ns/whole"] not in halves
    assert len({group for bind in record.binds for group in bind.gpu_groups}) == 2, "two GPUs hold the four halves"


def test_native_allocate_refuses_parts_that_no_gpu_has() -> None:
    world = World().node("a", cpu=64, gpu=1).queue("q")
    for number in range(2):
        world.job(f"j{number}", min_member=1, created=float(number)).pods(f"j{number}", cpu=1, devices=DeviceRequest(fraction=600))
    registry = installed()
    record = decide(world.cluster.snapshot(), load(PRESETS["packing"], registry.catalogue(), "packing"), registry, 10.0)
    assert [bind.job for bind in record.binds] == ["ns/j0"]
    (waiting,) = [each for each in record.jobs if each.job == "ns/j1"]
    assert any("Insufficient nvidia.com/gpu" in reason.message for reason in waiting.reasons)
