"""The verbs of the Kubernetes API, one coroutine each, typed by the type that the caller decodes.

    async with Client(connect()) as client:
        pod = await client.get(PODS, "p", namespace="default", type=Pod)
        await client.bind("default", "p", uid=pod.metadata.uid, node="n1")

`type` is any type that msgspec decodes (a Struct of the fields that are read; unknown fields are skipped in C). Without it, plain
dicts are returned. Bodies are dicts, Structs or bytes of JSON. Refusals raise `errors.ApiError`.
"""

from __future__ import annotations

import asyncio
import enum
import functools
import random
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from typing import Any, Generic, Self, TypeVar, overload

import msgspec

from navarch.kube.connect import Endpoint
from navarch.kube.discovery import Discovery
from navarch.kube.errors import Gone
from navarch.kube.list_pages import Page, list_metadata
from navarch.kube.resources import PODS, Resource
from navarch.kube.transport import Transport
from navarch.kube.watch.decoding import decoded

T = TypeVar("T")
PAGE_SIZE = 500
"""client-go's page size: a page of pods is a few megabytes."""
PAGE_TIMEOUT = 60.0


class PatchType(enum.Enum):
    """The content types of PATCH. Strategic merge exists for built-in kinds only (a CRD answers 415)."""

    JSON = "application/json-patch+json"
    MERGE = "application/merge-patch+json"
    STRATEGIC = "application/strategic-merge-patch+json"
    APPLY = "application/apply-patch+yaml"


class Listing(msgspec.Struct, Generic[T], frozen=True):
    """A whole list. All pages show the same moment, `resource_version`."""

    items: list[T]
    resource_version: str


@functools.lru_cache(maxsize=256)
def decoder_for(kind: Any) -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(kind)


def encode(body: Any) -> bytes:
    """JSON of a dict or Struct; bytes are taken as JSON already."""
    return body if isinstance(body, bytes) else msgspec.json.encode(body)


class Client:
    """One API server, verb by verb."""

    def __init__(self, endpoint: Endpoint, *, rng: random.Random | None = None, **transport_options: Any) -> None:
        self.endpoint = endpoint
        self.transport = Transport(endpoint, rng=rng, **transport_options)
        self.discovery = Discovery(self.transport)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        await self.transport.close()

    @overload
    async def get(
        self, resource: Resource, name: str, *, namespace: str | None = None, subresource: str | None = None
    ) -> dict[str, Any]: ...
    @overload
    async def get(
        self,
        resource: Resource,
        name: str,
        *,
        namespace: str | None = None,
        subresource: str | None = None,
        type: type[T],
    ) -> T: ...
    async def get(
        self,
        resource: Resource,
        name: str,
        *,
        namespace: str | None = None,
        subresource: str | None = None,
        type: Any = dict[str, Any],
    ) -> Any:
        """One object. Raises `NotFound`."""
        path = resource.path(namespace, name, subresource)
        return decoded(decoder_for(type), await self.transport.request("GET", path), "GET", path)

    async def pages(
        self,
        resource: Resource,
        type: type[T],
        *,
        namespace: str | None = None,
        label_selector: str = "",
        field_selector: str = "",
        page_size: int = PAGE_SIZE,
    ) -> AsyncIterator[Page[T]]:
        """A list page by page, all of one moment. An expired continuation raises `Gone`; the caller starts again.

        Values that are nested too deep for the decoder become null, so that one object does not hide the others."""
        decoder = decoder_for(Page[type])  # type: ignore[valid-type]
        bodies = self.page_bodies(
            resource, namespace=namespace, label_selector=label_selector, field_selector=field_selector, page_size=page_size
        )
        async with aclosing(bodies):
            async for body in bodies:
                yield decoded(decoder, body, "GET", resource.path(namespace), whole=False)

    async def page_bodies(
        self,
        resource: Resource,
        *,
        namespace: str | None = None,
        label_selector: str = "",
        field_selector: str = "",
        page_size: int = PAGE_SIZE,
        ahead: bool = False,
    ) -> AsyncGenerator[bytes, None]:
        """The pages of a list, undecoded. `ahead`: the next page is requested before a page is passed on. The server then encodes the
        one while the caller reads the other."""
        params: dict[str, str | int] = {"limit": page_size} if page_size else {}
        if label_selector:
            params["labelSelector"] = label_selector
        if field_selector:
            params["fieldSelector"] = field_selector
        path = resource.path(namespace)
        body = await self.transport.request("GET", path, params=params, timeout=PAGE_TIMEOUT)
        while following := list_metadata(body, path).next:
            params["continue"] = following
            if not ahead:
                yield body
                body = await self.transport.request("GET", path, params=params, timeout=PAGE_TIMEOUT)
                continue
            coming = asyncio.ensure_future(self.transport.request("GET", path, params=dict(params), timeout=PAGE_TIMEOUT))
            try:
                await asyncio.sleep(0)  # it is sent now
                yield body
                body = await coming
            finally:
                coming.cancel()
        yield body

    async def list(
        self,
        resource: Resource,
        type: Any = dict[str, Any],
        *,
        namespace: str | None = None,
        label_selector: str = "",
        field_selector: str = "",
        page_size: int = PAGE_SIZE,
    ) -> Listing[Any]:
        """All objects of a kind. If pages expire meanwhile, everything is fetched again in one reply."""
        for size in (page_size, 0):
            items: list[Any] = []
            version = ""
            try:
                async for page in self.pages(
                    resource,
                    type,
                    namespace=namespace,
                    label_selector=label_selector,
                    field_selector=field_selector,
                    page_size=size,
                ):
                    items.extend(page.items or ())
                    version = page.metadata.resource_version
            except Gone:
                if size == 0:
                    raise
                continue
            return Listing(items, version)
        raise AssertionError("unreachable: the unpaged list returns or raises")

    async def create(
        self,
        resource: Resource,
        body: Any,
        *,
        namespace: str | None = None,
        name: str | None = None,
        subresource: str | None = None,
        dry_run: bool = False,
        type: Any = dict[str, Any],
        attempts: int | None = None,
    ) -> Any:
        """POST an object to its collection, or a body to a subresource of the named one."""
        path = resource.path(namespace, name, subresource)
        params = {"dryRun": "All"} if dry_run else None
        reply = await self.transport.request("POST", path, params=params, body=encode(body), attempts=attempts)
        return decoded(decoder_for(type), reply, "POST", path)

    async def update(
        self,
        resource: Resource,
        name: str,
        body: Any,
        *,
        namespace: str | None = None,
        subresource: str | None = None,
        type: Any = dict[str, Any],
        timeout: float | None = None,
        attempts: int | None = None,
    ) -> Any:
        """PUT the whole object. An outdated `metadata.resourceVersion` in it raises `Conflict`."""
        path = resource.path(namespace, name, subresource)
        reply = await self.transport.request("PUT", path, body=encode(body), timeout=timeout, attempts=attempts)
        return decoded(decoder_for(type), reply, "PUT", path)

    async def patch(
        self,
        resource: Resource,
        name: str,
        body: Any,
        patch_type: PatchType,
        *,
        namespace: str | None = None,
        subresource: str | None = None,
        field_manager: str = "",
        force: bool = False,
        dry_run: bool = False,
        type: Any = dict[str, Any],
    ) -> Any:
        """PATCH in any of the four forms. `APPLY` needs `field_manager`; `force` is only for `APPLY`."""
        params: dict[str, str | int] = {}
        if field_manager:
            params["fieldManager"] = field_manager
        if force:
            params["force"] = "true"
        if dry_run:
            params["dryRun"] = "All"
        path = resource.path(namespace, name, subresource)
        reply = await self.transport.request("PATCH", path, params=params, body=encode(body), content_type=patch_type.value)
        return decoded(decoder_for(type), reply, "PATCH", path)

    async def delete(
        self,
        resource: Resource,
        name: str,
        *,
        namespace: str | None = None,
        grace_period: int | None = None,
        uid: str | None = None,
        resource_version: str | None = None,
        propagation: str | None = None,
    ) -> dict[str, Any]:
        """DELETE one object; a uid or resourceVersion that does not match raises `Conflict`."""
        options: dict[str, Any] = {"apiVersion": "v1", "kind": "DeleteOptions"}
        if grace_period is not None:
            options["gracePeriodSeconds"] = grace_period
        preconditions = {"uid": uid, "resourceVersion": resource_version}
        if uid or resource_version:
            options["preconditions"] = {key: value for key, value in preconditions.items() if value}
        if propagation is not None:
            options["propagationPolicy"] = propagation
        path = resource.path(namespace, name)
        body = await self.transport.request("DELETE", path, body=encode(options))
        answer: dict[str, Any] = decoded(decoder_for(dict[str, Any]), body, "DELETE", path, whole=False)
        return answer

    async def bind(self, namespace: str, name: str, *, uid: str, node: str) -> None:
        """Bind a pod to a node. `Conflict`: it is bound already, being deleted, gated, or another pod of that name."""
        path = PODS.path(namespace, name, "binding")
        await self.transport.request("POST", path, body=binding(namespace, name, uid, node))

    async def evict(self, namespace: str, name: str, *, uid: str = "", grace_period: int | None = None, dry_run: bool = False) -> None:
        """Evict a pod. `TooManyRequests` (not repeated here): a disruption budget does not allow it now."""
        path = PODS.path(namespace, name, "eviction")
        body = encode(eviction(namespace, name, uid, grace_period, dry_run))
        await self.transport.request("POST", path, body=body, attempts=1)


def binding(namespace: str, name: str, uid: str, node: str) -> bytes:
    """The body of `pods/binding`. The uid prevents binding a later pod of the same name."""
    return msgspec.json.encode(
        {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {"name": name, "namespace": namespace, "uid": uid},
            "target": {"apiVersion": "v1", "kind": "Node", "name": node},
        }
    )


def eviction(namespace: str, name: str, uid: str, grace_period: int | None, dry_run: bool = False) -> dict[str, Any]:
    """The body of `pods/eviction`."""
    options: dict[str, Any] = {}
    if grace_period is not None:
        options["gracePeriodSeconds"] = grace_period
    if uid:
        options["preconditions"] = {"uid": uid}
    if dry_run:
        options["dryRun"] = ["All"]
    body: dict[str, Any] = {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": name, "namespace": namespace},
    }
    if options:
        body["deleteOptions"] = options
    return body
