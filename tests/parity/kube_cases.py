"""A recorded case of kube-scheduler as a session of the product: its objects through the dialects, one plugin, one pod."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from msgspec.structs import replace
from tests.parity.recorded import Case

from navarch.actions.kube_scheduler.preemption import NO_VICTIMS, Candidate, NodeRefusal, PodPreemption
from navarch.apis.core.objects import from_manifest
from navarch.apis.core.pod_objects import Pod
from navarch.apis.dialect import Settings
from navarch.apis.registry import KEPT
from navarch.engine.node_functions import NodeFilter, NodeScorer, TaskClass
from navarch.engine.policy.compat import COMPAT
from navarch.engine.policy.values import PluginOption, Policy
from navarch.engine.session import Session
from navarch.ingest.pod_reader import PodReader
from navarch.installed import installed
from navarch.model.cluster import Cluster
from navarch.model.spec import JobSpec, QueueSpec, TaskSpec
from navarch.offline.inventory import Inventory
from navarch.offline.manifests import Document

REGISTRY = installed()
QUEUE = "default"
Status = dict[str, Any]


def cluster_of(case: Case, extra: Sequence[TaskSpec] = ()) -> Cluster:
    """Nodes, placed pods and objects. Every pod has a job, as it would with groups made in memory."""
    nodes = [{"apiVersion": "v1", "kind": "Node", **each} for each in case.get("nodes", ())]
    documents = [Document(each, "") for each in (*nodes, *case.get("objects", ())) if each["kind"] not in KEPT]
    inventory = Inventory(documents, Settings())
    assert not inventory.mistakes, inventory.mistakes
    cluster = inventory.cluster
    for each in case.get("objects", ()):
        if each["kind"] in KEPT:  # as they are: admission would fill in what some cases leave out on purpose
            cluster.put_object(each["kind"], each["metadata"].get("namespace", ""), each["metadata"]["name"], each)
    reader = PodReader(Settings())
    tasks = [reader.read(from_manifest(pod, Pod)) for pod in case.get("existingPods", ())]
    cluster.put_queue(QueueSpec(QUEUE, state="Open"))
    for task in (*tasks, *extra):
        assert task is not None
        alone = replace(task, job=f"job of {task.uid}")
        cluster.put_job(JobSpec(alone.job, QUEUE, namespace=task.namespace, name=task.name, priority=task.pod_priority))
        cluster.put_task(alone)
    return cluster


def pending(case: Case) -> TaskSpec:
    """The pod in question. One that names its node still waits here."""
    manifest = case["pod"]
    name = manifest["spec"].get("nodeName")
    if name:
        manifest = {**manifest, "spec": {k: v for k, v in manifest["spec"].items() if k != "nodeName"}}
    task = PodReader(Settings()).read(from_manifest(manifest, Pod))
    assert task is not None
    return replace(task, shape=replace(task.shape, node_name=name)) if name else task


def policy_of(plugins: Mapping[str, Mapping[str, Any]]) -> Policy:
    options = tuple(PluginOption(name, arguments=dict(args)) for name, args in plugins.items())
    semantics = COMPAT["kube-scheduler"]
    return Policy(actions=("schedule",), tiers=(options,), compat="kube-scheduler", semantics=semantics, evictions="delete")


def session_of(case: Case, plugins: Mapping[str, Mapping[str, Any]], waiting: Sequence[dict[str, Any]] = ()) -> tuple[Session, int]:
    """The session and the row of the pod in question; `waiting` pods are pending too."""
    task = pending(case)
    cluster = cluster_of(case, (task, *(pending({"pod": pod}) for pod in waiting)))
    session = Session(cluster.snapshot(), policy_of(plugins), REGISTRY, now=2e9)
    return session, cluster.tasks.rows.of[task.uid]


def statuses(session: Session, rule: NodeFilter, task: TaskClass) -> dict[str, Status]:
    """What one filter says of each node, as the recordings write it."""
    found: dict[str, Status] = {name: {"code": "Success", "reasons": []} for name in session.nodes.names}
    if not rule.applies(task):
        return found
    passes = rule.mask(task, session.nodes)
    rows = np.arange(len(session.nodes))
    assert (rule.mask(task, session.nodes.at(rows)) == passes).all()
    for refusal in rule.explain(task, session.nodes):
        for row in np.flatnonzero(refusal.refused).tolist():
            status = found[session.nodes.names[row]]
            status["reasons"] = sorted([*status["reasons"], refusal.message])
            hopeless = np.broadcast_to(refusal.unresolvable, refusal.refused.shape)[row]
            if hopeless or status["code"] == "Success":
                status["code"] = "UnschedulableAndUnresolvable" if hopeless else "Unschedulable"
    assert passes.tolist() == [found[name]["code"] == "Success" for name in session.nodes.names]
    return found


def scores(session: Session, scorer: NodeScorer, task: TaskClass, candidates: Sequence[str]) -> tuple[dict[str, int], dict[str, int]]:
    """(raw, final) of the candidates."""
    names = session.nodes.names
    group = np.array([name in set(candidates) for name in names], dtype=bool)
    if not scorer.applies(task):
        return dict.fromkeys(candidates, 0), dict.fromkeys(candidates, 0)
    scorer.prepare(task, group)
    raw = scorer.raw(task, session.nodes)
    final = raw
    if scorer.normalises:
        inside = raw[group]
        final = scorer.normalise(task, raw, float(inside.min()), float(inside.max()))
    rows = [names.index(name) for name in candidates]
    return _whole(candidates, raw[rows]), _whole(candidates, final[rows])


def _whole(names: Sequence[str], values: np.ndarray[Any, Any]) -> dict[str, int]:
    assert (values == np.trunc(values)).all()
    return {name: int(value) for name, value in zip(names, values.tolist(), strict=True)}


def check_search(preemption: PodPreemption, row: int, one_by_one: dict[int, Candidate | NodeRefusal]) -> None:
    """The search over all nodes together, where it applies, finds what a dry run on each node found."""
    if not preemption.applies_at_once(row):
        return
    searched = preemption.all_at_once(row, list(one_by_one))
    for number, node in enumerate(searched.nodes.tolist()):
        found = one_by_one[node]
        if not searched.fits[number]:
            assert isinstance(found, NodeRefusal)
            assert sorted(found.texts) == sorted(text for text, refused in searched.texts if refused[number])
        elif isinstance(found, Candidate):
            assert found.victims == searched.victims_on(number)
        else:
            assert found.error and node in searched.unneeded()
    assert {one_by_one[node] for node in searched.empty.tolist()} <= {NodeRefusal((NO_VICTIMS,))}
    candidates = searched.candidates()
    if len(candidates):
        every = [each for node in searched.nodes.tolist() if isinstance(each := one_by_one[node], Candidate)]
        assert searched.nodes[searched.best(candidates)] == min(every, key=lambda c: (*preemption.cost(c), c.node)).node
