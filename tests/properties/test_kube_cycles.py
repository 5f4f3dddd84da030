"""Whole cycles of the kube-scheduler preset against a plain loop over the slow reference: one pod after the other.

Where the reference allows several nodes of equal standing, the first by name is taken, as the preset promises. Victims stay on
their nodes for the rest of the cycle, being deleted; promised nodes count for later pods.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from copy import deepcopy
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.parity.kube_cases import REGISTRY, cluster_of, pending
from tests.reference.cluster import Cluster, key_of, name_of, priority_of
from tests.reference.cycle import Filtering, totals
from tests.reference.preemption import post_filter
from tests.reference.status import fit_error
from tests.worlds.random_clusters import Maker

from navarch.engine.cycle import decide
from navarch.engine.policy import PluginOption, Policy, preset
from navarch.engine.policy.values import Profile
from navarch.model.spec import TaskSpec

POLICY = preset("kube-scheduler", REGISTRY.catalogue())
CLAIMS = "no new claims to deallocate"
Outcome = dict[str, Any]


def reference(case: dict[str, Any], waiting: list[dict[str, Any]]) -> Outcome:
    cluster = Cluster(case["nodes"], deepcopy(case["existingPods"]), case["objects"])
    cluster.nominated = [pod for pod in waiting if pod["status"].get("nominatedNodeName")]
    out: Outcome = {"binds": {}, "evictions": set(), "nominations": {}, "messages": {}}
    for pod in sorted(waiting, key=lambda p: (-priority_of(p), p["metadata"]["namespace"], name_of(p))):
        node = one_pod(cluster, pod, out)
        if node is not None:
            cluster.nominated = [p for p in cluster.nominated if key_of(p) != key_of(pod)]
            cluster.add({**pod, "spec": {**pod["spec"], "nodeName": node}}, node)
            out["binds"][key_of(pod)] = node
    return out


def one_pod(cluster: Cluster, pod: dict[str, Any], out: Outcome) -> str | None:
    filtering = Filtering(cluster, pod)
    statuses = filtering.all_nodes()
    nominated: str = pod["status"].get("nominatedNodeName", "")
    feasible = [name for name, status in statuses.items() if status.ok]
    if nominated in feasible:
        return nominated
    if feasible:
        if len(feasible) == 1:
            return feasible[0]
        try:
            scores = totals(cluster, pod, [cluster.nodes[name] for name in feasible])
        except ValueError:
            out["messages"][key_of(pod)] = "error"
            return None
        return max(feasible, key=lambda name: (scores[name], -feasible.index(name)))
    after = post_filter(cluster, pod, statuses)
    text, rejection = "", filtering.rejection
    if after.chosen:
        evict(cluster, pod, after.chosen[0], list(after.candidates[after.chosen[0]].victims), out)
    else:
        text = f"{CLAIMS}, {after.status.reasons[0]}"
        if "not eligible" not in text:
            cluster.nominated = [p for p in cluster.nominated if key_of(p) != key_of(pod)]
    rejected = ", ".join(rejection.reasons) if rejection is not None else ""
    out["messages"][key_of(pod)] = fit_error(len(cluster.nodes), statuses, pre_filter=rejected, post_filter=text)
    return None


def evict(cluster: Cluster, pod: dict[str, Any], node: str, victims: list[dict[str, Any]], out: Outcome) -> None:
    for victim in victims:
        if "deletionTimestamp" not in victim["metadata"]:
            out["evictions"].add(key_of(victim))
            victim["metadata"]["deletionTimestamp"] = "2026-01-03T00:00:00Z"
    there = [p for p in cluster.nominated if p["status"]["nominatedNodeName"] == node]
    lesser = [p for p in there if priority_of(p) < priority_of(pod)]
    for other in lesser:
        del other["status"]["nominatedNodeName"]
    gone = {key_of(p) for p in (*lesser, pod)}
    cluster.nominated = [p for p in cluster.nominated if key_of(p) not in gone]
    pod["status"]["nominatedNodeName"] = node
    cluster.nominated.append(pod)
    out["nominations"][key_of(pod)] = node


def product(case: dict[str, Any], waiting: list[dict[str, Any]], policy: Policy = POLICY) -> Outcome:
    tasks: list[TaskSpec] = [pending({"pod": pod}) for pod in waiting]
    record = decide(cluster_of(case, tasks).snapshot(), policy, REGISTRY, now=2e9)
    messages = {r.pod: r.message for job in record.jobs for r in job.refusals if r.reason in ("Unschedulable", "SchedulerError")}
    for key, text in messages.items():
        if text.startswith("running PreScore"):
            messages[key] = "error"
    return {
        "binds": {bind.pod: bind.node for bind in record.binds},
        "evictions": {eviction.pod for eviction in record.evictions},
        "nominations": {nomination.pod: nomination.node for nomination in record.nominations if nomination.evicting},
        "messages": messages,
    }


def cases(seed: int) -> tuple[Maker, dict[str, Any], list[dict[str, Any]]]:
    """A cluster and pods that wait."""
    maker = Maker(seed)
    case = maker.case()
    waiting = [case.pop("pod"), *(maker.pod(f"p{i}") for i in range(maker.random.randint(1, 3)))]
    if maker.chance(2):  # copies, so that runs of equal pods are placed in one step
        twin = deepcopy(waiting[-1])
        twin["metadata"] |= {"name": "twin", "uid": "uid-twin"}
        waiting.append(twin)
    if maker.chance(3):
        waiting[0]["status"]["nominatedNodeName"] = maker.pick(*(name_of(node) for node in case["nodes"]))
    for pod in waiting:
        if maker.chance(3):
            pod["spec"]["priority"] = 7
        if maker.chance(8):
            pod["spec"]["preemptionPolicy"] = "Never"
    return maker, case, waiting


@settings(max_examples=400, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.integers(0, 2**64 - 1))
def test_a_cycle_decides_what_the_reference_decides(seed: int) -> None:
    _, case, waiting = cases(seed)
    found = product(case, waiting)
    assert found == reference(case, deepcopy(waiting))


def profile(mark: str, plugins: Sequence[PluginOption]) -> Profile:
    """The preset's, with plugins of its own: each has an argument that no rule reads."""
    marked = (replace(option, arguments={**option.arguments, "mark": mark}) for option in plugins)
    return Profile(tuple(marked), POLICY.configurations["schedule"])


ONE, TWO, OTHER = profile("one", POLICY.plugins), profile("two", POLICY.plugins), profile("other", POLICY.plugins[:3])
ALIKE = dataclasses.replace(POLICY, tiers=(ONE.plugins,), profiles={"one": ONE, "two": TWO})
APART = dataclasses.replace(POLICY, tiers=(OTHER.plugins,), profiles={"other": OTHER, "two": TWO})


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.integers(0, 2**64 - 1))
def test_profiles_see_what_each_of_them_places(seed: int) -> None:
    """Two that want the same, for pods of one or the other: as if there were one. And one alone decides for its own pods."""
    maker, case, waiting = cases(seed)
    expected = reference(case, deepcopy(waiting))
    for pod in waiting:
        pod["spec"]["schedulerName"] = maker.pick("one", "two")
    assert product(case, waiting, ALIKE) == expected
    for pod in waiting:
        pod["spec"]["schedulerName"] = "two"
    assert product(case, waiting, APART) == expected
