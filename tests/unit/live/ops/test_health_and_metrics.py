"""Small parts of operation: which callers may see a snapshot, how metrics stay bounded, what a log line looks like."""

from __future__ import annotations

import json
import logging
import shutil
import ssl
from pathlib import Path

import pytest
from aiohttp import ClientError, ClientSession
from prometheus_client.parser import text_string_to_metric_families
from tests.envtest.certificates import Authority

from navarch.engine.record import QueueFigures
from navarch.installed import installed
from navarch.kube.auth.access_review import AccessReview
from navarch.live.cache.watched_kinds import watched
from navarch.live.ops.health import Health, ListenError, is_loopback, split_address, tls_context
from navarch.live.ops.log_lines import JsonLines
from navarch.live.ops.metrics import MOST_QUEUES, MOST_RESOURCES, OTHERS, Metrics
from navarch.live.ops.policy_file import PolicyFile
from navarch.version import version


@pytest.mark.parametrize(("address", "ours"), [("127.0.0.1", True), ("::1", True), ("10.0.0.7", False), ("", False), (None, False)])
def test_a_snapshot_is_for_callers_on_the_machine(address: str | None, ours: bool) -> None:
    assert is_loopback(address) == ours


@pytest.mark.parametrize(
    ("listen", "where"),
    [
        ("0.0.0.0:8080", ("0.0.0.0", 8080)),
        (":8080", (None, 8080)),
        ("8080", (None, 8080)),
        ("[::1]:0", ("::1", 0)),
        ("localhost:65535", ("localhost", 65535)),
    ],
)
def test_an_address_is_host_and_port(listen: str, where: tuple[str | None, int]) -> None:
    assert split_address(listen) == where


async def test_the_policy_in_force_is_served() -> None:
    async def nothing() -> bytes:
        return b""

    policy = PolicyFile("kai", installed()).policy
    health = Health(
        list, Metrics().registry, nothing, lambda: None, configuration=lambda: {"policy": policy.document, "effect": policy.evictions}
    )
    await health.start("127.0.0.1:0")
    try:
        async with ClientSession() as http, http.get(f"http://127.0.0.1:{health.port}/configz") as reply:
            found = await reply.json()
    finally:
        await health.stop()
    assert found["policy"]["compat"] == "kai" and found["effect"] == "delete"


async def test_what_is_served_before_the_first_cycle_is_read_by_prometheus_and_has_no_snapshot() -> None:
    async def nothing() -> bytes:
        return b""

    metrics = Metrics()
    health = Health(lambda: ["pods"], metrics.registry, nothing, lambda: None)
    await health.start("127.0.0.1:0")
    base = f"http://127.0.0.1:{health.port}"
    try:
        async with ClientSession() as http:
            for path, status, text in (
                ("/livez", 200, "ok"),
                ("/readyz", 503, "[-]pods\n"),
                ("/healthz", 503, "[-]pods\n"),
                ("/debug/snapshot", 503, "no cycle yet: ask the replica that leads (navarch_leading 1)\n"),
            ):
                async with http.get(base + path) as reply:
                    assert (reply.status, await reply.text()) == (status, text)
            async with http.get(f"{base}/metrics") as reply:
                families = {each.name: each for each in text_string_to_metric_families(await reply.text())}
    finally:
        await health.stop()
    assert not [name for name in families if name.endswith("_created")]
    for family in families.values():
        assert len(family.documentation) > 10 and family.documentation[-1] == ".", family
        assert family.type != "unknown", family
        assert all(sample.name.endswith("_total") for sample in family.samples if family.type == "counter")
    (build,) = families["navarch_build_info"].samples
    assert (build.labels, build.value) == ({"version": version()}, 1)
    assert {each.labels["result"]: each.value for each in families["navarch_binds"].samples} == {"ok": 0, "failed": 0, "dropped": 0}
    assert {each.labels["result"]: each.value for each in families["navarch_policy_loads"].samples} == {"ok": 0, "refused": 0}


def test_queues_beyond_a_number_share_one_label() -> None:
    metrics = Metrics()
    figures = [QueueFigures(f"queue-{i}", {}, {"cpu": 1}, {}, 0.5) for i in range(MOST_QUEUES + 3)]
    metrics.queues(figures)
    assert metrics.registry.get_sample_value("navarch_queue_share", {"queue": "queue-0"}) == 0.5
    labels = {"queue": OTHERS, "figure": "allocated", "resource": "cpu"}
    assert metrics.registry.get_sample_value("navarch_queue_resource", labels) == 3
    metrics.queues([])
    assert metrics.registry.get_sample_value("navarch_queue_share", {"queue": "queue-0"}) is None


def test_resources_that_only_pods_name_make_no_unbounded_series() -> None:
    metrics = Metrics()
    asked = {f"made-up.example/{i}": 1 for i in range(1000)}
    metrics.queues([QueueFigures(f"q{i}", {"cpu": 2.0}, {"zz.example/gpu": 1}, {"cpu": 5, **asked}, 0.5) for i in range(20)])
    series = [sample for family in metrics.queue_amount.collect() for sample in family.samples]
    assert len({sample.labels["resource"] for sample in series}) == MOST_RESOURCES
    assert {"cpu", "zz.example/gpu"} <= {sample.labels["resource"] for sample in series}


def test_a_log_line_is_json() -> None:
    record = logging.LogRecord("navarch.live", logging.WARNING, "f", 1, "bind of %s failed", ("a/b",), None)
    line = json.loads(JsonLines().format(record))
    assert (line["level"], line["message"], line["logger"]) == ("warning", "bind of a/b failed", "navarch.live")


def test_every_kind_is_watched_once_and_what_every_server_has_is_not_optional() -> None:
    kinds = watched()
    resources = [each.candidates[0] for each in kinds]
    assert len(resources) == len(set(resources))
    required = {each.kind for each in kinds if not each.optional}
    assert required == {"Node", "Namespace", "ResourceQuota", "PriorityClass", "PodDisruptionBudget"}
    claims = next(each for each in kinds if each.kind == "ResourceClaim")
    assert [each.version for each in claims.candidates] == ["v1", "v1beta2", "v1beta1"]


def test_a_policy_is_taken_from_a_mounted_config_map_as_the_kubelet_changes_it(tmp_path: Path) -> None:
    """The file is a link into `..data`, itself a link to a folder; another folder is made and `..data` replaced in one step."""
    text = "actions: {}\ntiers:\n- plugins:\n  - name: gang\n"

    def mount(version: str, actions: str) -> None:
        (tmp_path / version).mkdir()
        (tmp_path / version / "policy.yaml").write_text(text.format(actions))
        (tmp_path / "..data_tmp").symlink_to(version)
        (tmp_path / "..data_tmp").replace(tmp_path / "..data")

    mount("..1", "allocate")
    (tmp_path / "policy.yaml").symlink_to("..data/policy.yaml")
    file = PolicyFile(str(tmp_path / "policy.yaml"), installed())
    assert not file.look()
    mount("..2", "backfill")
    shutil.rmtree(tmp_path / "..1")
    assert file.look() and file.policy.actions == ("backfill",)
    mount("..3", "alocate")
    assert not file.look() and "unknown action 'alocate'" in file.refused
    shutil.rmtree(tmp_path / "..3")
    assert not file.look() and file.policy.actions == ("backfill",), "a link to nothing, for a moment"
    mount("..4", "allocate")
    assert file.look() and file.policy.actions == ("allocate",) and not file.refused


class Reviews(AccessReview):
    """Reviews without an API server: one token is known and may read one path."""

    def __init__(self) -> None:
        pass

    async def may_get(self, token: str, path: str) -> bool:
        return (token, path) == ("good", "/metrics")


async def test_metrics_need_a_token_where_they_are_protected() -> None:
    async def snapshot() -> bytes:
        return b"all pods"

    health = Health(list, Metrics().registry, snapshot, lambda: None, Reviews(), protect_metrics=True)
    await health.start("127.0.0.1:0")
    base = f"http://127.0.0.1:{health.port}"
    try:
        async with ClientSession() as http:
            for headers, status in (({}, 401), ({"Authorization": "Bearer bad"}, 403), ({"Authorization": "Bearer good"}, 200)):
                async with http.get(f"{base}/metrics", headers=headers) as reply:
                    assert reply.status == status
            async with http.get(f"{base}/livez") as reply:
                assert reply.status == 200
    finally:
        await health.stop()


async def test_metrics_are_served_over_tls_with_a_token(tmp_path: Path) -> None:
    async def snapshot() -> bytes:
        return b"all pods"

    authority = Authority(tmp_path)
    certificate, key = authority.server()
    health = Health(list, Metrics().registry, snapshot, lambda: None, Reviews(), protect_metrics=True)
    await health.start("127.0.0.1:0", tls_context(certificate, key))
    trusting = ssl.create_default_context(cafile=str(authority.certificate_file))
    try:
        async with ClientSession() as http:
            url, headers = f"https://127.0.0.1:{health.port}/metrics", {"Authorization": "Bearer good"}
            async with http.get(url, headers=headers, ssl=trusting) as reply:
                assert reply.status == 200
            async with http.get(url, ssl=trusting) as reply:
                assert reply.status == 401
            with pytest.raises(ClientError):
                await http.get(url.replace("https", "http"), headers=headers)
    finally:
        await health.stop()
    with pytest.raises(ListenError, match="expected a certificate and its key"):
        tls_context(key, certificate)


async def test_a_page_from_elsewhere_cannot_read_the_snapshot_through_a_browser() -> None:
    async def snapshot() -> bytes:
        return b"all pods"

    health = Health(list, Metrics().registry, snapshot, lambda: None, Reviews())
    await health.start("127.0.0.1:0")
    url = f"http://127.0.0.1:{health.port}/debug/snapshot"
    try:
        async with ClientSession() as http:
            for host, status in (("evil.example:8080", 401), ("localhost:8080", 200), ("127.0.0.1", 200), ("[::1]:8080", 200)):
                async with http.get(url, headers={"Host": host}) as reply:
                    assert reply.status == status, host
    finally:
        await health.stop()
