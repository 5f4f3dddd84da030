"""Faults on the live core: whatever fails, pods are bound once, gangs are complete or released, and nothing is forgotten.

`FaultyCluster` is `LiveCore` with the real `Binder` on an API server in memory. Bindings succeed, are refused, or end with an unknown
outcome, applied or not. Watches lag and leave versions out. Pods are deleted, waiting members of half-bound gangs above all, and
created again under the same name. The scheduler
crashes and starts again, loses its lease, and another scheduler binds pods meanwhile.

After each step:
- no binding is sent for a pod while another one for it is in flight, nor after one was applied;
- what is bound and what is being bound fits on every node.

At the end the faults stop and time passes. Then:
- a cycle in which every job is active binds nothing: no pending job that fits was forgotten;
- a gang that never was complete has no pod on a node, if this leader began to bind it, or if it could have been complete since its
  first pod was bound;
- each bind has ended exactly once, and no assumption is left.

The state machine finds small counterexamples. The seeded histories are the same world without hypothesis' cost: about 25 ms of CPU
each, so thousands run while one changes the core (`random_history(seed).finish()` repeats one).
"""

from __future__ import annotations

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from tests.worlds.live_parts.faulty_cluster import FAULTS, PAUSES, FaultyCluster, random_history

CHOICES = st.integers(0, 1 << 16)
BATCHES, BATCH = 4, 250


class LiveCoreMachine(RuleBasedStateMachine):
    cluster: FaultyCluster

    @initialize(cpus=st.lists(st.integers(1, 4), min_size=1, max_size=3))
    def start(self, cpus: list[int]) -> None:
        self.cluster = FaultyCluster(cpus)

    @rule(cpu=st.integers(1, 3))
    def create_pod(self, cpu: int) -> None:
        self.cluster.create_pod(cpu)

    @rule(size=st.integers(2, 4), spare=st.integers(0, 1), cpu=st.integers(1, 2))
    def create_gang(self, size: int, spare: int, cpu: int) -> None:
        self.cluster.create_gang(size, spare, cpu)

    @precondition(lambda self: self.cluster.api.pods)
    @rule(choice=CHOICES, again=st.booleans())
    def delete_pod(self, choice: int, again: bool) -> None:
        self.cluster.delete_pod(choice, again)

    @precondition(lambda self: self.cluster.waiting_members)
    @rule(choice=CHOICES)
    def delete_waiting_member(self, choice: int) -> None:
        self.cluster.delete_waiting_member(choice)

    @precondition(lambda self: self.cluster.on_nodes)
    @rule(choice=CHOICES, phase=st.sampled_from(("Running", "Succeeded", "Failed")))
    def set_phase(self, choice: int, phase: str) -> None:
        self.cluster.set_phase(choice, phase)

    @precondition(lambda self: len(self.cluster.api.nodes) < 4)
    @rule(cpu=st.integers(1, 4))
    def add_node(self, cpu: int) -> None:
        self.cluster.add_node(cpu)

    @precondition(lambda self: self.cluster.api.unseen)
    @rule(choice=CHOICES, latest=st.booleans())
    def deliver(self, choice: int, latest: bool) -> None:
        self.cluster.deliver(choice, latest)

    @precondition(lambda self: self.cluster.core.leading)
    @rule(shown=st.booleans(), seconds=st.sampled_from(PAUSES))
    def cycle(self, shown: bool, seconds: float) -> None:
        if shown:
            self.cluster.deliver_all()
        self.cluster.check_gangs()
        self.cluster.cycle(seconds)

    @precondition(lambda self: self.cluster.unapplied)
    @rule(choice=CHOICES)
    def apply(self, choice: int) -> None:
        self.cluster.apply(choice)

    @rule(congested=st.booleans())
    def set_congested(self, congested: bool) -> None:
        self.cluster.set_congested(congested)

    @precondition(lambda self: self.cluster.sent)
    @rule(choice=CHOICES, fault=st.sampled_from(FAULTS))
    def answer(self, choice: int, fault: str) -> None:
        self.cluster.answer(choice, fault)

    @precondition(lambda self: self.cluster.asked)
    @rule(choice=CHOICES)
    def resolve(self, choice: int) -> None:
        self.cluster.resolve(choice)

    @precondition(lambda self: self.cluster.evicted)
    @rule(choice=CHOICES, carried_out=st.booleans(), again=st.booleans())
    def end_eviction(self, choice: int, carried_out: bool, again: bool) -> None:
        self.cluster.end_eviction(choice, carried_out, again)

    @precondition(lambda self: self.cluster.evicted)
    @rule(choice=CHOICES)
    def answer_eviction_falsely(self, choice: int) -> None:
        self.cluster.answer_eviction_falsely(choice)

    @rule(applied=st.booleans())
    def crash(self, applied: bool) -> None:
        self.cluster.crash(applied)

    @precondition(lambda self: self.cluster.core.leading)
    @rule()
    def lose_lease(self) -> None:
        self.cluster.lose_lease()

    @precondition(lambda self: not self.cluster.core.leading)
    @rule(choice=CHOICES)
    def other_leader_binds(self, choice: int) -> None:
        self.cluster.other_leader_binds(choice)

    @precondition(lambda self: not self.cluster.core.leading)
    @rule()
    def regain_lease(self) -> None:
        self.cluster.regain_lease()

    @invariant()
    def check(self) -> None:
        self.cluster.check()

    def teardown(self) -> None:
        if hasattr(self, "cluster"):
            self.cluster.finish()


LiveCoreMachine.TestCase.settings = settings(max_examples=100, stateful_step_count=30, deadline=None)
TestLiveCore = LiveCoreMachine.TestCase


@pytest.mark.parametrize("batch", range(BATCHES))
def test_random_histories_of_faults(batch: int) -> None:
    for seed in range(batch * BATCH, (batch + 1) * BATCH):
        try:
            random_history(seed).finish()
        except AssertionError as error:
            raise AssertionError(f"random_history({seed}).finish(): {error}") from error
