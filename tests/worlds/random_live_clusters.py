"""Random clusters that a real API server takes: those of `Maker` made valid, with budgets, gates of priority, containers of every
kind, and several pods that come one after the other."""

from __future__ import annotations

from typing import Any

from tests.worlds.random_clusters import Maker

Object = dict[str, Any]
CLASSES = {(5, ""): "five", (10, ""): "ten", (10, "Never"): "ten-never", (0, "Never"): "zero-never"}
"""(priority, preemption policy) -> its class: the API server takes neither without one."""


class LiveMaker(Maker):
    def live_case(self, pods: int = 3) -> Object:
        """`pods` come one after the other; all else is there before."""
        case = self.case()
        names = [each["metadata"]["name"] for each in case["nodes"]]
        case["existingPods"] += [self.pod(f"f{number}", self.pick(*names)) for number in range(self.random.randint(0, 5))]
        case["pods"] = [case.pop("pod"), *(self.pod(f"p{number}") for number in range(1, pods))]
        case["objects"] = [each for each in case["objects"] if each["kind"] == "Service"]
        case["budgets"] = [self.budget(f"b{number}") for number in range(self.random.choice((0, 0, 1, 2)))]
        return case

    def pod(self, name: str, node: str | None = None) -> Object:
        made = super().pod(name, node)
        spec = made["spec"]
        if node is None:
            spec["priority"] = self.pick(5, 10, 10)
        for key in ("affinity", "nodeSelector", "topologySpreadConstraints") if self.chance(2) else ():
            spec.pop(key, None)  # a pod that is held back by less may preempt
        if self.chance(6):
            spec["preemptionPolicy"] = "Never"
        if self.chance(5):
            spec["initContainers"] = self.some(self.init_container, 1, 2)
            for number, container in enumerate(spec["initContainers"]):
                container["name"] = f"i{number}"
        if self.chance(8):
            amounts = {"cpu": self.pick("2", "3"), "memory": "3Gi"}
            spec["resources"] = {"requests": {name: amounts[name] for name in self.subset(("cpu", "memory"), 1)}}
        return acceptable(made)

    def init_container(self) -> Object:
        made: Object = {"image": "web", "resources": {"requests": {self.pick("cpu", "example.com/gpu"): self.pick("1", "2")}}}
        if self.chance(2):
            made["restartPolicy"] = "Always"
        return made

    def pod_term(self) -> Object:
        term = super().pod_term()
        if self.chance(5) and "labelSelector" in term:
            free = [key for key in ("app", "tier") if key not in _named(term["labelSelector"])]
            if free:
                term[self.pick("matchLabelKeys", "mismatchLabelKeys")] = free[:1]
        return term

    def budget(self, name: str) -> Object:
        selector = self.pick({}, {"matchLabels": self.labels()}, {"matchExpressions": [self.expression()]})
        metadata = {"name": name, "namespace": self.pick("default", "default", "other")}
        kind = {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget"}
        status = {"disruptionsAllowed": self.random.randint(0, 2)}
        return {**kind, "metadata": metadata, "spec": {"selector": selector, "minAvailable": 1}, "status": status}


def acceptable(pod: Object) -> Object:
    """The pod in a form that the API server takes: a class for its priority, limits for what cannot be overcommitted, rules about
    nodes and spread that are valid, no fields that only the server writes. Its status stays."""
    made = {**pod, "metadata": {key: pod["metadata"][key] for key in ("name", "namespace", "labels")}}
    spec = made["spec"]
    priority, never = spec.pop("priority", 0), spec.pop("preemptionPolicy", "")
    if (priority, never) in CLASSES:
        spec["priorityClassName"] = CLASSES[priority, never]
    for container in (*spec["containers"], *spec.get("initContainers", ())):
        requests = (container.get("resources") or {}).get("requests") or {}
        if "example.com/gpu" in requests:
            container["resources"]["limits"] = {"example.com/gpu": requests["example.com/gpu"]}
    _cover(spec)
    _make_valid(spec)
    return made


def _cover(spec: Object) -> None:
    """The requests of a pod as a whole are at least those of its containers together."""
    whole = (spec.get("resources") or {}).get("requests") or {}
    for name in whole:
        for container in (*spec["containers"], *spec.get("initContainers", ())):
            ((container.get("resources") or {}).get("requests") or {}).pop(name, None)


def _named(selector: Object) -> set[str]:
    return {each["key"] for each in selector.get("matchExpressions") or ()} | {*(selector.get("matchLabels") or {})}


def _make_valid(spec: Object) -> None:
    """Change what filters understand and the API server refuses: no term at all, a field compared with several values, a weight of 0,
    labels that a selector already names."""
    rules = (spec.get("affinity") or {}).get("nodeAffinity") or {}
    required = rules.get("requiredDuringSchedulingIgnoredDuringExecution")
    if required is not None and not required.get("nodeSelectorTerms"):
        del rules["requiredDuringSchedulingIgnoredDuringExecution"]
        required = None
    preferred = rules.get("preferredDuringSchedulingIgnoredDuringExecution") or []
    for wish in preferred:
        wish["weight"] = max(wish["weight"], 1)
    for term in [*(required or {}).get("nodeSelectorTerms", ()), *(wish["preference"] for wish in preferred)]:
        for field_ in term.get("matchFields") or ():
            field_["values"] = (field_.get("values") or ["n0"])[:1]
        for each in term.get("matchExpressions") or ():
            if each["operator"] in ("Gt", "Lt") and not each["values"][0].isdigit():
                each["values"] = ["1"]
    for constraint in spec.get("topologySpreadConstraints") or ():
        selector = constraint.get("labelSelector")
        if "matchLabelKeys" in constraint:
            named = _named(selector or {})
            keys = constraint["matchLabelKeys"] or ()
            constraint["matchLabelKeys"] = [key for key in keys if selector is not None and key not in named]
