"""The steps before a binding, carried out at once: device claims get their allocation, volume claims their volume.

The live scheduler's own steps plan the writes. This world shows the result in the cache at once, as if API server and controllers
needed no time.
"""

from __future__ import annotations

import asyncio
from typing import Any, cast

from tests.worlds.live_parts.resources import binding_conditions

from navarch.kube.resources import Resource
from navarch.live.cache.assumed_pods import AssumedBind
from navarch.live.cache.cluster_cache import ClusterCache
from navarch.live.cycle import Cycle
from navarch.live.prebind.claim_access import ClaimAccess
from navarch.live.prebind.device_claims import DeviceClaims
from navarch.live.prebind.volumes import Volumes
from navarch.model.spec import ObjectSpec

_NO_SERVER = cast(Any, None)


class PrebindSteps:
    def __init__(self, cache: ClusterCache) -> None:
        self._cache = cache
        claims = Resource("resource.k8s.io", "v1", "resourceclaims")
        access = ClaimAccess(_NO_SERVER, cache, lambda: claims, binding_conditions(cache))
        self._steps = DeviceClaims(access), Volumes(_NO_SERVER, cache, 1.0)

    def plan(self, cycle: Cycle) -> None:
        for step in self._steps:
            step.plan(cycle)

    def keep(self, bound: set[str], cycle: Cycle) -> None:
        """Undo the steps of pods that were not bound, and finish the steps of pods that were."""
        for bind in cycle.record.binds:
            entry = AssumedBind(bind.uid, "ns", bind.uid, bind.node, bind.job, 0.0)
            for step in self._steps:
                if bind.uid not in bound and step.wants(bind.uid):
                    asyncio.run(step.undo(entry))
        objects = self._cache.cluster.objects
        for kind in ("ResourceClaim", "PersistentVolume"):
            for (namespace, name), value in list(objects.get(kind, {}).items()):
                if self._cache.is_assumed(kind, namespace, name):
                    self._cache.put(ObjectSpec(kind, namespace, name, value))
                    if kind == "PersistentVolume":
                        self._bind(name, value["spec"]["claimRef"])
        for uid in bound:
            for step in self._steps:
                step.done(AssumedBind(uid, "ns", uid, "", "", 0.0))

    def _bind(self, volume: str, reference: dict[str, Any]) -> None:
        """The volume's controller tells the claim."""
        key = reference["namespace"], reference["name"]
        claim = self._cache.cluster.objects["PersistentVolumeClaim"][key]
        metadata = claim["metadata"] | {"annotations": {"pv.kubernetes.io/bind-completed": "yes"}}
        bound = claim | {"metadata": metadata, "spec": claim["spec"] | {"volumeName": volume}, "status": {"phase": "Bound"}}
        self._cache.put(ObjectSpec("PersistentVolumeClaim", *key, bound))

    def end(self, pod: str) -> None:
        """The pod is gone: its devices are free, and its volume is deleted with its claim."""
        objects, cache = self._cache.cluster.objects, self._cache
        claim = objects.get("ResourceClaim", {}).get(("ns", f"dev-{pod}"))
        if claim is not None:
            cache.put(ObjectSpec("ResourceClaim", "ns", f"dev-{pod}", claim | {"status": {}}))
            cache.remove(ObjectSpec("ResourceClaim", "ns", f"dev-{pod}", None))
        held = objects.get("PersistentVolumeClaim", {}).get(("ns", pod))
        if held is not None:
            cache.remove(ObjectSpec("PersistentVolumeClaim", "ns", pod, None))
            if volume := held["spec"].get("volumeName"):
                cache.remove(ObjectSpec("PersistentVolume", "", volume, None))
