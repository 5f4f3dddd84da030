"""Verb by verb, what the client's words become on the wire: nothing is left out and nothing is added."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from typing import Any

import aiohttp
import pytest
from tests.worlds.kube.small_api import POD_LIST, SmallApi, status_body
from tests.worlds.kube.watching import Pod

from navarch.kube.client import Client, PatchType
from navarch.kube.errors import Gone, TooManyRequests
from navarch.kube.resources import PODS, Resource

NODES = Resource("", "v1", "nodes", namespaced=False)
POD = "/api/v1/namespaces/d/pods/p"
DELETE = {"apiVersion": "v1", "kind": "DeleteOptions"}
EVICTION = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "p", "namespace": "d"}}
MERGE = PatchType.MERGE
Call = Callable[[Client], Awaitable[object]]


@pytest.mark.parametrize(
    ("call", "method", "path", "query", "body"),
    [
        (lambda c: c.create(PODS, {}, namespace="d"), "POST", "/api/v1/namespaces/d/pods", {}, {}),
        (lambda c: c.create(PODS, {"a": 1}, namespace="d", name="p", subresource="eviction"), "POST", f"{POD}/eviction", {}, {"a": 1}),
        (lambda c: c.create(NODES, b'{"a":1}', dry_run=True), "POST", "/api/v1/nodes", {"dryRun": "All"}, {"a": 1}),
        (lambda c: c.update(PODS, "p", {"a": 1}, namespace="d"), "PUT", POD, {}, {"a": 1}),
        (lambda c: c.update(PODS, "p", {}, namespace="d", subresource="status"), "PUT", f"{POD}/status", {}, {}),
        (lambda c: c.patch(PODS, "p", {}, MERGE, namespace="d"), "PATCH", POD, {}, {}),
        (lambda c: c.patch(PODS, "p", {}, MERGE, namespace="d", dry_run=True), "PATCH", POD, {"dryRun": "All"}, {}),
        (lambda c: c.delete(PODS, "p", namespace="d"), "DELETE", POD, {}, DELETE),
        (lambda c: c.delete(PODS, "p", namespace="d", grace_period=0), "DELETE", POD, {}, {**DELETE, "gracePeriodSeconds": 0}),
        (
            lambda c: c.delete(PODS, "p", namespace="d", resource_version="7"),
            "DELETE",
            POD,
            {},
            {**DELETE, "preconditions": {"resourceVersion": "7"}},
        ),
        (
            lambda c: c.bind("d", "p", uid="u", node="n"),
            "POST",
            f"{POD}/binding",
            {},
            {
                "apiVersion": "v1",
                "kind": "Binding",
                "metadata": {"name": "p", "namespace": "d", "uid": "u"},
                "target": {"apiVersion": "v1", "kind": "Node", "name": "n"},
            },
        ),
        (lambda c: c.evict("d", "p"), "POST", f"{POD}/eviction", {}, EVICTION),
        (
            lambda c: c.evict("d", "p", grace_period=0, dry_run=True),
            "POST",
            f"{POD}/eviction",
            {},
            {**EVICTION, "deleteOptions": {"gracePeriodSeconds": 0, "dryRun": ["All"]}},
        ),
    ],
)
async def test_a_write_sends_its_method_path_query_and_body(
    api: SmallApi, client: Client, call: Call, method: str, path: str, query: dict[str, str], body: Any
) -> None:
    await call(client)
    (request,) = api.requests
    assert (request.method, request.path, dict(request.query)) == (method, path, query)
    assert json.loads(api.bodies[0]) == body


async def test_a_subresource_is_read(api: SmallApi, client: Client) -> None:
    pod = {"kind": "Pod", "metadata": {"name": "p"}}
    api.script.append((200, {}, pod))
    assert await client.get(PODS, "p", namespace="d", subresource="status") == pod
    assert api.requests[0].path == f"{POD}/status"


async def test_a_list_is_of_what_was_asked_for_on_every_page(api: SmallApi, client: Client) -> None:
    first = {"kind": "PodList", "metadata": {"resourceVersion": "5", "continue": "more"}, "items": [{"metadata": {"name": "a"}}]}
    api.script.extend([(200, {}, first), (200, {}, {**first, "metadata": {"resourceVersion": "5"}, "items": None})])
    found = await client.list(PODS, Pod, namespace="d", label_selector="x=y", field_selector="spec.nodeName=")
    assert ([pod.metadata.name for pod in found.items], found.resource_version) == (["a"], "5")
    asked = {"limit": "500", "labelSelector": "x=y", "fieldSelector": "spec.nodeName="}
    assert [dict(request.query) for request in api.requests] == [asked, {**asked, "continue": "more"}]
    assert {request.path for request in api.requests} == {"/api/v1/namespaces/d/pods"}


async def test_a_list_in_one_piece_has_no_limit(api: SmallApi, client: Client) -> None:
    api.put("p")
    await client.list(PODS, Pod, page_size=0)
    assert (api.requests[0].path, dict(api.requests[0].query)) == (POD_LIST, {})


async def test_a_list_that_expires_even_in_one_piece_is_told(api: SmallApi, client: Client) -> None:
    api.refuse[POD_LIST] = (410, status_body(410, "Expired"))
    with pytest.raises(Gone):
        await client.list(PODS, Pod)
    assert len(api.requests) == 2


@pytest.mark.parametrize("method", ["create", "update"])
async def test_a_given_number_of_attempts_is_not_exceeded(api: SmallApi, client: Client, method: str) -> None:
    refusal = status_body(429, "TooManyRequests")
    for _ in range(3):
        api.script.append((429, {"Retry-After": "0"}, refusal))
    words: tuple[Any, ...] = ({},) if method == "create" else ("n", {})
    with pytest.raises(TooManyRequests):
        await getattr(client, method)(NODES, *words, attempts=2)
    assert len(api.requests) == 2


async def test_a_client_that_is_left_keeps_no_connection(api: SmallApi, client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    sessions: list[aiohttp.ClientSession] = []
    new_session = aiohttp.ClientSession

    def session(*arguments: Any, **options: Any) -> aiohttp.ClientSession:
        sessions.append(made := new_session(*arguments, **options))
        return made

    monkeypatch.setattr(aiohttp, "ClientSession", session)
    async with client:
        await client.list(PODS, Pod)
        assert [each.closed for each in sessions] == [False]
    assert [each.closed for each in sessions] == [True]
