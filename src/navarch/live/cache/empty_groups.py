"""Groups without pods: whose they are.

Whoever admits a group of Volcano's makes its controller create the pods. A group that has none names no scheduler, so without a look
at its Job a scheduler beside Volcano's would let in the whole backlog of the other one. A group whose Job is not known is not ours
either, until it has pods that are; one that no Job made is for whoever sees it.
"""

from __future__ import annotations

from navarch.apis.operators.workload import PodMaker
from navarch.model.spec import JobSpec


class EmptyGroups:
    """`served`: the schedulers for which we decide; None: all."""

    def __init__(self, served: frozenset[str] | None) -> None:
        self._served = served
        self._makers: dict[tuple[str, str], PodMaker] = {}
        self._made: dict[tuple[str, str], set[str]] = {}
        """Namespace and name of a Job -> keys of its groups."""

    def put(self, maker: PodMaker) -> set[str]:
        """Groups of which it may have to be asked again whose they are."""
        before = self._makers.get((maker.namespace, maker.name))
        self._makers[maker.namespace, maker.name] = maker
        return set() if before == maker else self._made.get((maker.namespace, maker.name), set()).copy()

    def remove(self, maker: PodMaker) -> None:
        """Its groups go with it."""
        self._makers.pop((maker.namespace, maker.name), None)

    def is_theirs(self, group: JobSpec) -> bool:
        """Whether a group that has no pods is for another scheduler to admit."""
        made_by = _job_of(group)
        if made_by is None or self._served is None:
            return False
        self._made.setdefault(made_by, set()).add(group.key)
        maker = self._makers.get(made_by)
        return maker is None or not maker.schedulers & self._served

    def forget(self, group: JobSpec) -> None:
        """The group is gone."""
        made_by = _job_of(group)
        if made_by is not None and made_by in self._made:
            self._made[made_by].discard(group.key)
            if not self._made[made_by]:
                del self._made[made_by]


def _job_of(group: JobSpec) -> tuple[str, str] | None:
    if group.dialect != "volcano" or group.owner is None or group.owner[0] != "Job":
        return None
    return group.namespace, group.owner[1]
