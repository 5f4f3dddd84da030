"""The sentence of a waiting job: what it needs, and the first rule that does not give it that."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import navarch
from navarch.ingest.settings import settings_for
from navarch.installed import installed
from navarch.offline.inventory import Inventory
from navarch.offline.manifests import Document
from navarch.offline.policies import read_policy
from navarch.testing.builders import node, pod, pod_group, queue
from navarch.views.prospects import prospects

Objects = list[Mapping[str, Any]]


def gang(name: str, pods: int, gpus: int, of: str = "default", on: str = "") -> Objects:
    group = pod_group(name, pods).queue(of).created(f"2026-01-0{2 if name == 'bert' else 1}T00:00:00Z")
    made = [pod(f"{name}-{number}").gpu(gpus).in_group(name).scheduler("navarch") for number in range(pods)]
    return [group.phase("Running"), *(each.on(on) for each in made)] if on else [group, *made]


def nodes(count: int, gpus: int = 8) -> Objects:
    return [node(f"n{number}").gpu(gpus).cpu(64) for number in range(count)]


def why(objects: Objects, job: str = "default/bert", policy: Any = "navarch") -> str:
    registry = installed(())
    chosen = read_policy(policy, registry)
    cluster = Inventory([Document(dict(each)) for each in objects], settings_for(chosen)).cluster
    return prospects(cluster, chosen, registry, 1000.0)[job].why


def test_room_is_told_in_what_the_job_needs_and_what_is_free() -> None:
    objects = [*nodes(4), *gang("runs", 2, 4, on="n0"), *gang("more", 1, 4, on="n1"), *gang("bert", 12, 2)]
    assert why(objects) == "needs 24 GPUs: 20 are free"


def test_a_limit_of_the_queue_is_told_with_what_the_queue_holds() -> None:
    limited = queue("production", 1)
    limited.child("spec")["capability"] = {"nvidia.com/gpu": "16"}
    objects = [limited, *nodes(4), *gang("runs", 1, 8, "production", "n0"), *gang("bert", 12, 2, "production")]
    assert why(objects) == "needs 24 GPUs: queue production may have 16 and holds 8"


def test_free_amounts_that_are_scattered_are_told_as_room_for_pods() -> None:
    objects = [*nodes(3, 4), *(each for number in range(3) for each in gang(f"r{number}", 1, 2, on=f"n{number}"))]
    assert why([*objects, *gang("bert", 2, 3)]) == "needs room for 2 pods of 3 GPUs: there is room for 0"
    assert why([*objects, *gang("bert", 1, 4)]) == "needs one node with 4 GPUs free: none has it"


def test_the_share_is_told_where_room_could_be_taken_back() -> None:
    """What other schedulers say is `4 Insufficient nvidia.com/gpu`, although the running jobs may be evicted."""
    objects = [queue("production", 1), queue("other", 2), *nodes(4)]
    objects += [each for number in range(4) for each in gang(f"etl-{number}", 1, 8, "other", f"n{number}")]
    objects += gang("bert", 2, 8, "production")
    share = "needs 16 GPUs: 0 are free, and queue production is owed 10.667 and holds 0: too little to take room back"
    assert why(objects) == share
    found = navarch.explain(objects, "bert")
    assert found.sentence == share
    assert found.deciding is not None and (found.deciding.rule, found.deciding.text) == (
        "share",
        "a larger weight of queue production alone starts it",
    )


def test_a_job_behind_others_says_so_and_names_the_one_whose_end_starts_it() -> None:
    objects = [*nodes(1), *gang("first", 1, 5), *gang("bert", 1, 4)]
    found = navarch.explain(objects, "bert")
    assert found.sentence == "needs 4 GPUs: 8 are free, and jobs that come before it are placed first"
    assert found.deciding is not None and found.deciding.rule in ("node", "end")


def test_where_no_single_change_helps_that_is_said() -> None:
    objects = [*nodes(2), *gang("a", 1, 8, on="n0"), *gang("b", 1, 8, on="n1"), *gang("bert", 3, 8)]
    found = navarch.explain([*objects, *nodes(4)[2:], *gang("c", 1, 8, on="n2"), *gang("d", 1, 8, on="n3")], "bert")
    assert found.sentence == "needs 24 GPUs: 0 are free"
    assert found.deciding is not None and found.deciding.rule == "none"


def test_a_job_that_lacks_room_for_ever_is_offered_no_queue_and_no_weight() -> None:
    found = navarch.explain([queue("a", 1), queue("b", 1), *nodes(1), *gang("bert", 1, 9, "a")], "bert")
    assert found.state == "impossible"
    assert not {each.kind for each in found.changes} & {"queue", "weight", "quota", "priorityClass"}


def test_one_more_node_that_does_not_help_says_why_and_the_end_of_a_job_is_priced() -> None:
    objects = [*nodes(2), *gang("runs", 2, 8, on="n0"), *gang("bert", 2, 8)]
    objects = [node("n0").gpu(16).cpu(64), *objects[1:]]
    found = navarch.explain(objects, "bert")
    assert [each.price.ends for each in found.changes if each.kind == "end"] == [["default/runs"]]
    assert all(each.starts or each.because for each in found.changes if each.kind == "node")
