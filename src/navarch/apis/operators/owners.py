"""The owners of pods from which shadow jobs are made, with the groups that asked for each owner and the roles of their pods.

Pods and owners arrive in any order. If a group asks for an unknown owner, the group is made again when the owner arrives. If the
owner's kind is watched, the owner is certain to arrive, and the group is not made before: an interrupted watch must not let a gang
start pod by pod. An owner that is deleted before its pods is kept until they are gone. The pods are being deleted with it, and must
not be treated as pods that may start alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from navarch.apis.kai.sub_groups import is_grouped, role_of
from navarch.apis.operators.workload import WorkloadKey, WorkloadSpec
from navarch.model.spec import TaskSpec

Find = Callable[[WorkloadKey], WorkloadSpec | None]
_HIGHEST = 8
"""The longest chain of owners; it also ends a cycle of references."""


class Owners:
    """`find` returns an owner that was never put: files hold owners of any kind. `will_arrive`: whether all objects of a kind are put
    sooner or later."""

    def __init__(self, find: Find = lambda key: None, will_arrive: Callable[[str], bool] = lambda kind: False) -> None:
        self.find = find
        self.will_arrive = will_arrive
        self._specs: dict[WorkloadKey, WorkloadSpec] = {}
        self._gone: set[WorkloadKey] = set()
        self._asked: dict[WorkloadKey, dict[str, None]] = {}
        """Owner, known or not -> the groups that asked for it."""
        self._asks: dict[str, dict[WorkloadKey, None]] = {}
        self._roles: dict[str, dict[str, str]] = {}
        """Group -> uid -> role."""
        self._held: dict[str, Counter[str]] = {}

    def put(self, spec: WorkloadSpec) -> list[str]:
        """Store an owner; returns the groups that it changes."""
        self._gone.discard(spec.key)
        before, self._specs[spec.key] = self._specs.get(spec.key), spec
        return [] if before == spec else sorted(self._asked.get(spec.key, ()))

    def remove(self, spec: WorkloadSpec) -> None:
        if self._asked.get(spec.key):
            self._gone.add(spec.key)
        else:
            self._specs.pop(spec.key, None)

    def chain(self, job: str, namespace: str, kind: str, name: str) -> list[WorkloadSpec]:
        """An owner and its owners, up to the first unknown one. `job` is the group that asks."""
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
        """A pod came or changed; returns whether its group gained or lost a role."""
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
        """A pod went; returns whether it was the last of its role."""
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
