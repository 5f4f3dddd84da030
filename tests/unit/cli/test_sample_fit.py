"""Whether the sample of `navarch up` fits a policy and a cluster, and how long it takes."""

from __future__ import annotations

import pytest

import navarch
from navarch.cli.up.sample_fit import evicts, how_long, misfit
from navarch.embedded.sample import STEPS, documents
from navarch.embedded.sample.size import Size
from navarch.installed import installed
from navarch.offline.policies import read_policy
from navarch.testing.builders import node


@pytest.mark.parametrize(
    ("nodes", "gpus", "unit", "slots"),
    [(4, 8, "nvidia.com/gpu", 32), (4, 0, "cpu", 32), (1, 1, "cpu", 8), (1, 4, "nvidia.com/gpu", 4)],
)
def test_too_few_gpus_make_a_sample_of_processors(nodes: int, gpus: int, unit: str, slots: int) -> None:
    size = Size.of(nodes, gpus, 31_400)
    assert (size.unit, size.slots) == (unit, slots)


@pytest.mark.parametrize(
    ("policy", "nodes", "size", "why"),
    [
        ("navarch", 4, Size.of(4, 8, 0), ""),
        ("kai", 4, Size.of(4, 8, 0), ""),
        ("volcano", 4, Size.of(4, 8, 0), ""),
        ("navarch", 0, Size.of(0, 0, 0), "no nodes"),
        ("navarch", 1, Size.of(1, 0, 150), "need room for 4 pods"),
        ("kube-scheduler", 4, Size.of(4, 8, 0), "places single pods"),
    ],
)
def test_the_sample_fits_or_says_why_not(policy: str, nodes: int, size: Size, why: str) -> None:
    said = misfit(read_policy(policy, installed()), nodes, size)
    assert why in said and bool(said) == bool(why)


def test_policies_that_evict_are_told_from_others() -> None:
    assert [evicts(read_policy(name, installed())) for name in ("navarch", "kai", "volcano", "fifo")] == [True, True, False, False]


def test_the_time_follows_the_speed() -> None:
    assert how_long(1.0) == "the sample takes about 2 min (--speed 20: about 16 s)"
    assert how_long(0.5) == "the sample takes about 4 min"


@pytest.mark.parametrize(("policy", "kai"), [("navarch", False), ("kai", True)])
@pytest.mark.parametrize("gpus", [8, 0])
def test_the_first_step_fills_the_cluster_under_both_policies(policy: str, kai: bool, gpus: int) -> None:
    size = Size.of(2, gpus, 31_400)
    nodes = [node(name).cpu("31400m").memory("200Gi").gpu(gpus) for name in "ab"]
    queues = {"apiVersion": "scheduling.run.ai/v2", "kind": "Queue", "metadata": {"name": "default-queue"}}
    unbounded = {each: {"quota": -1, "limit": -1, "overQuotaWeight": 1} for each in ("cpu", "memory", "gpu")}
    more = [{**queues, "spec": {"resources": unbounded}}] if kai else []
    (cycle,) = navarch.plan([*nodes, *more, *documents(STEPS[0], size, kai=kai)], policy).to_dict()["cycles"]
    placed = [bind["pod"] for bind in cycle["binds"]]
    assert len([pod for pod in placed if pod.startswith("research/pretrain")]) == size.slots == 16
