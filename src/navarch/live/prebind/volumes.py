"""Volumes before the binding: claims that wait for their first consumer get a volume, or a node to be provisioned for.

If an available volume matches a claim, the claimRef of the volume is set. Otherwise the claim is annotated with the node for its
provisioner. Then the binding waits for the controllers of the claims. It fails if that takes too long, if the provisioner removes
the annotation to say that it cannot, or if a claim got a volume that the node cannot reach. Then everything is undone and the pod is
decided again.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from typing import Any

from msgspec import Struct, field

from navarch.kube.client import Client, PatchType
from navarch.kube.errors import Conflict, KubeError, NotFound
from navarch.kube.resources import Resource
from navarch.live.cache.assumed_pods import AssumedBind
from navarch.live.cache.cluster_cache import ClusterCache
from navarch.live.cycle import Cycle
from navarch.live.prebind.preparation import PreparationFailed
from navarch.model.objects.storage import (
    CLAIM,
    CSI_NODE,
    VOLUME,
    WAIT_FOR_CONSUMER,
    ClaimSpec,
    VolumeSpec,
    read_claim,
    read_csi_node,
    read_volume,
)
from navarch.model.snapshot import Snapshot
from navarch.model.spec import TaskSpec
from navarch.plugins.predicates.volumes.claims import find_claim, storage_classes
from navarch.plugins.predicates.volumes.search import PromisedVolumes, VolumeSearch, chosen_at, reaches

log = logging.getLogger(__name__)

VOLUMES = Resource("", "v1", "persistentvolumes", namespaced=False)
CLAIMS = Resource("", "v1", "persistentvolumeclaims")
SELECTED_NODE = "volume.kubernetes.io/selected-node"
BOUND_BY_US = "pv.kubernetes.io/bound-by-controller"
ATTEMPTS = 5


class _Plan(Struct):
    """Claim -> its volume; None: one is to be provisioned."""

    choices: list[tuple[ClaimSpec, VolumeSpec | None]]
    begun: list[tuple[ClaimSpec, VolumeSpec | None]] = field(default_factory=list)
    """Choices whose write was started: a write whose answer was lost may have been applied."""


class Volumes:
    """`progress(bind)` is called whenever one more of the pod's claims is bound."""

    def __init__(
        self, client: Client, cache: ClusterCache, timeout: float, progress: Callable[[AssumedBind], None] = lambda bind: None
    ) -> None:
        self._client = client
        self._cache = cache
        self._timeout = timeout
        self._progress = progress
        self._plans: dict[str, _Plan] = {}
        self._changed = asyncio.Event()

    def look(self) -> None:
        """A volume or a claim changed."""
        self._changed.set()

    def wants(self, uid: str) -> bool:
        return uid in self._plans

    def plan(self, cycle: Cycle) -> None:
        promised = PromisedVolumes()
        search: VolumeSearch | None = None
        for bind in cycle.record.binds:
            task = self._cache.cluster.task(bind.uid)
            if task is None or task.shape.volumes is None:
                continue
            delayed = _delayed(cycle.snapshot, task)
            if not delayed:
                continue
            search = search or VolumeSearch(cycle.snapshot, promised)
            row = cycle.snapshot.nodes.row(bind.node)
            if row is None:
                continue
            choices = chosen_at(search.find((), delayed), row)
            chosen = {claim.key for claim, _ in choices}
            choices += [(claim, None) for claim in delayed if claim.key not in chosen]
            for claim, volume in choices:
                if volume is not None:
                    promised.claim_of[volume.name] = claim.key
                else:
                    promised.node_of[claim.key] = bind.node
                self._assume(claim, volume, bind.node)
            self._plans[bind.uid] = _Plan(choices)

    async def prepare(self, bind: AssumedBind) -> None:
        plan = self._plans[bind.uid]
        try:
            for claim, volume in plan.choices:
                plan.begun.append((claim, volume))
                await self._write(claim, volume, bind.node)
        except KubeError as error:
            raise PreparationFailed(f"volumes: {error}") from error
        try:
            async with asyncio.timeout(self._timeout):
                bound = self._bound(plan)
                while not self._all_bound(plan, bind):
                    if self._cache.assumed.binds.get(bind.uid) is not bind:
                        raise PreparationFailed("the pod is gone")
                    await self._change()
                    before, bound = bound, self._bound(plan)
                    if bound > before:
                        self._progress(bind)
        except TimeoutError:
            raise PreparationFailed(f"volumes were not bound within {self._timeout:g} s") from None

    async def _change(self) -> None:
        """Wait until storage changes, at most a second, because the pod itself may be deleted."""
        self._changed.clear()
        try:
            async with asyncio.timeout(1.0):
                await self._changed.wait()
        except TimeoutError:
            return

    async def undo(self, bind: AssumedBind) -> None:
        plan = self._plans.pop(bind.uid, None)
        if plan is None:
            return
        self._forget(plan)
        for claim, volume in plan.begun:
            try:
                if await self._is_bound(claim):
                    continue  # too late to take back, and no harm: it is the pod's own
                if volume is not None:
                    await self._refer(volume.name, claim, keep=False)
                else:
                    body = {"metadata": {"uid": claim.uid, "annotations": {SELECTED_NODE: None}}}
                    await self._client.patch(CLAIMS, claim.name, body, PatchType.MERGE, namespace=claim.namespace)
            except (KubeError, PreparationFailed) as error:
                log.warning("claim %s/%s keeps what was chosen for it: %s", claim.namespace, claim.name, error)

    def done(self, bind: AssumedBind) -> None:
        plan = self._plans.pop(bind.uid, None)
        if plan is not None:
            self._forget(plan)

    async def _write(self, claim: ClaimSpec, volume: VolumeSpec | None, node: str) -> None:
        if volume is not None:
            await self._refer(volume.name, claim, keep=True)
        else:
            body = {"metadata": {"uid": claim.uid, "annotations": {SELECTED_NODE: node}}}
            await self._client.patch(CLAIMS, claim.name, body, PatchType.MERGE, namespace=claim.namespace)

    async def _refer(self, name: str, claim: ClaimSpec, *, keep: bool) -> None:
        """Let a volume be kept for a claim, or no longer. What it says of another claim is never overwritten."""
        reference = {"apiVersion": "v1", "kind": CLAIM, "namespace": claim.namespace, "name": claim.name, "uid": claim.uid}
        for _ in range(ATTEMPTS):
            found = await self._client.get(VOLUMES, name)
            held = found["spec"].get("claimRef") or {}
            ours = held.get("uid") == claim.uid
            if ours == keep:
                return
            if not ours and held and (held.get("uid") or (held.get("namespace"), held.get("name")) != claim.key):
                raise PreparationFailed(f"volume {name} is kept for claim {held.get('namespace')}/{held.get('name')}")
            body: dict[str, Any] = {
                "metadata": {"resourceVersion": found["metadata"]["resourceVersion"], "annotations": {}},
                "spec": {"claimRef": reference if keep else None},
            }
            if keep and not held:
                body["metadata"]["annotations"][BOUND_BY_US] = "yes"
            elif not keep and BOUND_BY_US in (found["metadata"].get("annotations") or {}):
                body["metadata"]["annotations"][BOUND_BY_US] = None
            elif not keep:  # its owner reserved it for this claim by name
                body["spec"]["claimRef"] = {"uid": None}
            try:
                await self._client.patch(VOLUMES, name, body, PatchType.MERGE)
                return
            except Conflict:
                continue  # another writer changed it: read it again
        raise PreparationFailed(f"volume {name} changed too often to be written")

    async def _is_bound(self, claim: ClaimSpec) -> bool:
        """As the API server says now: the watch may be behind."""
        try:
            now = read_claim(await self._client.get(CLAIMS, claim.name, namespace=claim.namespace))
        except NotFound:
            return False
        return now.uid == claim.uid and now.is_bound

    def _bound(self, plan: _Plan) -> int:
        return sum(1 for claim, _ in plan.choices if (now := self._claim(claim)) is not None and now.is_bound)

    def _all_bound(self, plan: _Plan, bind: AssumedBind) -> bool:
        for claim, volume in plan.choices:
            now = self._claim(claim)
            if now is None or now.uid != claim.uid:
                raise PreparationFailed(f"claim {claim.namespace}/{claim.name} is gone")
            if now.is_bound:
                if not self._is_in_reach(now, bind.node):
                    return False
                continue
            if volume is None and self._saw_annotation(claim) and now.selected_node != bind.node:
                raise PreparationFailed(f"the provisioner of claim {claim.namespace}/{claim.name} cannot use {bind.node}")
            return False
        return True

    def _is_in_reach(self, claim: ClaimSpec, node: str) -> bool:
        """Whether the node can use the volume that the claim has got, which need not be the one that was meant for it. False: the
        volume is not seen yet."""
        manifest = self._cache.api_object(VOLUME, "", claim.volume)
        if manifest is None:
            return False
        nodes = self._cache.cluster.nodes
        row = nodes.rows.of.get(node)
        spec = nodes.specs[row] if row is not None else None
        if spec is None:
            raise PreparationFailed(f"node {node} is gone")
        attaching = self._cache.api_object(CSI_NODE, "", node)
        migrated = read_csi_node(attaching).migrated if attaching is not None else frozenset[str]()
        if not reaches(read_volume(manifest), spec, migrated):
            raise PreparationFailed(f"claim {claim.namespace}/{claim.name} got volume {claim.volume}, which {node} cannot use")
        return True

    def _saw_annotation(self, claim: ClaimSpec) -> bool:
        """Whether the watch has shown our annotation: before that its absence means nothing. Waits for the overlay to go."""
        return not self._cache.is_assumed(CLAIM, claim.namespace, claim.name)

    def _claim(self, claim: ClaimSpec) -> ClaimSpec | None:
        """As the API shows it, without what we assume."""
        manifest = self._cache.api_object(CLAIM, claim.namespace, claim.name)
        return read_claim(manifest) if manifest is not None else None

    def _assume(self, claim: ClaimSpec, volume: VolumeSpec | None, node: str) -> None:
        if volume is not None:
            name = volume.name
            manifest = self._cache.api_object(VOLUME, "", name)
            if manifest is not None:
                reference = {"namespace": claim.namespace, "name": claim.name, "uid": claim.uid}
                assumed = {**manifest, "spec": {**(manifest.get("spec") or {}), "claimRef": reference}}
                self._cache.assume_object(VOLUME, "", name, assumed, _has_claim)
            return
        manifest = self._cache.api_object(CLAIM, claim.namespace, claim.name)
        # One that has its node from the scheduler before us is seen as it is: our write changes nothing that a watch would show.
        if manifest is not None and not _has_node(manifest):
            metadata = dict(manifest.get("metadata") or {})
            metadata["annotations"] = {**(metadata.get("annotations") or {}), SELECTED_NODE: node}
            assumed = {**manifest, "metadata": metadata}
            self._cache.assume_object(CLAIM, claim.namespace, claim.name, assumed, _has_node)

    def _forget(self, plan: _Plan) -> None:
        for claim, volume in plan.choices:
            if volume is not None:
                self._cache.forget_object(VOLUME, "", volume.name)
            else:
                self._cache.forget_object(CLAIM, claim.namespace, claim.name)


def _delayed(snapshot: Snapshot, task: TaskSpec) -> list[ClaimSpec]:
    """The task's claims that wait for a node to be chosen."""
    found = []
    for name, _ in task.shape.volumes.claims if task.shape.volumes else ():
        claim = find_claim(snapshot, task.namespace, name) if name else None
        if claim is None or claim.is_bound or claim.volume:
            continue
        storage_class = storage_classes(snapshot).get(("", claim.storage_class))
        if storage_class is not None and storage_class.binding_mode == WAIT_FOR_CONSUMER:
            found.append(claim)
    return found


def _has_claim(manifest: Mapping[str, Any]) -> bool:
    return bool((manifest.get("spec") or {}).get("claimRef"))


def _has_node(manifest: Mapping[str, Any]) -> bool:
    return bool(((manifest.get("metadata") or {}).get("annotations") or {}).get(SELECTED_NODE))
