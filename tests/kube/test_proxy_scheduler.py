"""The whole scheduler behind a proxy: informers, lease, bindings, status and events have no other way to the API server."""

from __future__ import annotations

import base64
import gzip
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.worlds.kube.forward_proxy import TARGET, ForwardProxy, behind
from tests.worlds.live.cluster import World, end, lasting
from tests.worlds.live.servers import serve_volcano, world_on

pytestmark = pytest.mark.live

SECRET = "hush-hush"
OURS = "behind-a-proxy"
"""On a shared server other tests leave pods of `navarch` behind, and nodes."""


@pytest.fixture(params=["embedded", "kube-apiserver"])
async def world(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[World]:
    async with world_on(request, tmp_path, serve_volcano) as made:
        yield made


@pytest.fixture
async def proxy(world: World) -> AsyncIterator[ForwardProxy]:
    async with ForwardProxy({TARGET: world.endpoint().port}) as started:
        yield started


@pytest.fixture
def kubeconfig(world: World, tmp_path: Path) -> Path:
    """For a server that only the proxy can find."""
    own = tmp_path / "own"
    own.write_bytes(world.kubeconfig.read_bytes())
    return own


async def test_a_gang_is_bound_through_the_proxy_also_when_tunnels_are_cut(
    world: World, proxy: ForwardProxy, kubeconfig: Path
) -> None:
    for number in range(2):
        await world.node(f"proxied-{number}", cpu="16")
    history = await world.watch()
    path = behind(kubeconfig, {"proxy-url": proxy.url})
    async with world.scheduler(kubeconfig=path, scheduler_names=(OURS,), **lasting(world.namespace)):
        await world.gang("first", 8, scheduler=OURS)
        await history.until_bound(8)
        proxy.cut()
        await world.gang("second", 8, scheduler=OURS)
        await history.until_bound(16)
        await world.eventually(lambda: world.get_group("second"), lambda found: found.get("status", {}).get("phase") == "Running")
        await world.eventually(lambda: world.events("second-0"), lambda found: "Scheduled" in [reason for _, reason, _ in found])
    history.check(gangs=[("first", 8), ("second", 8)])
    assert {target for target, _ in proxy.asked} == {TARGET} and proxy.tunnels > 4


async def test_navarch_run_takes_the_proxy_from_the_environment_and_logs_no_password(
    world: World, proxy: ForwardProxy, kubeconfig: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    proxy.wanted = "Basic " + base64.b64encode(f"an-account:{SECRET}".encode()).decode()
    monkeypatch.setenv("HTTPS_PROXY", f"http://an-account:{SECRET}@{proxy.address}")
    monkeypatch.setenv("NO_PROXY", "10.0.0.0/8,.svc")
    await world.node("proxied-0", cpu="16")
    history = await world.watch()
    path = behind(kubeconfig, {})
    cycles = world.folder / "cycles"
    process = await world.process(
        f"--kubeconfig={path}", f"--scheduler-name={OURS}", "--no-leader-elect", "--log-level=debug", f"--record={cycles}"
    )
    try:
        await world.gang("job", 4, scheduler=OURS)
        await history.until_bound(4)
    finally:
        code = await end(process)
    log = world.log_of("").read_text(encoding="utf-8")
    assert code == 0, log[-1500:]
    assert f"https://{TARGET} is reached through the proxy {proxy.url} (HTTPS_PROXY)" in log
    assert {target for target, _ in proxy.asked} == {TARGET}
    written = [log.encode(), *(each.read_bytes() for each in sorted(cycles.iterdir()))]
    hidden = (SECRET, "an-account", proxy.wanted.removeprefix("Basic "))
    assert len(written) > 1
    for content in written:
        plain = gzip.decompress(content) if content.startswith(b"\x1f\x8b") else content
        assert not [each for each in hidden if each.encode() in plain]


async def test_navarch_run_behind_socks_says_what_it_can(world: World, kubeconfig: Path) -> None:
    process = await world.process(f"--kubeconfig={behind(kubeconfig, {'proxy-url': f'socks5://me:{SECRET}@p'})}")
    assert await process.wait() == 2
    log = world.log_of("").read_text(encoding="utf-8")
    assert "proxy-url: expected http://" in log and "found socks5://" in log and SECRET not in log
