"""Trials end in time, and what they share is as it was afterwards."""

from __future__ import annotations

from itertools import count

import pytest

from navarch.engine.cycle import decide
from navarch.engine.record import JobDecision
from navarch.engine.session import CycleStopped
from navarch.explanation.explain import Reading, reading
from navarch.explanation.shared_run import SharedRuns
from navarch.explanation.subject import Census
from navarch.explanation.trials import Spent, Trials, tally_of
from navarch.testing.builders import node, pod, pod_group

NOW = 1767258000.0
KEY = "default/small"


def read() -> Reading:
    objects = [node("n").cpu("4"), pod_group("small", 1), pod_group("large", 1)]
    objects += [pod("small-0").cpu("1").in_group("small"), pod("large-0").cpu("8").in_group("large")]
    return reading(objects, "navarch", NOW)


def trials(found: Reading, seconds: float, *, shared: bool) -> Trials:
    """The clock goes on by one second each time that it is read."""
    ticks = count()
    census = Census(found.given, found.run)
    runs = SharedRuns(found.given, census, found.run) if shared else None
    return Trials(found.given, found.rules, lambda _: KEY, 10, seconds, clock=lambda: float(next(ticks)), shared=runs, key=KEY)


@pytest.mark.parametrize("shared", [True, False])
def test_a_trial_that_takes_too_much_of_the_time_is_given_up(shared: bool) -> None:
    found = read()
    assert trials(found, 1000.0, shared=shared).starts((), ["Pod/default/large-0"])
    with pytest.raises(Spent):
        trials(found, 5.0, shared=shared).starts((), ["Pod/default/large-0"])
    assert trials(found, 1000.0, shared=shared).starts(), "the pod that was taken out is back, and nothing else changed"
    assert found.run.cluster.task("default/large-0") is not None


def test_the_input_as_it_is_is_decided_however_long_that_takes() -> None:
    found = trials(read(), 3.0, shared=True)
    base = found.run(keep=True)
    assert base is not None and base.starts


def test_a_cycle_that_is_stopped_decides_nothing() -> None:
    found = read()
    rules, cluster = found.rules, found.run.cluster
    for most in (0, 1):
        attempts = count()
        with pytest.raises(CycleStopped):
            decide(
                cluster.snapshot(),
                rules.policy,
                rules.registry,
                NOW,
                proceed=lambda: next(attempts) < most,  # noqa: B023
            )
    assert [bind.pod for bind in decide(cluster.snapshot(), rules.policy, rules.registry, NOW).binds] == ["default/small-0"]


def test_a_shared_run_leaves_the_model_as_it_was() -> None:
    """Cycles of a trial move pods, end promises and give devices to claims. The next trial begins as the first did."""
    slices = {
        "driver": "d",
        "pool": {"name": "n", "generation": 1, "resourceSliceCount": 1},
        "nodeName": "n",
        "devices": [{"name": "x"}],
    }
    devices = {"requests": [{"name": "r", "exactly": {"deviceClassName": "card", "count": 1}}]}
    api = "resource.k8s.io/v1"
    promised, claiming = dict(pod("promised").cpu(64)), dict(pod("claiming").cpu(1))
    promised["status"]["nominatedNodeName"] = "n"
    claiming["spec"]["resourceClaims"] = [{"name": "c", "resourceClaimName": "c"}]
    objects = [
        node("n").cpu(8),
        {"apiVersion": api, "kind": "DeviceClass", "metadata": {"name": "card"}, "spec": {}},
        {"apiVersion": api, "kind": "ResourceSlice", "metadata": {"name": "n-d"}, "spec": slices},
        {"apiVersion": api, "kind": "ResourceClaim", "metadata": {"name": "c", "namespace": "default"}, "spec": {"devices": devices}},
        promised,
        claiming,
    ]
    found = reading(objects, None, 0.0)
    census = Census(found.given, found.run)
    cluster = found.run.cluster

    def facts() -> tuple[object, ...]:
        claims = dict(cluster.objects.get("ResourceClaim", {}))
        return list(cluster.tasks.specs), list(cluster.jobs.specs), claims, cluster.nodes.used.tolist()

    before = facts()
    run = SharedRuns(found.given, census, found.run).run((), (), "default/pod/promised")
    assert run is not None
    assert [bind.pod for bind in run.decide().binds] == ["default/claiming"]
    run.decide()
    assert facts() != before, "the claim has its device, and the promise has ended"
    run.close()
    assert facts() == before


def test_a_pod_that_is_allocated_and_not_bound_has_not_started() -> None:
    """Volcano's backfill allocates a pod without requests on a node whose pod slots were all taken when the cycle opened, and binds it
    in a later cycle."""
    assert not tally_of(JobDecision("ns/j", "q", "Inqueue", 1, {"Allocated": 1})).started
    assert tally_of(JobDecision("ns/j", "q", "Inqueue", 1, {"Binding": 1})).started
