"""Task-topology, slowly: everything is computed again from the pods for every question, in plain loops."""

from __future__ import annotations

from typing import NamedTuple

Request = tuple[int, ...]
"""Thousandths of a core, MiB of memory, pods."""


class Pod(NamedTuple):
    name: str
    role: str
    request: Request
    node: str = ""
    """Where it was when the cycle began."""


class Group(NamedTuple):
    """One list of terms each; `order` is a list of roles."""

    near: list[list[str]]
    apart: list[list[str]]
    order: list[str]

    def related(self, terms: list[list[str]], one: str, other: str) -> bool:
        if one == other:
            return [one] in terms
        return any(one in term and other in term for term in terms)

    def strength(self, role: str) -> int:
        kinds = [2 if len(term) == 1 else 3 for term in self.near if role in term]
        return max(kinds + [4 if len(term) == 1 else 1 for term in self.apart if role in term], default=0)

    def place_in_order(self, role: str) -> int:
        return len(self.order) - self.order.index(role) if role in self.order else 0


def buckets(group: Group, pods: list[Pod]) -> list[list[Pod]]:
    """Pods that should share a node, in the order in which buckets were opened."""
    out: list[list[Pod]] = []
    for pod in sorted((p for p in pods if p.node and group.strength(p.role)), key=lambda p: (p.node, p.name)):
        mates = [bucket for bucket in out if bucket[0].node == pod.node]
        if mates:
            mates[0].append(pod)
        else:
            out.append([pod])
    waiting = [p for p in pods if not p.node and group.strength(p.role)]
    waiting.sort(key=lambda p: (-group.place_in_order(p.role), -group.strength(p.role), p.name))
    for pod in waiting:
        best: list[Pod] | None = None
        best_mark: tuple[int, int] | None = None
        for bucket in out:
            near = sum(group.related(group.near, pod.role, mate.role) for mate in bucket)
            apart = sum(group.related(group.apart, pod.role, mate.role) for mate in bucket)
            load = sum(sum(mate.request) for mate in bucket if not mate.node)
            mark = (apart - near, load)
            if near >= apart and (best_mark is None or mark < best_mark):
                best, best_mark = bucket, mark
        if best is None:
            out.append([pod])
        else:
            best.append(pod)
    return out


def score(group: Group, pods: list[Pod], now: dict[str, str], pod: Pod, node: str, room: Request) -> float:
    """What a node is worth to a pending pod. `now`: pod -> node, for every pod that has one by now. `room`: what the node has free or
    in release."""
    found = [bucket for bucket in buckets(group, pods) if pod in bucket]
    if not found or any(need > have for need, have in zip(pod.request, room)):
        return 0.0
    bucket, largest = found[0], max(len(each) for each in buckets(group, pods))
    here = sum(now.get(mate.name) == node for mate in bucket)
    repelling = [p for p in pods if now.get(p.name) == node]
    apart = sum(group.related(group.apart, pod.role, other.role) for other in repelling)
    waiting = [mate for mate in bucket if mate.name not in now]
    kept = sorted((m for m in waiting if m is not pod), key=lambda m: (-sum(m.request), m.name))
    while kept and any(sum(amounts) > have for amounts, have in zip(zip(*(m.request for m in [pod, *kept])), room)):
        kept.pop(0)
    return 100 * (here - apart + 1 + len(kept)) / largest


def order(group: Group, pods: list[Pod], now: dict[str, str]) -> list[str]:
    """Names of the pods without a node, the next one first; pods in no bucket last, by name."""
    marks = {}
    for index, bucket in enumerate(buckets(group, pods)):
        waiting = [mate for mate in bucket if mate.name not in now]
        for mate in waiting:
            role = mate.role
            marks[mate.name] = (0, -len(waiting), index, -group.place_in_order(role), -group.strength(role), mate.name)
    rest = {p.name: (1, 0, 0, 0, 0, p.name) for p in pods if p.name not in now and p.name not in marks}
    return [name for name, _ in sorted({**marks, **rest}.items(), key=lambda item: item[1])]
