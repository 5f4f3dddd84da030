"""Claims that the API server accepts and that would stop a careless scheduler: other pods are bound beside them."""

from __future__ import annotations

import pytest
from tests.worlds.live.claims import DEVICE_CLASSES, HOSTILE_SELECTORS, RESOURCE_CLAIMS, SLICES
from tests.worlds.live.cluster import World

pytestmark = pytest.mark.live


async def test_other_pods_are_bound_beside_hostile_claims(any_world: World) -> None:
    world = any_world
    node, gpu = f"n-{world.namespace}", f"gpu-{world.namespace}"
    await world.node(node, cpu="8")
    await world.clusterwide(DEVICE_CLASSES, {"metadata": {"name": gpu}, "spec": {}})
    pool = {"name": node, "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": "gpu.example.com", "nodeName": node, "pool": pool, "devices": [{"name": f"gpu-{i}"} for i in range(4)]}
    await world.clusterwide(SLICES, {"metadata": {"name": f"slice-{node}"}, "spec": spec})
    history = await world.watch()
    async with world.scheduler():
        for name, expression in HOSTILE_SELECTORS.items():
            exactly = {"deviceClassName": gpu, "count": 1, "selectors": [{"cel": {"expression": expression}}]}
            body = {"metadata": {"name": name}, "spec": {"devices": {"requests": [{"name": "one", "exactly": exactly}]}}}
            await world.client.create(RESOURCE_CLAIMS, body, namespace=world.namespace)
            await world.pod(name, resourceClaims=[{"name": "gpu", "resourceClaimName": name}])
        for i in range(3):
            await world.pod(f"good-{i}")
        await history.until_bound(3)
        assert history.bound() == [f"{world.namespace}/good-{i}" for i in range(3)]
        await world.eventually(lambda: world.events("regex"), bool)
    assert history.broken == []
