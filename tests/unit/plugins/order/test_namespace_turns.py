"""Namespaces take turns inside a queue."""

from __future__ import annotations

from typing import Any

import navarch
from navarch.testing.builders import node, pod, pod_group

POLICY = {"actions": "allocate", "tiers": [{"plugins": [{"name": n} for n in ("priority", "gang", "namespace-turns", "predicates")]}]}


def jobs(space: str, count: int, age: int) -> list[Any]:
    made = []
    for number in range(count):
        created = f"2026-01-01T00:{age:02}:{number:02}Z"
        made += [
            pod_group(f"j{number}", namespace=space).created(created),
            pod(f"j{number}-0", space).cpu(1).in_group(f"j{number}").created(created),
        ]
    return made


def bound(*objects: Any, policy: Any = POLICY) -> list[str]:
    return sorted(bind.job for bind in navarch.plan(objects, policy=policy).records[0].binds)


def test_a_namespace_with_many_older_jobs_delays_the_others_by_its_turn() -> None:
    crowd = jobs("crowd", 40, age=1)
    assert bound(node("n").cpu("4"), *crowd, *jobs("a", 2, age=2), *jobs("b", 1, age=3)) == ["a/j0", "b/j0", "crowd/j0", "crowd/j1"]


def test_without_it_the_oldest_go_first() -> None:
    plain = {"actions": "allocate", "tiers": [{"plugins": [{"name": n} for n in ("priority", "gang", "predicates")]}]}
    found = bound(node("n").cpu("3"), *jobs("crowd", 40, age=1), *jobs("a", 2, age=2), policy=plain)
    assert found == ["crowd/j0", "crowd/j1", "crowd/j2"]


def test_jobs_that_run_had_their_turn() -> None:
    runs = [pod_group("r", namespace="a"), pod("r-0", "a").cpu(1).in_group("r").on("n")]
    assert bound(node("n").cpu("2"), *runs, *jobs("a", 1, age=1), *jobs("b", 1, age=2)) == ["b/j0"]
