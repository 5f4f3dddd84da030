"""Typical pods: from the policy file, from the pods of the cluster, and what is wrong with an entry."""

from __future__ import annotations

import pytest
from tests.worlds.plugin_session import World

from navarch.engine.policy import PolicyError, load
from navarch.installed import installed
from navarch.model.spec import DeviceRequest, NodeAffinity, NodeTerm, Requirement, Shape
from navarch.plugins.fragmentation.plugin import GPU_TYPE_LABEL, Fragmentation
from navarch.plugins.fragmentation.typical_pods import PodKind, TypicalPodError, counted, gpu_types, most_frequent, rounded, seen


def test_the_most_frequent_kinds_cover_a_share_of_all_pods() -> None:
    counts = {PodKind(1000 * n): n for n in range(1, 11)}
    taken = most_frequent(counts, 0.95)
    assert [pod.kind.cpu for pod in taken] == [1000 * n for n in range(10, 1, -1)], "10 .. 2 are 54 of 55, 10 .. 3 are 52"
    assert sum(pod.weight for pod in taken) == pytest.approx(1)


def test_equally_frequent_kinds_are_taken_in_a_fixed_order() -> None:
    counts = {PodKind(2000): 1, PodKind(1000): 1, PodKind(3000): 1}
    assert [pod.kind.cpu for pod in most_frequent(counts, 0.5)] == [1000, 2000]
    assert most_frequent(dict(reversed(counts.items())), 0.5) == most_frequent(counts, 0.5)


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        ("x", "[0]: found 'x', expected a mapping"),
        ({"gpus": 1}, "[0]: found the field 'gpus', expected one of cpu, gpu, types, count"),
        ({"gpu": 1.5}, "[0].gpu: found 1.5, expected part of one GPU or a whole number of GPUs"),
        ({"gpu": -1}, "[0].gpu: found -1"),
        ({"cpu": "many"}, "[0]: "),
        ({"types": "A100"}, "[0].types: found 'A100', expected a list of GPU types"),
        ({"count": 0}, "[0].count: found 0, expected a whole number above 0"),
    ],
)
def test_an_entry_that_is_no_typical_pod_is_named(entry: object, words: str) -> None:
    with pytest.raises(TypicalPodError) as error:
        counted([entry])
    assert words in str(error.value)


def test_the_pods_of_the_cluster_are_its_history() -> None:
    world = World().node("n", cpu=64, gpu=8).queue("q").job("j")
    world.pods("j", 2, cpu=4, gpu=2, node="n").pods("j", cpu=1).pods("j", cpu=2, devices=DeviceRequest(fraction=500))
    found = seen(world.session(Fragmentation), GPU_TYPE_LABEL)
    assert found == {PodKind(4000, 1000, 2): 2, PodKind(1000): 1, PodKind(2000, 500, 1): 1}
    assert rounded(found) == {PodKind(4000, 1000, 2): 32, PodKind(1000): 16, PodKind(2000, 500, 1): 16}


def test_types_come_from_node_selector_or_required_affinity() -> None:
    def affinity(*terms: tuple[tuple[str, str, tuple[str, ...]], ...]) -> Shape:
        return Shape(node_affinity=NodeAffinity(tuple(NodeTerm(tuple(Requirement(*each) for each in term)) for term in terms)))

    assert gpu_types(Shape(), "t") == ()
    assert gpu_types(Shape(node_selector=(("zone", "a"), ("t", "T4"))), "t") == ("T4",)
    assert gpu_types(affinity((("t", "In", ("B", "A")),), (("t", "In", ("C",)),)), "t") == ("A", "B", "C")
    assert gpu_types(affinity((("t", "In", ("A",)),), (("zone", "In", ("z",)),)), "t") == (), "the second term takes any type"


def test_a_wrong_entry_is_a_mistake_of_the_policy_file() -> None:
    text = """
actions: allocate
tiers:
- plugins:
  - name: fragmentation
    arguments:
      fragmentation.typicalPods:
      - {cpu: 4, gpu: 1.5}
"""
    with pytest.raises(PolicyError) as error:
        load(text, installed().catalogue(), "mine.yaml")
    assert "[0].gpu: found 1.5, expected part of one GPU or a whole number of GPUs" in str(error.value)
