"""What the pods of a job ask of nodes, clause by clause, each with the edit that drops it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from navarch.explanation.subject import Edit, Object, Subject
from navarch.object_types import ReadOnlyManifest

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_MOST_TAINTS = 5
_HARD_EFFECTS = ("NoSchedule", "NoExecute")


@dataclass(frozen=True, slots=True)
class Clause:
    kind: str
    text: str
    """The clause as its author would name it."""
    without: str
    """What it means to drop it, as an order."""
    edit: Edit


def clauses_of(subject: Subject, nodes: Sequence[ReadOnlyManifest]) -> list[Clause]:
    """Each clause once: gates, selectors, node affinity, pod affinity, spreading, ports, taints that are not tolerated."""
    found: dict[tuple[str, str], Clause] = {}
    samples = subject.samples()
    for read in (_gates, _selectors, _node_affinity, _pod_affinity, _spread, _ports):
        for sample in samples:
            for clause in read(sample):
                found.setdefault((clause.kind, clause.text), clause)
    for clause in _taints(samples, nodes):
        found.setdefault((clause.kind, clause.text), clause)
    return list(found.values())


def _spec(pod: Mapping[str, Any]) -> Mapping[str, Any]:
    return pod.get("spec") or {}


def _gates(pod: ReadOnlyManifest) -> Iterator[Clause]:
    for gate in _spec(pod).get("schedulingGates") or ():

        def drop(each: Object, name: object = gate.get("name")) -> None:
            gates = each["spec"].get("schedulingGates")
            if gates:
                each["spec"]["schedulingGates"] = [other for other in gates if other.get("name") != name]

        yield Clause("gate", f"scheduling gate {gate.get('name')}", f"lift the scheduling gate {gate.get('name')}", drop)


def _selectors(pod: ReadOnlyManifest) -> Iterator[Clause]:
    for key, value in sorted((_spec(pod).get("nodeSelector") or {}).items()):

        def drop(each: Object, key: str = key, value: object = value) -> None:
            selector = each["spec"].get("nodeSelector")
            if selector and selector.get(key) == value:
                del selector[key]

        yield Clause("selector", f"{key}={value}", f"drop the node selector {key}={value}", drop)


def _terms(pod: Mapping[str, Any]) -> list[Any]:
    affinity = (_spec(pod).get("affinity") or {}).get("nodeAffinity") or {}
    return list((affinity.get(REQUIRED) or {}).get("nodeSelectorTerms") or ())


def _node_affinity(pod: ReadOnlyManifest) -> Iterator[Clause]:
    for expression in (each for term in _terms(pod) for each in term.get("matchExpressions") or ()):

        def drop(each: Object, expression: Any = expression) -> None:
            terms = _terms(each)
            for term in terms:
                kept = [other for other in term.get("matchExpressions") or () if other != expression]
                if len(kept) < len(term.get("matchExpressions") or ()):
                    term["matchExpressions"] = kept
            if any(not term.get("matchExpressions") and not term.get("matchFields") for term in terms):
                del each["spec"]["affinity"]["nodeAffinity"][REQUIRED]

        values = ",".join(str(value) for value in expression.get("values") or ())
        text = f"{expression.get('key')} {expression.get('operator')}{f' [{values}]' if values else ''}"
        yield Clause("affinity", text, f"drop the node affinity {text}", drop)


def _pod_affinity(pod: ReadOnlyManifest) -> Iterator[Clause]:
    affinity = _spec(pod).get("affinity") or {}
    for part, word in (("podAffinity", "pod affinity"), ("podAntiAffinity", "pod anti-affinity")):
        for term in (affinity.get(part) or {}).get(REQUIRED) or ():

            def drop(each: Object, part: str = part, term: Any = term) -> None:
                terms = ((each["spec"].get("affinity") or {}).get(part) or {}).get(REQUIRED)
                if terms and term in terms:
                    terms.remove(term)

            text = f"{word} over {term.get('topologyKey')}"
            yield Clause("podAffinity", text, f"drop the {text}", drop)


def _spread(pod: ReadOnlyManifest) -> Iterator[Clause]:
    for constraint in _spec(pod).get("topologySpreadConstraints") or ():
        if constraint.get("whenUnsatisfiable", "DoNotSchedule") != "DoNotSchedule":
            continue

        def drop(each: Object, constraint: Any = constraint) -> None:
            constraints = each["spec"].get("topologySpreadConstraints")
            if constraints and constraint in constraints:
                constraints.remove(constraint)

        text = f"spread over {constraint.get('topologyKey')} with skew {constraint.get('maxSkew', 1)}"
        yield Clause("spread", text, f"drop the {text}", drop)


def _ports(pod: ReadOnlyManifest) -> Iterator[Clause]:
    containers = _spec(pod).get("containers") or ()
    for number in dict.fromkeys(port.get("hostPort") for each in containers for port in each.get("ports") or ()):
        if not number:
            continue

        def drop(each: Object, number: object = number) -> None:
            for container in each["spec"].get("containers") or ():
                for port in container.get("ports") or ():
                    if port.get("hostPort") == number:
                        del port["hostPort"]

        yield Clause("port", f"host port {number}", f"give up host port {number}", drop)


def tolerates(toleration: Mapping[str, Any], taint: Mapping[str, Any]) -> bool:
    if toleration.get("effect") and toleration["effect"] != taint.get("effect"):
        return False
    if toleration.get("key") and toleration["key"] != taint.get("key"):
        return False
    if toleration.get("operator") == "Exists":
        return True
    return bool(toleration.get("key")) and str(toleration.get("value") or "") == str(taint.get("value") or "")


def _taints(pods: Sequence[ReadOnlyManifest], nodes: Sequence[ReadOnlyManifest]) -> Iterator[Clause]:
    """Taints of nodes that some pod of the job does not tolerate, those of most nodes first."""
    counts: Counter[tuple[str, str, str]] = Counter()
    for node in nodes:
        for taint in _spec(node).get("taints") or ():
            if taint.get("effect") in _HARD_EFFECTS:
                counts[str(taint.get("key") or ""), str(taint.get("value") or ""), str(taint["effect"])] += 1
    found = 0
    for (key, value, effect), _ in sorted(counts.items(), key=lambda each: (-each[1], each[0])):
        taint = {"key": key, "value": value, "effect": effect}
        if all(any(tolerates(each, taint) for each in _spec(pod).get("tolerations") or ()) for pod in pods):
            continue
        found += 1
        if found > _MOST_TAINTS:
            return

        def tolerate(each: Object, taint: Mapping[str, str] = taint) -> None:
            given = each["spec"].setdefault("tolerations", [])
            if not any(tolerates(toleration, taint) for toleration in given):
                entry = {"key": taint["key"], "operator": "Equal" if taint["value"] else "Exists", "effect": taint["effect"]}
                given.append({**entry, "value": taint["value"]} if taint["value"] else entry)

        name = f"{key}{f'={value}' if value else ''}:{effect}"
        yield Clause("toleration", f"no toleration for {name}", f"tolerate the taint {name}", tolerate)
