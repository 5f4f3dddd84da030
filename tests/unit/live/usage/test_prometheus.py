"""Against a real Prometheus server with a history written beforehand. Skipped, saying so, where the program is absent."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from aiohttp import web
from aiohttp.test_utils import RawTestServer

from navarch.live.usage.cron import Cron
from navarch.live.usage.params import UsageParams, UsageWindow
from navarch.live.usage.prometheus import QUEUE_LABEL, PrometheusSource
from navarch.live.usage.source import UsageError

PROGRAMS = ("prometheus", "promtool")
MISSING = [program for program in PROGRAMS if shutil.which(program) is None]
needs_prometheus = pytest.mark.skipif(bool(MISSING), reason=f"{', '.join(MISSING)} not installed (Debian: prometheus)")

LISTENS = re.compile(r'msg="Listening on" address=(\S+)')
READY = "Server is ready to receive web requests"
START = 1_767_225_600
"""2026-01-01T00:00:00Z"""
STEP = 60
LENGTH = 4 * 3600
NOW = float(START + LENGTH)


def gpus_of_a(moment: int) -> float:
    """8 in the first two hours, then none."""
    return 8.0 if moment < START + LENGTH // 2 else 0.0


def openmetrics() -> str:
    """Queue a through two exporters one after the other, queue b through two at once, and eight GPUs on two nodes."""
    lines = ["# TYPE kai_queue_allocated_gpus gauge"]
    moments = range(START, START + LENGTH + 1, STEP)
    half = START + LENGTH // 4
    for pod, span in (("one", [m for m in moments if m < half]), ("two", [m for m in moments if m >= half])):
        lines += [f'kai_queue_allocated_gpus{{queue_name="a",pod="{pod}"}} {gpus_of_a(m)} {m}' for m in span]
    for pod in ("one", "two"):
        lines += [f'kai_queue_allocated_gpus{{queue_name="b",pod="{pod}"}} 2 {m}' for m in moments]
    lines.append("# TYPE kai_queue_allocated_cpu_cores gauge")
    lines += [f'kai_queue_allocated_cpu_cores{{queue_name="b"}} 25 {m}' for m in moments]
    lines.append("# TYPE kube_node_status_capacity gauge")
    for node in ("n1", "n2"):
        lines += [f'kube_node_status_capacity{{node="{node}",resource="nvidia_com_gpu"}} 4 {m}' for m in moments]
        lines += [f'kube_node_status_capacity{{node="{node}",resource="cpu"}} 50 {m}' for m in moments]
    return "\n".join([*lines, "# EOF", ""])


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    home: Path = tmp_path_factory.mktemp("prometheus")
    (home / "history.txt").write_text(openmetrics())
    (home / "prometheus.yml").write_text("global: {}\n")
    load = ["promtool", "tsdb", "create-blocks-from", "openmetrics", str(home / "history.txt"), str(home / "data")]
    subprocess.run(load, check=True, capture_output=True)
    command = [
        "prometheus",
        f"--config.file={home / 'prometheus.yml'}",
        f"--storage.tsdb.path={home / 'data'}",
        "--storage.tsdb.retention.time=100y",
        "--web.listen-address=127.0.0.1:0",
    ]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        try:
            said = ""
            while not (where := LISTENS.search(said)) or READY not in said:
                line = process.stderr.readline()
                assert line, f"Prometheus did not start:\n{said}"
                said += line
            yield f"http://{where[1]}"
        finally:
            process.terminate()


async def fetch(address: str, window: UsageWindow, now: float = NOW) -> dict[str, dict[str, float]]:
    source = PrometheusSource(address, UsageParams(window=window))
    try:
        return {queue: dict(figures) for queue, figures in (await source.fetch(now)).items()}
    finally:
        await source.close()


@needs_prometheus
async def test_usage_is_averaged_over_a_sliding_window(server: str) -> None:
    whole = await fetch(server, UsageWindow("sliding", size=LENGTH))
    assert whole["a"]["gpu"] == pytest.approx(0.5, abs=0.01), "the two exporters are one queue"
    assert whole["b"]["gpu"] == pytest.approx(0.25), "two exporters of one queue count once"
    assert whole["b"]["cpu"] == pytest.approx(0.25)
    assert "memory" not in whole["b"], "it is not exported"
    last_three_hours = await fetch(server, UsageWindow("sliding", size=3 * 3600))
    assert last_three_hours["a"]["gpu"] == pytest.approx(1 / 3, abs=0.01)


@needs_prometheus
async def test_the_past_fades(server: str) -> None:
    faded = await fetch(server, UsageWindow("sliding", size=LENGTH, half_life=3600))
    ages = [NOW - m for m in range(START + STEP, START + LENGTH + 1, STEP)]
    weights = [0.5 ** (age / 3600) for age in ages]
    early = sum(w for w, age in zip(weights, ages, strict=True) if NOW - age < START + LENGTH // 2)
    assert faded["a"]["gpu"] == pytest.approx(early / sum(weights), abs=0.005)
    assert faded["b"]["gpu"] == pytest.approx(0.25)


@needs_prometheus
async def test_windows_that_start_anew(server: str) -> None:
    three_hours_ago = START + 3600.0
    tumbling = await fetch(server, UsageWindow("tumbling", size=6 * 3600, start=three_hours_ago - 12 * 3600))
    assert tumbling["a"]["gpu"] == pytest.approx(1 / 3, abs=0.01)
    hourly = await fetch(server, UsageWindow("cron", cron=Cron.parse("0 1 * * *")))
    assert hourly["a"]["gpu"] == pytest.approx(1 / 3, abs=0.01)
    just_begun = await fetch(server, UsageWindow("cron", cron=Cron.parse("0 * * * *")))
    assert just_begun["b"]["gpu"] == pytest.approx(0.25), "a window that began now still sees the present"


@needs_prometheus
async def test_a_refusal_of_prometheus_is_reported(server: str) -> None:
    source = PrometheusSource(server, UsageParams(metrics={**UsageParams().metrics, "gpuCapacityMetric": "sum("}))
    with pytest.raises(UsageError, match="bad_data"):
        await source.fetch(NOW)
    await source.close()


async def test_a_server_that_is_not_there_is_said() -> None:
    source = PrometheusSource("http://127.0.0.1:1", UsageParams())
    with pytest.raises(UsageError, match=r"Prometheus at http://127\.0\.0\.1:1"):
        await source.fetch(NOW)
    await source.close()


async def test_a_password_in_the_address_is_not_told() -> None:
    source = PrometheusSource("http://me:hush@127.0.0.1:1", UsageParams())
    with pytest.raises(UsageError, match=r"^Prometheus at http://127\.0\.0\.1:1: ") as told:
        await source.fetch(0.0)
    await source.close()
    assert "hush" not in str(told.value)


async def test_the_environments_proxy_is_asked_where_there_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """A name that only the proxy knows; a proxy is spoken to with the whole address, and with an account of its own."""
    asked: list[tuple[str, str | None]] = []

    async def answer(request: web.BaseRequest) -> web.Response:
        asked.append((str(request.url), request.headers.get("Proxy-Authorization")))
        sample = {"metric": {QUEUE_LABEL: "a"}, "value": [NOW, "4"]}
        return web.json_response({"status": "success", "data": {"resultType": "vector", "result": [sample]}})

    proxy = RawTestServer(answer)
    await proxy.start_server()
    monkeypatch.setenv("HTTP_PROXY", f"http://me:hush@127.0.0.1:{proxy.port}")
    found = await fetch("http://prometheus.example:9090", UsageWindow("sliding", size=LENGTH))
    with pytest.raises(UsageError, match=r"^Prometheus at http://127\.0\.0\.1:1: "):  # exempt, and no server listens there
        await fetch("http://127.0.0.1:1", UsageWindow("sliding", size=LENGTH))
    await proxy.close()
    assert found["a"]["gpu"] == pytest.approx(1.0)
    assert set(asked) == {("http://prometheus.example:9090/api/v1/query", "Basic bWU6aHVzaA==")}


async def test_a_proxy_that_cannot_be_read_is_said_without_its_password(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "socks5://me:hush@127.0.0.1:1")
    with pytest.raises(UsageError, match=r"^Prometheus at http://prometheus\.example:9090: HTTP_PROXY: expected http://") as told:
        await fetch("http://prometheus.example:9090", UsageWindow("sliding", size=LENGTH))
    assert "hush" not in str(told.value)


@pytest.mark.parametrize("address", ["http://prometheus.example:port", "http://[::1", "prometheus.example:9090"])
@pytest.mark.parametrize("proxy", ["", "http://proxy.example:3128"])
async def test_an_address_that_is_none_is_said(monkeypatch: pytest.MonkeyPatch, address: str, proxy: str) -> None:
    monkeypatch.setenv("HTTP_PROXY", proxy)
    with pytest.raises(UsageError, match=f"^Prometheus at {re.escape(address)}: "):
        await fetch(address, UsageWindow("sliding", size=LENGTH))
