"""Buckets: the pods of one job that should share a node, and where its pods are.

Pods on nodes come first, in one bucket a node. Then each pending pod, in the order of its role, joins the bucket that it is closest
to; among equals the bucket whose waiting pods ask for least, then the oldest. A pod that every bucket repels opens a new one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from msgspec import Struct

from navarch.model.resources import MEMORY, IntArray
from navarch.plugins.volcano.task_topology.annotations import Relations

MEBIBYTE = 1 << 20


class Member(Struct, frozen=True):
    """A pod of the job that may be in a bucket."""

    task: int
    name: str
    role: str
    node: str
    """The node that it is on; empty if it waits for one."""
    request: IntArray


class Bucket:
    def __init__(self, index: int, size: int) -> None:
        self.index = index
        self.roles: dict[str, int] = {}
        """Role -> how many pods of the bucket have it."""
        self.waiting: dict[int, Member] = {}
        """Task -> member, for members without a node."""
        self.request: IntArray = np.zeros(size, dtype=np.int64)
        """What the waiting members ask for together."""
        self.amount = 0.0
        """The same as one number, by which buckets are kept equally large."""
        self.placed: dict[int, int] = {}
        """Node row -> members there."""

    def largest_first(self, units: IntArray) -> list[Member]:
        """The waiting members in the order in which they are left out where the bucket is too large for a node."""
        return sorted(self.waiting.values(), key=lambda m: (-weighed(m.request, units), m.name))


class JobBuckets:
    """The buckets of one job. `units`: what one unit of each resource counts in comparisons."""

    def __init__(self, relations: Relations, members: Sequence[Member], rows: Mapping[str, int], units: IntArray) -> None:
        self.relations = relations
        self.units = units
        self.buckets: list[Bucket] = []
        self.bucket_of: dict[int, Bucket] = {}
        self.role_of: dict[int, str] = {member.task: member.role for member in members}
        self.on_node: dict[str, dict[int, int]] = {}
        """Role -> node row -> how many pods of the role are there, as far as anti-affinity counts them."""
        self.largest = 0
        """Members of the largest bucket when the cycle began, pods on nodes included."""
        self._sizes: list[int] = []
        self._on: dict[str, Bucket] = {}
        """Node -> the bucket of the pods that are there when the cycle begins."""
        self._members = {member.task: member for member in members}
        for member in sorted((m for m in members if m.role in relations.strength and m.role), key=self._order):
            self._add(member, rows)

    def _order(self, member: Member) -> tuple[bool, str, tuple[int, int], str]:
        return not member.node, member.node, (0, 0) if member.node else self.relations.rank(member.role), member.name

    def _add(self, member: Member, rows: Mapping[str, int]) -> None:
        bucket = self._on.get(member.node) if member.node else self._closest(member.role)
        if bucket is None:
            bucket = Bucket(len(self.buckets), len(member.request))
            self.buckets.append(bucket)
            self._sizes.append(0)
        bucket.roles[member.role] = bucket.roles.get(member.role, 0) + 1
        if member.node:
            self._on[member.node] = bucket
            if member.node in rows:
                _count(bucket.placed, rows[member.node], 1)
        else:
            bucket.waiting[member.task] = member
            bucket.request += member.request
            bucket.amount += weighed(member.request, self.units)
        self.bucket_of[member.task] = bucket
        self._sizes[bucket.index] += 1
        self.largest = max(self.largest, self._sizes[bucket.index])

    def _closest(self, role: str) -> Bucket | None:
        """The bucket for a pod of the role; None if all of them repel it."""
        ranked = ((-self.relations.closeness(role, b.roles), b.amount, b.index) for b in self.buckets)
        best = min(ranked, default=(1, 0.0, 0))
        return self.buckets[best[2]] if best[0] <= 0 else None

    def moves(self, task: int, request: IntArray, node: int, sign: int, *, waits: bool) -> None:
        """A pod joins (sign 1) or leaves (-1) a node. `waits`: the pod is, or was, one of those that wait for a node."""
        role = self.role_of.get(task, "")
        if role:
            _count(self.on_node.setdefault(role, {}), node, sign)
        bucket = self.bucket_of.get(task)
        if bucket is None:
            return
        _count(bucket.placed, node, sign)
        if waits:
            bucket.request -= sign * request
            bucket.amount -= sign * weighed(request, self.units)
            if sign > 0:
                bucket.waiting.pop(task, None)
            else:
                bucket.waiting[task] = self._members[task]

    def repels(self, task: int, node: int) -> None:
        """Count a pod that was on its node when the cycle began for anti-affinity."""
        if self.role_of.get(task):
            _count(self.on_node.setdefault(self.role_of[task], {}), node, 1)

    def repelled(self, role: str) -> dict[int, int]:
        """Node row -> pods there that the role wants apart."""
        found: dict[int, int] = {}
        for other, rows in self.on_node.items():
            if (role, other) in self.relations.apart:
                for row, count in rows.items():
                    found[row] = found.get(row, 0) + count
        return found

    def order_of(self, task: int) -> tuple[int, ...]:
        """The place of a task among the tasks of its job: smaller comes first. Larger buckets first, then older ones."""
        bucket = self.bucket_of.get(task)
        if bucket is None:
            return (1,)
        return (0, -len(bucket.waiting), bucket.index, *self.relations.rank(self.role_of[task]))


def _count(rows: dict[int, int], row: int, sign: int) -> None:
    left = rows.get(row, 0) + sign
    if left:
        rows[row] = left
    else:
        rows.pop(row, None)


def weighed(request: IntArray, units: IntArray) -> float:
    """A request as one number: a thousandth of a core counts as much as a MiB of memory or a thousandth of a device."""
    amounts = request * units
    return float(amounts.sum() - amounts[MEMORY]) + float(request[MEMORY]) / MEBIBYTE
