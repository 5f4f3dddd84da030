"""Several kinds at once, and kinds that appear while we watch."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest
from msgspec.structs import replace
from tests.worlds.kube.small_api import POD_LIST, SmallApi, status_body
from tests.worlds.kube.watching import QUICK, Pod, Recorder

from navarch.kube.client import Client
from navarch.kube.resources import CRDS, PODS, Resource
from navarch.kube.supervision import Work
from navarch.kube.watch.informer_group import InformerGroup

CRD_LIST = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
QUEUE_LIST = "/apis/scheduling.volcano.sh/v1beta1/queues"
QUEUES = Resource("scheduling.volcano.sh", "v1beta1", "queues", namespaced=False)

OTHERS = [Resource("example.com", "v1", plural) for plural in ("zebras", "apes")]


def establish(api: SmallApi) -> None:
    api.put(
        "queues.scheduling.volcano.sh",
        namespace="",
        path=CRD_LIST,
        spec={"group": "scheduling.volcano.sh", "names": {"plural": "queues"}},
        status={"conditions": [{"type": "Established", "status": "True"}]},
    )


@pytest.mark.parametrize("known", [False, True], ids=["after a 404", "known from the start"])
async def test_a_crd_that_is_established_starts_its_informer_at_once(api: SmallApi, client: Client, known: bool) -> None:
    api.collections[CRD_LIST] = {}
    api.put("p")
    pods, queues = Recorder(), Recorder()
    # Once absent it would look again only after an hour: the CRD makes it retry.
    patience = replace(QUICK, retry_longest=3600.0, retry_first=3600.0, absent_longest=3600.0)
    group = InformerGroup(client, patience=patience)
    group.add(PODS, Pod, pods)
    informer = group.add(QUEUES, Pod, queues, optional=True, absent=known)
    task = asyncio.create_task(group.run())
    async with asyncio.timeout(60):
        await group.wait_for_sync()
    assert group.synced and group.unsynced == [] and informer.absent
    assert pods.story == [("added", "p")]
    assert any(request.path == QUEUE_LIST for request in api.requests) != known, "what is known to be absent is not asked for"

    api.collections[QUEUE_LIST] = {}
    api.put("default", namespace="", path=QUEUE_LIST)
    establish(api)
    await queues.heard("added", "default")
    task.cancel()
    await asyncio.wait([task])


async def test_unsynced_kinds_are_named(api: SmallApi, client: Client) -> None:
    group = InformerGroup(client, patience=QUICK)
    pods = group.add(PODS, Pod, Recorder())
    group.add(QUEUES, Pod, Recorder())
    task = asyncio.create_task(group.run())
    async with asyncio.timeout(60):
        await pods.wait_for_sync()
    assert group.unsynced == [QUEUES] and not group.synced
    task.cancel()
    await asyncio.wait([task])


async def test_an_account_that_may_not_read_crds_still_finds_them(api: SmallApi, client: Client) -> None:
    api.collections[CRD_LIST] = {}
    queues = Recorder()
    group = InformerGroup(client, patience=QUICK)
    group.add(QUEUES, Pod, queues, optional=True)
    api.refuse[CRD_LIST] = (403, status_body(403, "Forbidden"))
    task = asyncio.create_task(group.run())
    await api.asked(4)
    api.collections[QUEUE_LIST] = {}
    api.put("default", namespace="", path=QUEUE_LIST)
    await queues.heard("added", "default")
    task.cancel()
    await asyncio.wait([task])


async def test_an_account_without_rights_is_told_so_once_for_each_kind_and_goes_on_trying(
    api: SmallApi, client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    """In one line if the answers come together; see test_forbidden_kinds."""
    refused = {"pods.v1": POD_LIST, str(QUEUES): QUEUE_LIST, str(CRDS): CRD_LIST}
    for path in refused.values():
        api.refuse[path] = (403, status_body(403, "Forbidden"))
    pods, group = Recorder(), InformerGroup(client, patience=QUICK, advice="Ask your administrator")
    group.add(PODS, Pod, pods)
    group.add(QUEUES, Pod, Recorder(), optional=True)
    lines: list[str] = []
    heard = asyncio.Event()

    def hear(record: logging.LogRecord) -> bool:
        lines.append(record.getMessage())
        heard.set()
        return True

    def times(kind: str) -> int:
        """Named by its path where it comes first, and by its name after that."""
        return sum(line.count(f"{kind}, ") + line.endswith(f"{kind}.") + line.count(f"{refused[kind]}:") for line in lines)

    caplog.handler.addFilter(hear)
    task = asyncio.create_task(group.run())
    async with asyncio.timeout(120):
        while not all(times(kind) for kind in refused):
            heard.clear()
            await heard.wait()
    await api.asked(len(api.requests) + 9)
    assert [times(kind) for kind in refused] == [1, 1, 1], lines
    assert all("allowed. Ask your administrator." in line for line in lines)
    api.refuse.clear()
    api.put("p")
    await pods.heard("added", "p")
    task.cancel()
    await asyncio.wait([task])


async def test_kinds_absent_at_the_start_are_logged_in_one_line_and_later_changes_each(
    api: SmallApi, client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    api.collections[CRD_LIST] = {}
    api.put("p")
    queues, group = Recorder(), InformerGroup(client, patience=QUICK)
    group.add(PODS, Pod, Recorder(), optional=True)
    group.add(QUEUES, Pod, queues, optional=True)
    for resource in OTHERS:
        group.add(resource, Pod, Recorder(), optional=True)

    def told() -> list[str]:
        return [text for record in caplog.records if " served" in (text := record.getMessage())]

    task = asyncio.create_task(group.run())
    async with asyncio.timeout(60):
        await group.wait_for_sync()
    await api.asked(12)
    lines = ["not served, waiting for: apes.v1.example.com, queues.v1beta1.scheduling.volcano.sh, zebras.v1.example.com"]
    assert told() == lines
    api.collections[QUEUE_LIST] = {}
    api.put("default", namespace="", path=QUEUE_LIST)
    await queues.heard("added", "default")
    lines.append("queues.v1beta1.scheduling.volcano.sh is served now")
    assert told() == lines
    del api.collections[QUEUE_LIST]
    api.end_watches()
    await queues.heard("deleted", "default")
    assert told() == lines + ["queues.v1beta1.scheduling.volcano.sh is not served; waiting for it"]
    task.cancel()
    await asyncio.wait([task])


async def test_an_informer_that_raises_is_run_again_and_lists_and_the_others_go_on(api: SmallApi, client: Client) -> None:
    api.collections[QUEUE_LIST] = {}
    failures: list[str] = []

    async def supervise(name: str, work: Work) -> None:
        while True:
            try:
                await work()
                return
            except ZeroDivisionError:
                failures.append(name)

    class Failing(Recorder):
        def on_bad(self, metadata: Any, error: Exception) -> None:
            if not failures:
                raise ZeroDivisionError
            super().on_bad(metadata, error)

    pods, queues = Failing(), Recorder()
    group = InformerGroup(client, patience=QUICK, supervise=supervise)
    group.add(PODS, Pod, pods, on_bad=pods.on_bad)
    group.add(QUEUES, Pod, queues, on_bad=queues.on_bad)
    task = asyncio.create_task(group.run())
    try:
        await group.wait_for_sync()
        api.put("bad", spec=5)
        api.put("good")
        await pods.heard("added", "good")
        api.put("q", namespace="", path=QUEUE_LIST)
        await queues.heard("added", "q")
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
    assert failures == [f"informer {PODS}"]
