"""The owners of pods that groups in memory are made from: who they are, which groups asked for them, who is in each group.

Pods and owners are learned of in any order. A group that asks for an owner which is not known yet is remembered, and made anew
when it comes. If its kind is watched it is sure to come, and until then the group is not made at all: a watch that is cut for a
moment must not let a gang start pod by pod. An owner that goes before its pods is kept for as long as they are there: they are
being deleted with it, and must not be taken for pods that may start alone meanwhile.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from navarch.apis.kai.sub_groups import is_grouped, role_of
from navarch.apis.operators.workload import WorkloadKey, WorkloadSpec
from navarch.model.spec import TaskSpec

Find = Callable[[WorkloadKey], WorkloadSpec | None]
_HIGHEST = 8
"""Owners of owners. A circle of references ends here."""


class Owners:
    """`find` is asked for owners that were never put, as manifests in files have them. `comes` says of a kind whether its objects
    are all put sooner or later."""

    def __init__(self, find: Find = lambda key: None, comes: Callable[[str], bool] = lambda kind: False) -> None:
        self.find = find
        self.comes = comes
        self._specs: dict[WorkloadKey, WorkloadSpec] = {}
        self._gone: set[WorkloadKey] = set()
        self._asked: dict[WorkloadKey, dict[str, None]] = {}
        """Owner -> the groups that asked for it, known or not."""
        self._asks: dict[str, dict[WorkloadKey, None]] = {}
        self._roles: dict[str, dict[str, str]] = {}
        """Group -> uid -> role."""
        self._held: dict[str, Counter[str]] = {}

    def put(self, spec: WorkloadSpec) -> list[str]:
        """Learn of an owner: the groups that it concerns."""
        self._gone.discard(spec.key)
        before, self._specs[spec.key] = self._specs.get(spec.key), spec
        return [] if before == spec else sorted(self._asked.get(spec.key, ()))

    def remove(self, spec: WorkloadSpec) -> None:
        if self._asked.get(spec.key):
            self._gone.add(spec.key)
        else:
            self._specs.pop(spec.key, None)

    def chain(self, job: str, namespace: str, kind: str, name: str) -> list[WorkloadSpec]:
        """An owner and those above it, as far as they are known; `job` asks."""
        found: list[WorkloadSpec] = []
        key: WorkloadKey | None = (namespace, kind, name)
        while key is not None and len(found) < _HIGHEST:
            self._asked.setdefault(key, {})[job] = None
            self._asks.setdefault(job, {})[key] = None
            spec = self._specs.get(key) or self.find(key)
            if spec is None:
                break
            found.append(spec)
            key = (namespace, *spec.owner) if spec.owner else None
        return found

    def joined(self, task: TaskSpec) -> bool:
        """A pod came or changed: whether its group has a role now that it did not have, or lost one."""
        if not is_grouped(task.scheduler_name, task.labels):
            return False
        role = role_of(task.sub_group, task.owner, task.labels)
        roles = self._roles.get(task.job)
        before = roles.get(task.uid) if roles else None
        if before == role or (before is None and not role):
            return False
        lost = before is not None and self.left(task.job, task.uid)
        self._roles.setdefault(task.job, {})[task.uid] = role
        held = self._held.setdefault(task.job, Counter())
        held[role] += 1
        return held[role] == 1 or lost

    def left(self, job: str, uid: str) -> bool:
        """A pod went: whether it was the last of its role."""
        role = self._roles.get(job, {}).pop(uid, None)
        if role is None:
            return False
        held = self._held[job]
        held[role] -= 1
        if held[role]:
            return False
        del held[role]
        return True

    def roles(self, job: str) -> list[str]:
        return sorted(role for role in self._held.get(job, ()) if role)

    def forget(self, job: str) -> None:
        """The group is gone with its last pod."""
        self._roles.pop(job, None)
        self._held.pop(job, None)
        for key in self._asks.pop(job, ()):
            asking = self._asked[key]
            del asking[job]
            if not asking:
                del self._asked[key]
                if key in self._gone:
                    self._gone.remove(key)
                    self._specs.pop(key, None)
