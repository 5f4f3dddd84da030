"""The servers that live tests run against: the embedded one, and a real kube-apiserver with the kinds that it lacks.

Not in `conftest`, which pytest imports under another name than tests do: numbers are given once.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest
from tests.worlds.kube.crds import until_served
from tests.worlds.live.cluster import GROUPS, NAMESPACES, QUEUES, World

from navarch import manifests
from navarch.embedded.api.server import ApiServer
from navarch.kube.client import Client
from navarch.kube.errors import AlreadyExists, NotFound
from navarch.kube.resources import CRDS, Resource
from navarch.views.published_state import CONFIG_MAPS, StateAddress

_numbers = itertools.count()


@contextlib.asynccontextmanager
async def embedded_world(folder: Path) -> AsyncIterator[World]:
    """A world of its own, on the embedded server."""
    async with ApiServer(taint_new_nodes=False) as started:
        made = World(started.kubeconfig(folder / "kubeconfig"), "default", folder)
        made.server = started
        try:
            yield made
        finally:
            await made.close()


@contextlib.asynccontextmanager
async def world_on(request: pytest.FixtureRequest, folder: Path, serve: Callable[[Client], Awaitable[None]]) -> AsyncIterator[World]:
    """On the server that the parameter names. The embedded one has every kind; kube-apiserver needs `serve`, and is shared by the
    session."""
    if request.param == "embedded":
        async with embedded_world(folder) as made:
            yield made
        return
    real = request.getfixturevalue("kube_apiserver")
    async with real_world(Path(real.kubeconfig), f"live-{next(_numbers)}", folder, serve) as made:
        yield made


@contextlib.asynccontextmanager
async def real_world(
    kubeconfig: Path, namespace: str, folder: Path, serve: Callable[[Client], Awaitable[None]] | None = None
) -> AsyncIterator[World]:
    """A namespace of a real server, which is left as it was found."""
    made = World(kubeconfig, namespace, folder)
    try:
        await forget_published_states(made.client)
        if serve is not None:
            await serve(made.client)
        await made.client.create(NAMESPACES, {"metadata": {"name": namespace}})
        yield made
    finally:
        try:
            await made.clean()
        finally:
            await made.close()


async def forget_published_states(client: Client) -> None:
    """Take away what schedulers of earlier tests published. Clients would read it, and look only at pods of those schedulers."""
    for found in (await client.list(CONFIG_MAPS, field_selector=f"metadata.name={StateAddress().name}")).items:
        with contextlib.suppress(NotFound):
            await client.delete(CONFIG_MAPS, StateAddress().name, namespace=found["metadata"]["namespace"])


async def serve_volcano(client: Client) -> None:
    """Volcano's kinds on a bare kube-apiserver."""
    await serve_kinds(client, GROUPS, QUEUES)


async def serve_kinds(client: Client, *kinds: Resource) -> None:
    """Our CRDs of these kinds' group on a bare kube-apiserver, until it serves them."""
    for crd in manifests.crds():
        if crd["spec"]["group"] in {kind.group for kind in kinds}:
            with contextlib.suppress(AlreadyExists):
                await client.create(CRDS, crd)
    await until_served(client, *kinds)
