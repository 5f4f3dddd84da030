"""How fast pages of the dashboard are in Chromium, beside the same pages of a small cluster: first paint, data, a change.

    python -m bench.web_pages                             5,000 nodes, 100,000 pods
    python -m bench.web_pages --nodes 500 --pods 10000

The cluster is that of `bench.web`. Each page is opened by a new reader, with an empty cache. "Data" is when its figures are
in the document. A change is a gang that is created while the jobs page is open, until its row is there. Wall time: run it on a quiet
machine, or look at the ratio to the small cluster, which is measured in the same minute.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import shutil
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from playwright.async_api import Browser, async_playwright

from bench.report import Figure, show
from bench.web import GANG, Load, Measured, Viewers
from navarch.embedded.api.server import ApiServer

DATA: Mapping[str, str] = {
    "overview": "() => document.querySelector('.resource') && document.querySelector('main table tbody tr') && performance.now()",
    "jobs": "() => document.querySelector('[data-row]') && performance.now()",
    "nodes": "() => document.querySelector('.map canvas')?.style.height && performance.now()",
    "queues": "() => document.querySelector('table.queues tbody tr') && performance.now()",
}
"""Page -> since when its figures are there, in milliseconds since it was opened."""
PAINT = "() => performance.getEntriesByName('first-contentful-paint')[0]?.startTime"
CHANGES = 5


async def measure_cluster(browser: Browser, nodes: int, pods: int, waiting: int) -> dict[str, float]:
    """Seconds, by what was measured."""
    with tempfile.TemporaryDirectory(prefix="navarch-bench-") as folder:
        async with ApiServer(taint_new_nodes=False) as server:
            load = Load(server, nodes, pods, waiting)
            kubeconfig = str(server.kubeconfig(Path(folder, "kubeconfig")))
            web = await Measured.start(
                "-m", "navarch.cli.main", "web", "--kubeconfig", kubeconfig, "--listen", "127.0.0.1:0", "--scheduler-name", "navarch"
            )
            ready = Viewers(web.line, 0)
            try:
                await ready.open()
                found: dict[str, float] = {}
                for page in DATA:
                    found |= await _opened(browser, web.line, page)
                found["a change is on the page"] = await _changed(browser, web.line, load)
                return found
            finally:
                await ready.close()
                await web.stop()


async def _opened(browser: Browser, address: str, page: str) -> dict[str, float]:
    context = await browser.new_context(viewport={"width": 1280, "height": 800})
    tab = await context.new_page()
    await tab.goto(f"{address}#/{page}", wait_until="commit")
    data: Any = await (await tab.wait_for_function(DATA[page], timeout=60_000)).json_value()
    paint: Any = await (await tab.wait_for_function(PAINT, timeout=60_000)).json_value()
    await context.close()
    return {f"{page}: first paint": paint / 1000, f"{page}: data": data / 1000}


async def _changed(browser: Browser, address: str, load: Load) -> float:
    """The median of several."""
    context = await browser.new_context(viewport={"width": 1280, "height": 800})
    tab = await context.new_page()
    await tab.goto(f"{address}#/jobs?sort=created")
    await tab.wait_for_function("() => document.querySelector('.live.on')?.textContent === 'live'", timeout=60_000)
    times = []
    for _ in range(CHANGES):
        await tab.get_by_label("Text").fill(f"train-{load.number // GANG:06d}")
        started = time.perf_counter()
        for _ in range(GANG):
            load.create()
        await tab.locator("[data-row]", has_text=load.last_gang).wait_for(timeout=60_000)
        times.append(time.perf_counter() - started)
    await context.close()
    return sorted(times)[CHANGES // 2]


async def measure(nodes: int, pods: int, waiting: int) -> None:
    program = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if program is None:
        raise SystemExit("there is no Chromium on this machine; on Debian: apt install chromium")
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=program, args=["--no-sandbox"] if os.geteuid() == 0 else [])
        small = await measure_cluster(browser, 10, 100, 20)
        large = await measure_cluster(browser, nodes, pods, waiting)
        await browser.close()
    note = f"load {os.getloadavg()[0]:.1f}"
    targets = {what: 1.0 for what in large if what.endswith(("first paint", "on the page"))}
    figures = [Figure(what, seconds, "s", targets.get(what), small[what], "10 nodes", note) for what, seconds in large.items()]
    show(f"pages of the dashboard with {nodes:,} nodes and {pods:,} pods", figures)


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="bench.web_pages")
    parser.add_argument("--nodes", type=int, default=5000)
    parser.add_argument("--pods", type=int, default=100_000)
    parser.add_argument("--waiting", type=int, default=1000)
    given = parser.parse_args(argv)
    asyncio.run(measure(given.nodes, given.pods, given.waiting))


if __name__ == "__main__":
    main()
