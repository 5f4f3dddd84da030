"""Searches for victims on random clusters: shortcuts change nothing but time, and no eviction is in vain."""

from __future__ import annotations

from functools import partial

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.worlds.kai_cycles import KAI, NOW, SEEDS, finished
from tests.worlds.random_kai_clusters import KaiWorld, fragmented_world, kai_world, large_world

from navarch.actions.kai import eviction as kai_eviction
from navarch.actions.kai.eviction import KaiPreempt, KaiReclaim
from navarch.actions.kai.solver.node_bound import SingleNodeBound
from navarch.actions.kai.solver.resource_bound import ResourceBound
from navarch.actions.kai.solver.solver import Solver
from navarch.actions.kai.solver.victim_queue import Batch, VictimPool, batches
from navarch.actions.kai.solver.victim_sequence import VictimSequence
from navarch.actions.kai.sorted_jobs import SortedJobs
from navarch.engine.cycle import decide
from navarch.engine.gangs.chunks import next_to_place
from navarch.engine.job import Job
from navarch.engine.policy import PRESETS, load
from navarch.engine.policy.values import Policy
from navarch.engine.statement import Statement
from navarch.installed import installed
from navarch.model.status import TaskStatus

ALL_MAY_MOVE = {**PRESETS["kai"], "compat": "kai", "schedulerParams": {"maxNumberConsolidationPreemptees": -1}}
ONLY_ALLOCATE = {**PRESETS["kai"], "compat": "strict", "actions": "allocate"}
POLICIES = {"few may move": KAI, "all may move": load(ALL_MAY_MOVE, installed().catalogue(), "test")}


def decided(world: KaiWorld, policy: Policy, *, plain: bool) -> tuple[list[object], ...]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kai_eviction, "Solver", partial(Solver, exhaustive=plain))
        record = decide(world.cluster.snapshot(), policy, installed(), NOW)
    return list(record.binds), list(record.evictions), list(record.nominations), list(record.jobs)


@settings(max_examples=90, deadline=None)
@given(SEEDS, st.sampled_from((0.0, 0.0, 0.25)), st.sampled_from(sorted(POLICIES)))
def test_a_walk_with_shortcuts_decides_as_the_plain_one(seed: int, sharing: float, policy: str) -> None:
    fast, slow = (decided(kai_world(seed, sharing), POLICIES[policy], plain=plain) for plain in (False, True))
    assert fast == slow


@settings(max_examples=12, deadline=None)
@given(SEEDS, st.sampled_from(sorted(POLICIES)))
def test_the_same_on_larger_clusters(seed: int, policy: str) -> None:
    fast, slow = (decided(large_world(seed, 0.0, 12), POLICIES[policy], plain=plain) for plain in (False, True))
    assert fast == slow


@settings(max_examples=20, deadline=None)
@given(SEEDS)
def test_the_same_where_gangs_wait_for_fragments(seed: int) -> None:
    fast, slow = (decided(fragmented_world(seed), POLICIES["all may move"], plain=plain) for plain in (False, True))
    assert fast == slow


def test_whole_searches_are_left_out_on_fragmented_clusters(monkeypatch: pytest.MonkeyPatch) -> None:
    left_out = []
    excludes = SingleNodeBound.excludes_probes

    def watched(self: SingleNodeBound, bound: ResourceBound, probes: int) -> bool:
        found = excludes(self, bound, probes)
        left_out.append(found and probes > 1)
        return found

    monkeypatch.setattr(SingleNodeBound, "excludes_probes", watched)
    for seed in range(12):
        decided(fragmented_world(seed), POLICIES["all may move"], plain=False)
    assert left_out.count(True) > 3


@settings(max_examples=30, deadline=None)
@given(SEEDS, st.sampled_from((0.0, 0.25)), st.booleans())
def test_a_stretch_of_victims_is_judged_as_its_batches_one_by_one(seed: int, sharing: float, all_return: bool) -> None:
    session = finished(kai_world(seed, sharing), load(ONLY_ALLOCATE, installed().catalogue(), "test"))
    jobs = session.all_jobs()
    pool = VictimPool(SortedJobs(session, [job for job in jobs if job.tree.active]), lambda job: True)
    for job in (each for each in jobs if each.tree.has_pending):
        bound = ResourceBound(session, next_to_place(session, job.tree), all_return=all_return)
        one_by_one = bound.copy()
        for stretch in VictimSequence(session, pool).without([]):
            enough = bound.enough_after(stretch)
            for place, batch in enumerate(stretch.batches):
                one_by_one.add(batch)
                assert enough[place] == one_by_one.admits()
            bound.add_stretch(stretch)


def no_victim_in_vain(world: KaiWorld) -> int:
    """Search for every job, each time from the same state: without any one of the victims it would find no room, or a rule
    would be broken. Returns how many victims were looked at."""
    session = finished(world, load(ONLY_ALLOCATE, installed().catalogue(), "test"))
    looked_at = 0

    class Watched(Solver):
        def solve(self, job: Job) -> Statement | None:
            nonlocal looked_at
            statement = super().solve(job)
            if statement is not None:
                gone = {op.tasks[0] for op in statement.operations if op.kind == TaskStatus.RELEASING and not op.void}
                statement.discard()
                line: list[Batch] = list(batches(session, self.pool))
                used = [batch for batch in line if any(task in gone for task in batch.tasks)]
                looked_at += len(used)
                for spared in used if len(used) > 1 else ():
                    assert not self.holds(job, [b for b in used if b is not spared]), f"{spared} went in vain"
            return None

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kai_eviction, "Solver", Watched)
        for kind in (KaiReclaim, KaiPreempt):
            session.action = kind.name
            kind(session).execute()
    return looked_at


@settings(max_examples=90, deadline=None)
@given(SEEDS)
def test_a_strict_search_evicts_nothing_in_vain(seed: int) -> None:
    no_victim_in_vain(kai_world(seed))


@settings(max_examples=6, deadline=None)
@given(SEEDS, st.sampled_from((0.0, 0.25)))
def test_a_strict_search_among_hundreds_of_jobs_evicts_nothing_in_vain(seed: int, sharing: float) -> None:
    no_victim_in_vain(large_world(seed, sharing))


def test_the_random_clusters_have_many_evictions() -> None:
    assert sum(no_victim_in_vain(large_world(seed, 0.1)) for seed in range(2)) > 30
