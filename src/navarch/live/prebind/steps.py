"""Every step of preparation, in the order in which they run before a binding."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from navarch.extenders import ExtenderClient
from navarch.kube.client import Client
from navarch.kube.resources import Resource
from navarch.live.core import LiveCore
from navarch.live.ops.policy_file import PolicyFile
from navarch.live.prebind.binding_conditions import BindingConditions, binding_timeout
from navarch.live.prebind.claim_access import ClaimAccess
from navarch.live.prebind.device_claims import DeviceClaims
from navarch.live.prebind.extended_resource_claims import ExtendedResourceClaims
from navarch.live.prebind.extender_binds import ExtenderBinds
from navarch.live.prebind.hooks import Hooks
from navarch.live.prebind.preparation import Preparations
from navarch.live.prebind.volumes import Volumes


class PrebindSteps:
    """`claim_resource()` is the version of ResourceClaim that is served now. `volume_timeout`: seconds to wait for volumes.
    `note_job`: see `engine.cycle.decide`."""

    def __init__(
        self,
        client: Client,
        core: LiveCore,
        policy_file: PolicyFile,
        extenders: ExtenderClient,
        clock: Callable[[], float],
        *,
        claim_resource: Callable[[], Resource],
        volume_timeout: float,
        note_job: Callable[[str], None] | None,
    ) -> None:
        cache = core.cache
        self.volumes = Volumes(client, cache, volume_timeout, progress=lambda bind: self.preparations.progress(bind))
        conditions = BindingConditions(cache, lambda: binding_timeout(policy_file.policy), clock)
        claims = ClaimAccess(client, cache, claim_resource, conditions, clock)
        self.device_claims = DeviceClaims(claims)
        self.extended_resource_claims = ExtendedResourceClaims(claims)
        self.hooks = Hooks(client, lambda: cache.cluster, lambda: policy_file.registry, note_job)
        self.preparations = Preparations(
            (self.volumes, self.device_claims, self.extended_resource_claims, self.hooks, ExtenderBinds(cache, extenders)),
            lambda bind, why: core.bind_failed(bind, why, asyncio.get_running_loop().time()),
            core.gangs.is_starting,
        )

    def for_request(self, uid: str) -> dict[str, Any]:
        """The fields of KAI's BindRequest that name the devices of the pod's claims."""
        return {**self.device_claims.for_request(uid), **self.extended_resource_claims.for_request(uid)}

    async def close(self) -> None:
        await self.preparations.close()
        await self.device_claims.close()
        await self.hooks.close()
