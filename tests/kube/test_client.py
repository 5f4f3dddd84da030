"""The verbs as they are on the wire, what is repeated, and how refusals look to a caller."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace
from tests.worlds.kube.ports import hold_port
from tests.worlds.kube.raw_server import Answer, RawServer, Request, reply
from tests.worlds.kube.small_api import SmallApi, status_body
from tests.worlds.kube.watching import Pod

from navarch.kube.client import Client, PatchType
from navarch.kube.connect import Endpoint
from navarch.kube.discovery import ServedNow
from navarch.kube.errors import (
    AlreadyExists,
    ApiError,
    BadRequest,
    Conflict,
    Forbidden,
    Gone,
    NotFound,
    OutcomeUnknown,
    ServerFault,
    TooManyRequests,
    Unauthorized,
    Unreachable,
)
from navarch.kube.resources import PODS, Resource
from navarch.kube.transport import SMALL_PIECE

NODES = Resource("", "v1", "nodes", namespaced=False)


async def test_get_decodes_into_the_type_asked_for(api: SmallApi, client: Client) -> None:
    body = {"metadata": {"name": "p", "uid": "u"}, "spec": {"nodeName": "n", "containers": []}}
    api.script.extend([(200, {}, body), (200, {}, body)])
    pod = await client.get(PODS, "p", namespace="default", type=Pod)
    assert (pod.metadata.uid, pod.spec.node_name) == ("u", "n")
    assert await client.get(PODS, "p", namespace="default") == body
    assert api.requests[-1].path == "/api/v1/namespaces/default/pods/p"


async def test_list_joins_pages_of_one_moment(api: SmallApi, client: Client) -> None:
    for number in range(7):
        api.put(f"p{number}")
    listing = await client.list(PODS, Pod, page_size=3, label_selector="a in (b,c)")
    assert [pod.metadata.name for pod in listing.items] == [f"p{number}" for number in range(7)]
    assert listing.resource_version == str(api.version)
    assert {request.query["labelSelector"] for request in api.requests} == {"a in (b,c)"}
    assert len(api.requests) == 3


async def test_a_list_whose_pages_expire_is_asked_for_in_one_piece(api: SmallApi, client: Client) -> None:
    api.put("p")
    first = {"kind": "PodList", "metadata": {"resourceVersion": "1", "continue": "x"}, "items": [{"metadata": {"name": "old"}}]}
    api.script.extend([(200, {}, first), (410, {}, status_body(410, "Expired"))])
    listing = await client.list(PODS, Pod)
    assert [pod.metadata.name for pod in listing.items] == ["p"]


@pytest.mark.parametrize("patch_type", list(PatchType))
async def test_patch_has_the_content_type_of_its_kind(api: SmallApi, client: Client, patch_type: PatchType) -> None:
    body: Any = [] if patch_type is PatchType.JSON else {"metadata": {"labels": {"a": "b"}}}
    await client.patch(PODS, "p", body, patch_type, namespace="d", subresource="status", field_manager="navarch", force=True)
    request = api.requests[-1]
    assert (request.method, request.path) == ("PATCH", "/api/v1/namespaces/d/pods/p/status")
    assert request.headers["Content-Type"] == patch_type.value
    assert dict(request.query) == {"fieldManager": "navarch", "force": "true"}
    assert json.loads(api.bodies[-1]) == body


async def test_create_update_and_delete(api: SmallApi, client: Client) -> None:
    await client.create(NODES, {"metadata": {"name": "n"}}, dry_run=True)
    assert (api.requests[-1].path, api.requests[-1].query["dryRun"]) == ("/api/v1/nodes", "All")
    await client.update(NODES, "n", msgspec.json.encode({"a": 1}), subresource="status")
    assert (api.requests[-1].method, api.requests[-1].path, api.bodies[-1]) == ("PUT", "/api/v1/nodes/n/status", b'{"a":1}')
    await client.delete(PODS, "p", namespace="d", uid="u", grace_period=0, propagation="Background")
    assert json.loads(api.bodies[-1]) == {
        "apiVersion": "v1",
        "kind": "DeleteOptions",
        "gracePeriodSeconds": 0,
        "preconditions": {"uid": "u"},
        "propagationPolicy": "Background",
    }


async def test_bind_and_evict_post_the_bodies_of_the_api(api: SmallApi, client: Client) -> None:
    await client.bind("d", "p", uid="u", node="n")
    assert api.requests[-1].path == "/api/v1/namespaces/d/pods/p/binding"
    assert json.loads(api.bodies[-1])["target"]["name"] == "n"
    await client.evict("d", "p", uid="u", grace_period=5)
    body = json.loads(api.bodies[-1])
    assert (body["apiVersion"], body["kind"]) == ("policy/v1", "Eviction")
    assert body["deleteOptions"] == {"gracePeriodSeconds": 5, "preconditions": {"uid": "u"}}


async def test_an_eviction_that_a_budget_refuses_is_told_at_once(api: SmallApi, client: Client) -> None:
    cause = {"reason": "DisruptionBudget", "message": "needs 2 healthy pods"}
    details = {"causes": [cause], "retryAfterSeconds": 10}
    api.script.append((429, {"Retry-After": "10"}, status_body(429, "TooManyRequests", details=details)))
    with pytest.raises(TooManyRequests) as caught:
        await client.evict("d", "p")
    assert caught.value.has_cause("DisruptionBudget") and caught.value.retry_after == 10
    assert len(api.requests) == 1


@pytest.mark.parametrize(
    ("code", "reason", "kind"),
    [
        (400, "BadRequest", BadRequest),
        (401, "Unauthorized", Unauthorized),
        (403, "Forbidden", Forbidden),
        (404, "NotFound", NotFound),
        (409, "Conflict", Conflict),
        (409, "AlreadyExists", AlreadyExists),
        (410, "Expired", Gone),
        (422, "Invalid", BadRequest),
        (500, "InternalError", ServerFault),
        (405, "MethodNotAllowed", ApiError),
    ],
)
async def test_a_refusal_has_its_type_and_the_status(
    api: SmallApi, client: Client, code: int, reason: str, kind: type[ApiError]
) -> None:
    status = status_body(code, reason, f"says {reason}", details={"name": "p", "kind": "pods"})
    api.script.extend([(code, {}, status)] * 2)
    with pytest.raises(kind) as caught:
        await client.get(PODS, "p", namespace="d")
    error = caught.value
    assert type(error) is kind
    assert (error.code, error.reason, error.message, error.details.name) == (code, reason, f"says {reason}", "p")
    assert str(error) == f"GET /api/v1/namespaces/d/pods/p: {code} {reason}: says {reason}"


async def test_a_refusal_that_is_no_status() -> None:
    async with RawServer(lambda _: reply(502, b"<html>Bad Gateway</html>")) as server, Client(Endpoint(server.url)) as client:
        with pytest.raises(ServerFault, match="<html>Bad Gateway</html>"):
            await client.get(PODS, "p", namespace="d")


@pytest.mark.parametrize("code", [429, 503, 500])
async def test_retry_after_is_honoured(api: SmallApi, client: Client, code: int) -> None:
    api.script.extend([(code, {"Retry-After": "0.25"}, status_body(code, "x"))] * 2)
    loop = asyncio.get_running_loop()
    before = loop.time()
    await client.create(NODES, {})
    assert loop.time() - before >= 0.5 and len(api.requests) == 3


async def test_a_write_that_was_refused_otherwise_is_not_repeated(api: SmallApi, client: Client) -> None:
    api.script.extend([(503, {}, status_body(503, "x"))] * 2)
    with pytest.raises(ServerFault):
        await client.create(NODES, {})
    assert len(api.requests) == 1


async def hang_up(_: Request, writer: asyncio.StreamWriter) -> None:
    writer.transport.abort()


async def test_a_read_whose_answer_is_lost_is_repeated_a_write_is_not() -> None:
    node = {"kind": "Node", "metadata": {"name": "n"}}
    server = RawServer(lambda request: hang_up if len(server.requests) < 3 else reply(200, json.dumps(node).encode()))
    async with server, Client(Endpoint(server.url)) as client:
        assert await client.get(NODES, "n") == node
        assert len(server.requests) == 3
        server.requests.clear()
        for write in (
            client.create(NODES, {}),
            client.bind("d", "p", uid="u", node="n"),
            client.patch(NODES, "n", {}, PatchType.MERGE),
        ):
            server.requests.clear()
            with pytest.raises(OutcomeUnknown, match="/api/v1/"):
                await write
            assert len(server.requests) == 1


async def test_a_server_that_does_not_answer_in_time(ahead: Callable[[float], None]) -> None:
    async def silence(_: Request, writer: asyncio.StreamWriter) -> None:
        return None

    async with RawServer(lambda _: silence) as server, Client(Endpoint(server.url)) as client:
        creating = asyncio.create_task(client.create(NODES, {}))
        await server.asked(1)
        ahead(31.0)
        with pytest.raises(OutcomeUnknown):
            await creating


async def test_a_stream_may_be_told_to_be_quiet_for_another_while_after_each_piece() -> None:
    async def one_piece(_: Request, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\none\r\n")

    patience = [60.0]
    async with RawServer(lambda _: one_piece) as server, Client(Endpoint(server.url)) as client:
        pieces = client.transport.stream("/api/v1/nodes", {}, idle_timeout=lambda: patience[0])
        assert await anext(pieces) == b"one"
        patience[0] = 0.05
        with pytest.raises(OutcomeUnknown):
            await anext(pieces)


async def test_a_stream_whose_pieces_are_gathered_loses_none_of_them() -> None:
    bodies = [f"{number}\n".encode() for number in range(20)] + [b"x" * (2 * SMALL_PIECE)]

    async def pieces_of_all_sizes(_: Request, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        for body in bodies:
            writer.write(b"%x\r\n%b\r\n" % (len(body), body))
            await writer.drain()
        writer.write(b"0\r\n\r\n")

    small: list[None] = []

    def gather() -> float:
        small.append(None)
        return 0.01

    async with RawServer(lambda _: pieces_of_all_sizes) as server, Client(Endpoint(server.url)) as client:
        stream = client.transport.stream("/api/v1/nodes", {}, idle_timeout=lambda: 60.0, gather=gather)
        got = [piece async for piece in stream]
    assert b"".join(got) == b"".join(bodies)
    assert len(small) == sum(len(piece) < SMALL_PIECE for piece in got)


async def test_a_port_without_a_listener_is_unreachable() -> None:
    with hold_port() as held:
        async with Client(Endpoint(f"http://127.0.0.1:{held.getsockname()[1]}"), attempts=2) as client:
            with pytest.raises(Unreachable):
                await client.bind("d", "p", uid="u", node="n")


async def test_discovery_asks_for_the_version_and_the_subresource(api: SmallApi, client: Client) -> None:
    listed = {"resources": [{"name": "podgroups", "kind": "PodGroup", "verbs": ["list"]}, {"name": "podgroups/status"}]}
    volcano = Resource("scheduling.volcano.sh", "v1beta1", "podgroups")
    older = Resource("scheduling.volcano.sh", "v1alpha1", "podgroups")
    api.script.append((200, {}, listed))
    assert await client.discovery.serves(volcano)
    api.script.append((200, {}, listed))
    assert await client.discovery.serves(volcano, "status")
    assert not await client.discovery.serves(volcano)
    api.script.extend([(404, {}, status_body(404, "NotFound")), (200, {}, listed)])
    assert await client.discovery.first_served([older, volcano]) == volcano
    assert await client.discovery.first_served([older]) is None


async def test_each_question_about_many_kinds_is_asked_once(api: SmallApi, client: Client) -> None:
    groups = {"groups": [{"versions": [{"groupVersion": "a.io/v1"}, {"groupVersion": "a.io/v2"}]}, {"versions": []}]}
    api.script.extend([(200, {}, groups), (200, {}, {"resources": [{"name": "xs"}]}), (200, {}, {"resources": [{"name": "ys"}]})])
    served = ServedNow(client.discovery)
    one, two, three = (Resource("a.io", f"v{number}", "xs") for number in (1, 2, 3))
    assert await served.first([three]) is None
    assert await served.first([three, two, one]) == two
    assert await served.first([two, replace(one, plural="ys")]) == two
    assert await served.first([replace(two, plural="ys"), replace(one, plural="ys")]) == replace(one, plural="ys")
    assert await served.first([replace(two, plural="zs"), replace(one, plural="zs")]) is None
    assert await served.first([NODES]) == NODES, "the core group is in another list"
    assert [request.path for request in api.requests] == ["/apis", "/apis/a.io/v2", "/apis/a.io/v1"]


@pytest.mark.parametrize("code", [403, 404])
async def test_without_a_list_of_groups_any_version_may_be_served(api: SmallApi, client: Client, code: int) -> None:
    api.script.append((code, {}, status_body(code, "no")))
    served = ServedNow(client.discovery)
    queues = Resource("a.io", "v1", "queues")
    assert await served.first([queues]) == queues
    api.script.append((200, {}, {"resources": [{"name": "queues"}]}))
    assert await served.first([replace(queues, version="v2"), queues]) == replace(queues, version="v2")


def test_paths_are_escaped_and_need_a_namespace() -> None:
    assert PODS.path() == "/api/v1/pods"
    assert PODS.path("d", "a/b") == "/api/v1/namespaces/d/pods/a%2Fb"
    assert NODES.path(None, "n") == "/api/v1/nodes/n"
    with pytest.raises(ValueError, match="expected a namespace"):
        PODS.path(None, "p")


async def test_a_write_that_is_not_allowed_any_more_is_not_repeated(api: SmallApi) -> None:
    allowed = [True]
    async with Client(Endpoint(api.url), may_write=lambda: allowed.pop() if allowed else False) as client:
        api.script.append((429, {"Retry-After": "0"}, {"reason": "TooManyRequests", "code": 429}))
        with pytest.raises(Unreachable, match="does not lead"):
            await client.create(PODS, {}, namespace="default")
        assert [request.method for request in api.requests] == ["POST"]
        await client.list(PODS)


STORE_TIMED_OUT = (503, {"Retry-After": "0"}, status_body(503, "etcdserver: request timed out"))


async def test_a_write_answered_with_5xx_and_then_not_allowed_may_have_been_done(api: SmallApi) -> None:
    allowed = [True]
    async with Client(Endpoint(api.url), may_write=lambda: allowed.pop() if allowed else False) as client:
        api.script.append(STORE_TIMED_OUT)
        with pytest.raises(OutcomeUnknown, match=r"may have been carried out .*timed out.*does not lead"):
            await client.create(PODS, {}, namespace="default")


async def test_a_write_answered_with_5xx_by_a_server_that_goes_away_may_have_been_done() -> None:
    async def last_words(_: Request, writer: asyncio.StreamWriter) -> None:
        server.listen_no_more()
        writer.write(reply(503, b"{}", "Retry-After: 0", "Connection: close"))

    server = RawServer(lambda _: last_words)
    async with server, Client(Endpoint(server.url), attempts=2) as client:
        with pytest.raises(OutcomeUnknown, match=r"may have been carried out .*cannot connect"):
            await client.create(NODES, {})


async def test_a_write_answered_with_5xx_and_then_put_off_may_have_been_done(api: SmallApi, client: Client) -> None:
    api.script.extend([STORE_TIMED_OUT, (429, {"Retry-After": "3600"}, status_body(429, "TooManyRequests"))])
    with pytest.raises(OutcomeUnknown, match="may have been carried out"):
        await client.create(NODES, {})


@pytest.mark.parametrize(("code", "kind"), [(429, TooManyRequests), (503, ServerFault)])
async def test_a_retry_after_longer_than_the_time_out_is_not_waited_for(
    api: SmallApi, client: Client, code: int, kind: type[ApiError]
) -> None:
    api.script.append((code, {"Retry-After": "3600"}, status_body(code, "x")))
    with pytest.raises(kind):
        await client.create(NODES, {})
    assert len(api.requests) == 1


@pytest.mark.parametrize("code", [301, 302, 307])
async def test_a_redirection_is_not_followed(code: int) -> None:
    """To a page that asks for a log-in, say: a POST would come back as a successful GET of it."""
    server = RawServer(lambda request: reply(200) if request.path == "/login" else reply(code, b"", "Location: /login"))
    async with server, Client(Endpoint(server.url), attempts=1) as client:
        for call in (client.create(NODES, {}), client.get(NODES, "n"), client.bind("d", "p", uid="u", node="n")):
            with pytest.raises(ApiError) as caught:
                await call
            assert caught.value.code == code
        with pytest.raises(ApiError):
            await anext(client.transport.stream("/api/v1/nodes", {}, idle_timeout=lambda: 5.0))
    assert not any(request.path == "/login" for request in server.requests)


class Logins:
    """Each fetch takes a while and gives another token."""

    def __init__(self) -> None:
        self.fetches = 0
        self._value: str | None = None
        self._lock = asyncio.Lock()

    def cached(self) -> str | None:
        return self._value

    async def authorization(self) -> str:
        async with self._lock:
            if self._value is None:
                self.fetches += 1
                await asyncio.sleep(0)
                self._value = f"Bearer {self.fetches}"
            return self._value

    def rejected(self) -> None:
        self._value = None


async def test_many_that_are_refused_at_once_log_in_once() -> None:
    """A token runs out under thirty watches: a log-in for each of them would take a minute."""
    waiting: list[asyncio.StreamWriter] = []

    async def gather(_: Request, writer: asyncio.StreamWriter) -> None:
        waiting.append(writer)
        if len(waiting) == 30:  # all are on their way with the old token when the first hears of it
            waiting.pop(0).write(reply(401))

    def answer(request: Request) -> Answer:
        if request.headers["authorization"] == "Bearer 1":
            return gather
        while waiting:  # and the others when it has another already
            waiting.pop().write(reply(401))
        return reply(200, json.dumps({"kind": "Node", "metadata": {"name": request.path.rpartition("/")[2]}}).encode())

    credentials = Logins()
    async with RawServer(answer) as server, Client(Endpoint(server.url, credentials=credentials)) as client:
        async with asyncio.timeout(60):
            await asyncio.gather(*(client.get(NODES, f"n{number}") for number in range(30)))
    assert credentials.fetches == 2
