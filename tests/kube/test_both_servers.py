"""The same promises on the embedded API server and on a real kube-apiserver."""

from __future__ import annotations

import asyncio
import random

import pytest
from tests.worlds.kube.crds import name_of, serve
from tests.worlds.kube.servers import NODES, Live
from tests.worlds.kube.watching import Pod, Recorder, informing

from navarch.kube.auth.credentials import StaticCredentials
from navarch.kube.client import Client, PatchType
from navarch.kube.connect import Endpoint
from navarch.kube.errors import AlreadyExists, BadRequest, Conflict, Forbidden, NotFound, Unauthorized
from navarch.kube.resources import CRDS, EVENTS, LEASES, PODS, Resource
from navarch.kube.watch.informer_group import InformerGroup
from navarch.kube.write.http1 import Reply
from navarch.kube.write.pool import Outcome, Priority, Write, WritePool, bind_write
from navarch.live.ops.election import Elector
from navarch.live.ops.lease import ApiLeaseLock

pytestmark = pytest.mark.live
CONFIG_MAPS = Resource("", "v1", "configmaps")


async def test_each_verb_acts_or_raises_its_error(live: Live) -> None:
    client, namespace = live.client, live.namespace
    await live.node("n1")
    made = await live.pod("p")
    with pytest.raises(AlreadyExists):
        await live.pod("p")
    pod = await client.get(PODS, "p", namespace=namespace, type=Pod)
    assert pod.metadata.uid == made["metadata"]["uid"] and pod.spec.node_name == ""
    with pytest.raises(NotFound) as missing:
        await client.get(PODS, "none", namespace=namespace)
    assert missing.value.details.name == "none"
    with pytest.raises(BadRequest) as invalid:
        await client.create(PODS, {"metadata": {"name": "No_Name"}, "spec": {"containers": []}}, namespace=namespace)
    assert invalid.value.code == 422 and invalid.value.details.causes
    await client.delete(PODS, "p", namespace=namespace, grace_period=0)
    with pytest.raises(NotFound):
        await client.get(PODS, "p", namespace=namespace)


async def test_an_update_of_an_old_version_conflicts(live: Live) -> None:
    client, namespace = live.client, live.namespace
    first = await client.create(CONFIG_MAPS, {"metadata": {"name": "m"}, "data": {"a": "1"}}, namespace=namespace)
    await client.update(CONFIG_MAPS, "m", {**first, "data": {"a": "2"}}, namespace=namespace)
    with pytest.raises(Conflict, match="modified"):
        await client.update(CONFIG_MAPS, "m", {**first, "data": {"a": "3"}}, namespace=namespace)


async def test_every_kind_of_patch(live: Live) -> None:
    client, namespace = live.client, live.namespace
    await live.pod("p")
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/0 nodes"}
    other = {"type": "Other", "status": "True"}
    for each in (condition, other):
        body = {"status": {"conditions": [each]}}
        got = await client.patch(PODS, "p", body, PatchType.STRATEGIC, namespace=namespace, subresource="status")
    assert {each["type"] for each in got["status"]["conditions"]} == {"PodScheduled", "Other"}
    merge = {"metadata": {"labels": {"a": "1"}}}
    got = await client.patch(PODS, "p", merge, PatchType.MERGE, namespace=namespace)
    steps = [{"op": "replace", "path": "/metadata/labels/a", "value": "2"}]
    got = await client.patch(PODS, "p", steps, PatchType.JSON, namespace=namespace)
    assert got["metadata"]["labels"] == {"a": "2"}
    apply = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m"}, "data": {"a": "1"}}
    got = await client.patch(CONFIG_MAPS, "m", apply, PatchType.APPLY, namespace=namespace, field_manager="navarch")
    assert got["data"] == {"a": "1"}


async def test_a_pod_is_bound_once(live: Live) -> None:
    client, namespace = live.client, live.namespace
    await live.node("n1")
    made = await live.pod("p")
    uid = made["metadata"]["uid"]
    with pytest.raises(Conflict):
        await client.bind(namespace, "p", uid="another", node="n1")
    await client.bind(namespace, "p", uid=uid, node="n1")
    with pytest.raises(Conflict):
        await client.bind(namespace, "p", uid=uid, node="n2")
    assert (await client.get(PODS, "p", namespace=namespace, type=Pod)).spec.node_name == "n1"


async def test_an_eviction_removes_the_pod_of_that_uid_only(live: Live) -> None:
    made = await live.pod("p")
    if live.embedded is not None:  # a real one tries for ten seconds before it says so
        with pytest.raises(Conflict):
            await live.client.evict(live.namespace, "p", uid="another")
    await live.client.evict(live.namespace, "p", uid=made["metadata"]["uid"])
    with pytest.raises(NotFound):
        await live.client.get(PODS, "p", namespace=live.namespace)


async def test_unknown_kinds_and_strangers_are_refused(live: Live) -> None:
    client = live.client
    assert await client.discovery.serves(PODS, "binding") and await client.discovery.serves(LEASES)
    assert not await client.discovery.serves(Resource("nobody.example.com", "v1", "things"))
    with pytest.raises(NotFound):
        await client.list(Resource("nobody.example.com", "v1", "things"))
    stranger = Endpoint(live.endpoint.server, live.endpoint.tls, StaticCredentials.token("wrong"))
    async with Client(stranger) as nobody:
        with pytest.raises((Unauthorized, Forbidden)):
            await nobody.list(PODS)


async def test_a_list_of_several_pages_is_one_list(live: Live) -> None:
    for number in range(7):
        await live.pod(f"p{number}")
    listing = await live.client.list(PODS, Pod, namespace=live.namespace, page_size=3)
    assert [pod.metadata.name for pod in listing.items] == [f"p{number}" for number in range(7)]
    assert int(listing.resource_version) > 0


@pytest.mark.parametrize("watch_list", [True, False], ids=["watch-list", "list-then-watch"])
async def test_an_informer_follows(live: Live, watch_list: bool) -> None:
    seen = Recorder()
    await live.pod("before")
    async with informing(live.client, seen, namespace=live.namespace, paged=not watch_list) as informer:
        assert informer.watch_list == watch_list
        assert seen.story == [("added", "before")]
        made = await live.pod("p")
        await seen.heard("added", "p")
        await live.client.bind(live.namespace, "p", uid=made["metadata"]["uid"], node="n1")
        await seen.heard("updated", "p")
        assert informer.store[live.namespace, "p"].spec.node_name == "n1"
        await live.client.delete(PODS, "before", namespace=live.namespace, grace_period=0)
        await seen.heard("deleted", "before")


async def test_leaving_a_selector_is_a_deletion(live: Live) -> None:
    seen = Recorder()
    made = await live.pod("p")
    selector = "spec.nodeName=,spec.schedulerName=navarch"
    async with informing(live.client, seen, namespace=live.namespace, field_selector=selector):
        assert seen.story == [("added", "p")]
        await live.client.bind(live.namespace, "p", uid=made["metadata"]["uid"], node="n1")
        await seen.heard("deleted", "p")


async def test_a_crd_that_comes_is_watched(live: Live) -> None:
    group_name = f"{live.namespace}.example.com"
    widgets = Resource(group_name, "v1", "widgets")
    seen = Recorder()
    group = InformerGroup(live.client)
    informer = group.add(widgets, Pod, seen, optional=True, on_bad=seen.on_bad)
    task = asyncio.create_task(group.run())
    async with asyncio.timeout(300):
        await group.wait_for_sync()
        assert informer.absent
        await serve(live.client, widgets, "Widget")
        body = {"apiVersion": f"{group_name}/v1", "kind": "Widget", "metadata": {"name": "w"}, "spec": {"priority": "odd"}}
        await live.client.create(widgets, body, namespace=live.namespace)
        await seen.until(lambda: {name for name, _ in seen.bad} == {"w"})
        patch = {"spec": {"priority": 3}}
        await live.client.patch(widgets, "w", patch, PatchType.MERGE, namespace=live.namespace)
        await seen.heard("added", "w")
        await live.client.delete(CRDS, name_of(widgets))
        await seen.heard("deleted", "w")
    task.cancel()
    await asyncio.wait([task])


async def test_many_bindings_through_the_pool(live: Live) -> None:
    await live.node("n1")
    pods = await asyncio.gather(*(live.pod(f"p{number}") for number in range(100)))
    pool = WritePool(live.endpoint)
    told: dict[str, list[Outcome]] = {}
    for pod in pods:
        name, uid = pod["metadata"]["name"], pod["metadata"]["uid"]
        outcomes = told.setdefault(name, [])
        for node in ("n1", "n2"):  # two that want the same pod: one wins
            pool.submit(bind_write(live.namespace, name, uid, node), outcomes.append)
    assert await pool.drain(timeout=120)
    await pool.close()
    listing = await live.client.list(PODS, Pod, namespace=live.namespace)
    assert len(listing.items) == 100 and all(pod.spec.node_name in ("n1", "n2") for pod in listing.items)
    for outcomes in told.values():
        assert sorted(type(outcome).__name__ for outcome in outcomes) == ["Conflict", "Reply"]


async def test_status_and_events_through_the_pool(live: Live) -> None:
    await live.pod("p")
    pool = WritePool(live.endpoint)
    condition = b'{"status":{"conditions":[{"type":"PodScheduled","status":"False","reason":"Unschedulable"}]}}'
    patch = Write("PATCH", PODS.path(live.namespace, "p", "status"), condition, PatchType.STRATEGIC.value, repeatable=True)
    event = (
        b'{"apiVersion":"events.k8s.io/v1","kind":"Event","metadata":{"name":"p.1"},"eventTime":"2026-01-01T00:00:00.000000Z",'
        b'"reportingController":"navarch","reportingInstance":"navarch-0","action":"Scheduling","reason":"FailedScheduling",'
        b'"note":"0/0 nodes are available","type":"Warning","regarding":{"kind":"Pod","namespace":"%s","name":"p"}}'
    ) % live.namespace.encode()
    post = Write("POST", EVENTS.path(live.namespace), event, priority=Priority.EVENT)
    replies = await asyncio.gather(pool.request(patch), pool.request(post))
    await pool.close()
    assert [reply.status for reply in replies] == [200, 201] and all(isinstance(reply, Reply) for reply in replies)
    found = await live.client.get(EVENTS, "p.1", namespace=live.namespace)
    assert found["reason"] == "FailedScheduling"


async def test_two_electors_on_one_lease(live: Live) -> None:
    async def elect(name: str, seed: int, working: asyncio.Event) -> None:
        async def lead() -> None:
            working.set()
            await asyncio.Event().wait()

        lock = ApiLeaseLock(live.client, live.namespace, "navarch")
        elector = Elector(lock, name, rng=random.Random(seed), lease_duration=600.0, renew_deadline=400.0, retry_period=0.2)
        await elector.run(lead)

    a_leads, b_leads = asyncio.Event(), asyncio.Event()
    a = asyncio.create_task(elect("a", 1, a_leads))
    async with asyncio.timeout(120):
        await a_leads.wait()
        b = asyncio.create_task(elect("b", 2, b_leads))
        lease = await live.client.get(LEASES, "navarch", namespace=live.namespace)
        assert lease["spec"]["holderIdentity"] == "a" and not b_leads.is_set()
        a.cancel()
        await b_leads.wait()
        lease = await live.client.get(LEASES, "navarch", namespace=live.namespace)
        assert (lease["spec"]["holderIdentity"], lease["spec"]["leaseTransitions"]) == ("b", 1)
        b.cancel()
        await asyncio.wait([a, b])
        lease = await live.client.get(LEASES, "navarch", namespace=live.namespace)
        assert lease["spec"].get("holderIdentity", "") == ""


async def test_nodes_have_no_namespace(live: Live) -> None:
    await live.node("n1")
    seen = Recorder()
    async with informing(live.client, seen, NODES) as informer:
        assert ("", "n1") in informer.store
