"""An informer over real HTTP: what its handler hears when the server behaves, and when it does not."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable

import msgspec
import pytest
from msgspec.structs import replace
from tests.worlds.kube.small_api import SmallApi, status_body
from tests.worlds.kube.watching import QUICK, Pod, Recorder, informing

from navarch.kube.client import Client
from navarch.kube.connect import Endpoint
from navarch.kube.errors import ConfigError
from navarch.kube.resources import PODS, Resource
from navarch.kube.transport import Params

QUEUES = "/apis/scheduling.volcano.sh/v1beta1/queues"


@pytest.fixture(params=["watch-list", "list-then-watch"])
async def each_api(request: pytest.FixtureRequest, api: SmallApi) -> SmallApi:
    api.watch_list = request.param == "watch-list"
    return api


async def test_tells_what_is_there_and_then_each_change(each_api: SmallApi, client: Client) -> None:
    api, seen = each_api, Recorder()
    api.put("a")
    api.put("b")
    async with informing(client, seen) as informer:
        assert seen.story == [("added", "a"), ("added", "b")]
        await api.watch_started.wait()
        api.put("a", spec={"nodeName": "n1"})
        api.put("c")
        api.remove("b")
        await seen.heard("deleted", "b")
    assert seen.story[2:] == [("updated", "a"), ("added", "c"), ("deleted", "b")]
    assert informer.store["default", "a"].spec.node_name == "n1"
    assert informer.resource_version == str(api.version)
    assert (informer.counters.events, informer.counters.lists, informer.counters.failures) == (3, 1, 0)


async def test_an_empty_kind_is_in_sync(each_api: SmallApi, client: Client) -> None:
    async with informing(client, Recorder()) as informer:
        assert informer.synced and informer.store == {}
        assert informer.counters.last_contact is not None


async def test_pages_of_a_long_list_are_joined(api: SmallApi, client: Client) -> None:
    api.watch_list = False
    for number in range(1203):
        api.put(f"p{number:04}")
    seen = Recorder()
    async with informing(client, seen):
        assert len(seen.alive) == 1203
    lists = [request for request in api.requests if request.query.get("watch") != "true"]
    assert [request.query.get("continue") for request in lists] == [None, "500", "1000"]


async def test_pages_that_expire_are_listed_in_one_piece(api: SmallApi, client: Client) -> None:
    api.watch_list = False
    for number in range(700):
        api.put(f"p{number}")
    first = {"kind": "PodList", "metadata": {"resourceVersion": "1", "continue": "500"}, "items": []}
    api.script.extend([(422, {}, status_body(422, "Invalid")), (200, {}, first), (410, {}, status_body(410, "Expired"))])
    seen = Recorder()
    async with informing(client, seen) as informer:
        assert len(seen.alive) == 700
        assert informer.counters.failures == 0, "nor is it waited for as after a failure"


@pytest.mark.parametrize("how", ["cut", "end"])
async def test_a_stream_that_ends_is_resumed_where_it_was(each_api: SmallApi, client: Client, how: str) -> None:
    api, seen = each_api, Recorder()
    api.put("a")
    async with informing(client, seen) as informer:
        for round_number in range(5):
            await api.watch_started.wait()
            api.watch_started.clear()
            api.cut_watches() if how == "cut" else api.end_watches()
            api.put(f"b{round_number}")
            await seen.heard("added", f"b{round_number}")
        assert informer.counters.lists == 1
    assert len(seen.story) == 6


@pytest.mark.parametrize("form", ["reply", "event"])
async def test_410_lists_again_and_tells_the_difference_only(each_api: SmallApi, client: Client, form: str) -> None:
    api, seen = each_api, Recorder()
    for name in ("same", "changed", "vanished", "reborn"):
        api.put(name)
    async with informing(client, seen) as informer:
        await api.watch_started.wait()
        seen.story.clear()
        # The handler does not hear of these: they happen while the stream is down and its history is lost.
        watchers, api.watchers = api.watchers, []
        api.put("changed", spec={"priority": 7})
        api.remove("vanished", quietly=True)
        api.remove("reborn", quietly=True)
        api.put("reborn", uid="another")
        api.put("new")
        api.forget_history()
        api.watchers = watchers
        api.history.clear()
        if form == "event":
            api.send_raw(msgspec.json.encode({"type": "ERROR", "object": status_body(410, "Expired", "too old")}) + b"\n")
        else:
            api.version += 1
            api.compacted = api.version
            api.cut_watches()
        await seen.heard("added", "new")
        assert informer.counters.lists == 2
    assert sorted(seen.story) == sorted(
        [("deleted", "vanished"), ("updated", "changed"), ("deleted", "reborn"), ("added", "reborn"), ("added", "new")]
    )
    assert seen.story[0] == ("deleted", "vanished")


async def test_a_bookmark_moves_the_version_on(api: SmallApi, client: Client) -> None:
    """Nothing has changed for so long that the version of the last change is history."""
    seen = Recorder()
    api.put("a")
    async with informing(client, seen) as informer:
        api.version += 500
        api.bookmark()
        async with asyncio.timeout(60):
            while informer.resource_version != str(api.version):
                await asyncio.sleep(0)
        api.forget_history()
        api.cut_watches()
        api.put("b")
        await seen.heard("added", "b")
        assert informer.counters.lists == 1


async def test_a_server_that_went_back_in_time_is_listed_again(api: SmallApi, client: Client) -> None:
    api.put("old")
    seen = Recorder()
    async with informing(client, seen):
        api.collections["/api/v1/pods"].clear()
        api.history.clear()
        api.version = 5
        api.cut_watches()
        api.put("restored")
        await seen.heard("added", "restored")
    assert seen.story == [("added", "old"), ("deleted", "old"), ("added", "restored")]


async def test_a_bad_object_is_set_aside_and_the_rest_goes_on(each_api: SmallApi, client: Client) -> None:
    api, seen = each_api, Recorder()
    api.put("bad", spec={"priority": "high"})
    api.put("good")
    async with informing(client, seen) as informer:
        assert seen.story == [("added", "good")]
        assert [name for name, _ in seen.bad] == ["bad"] and "$.spec.priority" in seen.bad[0][1]
        await api.watch_started.wait()
        api.put("good", spec={"priority": "also high"})
        api.put("later")
        await seen.heard("added", "later")
        # What was good before stands until it is deleted, even though its last version cannot be read.
        assert informer.store["default", "good"].spec.priority == 0
        api.remove("good")
        api.put("bad", spec={"priority": 3})
        await seen.heard("added", "bad")
    assert seen.story == [("added", "good"), ("added", "later"), ("deleted", "good"), ("added", "bad")]
    assert informer.counters.bad_objects == 2


async def test_a_bad_object_counts_as_present_when_listed_again(api: SmallApi, client: Client) -> None:
    api.put("turns-bad")
    seen = Recorder()
    async with informing(client, seen):
        api.put("turns-bad", spec=[])
        await seen.until(lambda: bool(seen.bad))
        api.forget_history()
        api.version += 1
        api.compacted += 1
        api.cut_watches()
        api.put("b")
        await seen.heard("added", "b")
    assert seen.story == [("added", "turns-bad"), ("added", "b")]
    assert len(seen.bad) == 1


async def test_a_handler_that_raises_harms_its_own_object_only(api: SmallApi, client: Client) -> None:
    class Picky(Recorder):
        def added(self, new: Pod) -> None:
            if new.metadata.name == "odd":
                raise ValueError("no queue of that name")
            super().added(new)

    seen = Picky()
    api.put("odd")
    api.put("plain")
    async with informing(client, seen):
        assert seen.story == [("added", "plain")]
        assert seen.bad == [("odd", "no queue of that name")]


async def test_bytes_that_are_no_json_break_the_stream_not_the_informer(api: SmallApi, client: Client) -> None:
    seen = Recorder()
    async with informing(client, seen):
        await api.watch_started.wait()
        api.watch_started.clear()
        api.send_raw(b'{"type": "ADDED", "object"\n')
        await api.watch_started.wait()
        api.put("a")
        await seen.heard("added", "a")


async def test_half_a_line_of_a_stream_that_broke_is_no_part_of_the_next(api: SmallApi, client: Client) -> None:
    seen = Recorder()
    async with informing(client, seen) as informer:
        api.send_raw(b'{"type": "ADDED", "object": {"metadata": {"na')
        api.cut_watches()
        api.put("a")
        await seen.heard("added", "a")
        assert informer.counters.failures == 1


async def test_lines_in_small_pieces(api: SmallApi, client: Client) -> None:
    seen = Recorder()
    async with informing(client, seen):
        metadata = {"name": "slow", "uid": "slow", "resourceVersion": "900"}
        line = msgspec.json.encode({"type": "ADDED", "object": {"metadata": metadata}})
        for start in range(0, len(line), 7):
            api.send_raw(line[start : start + 7])
        api.send_raw(b"\n" + line.replace(b"slow", b"next").replace(b"900", b"901") + b"\n")
        await seen.heard("added", "next")
    assert seen.story == [("added", "slow"), ("added", "next")]


async def test_a_change_that_comes_with_the_end_of_the_initial_events_is_heard(api: SmallApi, client: Client) -> None:
    """In one piece: nothing would ever tell of it again."""
    api.end_initial = False
    api.put("a")
    seen = Recorder()
    async with informing(client, seen, sync=False) as informer:
        await api.watch_started.wait()
        metadata = {"name": "b", "namespace": "default", "uid": "uid-b", "resourceVersion": "900"}
        change = msgspec.json.encode({"type": "ADDED", "object": {"metadata": metadata}}) + b"\n"
        api.send_raw(api.bookmark_line(api.version, end=True) + change)
        await seen.heard("added", "b")
        assert (seen.story, informer.resource_version) == ([("added", "a"), ("added", "b")], "900")


async def test_initial_events_that_go_on_and_on_are_listed_instead(api: SmallApi, client: Client) -> None:
    api.end_initial = False
    seen = Recorder()

    async def change() -> None:
        while True:
            api.put("a")
            await asyncio.sleep(0.01)

    changing = asyncio.create_task(change())
    async with informing(client, seen, patience=replace(QUICK, initial_total=0.1)):
        assert seen.story[0] == ("added", "a")
    changing.cancel()
    await asyncio.gather(changing, return_exceptions=True)


async def test_a_server_that_never_ends_the_initial_events_is_listed(api: SmallApi, client: Client) -> None:
    api.end_initial = False
    api.put("a")
    seen = Recorder()
    async with informing(client, seen, patience=replace(QUICK, initial_idle=0.2, initial_total=0.5)) as informer:
        assert seen.story == [("added", "a")]
        assert informer.counters.streams >= 2


async def test_a_silent_watch_is_opened_again(api: SmallApi, client: Client) -> None:
    patience = replace(QUICK, idle=0.1)
    async with informing(client, Recorder(), patience=patience) as informer:
        first = informer.counters.streams
        api.watch_started.clear()
        await api.watch_started.wait()
        assert informer.counters.streams > first and informer.counters.lists == 1


async def test_a_kind_that_is_not_served_is_watched_when_it_appears(api: SmallApi, client: Client) -> None:
    queues = Resource("scheduling.volcano.sh", "v1beta1", "queues", namespaced=False)
    seen = Recorder()
    async with informing(client, seen, queues, optional=True) as informer:
        assert informer.absent and informer.synced
        api.collections[QUEUES] = {}
        api.put("default", namespace="", path=QUEUES)
        informer.retry_now()
        await seen.heard("added", "default")
        assert not informer.absent
        del api.collections[QUEUES]
        api.cut_watches()
        await seen.heard("deleted", "default")
        assert informer.absent


async def watches(api: SmallApi, client: Client) -> int:
    """How often pods were watched, when there was time for another ten."""
    for _ in range(10):
        await client.list(PODS)
    return sum(request.query.get("watch") == "true" for request in api.requests)


async def test_after_a_list_the_watch_follows_at_once(api: SmallApi, client: Client) -> None:
    api.watch_list = False
    seen = Recorder()
    patience = replace(QUICK, retry_first=3600.0, retry_longest=3600.0)
    async with informing(client, seen, patience=patience):
        await api.watch_started.wait()
        api.put("a")
        await seen.heard("added", "a")


@pytest.mark.parametrize(("long_enough", "opened"), [(3600.0, 1), (0.0, 2)], ids=["at once", "after a while"])
async def test_a_stream_that_ends_at_once_is_not_opened_again_at_once(
    api: SmallApi, client: Client, monkeypatch: pytest.MonkeyPatch, long_enough: float, opened: int
) -> None:
    """A server or a proxy that ends every watch would be asked without a pause for ever."""
    monkeypatch.setattr("navarch.kube.watch.informer.LONG_ENOUGH", long_enough)
    patience = replace(QUICK, retry_first=3600.0, retry_longest=3600.0)
    async with informing(client, Recorder(), patience=patience):
        api.watch_started.clear()
        api.end_watches()
        if opened > 1:
            await api.watch_started.wait()
        assert await watches(api, client) == opened


async def test_retry_now_makes_one_attempt(api: SmallApi, client: Client) -> None:
    queues = Resource("scheduling.volcano.sh", "v1beta1", "queues", namespaced=False)
    patience = replace(QUICK, retry_first=3600.0, retry_longest=3600.0, absent_longest=3600.0)
    async with informing(client, Recorder(), queues, optional=True, patience=patience) as informer:
        before = len(api.requests)
        informer.retry_now()
        await api.asked(before + 1)
        for _ in range(10):  # time enough for as many attempts as there are answers to us
            await client.list(PODS)
        assert [request.path for request in api.requests[before:]].count(QUEUES) == 1


async def test_404_of_a_proxy_that_has_lost_its_server_takes_nothing_away(api: SmallApi, client: Client) -> None:
    """Queues that vanish from the store for a second are queues without limits for a second."""
    queues = Resource("scheduling.volcano.sh", "v1beta1", "queues", namespaced=False)
    api.collections[QUEUES] = {}
    api.put("default", namespace="", path=QUEUES)
    api.put("pod")
    optional, needed = Recorder(), Recorder()
    async with informing(client, optional, queues, optional=True), informing(client, needed) as pods:
        api.lost = True
        api.cut_watches()
        before = len(api.requests)
        await api.asked(before + 40)  # far more than the two rounds after which a kind may be gone
        assert pods.absent
        api.lost = False
        api.put("later", namespace="", path=QUEUES)
        api.put("later")
        await optional.heard("added", "later")
        await needed.heard("added", "later")
    assert optional.story == [("added", "default"), ("added", "later")]
    assert needed.story == [("added", "pod"), ("added", "later")]


async def test_404_of_a_proxy_at_the_start_is_no_sync(api: SmallApi, client: Client) -> None:
    queues = Resource("scheduling.volcano.sh", "v1beta1", "queues", namespaced=False)
    api.collections[QUEUES] = {}
    api.put("default", namespace="", path=QUEUES)
    api.lost = True
    seen = Recorder()
    async with informing(client, seen, queues, optional=True, sync=False) as informer:
        await api.asked(10)
        assert not informer.synced
        api.lost = False
        await informer.wait_for_sync()
        assert seen.story == [("added", "default")]


async def test_a_kind_hidden_from_discovery_is_absent_after_404(api: SmallApi, client: Client) -> None:
    queues = Resource("scheduling.volcano.sh", "v1beta1", "queues", namespaced=False)
    api.refuse["/apis"] = (403, status_body(403, "Forbidden"))
    async with informing(client, Recorder(), queues, optional=True) as informer:
        assert informer.absent and informer.synced


async def test_a_kind_that_must_be_there_is_not_in_sync_without_it(api: SmallApi, client: Client) -> None:
    queues = Resource("scheduling.volcano.sh", "v1beta1", "queues", namespaced=False)
    async with informing(client, Recorder(), queues, sync=False) as informer:
        await api.asked(3)
        assert not informer.synced


async def test_retry_after_is_honoured_on_a_watch(api: SmallApi, client: Client) -> None:
    api.script.append((429, {"Retry-After": "0.3"}, status_body(429, "TooManyRequests")))
    loop = asyncio.get_running_loop()
    before = loop.time()
    async with informing(client, Recorder()):
        assert loop.time() - before >= 0.3


async def test_a_retry_after_of_an_hour_is_cut_short(api: SmallApi, client: Client) -> None:
    api.script.append((503, {"Retry-After": "3600"}, status_body(503, "ServiceUnavailable")))
    async with asyncio.timeout(60), informing(client, Recorder(), patience=replace(QUICK, asked_longest=0.1)):
        assert len(api.requests) > 1


async def test_selectors_and_namespace_are_passed_on(api: SmallApi, client: Client) -> None:
    path = "/api/v1/namespaces/team/pods"
    api.collections[path] = {}
    async with informing(client, Recorder(), namespace="team", label_selector="a=b", field_selector="spec.nodeName="):
        query = api.requests[-1].query
        assert (query["labelSelector"], query["fieldSelector"]) == ("a=b", "spec.nodeName=")


async def test_an_informer_outlives_the_server(api: SmallApi) -> None:
    api.put("a")
    seen = Recorder()
    async with Client(Endpoint(api.url)) as client, informing(client, seen):
        await api.stop()
        await api.start()
        api.put("b")
        await seen.heard("added", "b")
    assert seen.story == [("added", "a"), ("added", "b")]


async def test_a_server_that_is_not_up_yet_is_still_asked_for_a_watch_list(api: SmallApi) -> None:
    await api.stop()
    async with Client(Endpoint(api.url)) as client, informing(client, Recorder(), sync=False) as informer:
        async with asyncio.timeout(60):
            while informer.counters.failures < 4:
                await asyncio.sleep(0.01)
        await api.start()
        await informer.wait_for_sync()
    assert all(request.query.get("sendInitialEvents") == "true" for request in api.requests)


async def test_a_watch_that_began_with_all_objects_may_be_quiet_as_long_as_any_other(
    api: SmallApi, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The beginning has to come quickly. What follows it does not: nothing changes in a quiet kind for minutes."""
    api.put("a")
    stream, idle = client.transport.stream, list[Callable[[], float]]()
    beginning: list[float] = []

    def listening(
        path: str, params: Params, *, idle_timeout: Callable[[], float], gather: Callable[[], float]
    ) -> AsyncGenerator[bytes, None]:
        idle.append(idle_timeout)
        beginning.append(idle_timeout())
        return stream(path, params, idle_timeout=idle_timeout, gather=gather)

    monkeypatch.setattr(client.transport, "stream", listening)
    async with informing(client, Recorder(), patience=replace(QUICK, initial_idle=20.0, idle=90.0)):
        assert beginning == [20.0] and idle[0]() == 90.0


class FailingLogin:
    """Credentials whose source fails for a while, as a log-in program does when its own server is away."""

    def __init__(self) -> None:
        self.fails = True

    def cached(self) -> str | None:
        return None

    async def authorization(self) -> str:
        if self.fails:
            raise ConfigError("exec plugin login: exit code 1: cannot reach the identity provider")
        return "Bearer t"

    def rejected(self) -> None:
        return None


async def test_credentials_that_fail_for_a_while_are_waited_for(api: SmallApi) -> None:
    api.put("a")
    login, seen = FailingLogin(), Recorder()
    async with Client(Endpoint(api.url, credentials=login)) as client, informing(client, seen, sync=False) as informer:
        async with asyncio.timeout(60):
            while informer.counters.failures < 3:
                await asyncio.sleep(0.01)
        assert api.requests == []
        login.fails = False
        await seen.heard("added", "a")


async def test_a_list_that_is_no_list_is_asked_for_again(api: SmallApi, client: Client) -> None:
    """A proxy that answers for the server: 200, and a page for people."""
    api.watch_list = False
    api.put("a")
    api.script.append((422, {}, status_body(422, "Invalid")))
    api.script.append((200, {}, b"<html>log in first</html>"))
    async with informing(client, Recorder()) as informer:
        assert informer.counters.failures == 1 and list(informer.store) == [("default", "a")]


async def test_a_kind_is_watched_in_whichever_of_its_versions_is_served(api: SmallApi, client: Client) -> None:
    versions = [Resource("kubeflow.org", version, "mpijobs") for version in ("v2beta1", "v1")]
    old, new = (f"/apis/kubeflow.org/{version}/mpijobs" for version in ("v1", "v2beta1"))
    seen, moved = Recorder(), list[Resource]()
    async with informing(client, seen, versions[0], optional=True, versions=versions, on_version=moved.append) as informer:
        assert informer.absent and informer.synced
        api.collections[old] = {}
        api.put("j", path=old)
        informer.retry_now()
        await seen.heard("added", "j")
        assert (informer.resource, moved[-1]) == (versions[1], versions[1]) and not informer.absent
        # An upgrade: the old version is served no more, the same object is there in the new one.
        api.collections[new] = api.collections.pop(old)
        api.cut_watches()
        api.put("k", path=new)
        await seen.heard("added", "k")
        assert (informer.resource, moved[-1]) == (versions[0], versions[0])
    # Nothing has happened to it, but it may look different in this version, and is written to under another path.
    assert ("updated", "j") in seen.story and ("deleted", "j") not in seen.story


@pytest.mark.parametrize("code", [400, 500, 501])
async def test_a_version_that_the_server_cannot_go_on_from_is_given_up(each_api: SmallApi, client: Client, code: int) -> None:
    """Not 410, but the same answer again and again: without a new list the store would show the old objects for ever."""
    api, seen = each_api, Recorder()
    api.put("a")
    async with informing(client, seen):
        await api.watch_started.wait()
        api.unwatchable = (int(api.version), status_body(code, "Odd", "no watch from there"))
        api.cut_watches()
        api.put("b")
        await seen.heard("added", "b")
    assert seen.story == [("added", "a"), ("added", "b")]


async def test_a_server_that_is_not_ready_is_no_reason_to_list_again(api: SmallApi, client: Client) -> None:
    api.put("a")
    seen = Recorder()
    async with informing(client, seen) as informer:
        await api.watch_started.wait()
        api.script.extend([(503, {}, status_body(503, "ServiceUnavailable"))] * 10)
        api.cut_watches()
        api.put("b")
        await seen.heard("added", "b")
        assert informer.counters.lists == 1 and informer.counters.failures >= 10


@pytest.mark.parametrize("code", [500, 501, 405])
async def test_a_watch_list_that_the_server_fails_at_is_a_list(api: SmallApi, client: Client, code: int) -> None:
    api.watch_list_code = code
    api.watch_list = False
    api.put("a")
    seen = Recorder()
    async with informing(client, seen):
        assert seen.story == [("added", "a")]


async def test_an_object_nested_too_deep_for_any_decoder(each_api: SmallApi, client: Client) -> None:
    """Users may write so into the parameters of a ResourceClaim, and a kube-apiserver keeps it."""
    api, seen = each_api, Recorder()
    deep = msgspec.Raw(b'{"a": ' + b"[" * 5000 + b'"]"' + b"]" * 5000 + b"}")
    api.put("deep", spec={"priority": 3, "parameters": deep})
    api.put("plain")
    async with informing(client, seen) as informer:
        assert seen.story == [("added", "deep"), ("added", "plain")]
        await api.watch_started.wait()
        api.put("bad", spec={"priority": "high", "parameters": deep})
        api.put("deep", spec={"priority": 4, "parameters": deep})
        await seen.heard("updated", "deep")
        assert informer.store["default", "deep"].spec.priority == 4
    assert [name for name, _ in seen.bad] == ["bad"]


async def test_a_line_that_is_not_utf8_breaks_the_stream_and_everything_is_listed_again(each_api: SmallApi, client: Client) -> None:
    api, seen = each_api, Recorder()
    api.put("a")
    async with informing(client, seen) as informer:
        await api.watch_started.wait()
        api.send_raw(b'{"type":"ADDED","object":{"metadata":{"name":"b\xff","namespace":"d","uid":"u","resourceVersion":"999"}}}\n')
        api.put("c")
        await seen.heard("added", "c")
    assert informer.counters.lists == 2
    assert seen.story == [("added", "a"), ("added", "c")]
