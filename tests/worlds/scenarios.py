"""Scenarios: a small cluster in readable YAML, what each cycle must decide, and then five cycles in which nothing may change.

A file is a list of scenarios. Of each:

    name:     a sentence
    policy:   a preset's name, or {actions: "...", plugins: [name or {name: arguments}], ...} (strict mode), `tiers` instead of
              `plugins` being several such lists; default: navarch
    api:      version of the PodGroups' and Queues' API; default: Volcano's. Those of coscheduling and Kubernetes have no queues
    nodes:    {name: {cpu, memory, pods, gpu, labels, taints, unschedulable, annotations, has: {further resource: amount}}}
    queues:   {name: spec of a Volcano Queue}
    classes:  {priority class: value}
    jobs:     {name: {pods, min, cpu, memory, gpu, queue, class, runs: [nodes it runs on], spec: {...pod spec}, group: {...},
              annotations: {of the group}, pod_annotations, asks: {further resource: amount}, guaranteed: true (limits as requests),
              roles: [role of each pod]}}
    objects:  further manifests, as they are
    metrics:  {node: {cpu: percent, memory: percent, age: seconds}}: the load of nodes as the average of ten minutes
    extender: {verb: answers}: a server that answers so (`extender_server`); its URL stands for EXTENDER_URL in the policy
    asked:    verbs that the extender must hear, in this order
    cycles:   one entry a cycle: {bound, evicted, promised: {job: how many}, places: {pod: node}, waits: {job: text in a reason},
              cpus: {pod: ids}, annotated: {pod: annotations that its binding brings}}

Jobs become PodGroups with pods `job-worker-0 ...` in namespace `default`. What an entry does not name is not looked at, but for
bound, evicted and promised: a job that is absent there must have none.
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import yaml
from tests.worlds.extender_server import extender

import navarch

CALM = 5
VOLCANO = "scheduling.volcano.sh/v1beta1"
COSCHEDULING = "scheduling.x-k8s.io/v1alpha1"
UPSTREAM = "scheduling.k8s.io/"


LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
FOLDER = Path(__file__).parents[1] / "scenarios"
"""The YAML files of all scenarios."""


def scenarios() -> list[tuple[str, dict[str, Any]]]:
    out: list[tuple[str, dict[str, Any]]] = []
    for path in sorted(FOLDER.glob("*.yaml")):
        found = yaml.load(path.read_text(encoding="utf-8"), LOADER)
        out += [(f"{path.stem}: {scenario['name']}", scenario) for scenario in found]
    return out


def check(scenario: dict[str, Any]) -> list[str]:
    """Everything that went otherwise, as sentences."""
    if "extender" not in scenario:
        return _check(scenario, policy_of(scenario))
    with extender(scenario["extender"]) as seen:
        policy = json.loads(json.dumps(policy_of(scenario)).replace("EXTENDER_URL", seen.url))
        for plugin in (plugin for tier in policy["tiers"] for plugin in tier["plugins"] if plugin["name"] == "extender"):
            plugin["arguments"].setdefault("extender.httpTimeout", "60s")  # a busy machine is no slow extender
        problems = _check(scenario, policy)
    heard = list(dict.fromkeys(seen.verbs()))
    wanted = scenario.get("asked", heard)
    return problems if [verb for verb in heard if verb in wanted] == wanted else [*problems, f"asked {heard}, expected {wanted}"]


def _check(scenario: dict[str, Any], policy: str | dict[str, Any]) -> list[str]:
    wanted = scenario["cycles"]
    now, metrics = scenario.get("now", 1000.0), metrics_of(scenario)
    plan = navarch.plan(manifests(scenario), policy=policy, cycles=len(wanted) + CALM, now=now, metrics=metrics)
    cycles = plan.to_dict()["cycles"]
    problems = []
    for number, (entry, cycle) in enumerate(zip(wanted, cycles), start=1):
        problems += [f"cycle {number}: {problem}" for problem in _compare(entry or {}, cycle)]
    for cycle in cycles[len(wanted) :]:
        for key in ("binds", "evictions"):
            if cycle[key]:
                problems.append(f"cycle {cycle['cycle']}: not calm, {key}: {cycle[key]}")
    settled = [cycle["nominations"] for cycle in cycles[len(wanted) :]]
    if any(promises != settled[0] for promises in settled):
        problems.append(f"promises go on changing: {settled}")
    return problems


def _compare(entry: dict[str, Any], cycle: dict[str, Any]) -> list[str]:
    problems = []
    for key, listed in (("bound", "binds"), ("evicted", "evictions"), ("promised", "nominations")):
        found = Counter(_job(each["pod"]) for each in cycle[listed])
        if found != Counter(entry.get(key, {})):
            problems.append(f"{key} {dict(found)}, expected {entry.get(key, {})}")
    placed = {each["pod"].removeprefix("default/"): each["node"] for each in (*cycle["binds"], *cycle["nominations"])}
    for pod, node in entry.get("places", {}).items():
        if placed.get(pod) != node:
            problems.append(f"{pod} went to {placed.get(pod)}, expected {node}")
    for key, field in (("cpus", "cpus"), ("annotated", "annotations")):
        found_here = {each["pod"].removeprefix("default/"): each.get(field) for each in cycle["binds"]}
        for pod, wanted in entry.get(key, {}).items():
            if found_here.get(pod) != wanted:
                problems.append(f"{key} of {pod}: {found_here.get(pod)}, expected {wanted}")
    jobs = {each["job"].removeprefix("default/"): each for each in cycle["jobs"]}
    for job, text in entry.get("waits", {}).items():
        reasons = [reason["message"] for reason in jobs[job]["reasons"]]
        if not any(text in message for message in reasons):
            problems.append(f"{job} waits because of {reasons}, expected {text!r}")
    for job, phase in entry.get("phase", {}).items():
        if jobs[job]["phase"] != phase:
            problems.append(f"{job} is {jobs[job]['phase']}, expected {phase}")
    return problems


def _job(pod: str) -> str:
    return pod.removeprefix("default/").rpartition("-worker-")[0] or pod.removeprefix("default/")


def metrics_of(scenario: dict[str, Any]) -> dict[str, Any]:
    return {
        node: {"cpu": {"10m": load.get("cpu", 0)}, "memory": {"10m": load.get("memory", 0)}, "ageSeconds": load.get("age", 0)}
        for node, load in scenario.get("metrics", {}).items()
    }


def policy_of(scenario: dict[str, Any]) -> str | dict[str, Any]:
    given: str | dict[str, Any] = scenario.get("policy", "navarch")
    if isinstance(given, str):
        return given
    rest = {key: value for key, value in given.items() if key not in ("plugins", "tiers")}
    if isinstance(given.get("plugins"), str):  # the flat map of the first releases of kube-batch
        return given
    tiers = given["tiers"] if "tiers" in given else [given["plugins"]]
    return {**rest, "tiers": [{"plugins": [_plugin(each) for each in tier]} for tier in tiers]}


def _plugin(given: str | dict[str, Any]) -> dict[str, Any]:
    if isinstance(given, str):
        return {"name": given}
    ((name, arguments),) = given.items()
    flags = {key: value for key, value in arguments.items() if key.startswith("enable")}
    plain = {key: value for key, value in arguments.items() if key not in flags}
    return {"name": name, **flags, "arguments": plain}


def manifests(scenario: dict[str, Any]) -> list[dict[str, Any]]:
    out: list[dict[str, Any]] = []
    api = scenario.get("api", VOLCANO)
    for name, node in scenario.get("nodes", {}).items():
        out.append(_node(name, node or {}))
    for number, (name, spec) in enumerate(scenario.get("queues", {}).items()):
        spec = dict(spec or {})
        metadata = {"name": name, "annotations": spec.pop("annotations", {}), "creationTimestamp": _moment(number)}
        out.append({"apiVersion": api, "kind": "Queue", "metadata": metadata, "spec": {"weight": 1, **spec}})
    for name, value in scenario.get("classes", {}).items():
        out.append({"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name}, "value": value})
    for number, (name, job) in enumerate(scenario.get("jobs", {}).items()):
        out += _job_objects(api, name, job, _moment(100 + number))
    out += scenario.get("objects", [])
    return out


def _moment(second: int) -> str:
    return f"1970-01-01T00:{second // 60:02d}:{second % 60:02d}Z"


def _node(name: str, node: dict[str, Any]) -> dict[str, Any]:
    amounts = {"cpu": str(node.get("cpu", 8)), "memory": node.get("memory", "32Gi"), "pods": str(node.get("pods", 110))}
    if "gpu" in node:
        amounts["nvidia.com/gpu"] = str(node["gpu"])
    amounts.update({key: str(value) for key, value in node.get("has", {}).items()})
    labels = {"kubernetes.io/hostname": name, **node.get("labels", {})}
    spec = {key: node[key] for key in ("taints", "unschedulable") if key in node}
    status = {"allocatable": amounts, "capacity": amounts, "conditions": [{"type": "Ready", "status": "True"}]}
    metadata = {"name": name, "labels": labels, "annotations": node.get("annotations", {})}
    return {"apiVersion": "v1", "kind": "Node", "metadata": metadata, "spec": spec, "status": status}


def _job_objects(api: str, name: str, job: dict[str, Any], created: str) -> list[dict[str, Any]]:
    where = job.get("runs", [])
    count = job.get("pods", len(where) or 1)
    group = {**_group(api, job.get("min", count), job), **job.get("group", {})}
    metadata = {"name": name, "namespace": "default", "creationTimestamp": created, "annotations": job.get("annotations", {})}
    status = {"phase": job.get("phase", "Running" if where else "Pending")}
    out: list[dict[str, Any]] = [{"apiVersion": api, "kind": "PodGroup", "metadata": metadata, "spec": group, "status": status}]
    nodes = [*where, *[""] * count][:count]
    return out + [_pod(api, name, job, number, node, created) for number, node in enumerate(nodes)]


def _group(api: str, least: int, job: dict[str, Any]) -> dict[str, Any]:
    if api == COSCHEDULING:
        return {"minMember": least}
    named = {"priorityClassName": job["class"]} if "class" in job else {}
    if api.startswith(UPSTREAM):
        return {"schedulingPolicy": {"gang": {"minCount": least}}, **named}
    return {"minMember": least, "queue": job.get("queue", "default"), **named}


def _pod(api: str, name: str, job: dict[str, Any], number: int, node: str, created: str) -> dict[str, Any]:
    requests: dict[str, str] = {key: str(job[key]) for key in ("cpu", "memory") if key in job}
    if "gpu" in job:
        requests["nvidia.com/gpu"] = str(job["gpu"])
    requests.update({key: str(value) for key, value in job.get("asks", {}).items()})
    annotations = dict(job.get("pod_annotations", {}))
    if "roles" in job:
        annotations["volcano.sh/task-spec"] = job["roles"][number]
    labels = {"job": name, **job.get("labels", {})}
    limits = {k: v for k, v in requests.items() if job.get("guaranteed") or k == "nvidia.com/gpu" or k in job.get("asks", {})}
    resources = {"requests": requests, "limits": limits}
    spec: dict[str, Any] = {"containers": [{"name": "main", "image": "busybox", "resources": resources}], **job.get("spec", {})}
    if api == COSCHEDULING:
        labels["scheduling.x-k8s.io/pod-group"] = name
    elif api.startswith(UPSTREAM):
        spec["schedulingGroup"] = {"podGroupName": name}
    else:
        annotations = {"scheduling.k8s.io/group-name": name, **annotations}
    if "class" in job:
        spec["priorityClassName"] = job["class"]
    status: dict[str, Any] = {"phase": "Pending"}
    if node:
        spec["nodeName"] = node
        since = {"type": "PodScheduled", "status": "True", "lastTransitionTime": created}
        status = {"phase": "Running", "startTime": created, "conditions": [since]}
    pod = f"{name}-worker-{number}"
    metadata = {
        "name": pod, "namespace": "default", "uid": pod, "creationTimestamp": created,
        "annotations": annotations, "labels": labels,
    }  # fmt: skip
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec, "status": status}
