"""Deviceshare: cards by type, UUID, mode and group, and pods that no plugin serves."""

from __future__ import annotations

from typing import Any

import pytest
from tests.worlds.plugin_session import World, job_of

import navarch
from navarch.engine.arguments import WrongKind
from navarch.engine.session import Session
from navarch.model.registered_cards import (
    GPU_INDEX,
    GPU_MEMORY,
    GPU_NUMBER,
    HANDSHAKE,
    REGISTER,
    VGPU_CORES,
    VGPU_IDS,
    VGPU_MEMORY,
    VGPU_NUMBER,
)
from navarch.model.spec import CardRequest, VgpuRequest
from navarch.model.status import TaskStatus
from navarch.plugins.predicates.plugin import Predicates
from navarch.plugins.volcano.deviceshare.plugin import NUMBER, SHARING, VGPU, DeviceShare, check_rule

ASKED = CardRequest((VgpuRequest(1, 4000, 10),))
OFFERED: dict[str, Any] = {VGPU_NUMBER: 100, VGPU_MEMORY: 10**6, VGPU_CORES: 1000}

PLAIN = "a pod that asks for it goes to any node with enough of it, and no card is chosen for it"


def register(*cards: tuple[str, str, str], mode: str = "hami-core") -> str:
    """(UUID, type, healthy) each."""
    return "".join(f"{uuid},10,16000,{kind},{healthy},{mode}:" for uuid, kind, healthy in cards)


TWO = register(("GPU-a", "NVIDIA-T4", "true"), ("GPU-b", "NVIDIA-A100", "true"))


def world(text: str = TWO, **more: str) -> World:
    annotations = {REGISTER: text, **{key.replace("_", "/"): value for key, value in more.items()}}
    return World().queue("q").job("j").node("n0", annotations=annotations, cpu=64, **OFFERED)


def opened(made: World, compat: str = "strict", **arguments: Any) -> Session:
    return made.session(Predicates, DeviceShare, arguments={VGPU: True, **arguments}, compat=compat)


def cards_of(session: Session) -> str | None:
    """The cards that the job's first pending pod gets on the only node; None if it is refused."""
    job = job_of(session, "j")
    task = job.tasks_in(TaskStatus.PENDING)[0]
    kind = session.class_of(task)
    if not session.view(kind).feasible()[0]:
        return None
    session.statement().allocate(job, [task], [0], kind)
    return session.bind_annotations.get(task, {}).get(VGPU_IDS, "")


def refusals(session: Session) -> dict[str, int]:
    return session.view(session.class_of(job_of(session, "j").tasks_in(TaskStatus.PENDING)[0])).explain().nodes


@pytest.mark.parametrize(
    ("hints", "uuid"),
    [
        ({}, "GPU-b"),
        ({"nvidia.com/use-gputype": "t4"}, "GPU-a"),
        ({"nvidia.com/nouse-gputype": "a100,v100"}, "GPU-a"),
        ({"nvidia.com/use-gputype": "a100", "nvidia.com/nouse-gputype": "a100"}, "GPU-b"),
        ({"volcano.sh/vgpu-use-gpuuuid": " GPU-a , GPU-x"}, "GPU-a"),
        ({"volcano.sh/vgpu-nouse-gpuuuid": "GPU-b"}, "GPU-a"),
        ({"volcano.sh/vgpu-mode": "hami-core"}, "GPU-b"),
        ({"volcano.sh/vgpu-mode": "mps"}, None),
        ({"volcano.sh/vgpu-use-gpuuuid": "GPU-x"}, None),
    ],
)
def test_annotations_choose_among_cards(hints: dict[str, str], uuid: str | None) -> None:
    made = world().pods("j", cards=ASKED, hints=tuple(sorted(hints.items())), cpu=1)
    assert cards_of(opened(made)) == (None if uuid is None else f"{uuid},NVIDIA,4000,10:")


@pytest.mark.parametrize(
    ("hints", "text"),
    [
        ({"volcano.sh/vgpu-mode": "mps"}, "node(s) share their vGPU cards in another mode"),
        ({"nvidia.com/use-gputype": "H100"}, "node(s) have too few vGPU cards of the wanted type or UUID"),
    ],
)
def test_refusals_say_why(hints: dict[str, str], text: str) -> None:
    made = world().pods("j", cards=ASKED, hints=tuple(hints.items()), cpu=1)
    assert refusals(opened(made)) == {text: 1}
    assert refusals(opened(made, "volcano")) == {"hami-vgpuDeviceSharing error": 1}


def test_pods_of_a_group_that_spread_share_no_card() -> None:
    group = {"scheduling.k8s.io/group-name": "j"}
    made = world().pods("j", 3, cards=ASKED, hints=(("volcano.sh/vgpu-podgroup-policy", "spread"),), annotations=group, cpu=1)
    session = opened(made)
    assert [cards_of(session) for _ in range(3)] == ["GPU-b,NVIDIA,4000,10:", "GPU-a,NVIDIA,4000,10:", None]


@pytest.mark.parametrize(
    "text", [register(("GPU-a", "NVIDIA-T4", "false")), register(("GPU-a", "NVIDIA-T4", "true"), mode="mig"), "nonsense"]
)
def test_broken_mig_and_unknown_cards_are_not_given_out(text: str) -> None:
    made = world(text).pods("j", cards=ASKED, cpu=1)
    assert cards_of(opened(made)) is cards_of(opened(made, "volcano")) is None


def test_a_node_whose_device_plugin_is_gone() -> None:
    made = world(**{HANDSHAKE.replace("/", "_"): "Deleted_2026.01.01 00:00:00"}).pods("j", cards=ASKED, cpu=1)
    assert cards_of(opened(made)) is None


def test_containers_of_a_running_pod_on_one_card() -> None:
    made = world(register(("GPU-a", "NVIDIA-T4", "true")))
    made.pods("j", node="n0", cards=ASKED, annotations={VGPU_IDS: "GPU-a,NVIDIA,6000,0:;GPU-a,NVIDIA,6000,0:"}, cpu=1)
    made.pods("j", cards=CardRequest((VgpuRequest(1, 9000, 0),)), cpu=1)
    assert cards_of(opened(made)) is None


def test_cards_of_a_pod_that_is_being_deleted() -> None:
    made = world(register(("GPU-a", "NVIDIA-T4", "true")))
    made.pods("j", node="n0", status=TaskStatus.RELEASING, cards=ASKED, annotations={VGPU_IDS: "GPU-a,NVIDIA,16000,0:"}, cpu=1)
    made.pods("j", cards=ASKED, cpu=1)
    session = opened(made)
    waiting = job_of(session, "j").tasks_in(TaskStatus.PENDING)[0]
    assert session.view(session.class_of(waiting)).choose(1) == ([0], True)


def test_an_undone_placement_frees_its_cards() -> None:
    made = world(register(("GPU-a", "NVIDIA-T4", "true"))).pods("j", 2, cards=CardRequest((VgpuRequest(1, 16000, 0),)), cpu=1)
    session = opened(made)
    job = job_of(session, "j")
    first = next(iter(job.tasks))
    statement = session.statement()
    statement.allocate(job, [first], [0], session.class_of(first))
    statement.discard()
    assert not session.bind_annotations
    assert bool(session.view(session.class_of(first)).feasible()[0])


def test_cards_by_memory_and_by_number() -> None:
    cards: dict[str, Any] = {GPU_MEMORY: 24000, GPU_NUMBER: 3}
    made = World().queue("q").job("j").node("n0", cpu=64, **cards)
    made.pods("j", node="n0", cards=CardRequest(memory=5000), annotations={GPU_INDEX: "0"}, cpu=1)
    made.pods("j", cards=CardRequest(memory=4000), cpu=1).pods("j", cards=CardRequest(number=1), cpu=1)
    session = made.session(Predicates, DeviceShare, arguments={SHARING: True, NUMBER: True})
    job = job_of(session, "j")
    for task in job.tasks_in(TaskStatus.PENDING):
        session.statement().allocate(job, [task], [0], session.class_of(task))
    assert [marks[GPU_INDEX] for marks in session.bind_annotations.values()] == ["1", "2"]


@pytest.mark.parametrize(
    ("asked", "argument", "resource"),
    [
        (ASKED, VGPU, VGPU_NUMBER),
        (CardRequest(memory=1), SHARING, GPU_MEMORY),
        (CardRequest(number=1), NUMBER, GPU_NUMBER),
    ],
)
def test_a_pod_that_the_policy_does_not_serve_is_told_so(asked: CardRequest, argument: str, resource: str) -> None:
    has: dict[str, Any] = {"cpu": 4, resource: 5}
    needs: dict[str, Any] = {"cpu": 1, resource: 1}
    made = World().queue("q").job("j").node("n0", **has).pods("j", 1, cards=asked, **needs)
    session = made.session(Predicates)
    (text,) = refusals(session)
    assert text == f"the policy does not serve {resource}: its plugin deviceshare is absent, or {argument} is off"
    followed = made.session(Predicates, compat="volcano")
    assert followed.view(followed.class_of(next(iter(job_of(followed, "j").tasks)))).feasible().all()
    assert [f"{text}; {PLAIN}"] == followed.record.warnings


@pytest.mark.parametrize("preset", ["volcano", "kube-batch", "kai", "kube-scheduler"])
def test_a_followed_system_places_such_a_pod_and_says_so(preset: str) -> None:
    asks = {VGPU_NUMBER: "1", "cpu": "1"}
    limits = {"name": "c", "image": "x", "resources": {"limits": asks, "requests": asks}}
    objects = [
        {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": "n1"},
            "status": {"allocatable": {"cpu": "8", "memory": "8Gi", "pods": "10", VGPU_NUMBER: "10"}},
        },
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "a", "namespace": "ns"},
            "spec": {"schedulerName": "navarch", "containers": [limits]},
        },
    ]
    planned = navarch.plan(objects, policy=preset, scheduler_names="navarch")
    text = f"the policy does not serve {VGPU_NUMBER}: its plugin deviceshare is absent, or {VGPU} is off"
    assert f"{text}; {PLAIN}" in planned.warnings


def test_rules_are_mappings_of_labels() -> None:
    check_rule({"tier": "gold"})
    wrongs: list[object] = [{}, "gold"]
    for wrong in wrongs:
        with pytest.raises(WrongKind, match="expected a mapping of labels to values"):
            check_rule(wrong)


@pytest.mark.parametrize("resource", ["huawei.com/Ascend310P-memory", "huawei.com/npu-core"])
def test_parts_of_npus_are_refused_by_name(resource: str) -> None:
    has: dict[str, Any] = {"cpu": 4, resource: 100}
    needs: dict[str, Any] = {"cpu": 1, resource: 10}
    made = World().queue("q").job("j").node("n0", **has).pods("j", 1, **needs)
    text = f"parts of Ascend NPUs are not given out here: {resource}"
    assert list(refusals(made.session(Predicates))) == [text]
    followed = made.session(Predicates, DeviceShare, arguments={"deviceshare.AscendHAMiVNPUEnable": True}, compat="volcano")
    assert list(refusals(followed)) == [text], "Volcano would give them out with this argument, and we cannot"
    plain = made.session(Predicates, compat="volcano")
    assert plain.view(plain.class_of(job_of(plain, "j").tasks[0])).feasible().all()
    assert plain.record.warnings == [f"{text}; {PLAIN}"]


@pytest.mark.parametrize("compat", ["strict", "volcano"])
@pytest.mark.parametrize(
    ("memory", "cores", "cards"),
    [(4 << 30, 10, None), (3 << 30, 10, None), (4000, (1 << 63) - 1, None), (4000, 10, "GPU-b,NVIDIA,4000,10:")],
)
def test_a_request_is_what_it_says(compat: str, memory: int, cores: int, cards: str | None) -> None:
    asked = CardRequest((VgpuRequest(1, memory, cores),))
    assert cards_of(opened(world().pods("j", cards=asked, cpu=1), compat)) == cards
