"""Objects of the first list that the handler receives as they come."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from tests.worlds.kube.small_api import SmallApi, status_body
from tests.worlds.kube.watching import QUICK, Recorder, informing

from navarch.kube.client import Client


@pytest.fixture(params=["watch-list", "list-then-watch"])
async def each_api(request: pytest.FixtureRequest, api: SmallApi) -> SmallApi:
    api.watch_list = request.param == "watch-list"
    return api


async def test_each_object_is_told_once_and_then_each_change(each_api: SmallApi, client: Client) -> None:
    api, seen = each_api, Recorder()
    for number in range(1203):
        api.put(f"p{number:04}")
    async with informing(client, seen, at_once=True) as informer:
        assert len(seen.story) == len(informer.store) == 1203
        assert (informer.synced, informer.counters.lists) == (True, 1)
        await api.watch_started.wait()
        api.remove("p0000")
        api.put("new")
        await seen.heard("added", "new")
    assert seen.story[1203:] == [("deleted", "p0000"), ("added", "new")]


async def test_a_list_that_breaks_off_is_compared_with_what_came(api: SmallApi, client: Client) -> None:
    api.watch_list = False
    api.put("kept", uid="kept")
    api.put("late")
    page = [{"metadata": {"name": name, "namespace": "default", "uid": name, "resourceVersion": "1"}} for name in ("kept", "gone")]
    first = {"metadata": {"resourceVersion": "1", "continue": "500"}, "items": page}
    api.script.extend([(422, {}, status_body(422, "Invalid")), (200, {}, first), (410, {}, status_body(410, "Expired"))])
    seen = Recorder()
    async with informing(client, seen, at_once=True) as informer:
        assert sorted(name for _, name in informer.store) == ["kept", "late"]
    assert seen.story == [("added", "kept"), ("added", "gone"), ("deleted", "gone"), ("updated", "kept"), ("added", "late")]


async def test_initial_events_that_never_end_are_listed_and_compared(api: SmallApi, client: Client) -> None:
    api.end_initial = False
    api.put("a")
    seen = Recorder()
    patience = replace(QUICK, initial_idle=0.2, initial_total=0.5)
    async with informing(client, seen, at_once=True, patience=patience) as informer:
        assert informer.synced
    assert seen.story == [("added", "a")]
