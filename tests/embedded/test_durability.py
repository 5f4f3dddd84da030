"""The durable store: what was acknowledged is there after a restart, also after kill -9."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from tests.worlds.embedded.objects import config_map
from tests.worlds.embedded.server import Http

from navarch.embedded.api.server import ApiServer
from navarch.embedded.storage.sqlite_log import DataDirInUse, SqliteLog
from navarch.embedded.storage.store import Store

MAPS = "/api/v1/namespaces/default/configmaps"

CHILD = """
import asyncio, json, sys
from pathlib import Path
from navarch.embedded.api.server import ApiServer

async def main():
    async with ApiServer(data_dir=Path(sys.argv[1])) as server:
        kubeconfig = server.kubeconfig(Path(sys.argv[1]) / "kubeconfig")
        print(json.dumps({"url": server.url, "token": server.token, "ca": server.ca_pem.decode()}), flush=True)
        await asyncio.Event().wait()

asyncio.run(main())
"""


def start(folder: Path) -> tuple[subprocess.Popen[str], Http]:
    child = subprocess.Popen([sys.executable, "-c", CHILD, str(folder)], stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    told = json.loads(child.stdout.readline())
    return child, Http(told["url"], told["token"], told["ca"].encode(), folder / "kubeconfig")


def end(child: subprocess.Popen[str], number: signal.Signals) -> None:
    child.send_signal(number)
    child.wait(120)
    assert child.stdout is not None
    child.stdout.close()


@pytest.mark.live
def test_kill_9_loses_nothing_that_was_acknowledged(tmp_path: Path) -> None:
    child, api = start(tmp_path)
    acknowledged: dict[str, str] = {}
    for index in range(40):
        answer = api.post(MAPS, config_map(f"m-{index}"))
        assert answer.code == 201
        acknowledged[f"m-{index}"] = answer.body["metadata"]["resourceVersion"]
    api.delete(f"{MAPS}/m-0")
    last = int(api.patch(f"{MAPS}/m-1", {"data": {"b": "2"}}).body["metadata"]["resourceVersion"])
    child.send_signal(signal.SIGKILL)
    api.close()
    end(child, signal.SIGKILL)

    child, api = start(tmp_path)
    try:
        listed = api.get(MAPS).body
        found = {item["metadata"]["name"]: item["metadata"]["resourceVersion"] for item in listed["items"]}
        assert "m-0" not in found and found["m-1"] == str(last)
        assert {name: found[name] for name in acknowledged if name not in ("m-0", "m-1")} == {
            name: version for name, version in acknowledged.items() if name not in ("m-0", "m-1")
        }
        assert int(api.post(MAPS, config_map("next")).body["metadata"]["resourceVersion"]) > last
        since = int(acknowledged["m-38"])
        with api.watch(MAPS, resourceVersion=since) as events:
            seen = [next(events) for _ in range(4)]
        assert [(event["type"], event["object"]["metadata"]["name"]) for event in seen] == [
            ("ADDED", "m-39"),
            ("DELETED", "m-0"),
            ("MODIFIED", "m-1"),
            ("ADDED", "next"),
        ]
    finally:
        api.close()
        end(child, signal.SIGTERM)


async def test_writes_are_told_to_watchers_only_when_they_are_on_disk(tmp_path: Path) -> None:
    store = Store(SqliteLog(tmp_path / "store.db"))
    store.start()
    watch = store.watch("configmaps")
    store.create("configmaps", config_map("a", namespace="default"))
    assert watch.take() == [] and not store.is_settled
    await store.settled()
    assert [event.record.name for event in watch.take()] == ["a"]
    await store.close()


async def test_compaction_keeps_what_lives_and_forgets_the_rest(tmp_path: Path) -> None:
    log = SqliteLog(tmp_path / "store.db")
    store = Store(log)
    store.start()
    for name in "abc":
        store.create("configmaps", config_map(name, namespace="default"))

    def numbered(index: int, obj: dict[str, Any]) -> dict[str, Any]:
        return {**obj, "data": {"n": str(index)}}

    for index in range(10):
        store.modify("configmaps", "default", "a", partial(numbered, index))
    store.delete("configmaps", "default", "b")
    await store.settled()
    assert log.size() == 14
    upto = store.compact()
    await store.close()

    again = Store(SqliteLog(tmp_path / "store.db"))
    assert [(record.name, record.obj.get("data")) for record in again.list("configmaps")] == [
        ("a", {"n": "9"}),
        ("c", {"a": "1"}),
    ]
    assert again.revision == upto == 14
    with pytest.raises(Exception, match="too old resource version"):
        again.watch("configmaps", since=3)
    again.start()
    again.create("configmaps", config_map("d", namespace="default"))
    await again.settled()
    assert again.revision == 15
    await again.close()


async def test_one_data_directory_has_one_server(tmp_path: Path) -> None:
    async with ApiServer(data_dir=tmp_path) as server:
        kept = server.token
        with pytest.raises(DataDirInUse, match="another server uses this data directory"):
            await asyncio.to_thread(ApiServer, data_dir=tmp_path)
    async with ApiServer(data_dir=tmp_path) as server:
        assert server.token == kept


async def test_custom_kinds_and_their_objects_survive_a_restart(tmp_path: Path) -> None:
    from tests.worlds.embedded.objects import widget, widget_definition

    async with ApiServer(data_dir=tmp_path) as server:
        operations = server.operations
        operations.create(operations.kind("customresourcedefinitions.apiextensions.k8s.io"), "", widget_definition())
        await server.store.settled()
        operations.create(operations.kind("widgets.example.io"), "default", widget("w"))
    async with ApiServer(data_dir=tmp_path) as server:
        found = server.store.list("widgets.example.io", matches=lambda record: record.fields == ("red",))
        assert [record.name for record in found] == ["w"]
        assert server.operations.kind("widgets.example.io").kind == "Widget"


def test_secrets_of_a_data_directory_are_private(tmp_path: Path) -> None:
    server = ApiServer(data_dir=tmp_path)
    path = server.kubeconfig(tmp_path / "kubeconfig")
    files = [path, *(tmp_path / "pki").iterdir()]
    assert {oct(each.stat().st_mode & 0o777) for each in files} == {"0o600"}
    asyncio.run(server.store.close())
