"""What a live cycle names."""

from __future__ import annotations

from tests.worlds.small_cluster import ACTIONS, add_job, shape, with_nodes
from tests.worlds.small_cluster import policy as small_policy

from navarch.engine.job import Job
from navarch.engine.plugin import Plugin
from navarch.engine.points.conversation import Answer, Exchange, Server
from navarch.engine.policy import preset
from navarch.engine.reasons import Reason
from navarch.engine.registry import Registry
from navarch.installed import installed
from navarch.live.cycle import decide_again, run_cycle
from navarch.live.queue.rounds import STEPS, Rounds
from navarch.model.resources import requests_from
from navarch.model.spec import DeviceRequest, JobSpec, QueueShare, QueueSpec, Shape, TaskSpec
from navarch.plugins.gang import Gang


def test_gpus_that_are_shared_anew_have_names_that_no_other_cycle_gives() -> None:
    """KAI's binder knows a GPU by that name alone, whichever scheduler chose it and on whichever node it is."""
    half = Shape(requests=requests_from({"cpu": "1"}), devices=DeviceRequest(fraction=500))
    free = QueueShare(-1.0, -1.0, 1.0)
    groups: list[str] = []
    for uid in ("one-7", "two-7"):
        cluster = with_nodes(("n", {"cpu": 8, "nvidia.com/gpu": 2}))
        cluster.put_queue(QueueSpec("q", state="Open", shares={"cpu": free, "memory": free, "gpu": free}))
        cluster.put_job(JobSpec("ns/j", "q", 1, "ns", "j", "j", "kai"))
        cluster.put_task(TaskSpec("p", "ns", "p", half, "ns/j"))
        (bind,) = run_cycle(cluster, preset("kai", installed().catalogue()), installed(), 0.0, 7, uid).record.binds
        groups += bind.gpu_groups
    assert groups == ["one-7-1", "two-7-1"]


class Asks(Plugin):
    """Asks a server before the first turn"""

    name = "asks"

    def turn_refusal(self, job: Job) -> Reason | None:
        self.session.conversation.ask(Server("http://extender", 1.0), "turn", 1, lambda _: {})
        return None

    def turn_failed(self, job: Job) -> None: ...


def test_a_cycle_that_waits_for_an_extender_has_the_same_bound_and_counts_as_tried() -> None:
    cluster, rounds = with_nodes(("n", {"cpu": 8})), Rounds(2.0)
    for number in range(4):
        add_job(cluster, f"j{number}", [shape(cpu=9 + number)], created=float(number))
    registry = Registry([Gang, Asks], ACTIONS)
    first = run_cycle(cluster, small_policy("gang", "asks"), registry, 0.0, 1, "c", rounds=rounds, asks=True)
    assert first.record.question is not None and first.more
    again = decide_again(first, registry, (), (), (), [Exchange(0, "turn", (Answer("{}"),))] * 2, None)
    assert again.record.question is None
    assert again.record.steps_allowed == first.record.steps_allowed == STEPS
