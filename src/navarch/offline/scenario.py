"""A recorded cycle as a scenario in the form of tests/scenarios: a regression test made from what happened.

Kept are nodes, queues, priority classes, jobs with their pods, the policy, and what was decided. Times become an order: what came
first comes first. Expected durations become the time that is left. What the form has no words for (volumes, affinity between pods,
shared devices ...) is left out, and said so. With `anonymous`, names of nodes, queues, classes, jobs, and values of labels and
taints are replaced, and only labels that pods select nodes by are kept. A value that is the name of a resource stays: reasons name
resources too.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from typing import Any

import msgspec

from navarch.engine.policy import PRESETS
from navarch.ingest.expected_duration import EXPECTED_DURATION
from navarch.model.resources import format_amount
from navarch.model.spec import NodeSpec, QueueSpec, Requests, Shape, TaskSpec
from navarch.model.status import ON_NODE
from navarch.offline.replay import JobLine, Recording

GPU = "nvidia.com/gpu"
GROUP_NAME = "scheduling.k8s.io/group-name"
HOSTNAME = "kubernetes.io/hostname"
_AMOUNTS = {"cpu": "cpu", "memory": "memory", GPU: "gpu"}
_DEFAULTED = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
"""Tolerations that admission adds to every pod."""


class Names:
    """Names as they were, or others in their place."""

    def __init__(self, anonymous: bool, resources: Collection[str]) -> None:
        self._anonymous = anonymous
        self._resources = resources
        self._given: dict[tuple[str, str], str] = {}
        self._counts: Counter[str] = Counter()

    def of(self, kind: str, name: str) -> str:
        if not self._anonymous or not name or name in ("default", "root"):
            return name
        if kind == "value" and name in self._resources:
            return name
        found = self._given.get((kind, name))
        if found is None:
            self._counts[kind] += 1
            found = self._given[kind, name] = f"{kind}-{self._counts[kind]}"
        return found

    def in_text(self, text: str) -> str:
        """A text in which values of labels and taints stand."""
        values = [(name, given) for (kind, name), given in self._given.items() if kind == "value"]
        for name, given in sorted(values, key=lambda each: -len(each[0])):
            text = re.sub(rf"(?<![\w./-]){re.escape(name)}(?![\w./-])", given, text)
        return text


def to_scenario(recording: Recording, name: str, *, anonymous: bool = False) -> tuple[dict[str, Any], list[str]]:
    """The scenario, and what of the recording it lacks."""
    amounts = [node.allocatable for node in recording.nodes] + [shape.requests for shape in recording.shapes]
    resources = {resource for each in amounts for resource, _ in each}
    return _Scenario(recording, Names(anonymous, resources), anonymous).build(name)


class _Scenario:
    def __init__(self, recording: Recording, names: Names, anonymous: bool) -> None:
        self.recording = recording
        self.names = names
        self.anonymous = anonymous
        self.notes: dict[str, None] = {}
        self.shapes = {line.row: recording.shapes[line.shape] for line in recording.tasks}
        self.tasks = {line.row: line.spec for line in recording.tasks}
        self.pods: dict[str, str] = {}
        """Pod as recorded (namespace/name) -> its name in the scenario."""
        self.job_names: dict[str, str] = {}
        self.objects: list[dict[str, Any]] = []
        self.selected = {key for shape in recording.shapes for key, _ in shape.node_selector}

    def build(self, name: str) -> tuple[dict[str, Any], list[str]]:
        recording = self.recording
        lines = [line for line in recording.jobs if line.spec is not None]
        lines.sort(key=lambda line: (line.spec.created if line.spec else 0.0, line.key))
        queues = [queue for queue in recording.queues if queue.dialect != "implied"]
        scenario: dict[str, Any] = {
            "name": name,
            "policy": self._policy(),
            "nodes": {self.names.of("node", node.name): self._node(node) for node in recording.nodes},
            "queues": {self.names.of("queue", queue.name): self._queue(queue) for queue in queues},
            "classes": {self.names.of("class", each.name): each.value for each in recording.priority_classes},
            "jobs": dict(self._job(line) for line in lines),
        }
        self._alone()
        scenario["objects"] = self.objects
        scenario["cycles"] = [self._decided()]
        return {key: value for key, value in scenario.items() if value or key == "cycles"}, list(self.notes)

    def _policy(self) -> Any:
        if self.recording.policy_name in PRESETS:
            return self.recording.policy_name
        document = dict(self.recording.policy)
        tiers = document.pop("tiers", None)
        if not isinstance(tiers, list):
            return document
        return {**document, "tiers": [[_plugin(each) for each in tier.get("plugins", ())] for tier in tiers]}

    def _node(self, node: NodeSpec) -> dict[str, Any]:
        out = {**_amounts(node.allocatable), "pods": dict(node.allocatable).get("pods", 0)}
        labels = {key: value for key, value in node.labels.items() if key != HOSTNAME and (not self.anonymous or key in self.selected)}
        if labels:
            out["labels"] = {key: self.names.of("value", value) for key, value in labels.items()}
        if node.taints:
            out["taints"] = [self._with_value(msgspec.to_builtins(taint)) for taint in node.taints]
        if node.unschedulable or not node.ready:
            out["unschedulable"] = True
            if not node.ready:
                self._note("nodes that were not ready are unschedulable")
        return out

    def _queue(self, queue: QueueSpec) -> dict[str, Any]:
        out: dict[str, Any] = {"weight": queue.weight}
        for key, amounts in (("capability", queue.capability), ("deserved", queue.deserved)):
            if amounts is not None:
                out[key] = {name: format_amount(name, amount) for name, amount in amounts}
        if queue.guarantee is not None:
            out["guarantee"] = {"resource": {name: format_amount(name, amount) for name, amount in queue.guarantee}}
        if queue.parent:
            out["parent"] = self.names.of("queue", queue.parent)
        if not queue.reclaimable:
            out["reclaimable"] = False
        if queue.shares:
            self._note("shares of KAI queues are left out")
        return out

    def _job(self, line: JobLine) -> tuple[str, dict[str, Any]]:
        spec = line.spec
        assert spec is not None
        name = self._unique(self.names.of("job", line.key) if self.anonymous else line.key.rpartition("/")[2])
        self.job_names[line.key] = name
        rows = sorted(line.tasks, key=lambda row: (not self._runs(self.tasks[row]), self.tasks[row].name))
        kinds: dict[Any, list[int]] = {}
        for row in rows:
            kinds.setdefault(self._kind(self.shapes[row]), []).append(row)
        first, *others = kinds.values() if kinds else [[]]
        out: dict[str, Any] = {"pods": len(first), "min": spec.min_member, "queue": self.names.of("queue", spec.queue)}
        if spec.priority_class:
            out["class"] = self.names.of("class", spec.priority_class)
        if first:
            shape = self.shapes[first[0]]
            out.update(_amounts(shape.requests))
            pod = self._pod_spec(shape)
            if pod:
                out["spec"] = pod
        runs = [self.names.of("node", self.tasks[row].node) for row in first if self._runs(self.tasks[row])]
        if runs:
            out["runs"] = runs
        if spec.expected_duration is not None:
            out["annotations"] = {EXPECTED_DURATION: f"{self._time_left(spec.expected_duration, rows):g}s"}
        if spec.topology is not None or spec.sub_groups:
            self._note("sub-groups and topology of jobs are left out")
        for number, row in enumerate([row for kind in (first, *others) for row in kind]):
            task, pod_name = self.tasks[row], f"{name}-worker-{number}"
            self.pods[task.key] = pod_name
            if number >= len(first):
                self.objects.append(self._pod(pod_name, name, row))
        return name, out

    def _time_left(self, expected: float, rows: Iterable[int]) -> float:
        """Seconds that a job with these pods still runs, if it runs as long as expected. A scenario has no times of starts."""
        starts = [start for row in rows if (start := self.tasks[row].started) is not None]
        return max(round(expected - (self.recording.now - min(starts)), 3), 1.0) if starts else expected

    def _alone(self) -> None:
        """Pods that only occupy their nodes."""
        for row, task in self.tasks.items():
            if task.key not in self.pods and self._runs(task):
                self.objects.append(self._pod(f"occupant-{len(self.objects)}", "", row))

    def _pod(self, name: str, group: str, row: int) -> dict[str, Any]:
        task, shape = self.tasks[row], self.shapes[row]
        resources = {"requests": {key: format_amount(key, amount) for key, amount in shape.requests}}
        spec: dict[str, Any] = {"containers": [{"name": "main", "image": "busybox", "resources": resources}], **self._pod_spec(shape)}
        status = {"phase": "Pending"}
        if self._runs(task):
            spec["nodeName"], status = self.names.of("node", task.node), {"phase": "Running"}
        metadata: dict[str, Any] = {"name": name, "namespace": "default", "uid": name}
        if group:
            metadata["annotations"] = {GROUP_NAME: group}
        return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec, "status": status}

    def _pod_spec(self, shape: Shape) -> dict[str, Any]:
        out: dict[str, Any] = {}
        if shape.node_selector:
            out["nodeSelector"] = {key: self.names.of("value", value) for key, value in shape.node_selector}
        tolerations = [self._with_value(msgspec.to_builtins(each)) for each in shape.tolerations if each.key not in _DEFAULTED]
        if tolerations:
            out["tolerations"] = tolerations
        absent = {
            "node affinity": shape.node_affinity,
            "affinity between pods": shape.pod_affinity,
            "spread constraints": shape.spread,
            "volumes": shape.volumes,
            "device claims": shape.claims,
            "shared devices": shape.devices,
            "host ports": shape.ports,
        }
        for what, found in absent.items():
            if found:
                self._note(f"{what} of pods are left out")
        return out

    def _with_value(self, taint: dict[str, Any]) -> dict[str, Any]:
        """A taint or toleration; its value is a name."""
        return {**taint, "value": self.names.of("value", taint["value"])} if taint.get("value") else taint

    def _kind(self, shape: Shape) -> Any:
        return shape.requests, shape.node_selector, tuple(each for each in shape.tolerations if each.key not in _DEFAULTED)

    def _runs(self, task: TaskSpec) -> bool:
        return bool(task.node) and bool(ON_NODE[task.status])

    def _decided(self) -> dict[str, Any]:
        decided = msgspec.json.decode(bytes(self.recording.decisions))
        counts = {
            name: self._counts(each["job"] for each in decided[listed])
            for name, listed in (("bound", "binds"), ("evicted", "evictions"), ("promised", "nominations"))
        }
        places = {self.pods[each["pod"]]: self.names.of("node", each["node"]) for each in decided["binds"] if each["pod"] in self.pods}
        names = {name for key in self.job_names for name in (key, key.rpartition("/")[2])}
        waits = {}
        for job in decided["jobs"]:
            # A text that names a job, as of a promise, has a time in it too, and another moment has another time.
            texts = [self.names.in_text(text) for reason in job["reasons"] for text in reason["nodes"] if not _has_word(text, names)]
            if texts and job["job"] in self.job_names:
                waits[self.job_names[job["job"]]] = texts[0]
        return {key: value for key, value in {**counts, "places": places, "waits": waits}.items() if value}

    def _counts(self, jobs: Iterable[str]) -> dict[str, int]:
        return dict(Counter(self.job_names[key] for key in jobs if key in self.job_names))

    def _unique(self, name: str) -> str:
        taken = set(self.job_names.values())
        number, out = 2, name
        while out in taken:
            out, number = f"{name}-{number}", number + 1
        return out

    def _note(self, text: str) -> None:
        self.notes[text] = None


def _has_word(text: str, words: Collection[str]) -> bool:
    """Whether one of the words is in the text, and is no part of a longer name there."""
    return any(found.rstrip(".") in words for found in re.findall(r"[\w./-]+", text))


def _amounts(requests: Requests) -> dict[str, Any]:
    return {_AMOUNTS[name]: format_amount(name, amount) for name, amount in requests if name in _AMOUNTS and amount}


def _plugin(entry: Any) -> Any:
    if not isinstance(entry, Mapping):
        return entry
    arguments = entry.get("arguments")
    said = {key: value for key, value in entry.items() if key not in ("name", "arguments")}
    said.update(arguments if isinstance(arguments, Mapping) else {})
    return {entry["name"]: said} if said else entry["name"]
