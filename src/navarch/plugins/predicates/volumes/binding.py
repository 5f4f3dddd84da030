"""VolumeBinding: a pod's bound volumes can be reached from the node, and its waiting claims find or get a volume there.

Placements of a cycle promise volumes to claims, so a second pod does not count on a volume that the first one takes; a
placement that is undone gives them back.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from msgspec import Struct, field

from navarch.engine.figures import Figures
from navarch.engine.node_functions import NodeFilter, Refusal, Rejection, Scope, TaskClass
from navarch.engine.reasons import Event
from navarch.engine.session import Session
from navarch.model.objects import storage
from navarch.model.objects.storage import ClaimSpec
from navarch.model.resources import BoolArray
from navarch.plugins.predicates.pods.placed_pods import placed_pods, watch_pods
from navarch.plugins.predicates.volumes.claims import find_claim, missing, ownership_problem, storage_classes, unusable
from navarch.plugins.predicates.volumes.search import PromisedVolumes, VolumeMatches, VolumeSearch, chosen_at

CONFLICT = "node(s) didn't match PersistentVolume's node affinity"
NOTHING_TO_BIND = "node(s) didn't find available persistent volumes to bind"
NO_SPACE = "node(s) did not have enough free storage"
NO_VOLUME = "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)"


class Needs(Struct):
    """The claims of a class, sorted out; `problem` says why the pod can go nowhere."""

    bound: list[ClaimSpec] = field(default_factory=list)
    delayed: list[ClaimSpec] = field(default_factory=list)
    problem: Rejection | None = None
    found: VolumeMatches | None = None


class VolumeBinding(NodeFilter):
    name = "VolumeBinding"
    scope = Scope.GLOBAL
    undone_by = (Event.VOLUME_CHANGED, Event.NODE_ADDED, Event.NODE_CHANGED)

    def __init__(self, session: Session) -> None:
        self.session = session
        watch_pods(session, lambda shape: shape.volumes)
        self.assumed = PromisedVolumes()
        self.search = VolumeSearch(session.snapshot, self.assumed)
        self._needs: dict[int, Needs] = {}
        self._listening = False
        self._promised: dict[int, tuple[list[str], list[tuple[str, str]]]] = {}
        """Task -> (volumes, claims) that its placement keeps."""

    def applies(self, task: TaskClass) -> bool:
        return task.shape.volumes is not None and any(name for name, _ in task.shape.volumes.claims)

    def moved_by_own_class(self, task: TaskClass) -> bool:
        return bool(self._of(task).delayed)

    def reject(self, task: TaskClass) -> Rejection | None:
        return self._of(task).problem

    def _of(self, task: TaskClass) -> Needs:
        found = self._needs.get(task.number)
        if found is None:
            found = self._needs[task.number] = self._sort_out(task)
            if found.delayed and not self._listening:
                self._listening = True
                placed_pods(self.session).listen(self._moved)
        return found

    def _sort_out(self, task: TaskClass) -> Needs:
        needs, immediate = Needs(), False
        for name, ephemeral in task.shape.volumes.claims if task.shape.volumes else ():
            if not name:
                continue
            claim = find_claim(self.session.snapshot, task.namespace, name)
            problem = self._problem(task, claim, name, ephemeral)
            if problem or claim is None:
                return Needs(problem=unusable(problem))
            if claim.is_bound:
                needs.bound.append(claim)
                continue
            storage_class = storage_classes(self.session.snapshot).get(("", claim.storage_class))
            if storage_class is not None and storage_class.binding_mode is None:
                text = f'VolumeBindingMode not set for StorageClass "{storage_class.name}"'
                needs.problem = needs.problem or unusable(text, error=True)
            elif storage_class is not None and storage_class.binding_mode == storage.WAIT_FOR_CONSUMER and not claim.volume:
                needs.delayed.append(claim)
            else:
                immediate = True
        if immediate and needs.problem is None:
            needs.problem = unusable("pod has unbound immediate PersistentVolumeClaims")
        return needs

    def _problem(self, task: TaskClass, claim: ClaimSpec | None, name: str, ephemeral: bool) -> str:
        if claim is None:
            waiting = f'waiting for ephemeral volume controller to create the persistentvolumeclaim "{name}"'
            return waiting if ephemeral else missing(name)
        if claim.phase == "Lost":
            return f'persistentvolumeclaim "{name}" bound to non-existent persistentvolume "{claim.volume}"'
        if claim.deleting:
            return f'persistentvolumeclaim "{name}" is being deleted'
        return ownership_problem(self.session, task, claim) if ephemeral else ""

    def _found(self, task: TaskClass) -> VolumeMatches | None:
        """None: the pod can go nowhere."""
        needs = self._of(task)
        if needs.problem is not None:
            return None
        if needs.found is None or (needs.delayed and needs.found.version != self.assumed.version):
            needs.found = self.search.find(needs.bound, needs.delayed)
        return needs.found

    def mask(self, task: TaskClass, at: Figures) -> BoolArray:
        found = self._found(task)
        if found is None:
            none: BoolArray = np.zeros(len(self.session.nodes), dtype=bool)[at.rows]
            return none
        out: BoolArray = ~(found.unreachable | found.lost | found.nothing | found.no_space)[at.rows]
        return out

    def explain(self, task: TaskClass, at: Figures) -> Iterable[Refusal]:
        found, problem = self._found(task), self._of(task).problem
        if found is None or problem is not None:
            everywhere: BoolArray = np.ones(len(self.session.nodes), dtype=bool)[at.rows]
            return [Refusal(problem.message if problem else "", everywhere, unresolvable=True, code=problem.code if problem else "")]
        told = {CONFLICT: found.unreachable, NOTHING_TO_BIND: found.nothing, NO_SPACE: found.no_space, NO_VOLUME: found.lost}
        return [Refusal(text, where[at.rows], unresolvable=True, code="VolumeBinding") for text, where in told.items()]

    # promises

    def _moved(self, task: TaskClass, tasks: Sequence[int], nodes: Sequence[int], step: int) -> None:
        if placed_pods(self.session).journal is not None:
            return  # only placements reserve volumes; pods of a trial reserve and release none
        for row, node in zip(tasks, nodes):
            if step < 0:
                self._give_back(row)
            elif task.shape.volumes is not None and self._of(task).delayed:
                self._promise(task, row, node)

    def _promise(self, task: TaskClass, row: int, node: int) -> None:
        found = self._found(task)
        if found is None:
            return
        kept: tuple[list[str], list[tuple[str, str]]] = [], []
        for claim, volume in chosen_at(found, node):
            if volume is None:
                self.assumed.node_of[claim.key] = self.session.nodes.names[node]
                kept[1].append(claim.key)
            elif volume.name not in self.assumed.claim_of:
                self.assumed.claim_of[volume.name] = claim.key
                kept[0].append(volume.name)
        self._promised[row] = kept
        self.assumed.version += 1

    def _give_back(self, row: int) -> None:
        kept = self._promised.pop(row, None)
        if kept is not None:
            for name in kept[0]:
                self.assumed.claim_of.pop(name, None)
            for key in kept[1]:
                self.assumed.node_of.pop(key, None)
            self.assumed.version += 1
