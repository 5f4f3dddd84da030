"""The users of a claim when a cycle begins: pods that stand on a node with it, whatever else the cluster holds."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from tests.worlds.plugin_session import World

from navarch.model.status import ON_NODE, TaskStatus
from navarch.plugins.kai.dynamicresources import DynamicClaims

PODS = st.tuples(
    st.sampled_from([(), (("c", "one"),), (("c", "one"), ("d", "two"))]),
    st.sampled_from(["", "n1", "unknown"]),
    st.sampled_from([TaskStatus.PENDING, TaskStatus.BOUND, TaskStatus.RUNNING, TaskStatus.RELEASING, TaskStatus.SUCCEEDED]),
)


@given(st.lists(PODS, max_size=8), st.integers(0, 3))
def test_users_of_claims_are_the_pods_that_stand_somewhere(
    pods: list[tuple[tuple[tuple[str, str], ...], str, TaskStatus]], leave: int
) -> None:
    made = World().node("n1", cpu=99).queue("q").job("j")
    for claims, node, status in pods:
        made.pods("j", node=node, cpu=1, claims=claims, status=status)
    for number in range(leave):
        made.cluster.remove_task(f"j-{number}")
    session = made.session(DynamicClaims)
    (plugin,) = session.plugins
    assert isinstance(plugin, DynamicClaims)
    expected: dict[tuple[str, str], set[int]] = {}
    for row, spec in enumerate(session.snapshot.tasks.specs):
        if spec is not None and ON_NODE[session.status[row]]:
            for _, name in spec.shape.claims:
                expected.setdefault(("ns", name), set()).add(row)
    assert plugin.users == expected
