"""A cycle that goes on with the session of the last one decides as a cycle with a new session does, whatever happened in between."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from copy import copy
from random import Random
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import asdict, replace
from tests.worlds.changing_clusters import NODES, ODD_SHAPES, RARE, ChangingClusters
from tests.worlds.live_parts.faulty_cluster import random_history
from tests.worlds.plugins_that_go_on import GOING_ON

from navarch.actions import PLACES as ACTIONS
from navarch.engine.cycle import decide
from navarch.engine.kept_session import goes_on
from navarch.engine.policy import PRESETS, Policy, preset
from navarch.engine.policy.load import load
from navarch.engine.record import CycleRecord
from navarch.engine.registry import Registry
from navarch.engine.session import CycleStopped, Session
from navarch.live import core as core_module
from navarch.live.cycle import Cycle, leave_out, run_cycle
from navarch.live.queue.rounds import Rounds
from navarch.model.cluster import Cluster
from navarch.model.snapshot import Snapshot
from navarch.model.tables import identities, incremental_copy, node_copies
from navarch.model.tables.incremental_copy import Table
from navarch.plugins import PLACES as PLUGINS


def registry() -> Registry:
    return Registry(GOING_ON, plugin_places=PLUGINS, action_places=ACTIONS)


REGISTRY, SAME_PLUGINS = registry(), registry()
GO_ON = sorted(key for key in REGISTRY.catalogue().plugins if (kind := REGISTRY.plugin(key)) and goes_on(kind))
"""Plugins that go on in a further cycle."""


def _all_go_on(policy: Policy) -> bool:
    return all(goes_on(kind) for tier in REGISTRY.select_plugins(policy).tiers for kind, _, _ in tier)


def policy_of(plugins: Iterable[str], actions: str = "allocate, backfill", compat: str = "strict", **params: Any) -> Policy:
    tiers = [{"plugins": [{"name": name} for name in plugins]}]
    document = {"compat": compat, "actions": actions, "tiers": tiers, **({"schedulerParams": params} if params else {})}
    return load(document, REGISTRY.catalogue(), "policy")


ALL_ACTIONS = "enqueue, allocate, backfill, preempt, reclaim, gangpreempt, gangreclaim, shuffle"
POLICIES: dict[str, Policy] = {
    **{name: found for name in PRESETS if _all_go_on(found := preset(name, REGISTRY.catalogue()))},
    "orders": policy_of(("ageing", "namespace-turns", "least-attained-service", "gang", "strict-order", "predicates", "best-fit")),
    "evictions": policy_of(("gang", "least-attained-service", "predicates", "best-fit"), ALL_ACTIONS),
    "volcano": policy_of(("gang", "by-labels", "predicates", "best-fit"), "enqueue, allocate, backfill, preempt", "volcano"),
    "kube-batch": policy_of(("shortest-first", "predicates", "best-fit"), "allocate, preempt", "kube-batch"),
    "labels": policy_of(("gang", "by-labels", "predicates")),
    "reading": policy_of(("reads-at-open", "gang", "predicates", "best-fit")),
    "counting": policy_of(("gang", "counts-pods", "predicates", "best-fit"), "allocate, backfill, preempt"),
    "failing": policy_of(("gang", "fails", "predicates", "best-fit"), "allocate, backfill, preempt"),
    "shard": policy_of(("gang", "predicates"), shardingMode="soft", shardName="navarch"),
}
SOME_PLUGINS = st.tuples(
    st.lists(st.sampled_from(GO_ON), unique=True, min_size=1),
    st.lists(st.sampled_from(ALL_ACTIONS.split(", ")), unique=True, min_size=1).map(", ".join),
    st.sampled_from(("strict", "volcano")),
)
"""Arguments of `policy_of`."""


@contextmanager
def few_rows_are_copied() -> Iterator[None]:
    """Snapshots copy only the rows that have changed, and sessions go on, however small the cluster is."""
    with patch.object(node_copies, "MANY", 0), patch.object(incremental_copy, "MANY", 0):
        yield


@contextmanager
def unnoticed(cluster: Cluster) -> Iterator[Cluster]:
    """The same cluster, whose snapshots the next snapshot that is handed on does not notice."""
    tables: tuple[Table, ...] = (cluster.tasks, cluster.jobs, cluster.nodes)
    touched = [set(table.touched) for table in tables]
    yield copy(cluster)
    for table, rows in zip(tables, touched):
        table.touched = rows


class History:
    """Cycles over both clusters of a world. Each cycle over the first may go on with the session of the last one."""

    def __init__(self, seed: int, policies: Iterable[Policy], *, disturbed: bool, often: str = "", odd: str = "") -> None:
        """`policies`: one of them is in effect at a time. `disturbed`: cycles are stopped, another session is opened over the same
        columns, snapshots are taken in between, jobs and nodes are left out. `often`, `odd`: see `ChangingClusters`."""
        self.rng = Random(seed)
        self.world = ChangingClusters(self.rng, calm=not disturbed, often=often, odd=odd)
        self.policies = list(policies)
        self.policy, self.registry = self.policies[0], REGISTRY
        self.disturbed = disturbed
        self.last: Snapshot | None = None
        self.opened = 0

    def run(self, steps: int) -> None:
        with few_rows_are_copied(), patch.object(identities, "FORGET_AT", 5):  # label sets get new numbers often
            for step in range(steps):
                for _ in range(self.rng.choice((0, 1, 1, 2, 3))):
                    self.world.change()
                self._cycle(step)

    def _cycle(self, step: int) -> None:
        rng = self.rng
        if self.disturbed:
            self._disturb()
        given: dict[str, Any] = {"uid": f"c{step}", "report_all": step % 3 == 0, "report_queues": step % 4 == 0}
        if self.disturbed and rng.random() < 0.1:
            given["set_aside"] = frozenset(rng.sample(sorted(self.world.jobs), min(2, len(self.world.jobs))))
        if self.disturbed and rng.random() < 0.1:
            given["left_out_nodes"] = frozenset(f"n{rng.randrange(NODES)}" for _ in range(2))
        batch = rng.randint(1, 4) if rng.random() < 0.1 else None
        first, second = self._snapshot(), self.world.both[1].snapshot(self.policy.semantics.node_order)
        if self.disturbed and rng.random() < 0.2:
            stopped = self._stops_midway(first, step, given)
            if not stopped or rng.random() < 0.5:
                self.world.change()
                first, second = self._snapshot(), self.world.both[1].snapshot(self.policy.semantics.node_order)
        kept = self._decide(first, step, given, batch, counted=True)
        expected = self._decide(second, step, given, batch, counted=False)
        told = f"the cycle goes on at {step}: " if kept.warnings != expected.warnings else ""
        kept.warnings = [each for each in kept.warnings if "the cycle opens a new session" not in each]
        assert _plain(kept) == _plain(expected), told
        if self.disturbed and rng.random() < 0.1:
            decide(first, self.policy, self.registry, float(step))  # once more over a snapshot whose figures are those after the cycle
        self.world.apply(kept)

    def _snapshot(self) -> Snapshot:
        self.last = self.world.both[0].snapshot(self.policy.semantics.node_order, instead_of=self.last)
        return self.last

    def _decide(self, snapshot: Snapshot, step: int, given: dict[str, Any], batch: int | None, *, counted: bool) -> CycleRecord:
        if batch is not None:
            leave_out(snapshot, Rounds(batch).leave_out(snapshot, in_order=True))
        opening = Session.open_plugins

        def counting(session: Session, *words: Any) -> None:
            self.opened += counted
            opening(session, *words)

        with patch.object(Session, "open_plugins", counting):
            return decide(snapshot, self.policy, self.registry, float(step), **given)

    def _disturb(self) -> None:
        rng, cluster = self.rng, self.world.both[0]
        match rng.randrange(20):
            case 0:  # a what-if: a session over the columns of the last snapshot
                if self.last is not None:
                    Session(self.last, self.policy, self.registry, 0.0).dissolve()
            case 1:  # a whole cycle over a snapshot that is handed on and never committed
                decide(self._snapshot(), self.policy, self.registry, 0.0)
            case 2:  # somebody else takes a snapshot
                cluster.snapshot_with_held(self.policy.semantics.node_order)
            case 3:  # nobody decides over this one
                self._snapshot()
            case 4:  # the last snapshot is kept for a recording
                self.last = None
            case 5:
                self.policy = rng.choice(self.policies)
            case 6:  # plugins were read again
                self.registry = rng.choice((REGISTRY, SAME_PLUGINS))

    def _stops_midway(self, snapshot: Snapshot, step: int, given: dict[str, Any]) -> bool:
        """Run a cycle whose caller wants no more of it after some attempts. False: it ended before."""
        left = iter(range(self.rng.randrange(6)))
        try:
            decide(snapshot, self.policy, self.registry, float(step), proceed=lambda: next(left, None) is not None, **given)
        except CycleStopped:
            return True
        return False


def _plain(record: CycleRecord) -> dict[str, Any]:
    """Everything in the record but what it cost, and tracebacks: they name the lines through which a session was opened."""
    found = asdict(record)
    del found["timings"], found["steps"]
    for part in ("failures", "node_failures", "plugin_failures"):
        found[part] = [replace(each, traceback="") for each in found[part]]
    return found


@pytest.mark.contained
@given(st.integers(0, 2**32), st.lists(st.sampled_from(sorted(POLICIES)), min_size=1, max_size=2), st.booleans())
@settings(max_examples=100)
def test_a_kept_session_decides_as_a_new_one(seed: int, names: list[str], disturbed: bool) -> None:
    History(seed, [POLICIES[name] for name in names], disturbed=disturbed).run(25)


@pytest.mark.contained
@given(st.integers(0, 2**32), SOME_PLUGINS, st.booleans())
@settings(max_examples=50)
def test_a_kept_session_of_any_plugins_decides_as_a_new_one(seed: int, parts: tuple[list[str], str, str], disturbed: bool) -> None:
    History(seed, [policy_of(*parts)], disturbed=disturbed).run(25)


@pytest.mark.parametrize("change", RARE)
def test_a_change_of_what_a_session_was_opened_with_is_seen(change: str) -> None:
    for seed in range(5):
        History(seed, [POLICIES["reading"]], disturbed=False, often=change).run(25)


@pytest.mark.parametrize("odd", ODD_SHAPES)
def test_rules_that_follow_pods_know_every_pod(odd: str) -> None:
    for seed in range(6):
        History(seed, [POLICIES["fifo-skip"]], disturbed=False, odd=odd).run(25)


@given(st.integers(0, 2**32), st.sampled_from(("fifo-skip", "sjf", "orders", "evictions", "volcano", "labels")))
@settings(max_examples=40)
def test_a_live_core_decides_as_with_new_sessions(seed: int, name: str) -> None:
    """Through assumed pods, bindings that fail, a lost lease and another leader."""
    cycles = 0

    def compared(cluster: Cluster, *words: Any, **given: Any) -> Cycle:
        nonlocal cycles
        cycles += 1
        with unnoticed(cluster) as same:
            expected = run_cycle(same, *words, **{**given, "instead_of": None})
        cycle = run_cycle(cluster, *words, **given)
        assert _plain(cycle.record) == _plain(expected.record)
        return cycle

    with few_rows_are_copied(), patch.object(core_module, "run_cycle", compared):
        random_history(seed, policy=POLICIES[name]).finish()
    assert cycles


@pytest.mark.parametrize("name", sorted(POLICIES.keys() - {"kube-batch", "shard", "failing"}))
def test_most_cycles_go_on_with_the_session_of_the_last_one(name: str) -> None:
    history = History(1, [POLICIES[name]], disturbed=False)
    history.run(60)
    assert history.opened < 40


def test_every_plugin_that_goes_on_is_tried() -> None:
    assert {"gang", "predicates", "best-fit", "by-labels"} <= set(GO_ON)
