"""Simulations in the browser: the page that `navarch simulate --report` writes, and the same report on the dashboard."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.worlds.browser.chromium import PHONE, WIDE, Browser, Page, expect, visit

from navarch.simulator.jobs import PodSet, TraceJob
from navarch.simulator.report.write import write_report
from navarch.simulator.simulate import simulate

pytestmark = pytest.mark.live
REMARK = "policies finish different jobs"


def report(folder: Path, **options: float) -> str:
    """The address of a report in which one policy starts nothing, and one queue has a name that could break the page."""
    pods = (PodSet(gpus=1), PodSet(2, gpus=4))
    jobs = [
        TraceJob(name=f"j{i:02d}", submit=600.0 * i, duration=7200, pods=pods[i % 2 : i % 2 + 1], queue=f"q{i % 3}") for i in range(20)
    ]
    jobs.append(TraceJob(name="hostile", submit=20000, duration=60, pods=(PodSet(gpus=1),), queue="<!--<script>alert(1)</script>"))
    never = {"actions": "backfill", "tiers": [{"plugins": [{"name": "gang"}]}]}
    write_report(simulate(jobs, "a=2x4gpu", ["fifo", "easy", never], **options), folder, "a test", ["two nodes"])  # type: ignore[arg-type]
    return f"file://{folder}/index.html"


def opened(browser: Browser, address: str, size: tuple[int, int], scheme: str) -> tuple[Page, list[str]]:
    context = browser.new_context(viewport={"width": size[0], "height": size[1]}, color_scheme=scheme)  # type: ignore[arg-type]
    page = context.new_page()
    errors: list[str] = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.on("console", lambda message: errors.append(message.text) if message.type == "error" else None)
    page.goto(address)
    return page, errors


def background(page: Page) -> str:
    return str(page.evaluate("getComputedStyle(document.body).backgroundColor"))


@pytest.mark.parametrize(("size", "scheme"), [(WIDE, "light"), (PHONE, "dark")])
def test_the_page_of_a_report(browser: Browser, tmp_path: Path, size: tuple[int, int], scheme: str) -> None:
    page, errors = opened(browser, report(tmp_path), size, scheme)
    expect(page.locator("h1")).to_have_text("a test")
    expect(page.locator("#subtitle")).to_contain_text("Two nodes.")
    expect(page.locator("#notes")).to_contain_text(REMARK)
    expect(page.locator("#allocated canvas")).to_be_visible()
    expect(page.locator("#course")).to_have_count(0)  # only for --arrivals: a heading without a plot is no help
    expect(page.locator("#by-queue")).to_contain_text("<!--<script>")
    expect(page.locator("#figures tr", has_text="completion, mean").locator("td").nth(1)).to_have_text(re.compile(r" h$"))
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert (background(page) == "rgb(255, 255, 255)") == (scheme == "light")
    page.emulate_media(media="print")
    assert background(page) == "rgb(255, 255, 255)", "paper is white"
    assert errors == []
    page.context.close()


def test_the_page_of_arrivals(browser: Browser, tmp_path: Path) -> None:
    page, errors = opened(browser, report(tmp_path, arrivals=1.3), WIDE, "light")
    expect(page.locator("#course canvas")).to_be_visible()
    expect(page.locator("#figures")).to_contain_text("GPUs allocated at 130 % asked")
    for empty in ("#allocated", "#waiting", "#sizes", "#by-queue", "#gangs", "#quotas"):
        expect(page.locator(empty)).to_have_count(0)
    expect(page.locator("#figures")).not_to_contain_text("makespan")
    assert errors == []
    page.context.close()


def test_the_report_on_the_dashboard(browser: Browser, small: str) -> None:
    with visit(browser, small, WIDE) as reader:
        page = reader.open("simulations/two-policies")
        rows = page.get_by_role("region", name="Policies side by side").locator("tbody tr")
        times = rows.filter(has_text=re.compile("^(completion|queueing|makespan)"))
        cells = times.locator("td").all_inner_texts()
        assert len(cells) == 18 and {cell.split(" ")[1] for cell in cells} == {"h"}, cells
        expect(page.locator("main")).to_contain_text("left out 1 job: larger than the cluster (huge)")
        expect(page.get_by_role("heading", name="Completion time")).to_be_visible()
        expect(page.get_by_role("heading", name="as jobs ask for more")).to_have_count(0)
    with visit(browser, small, PHONE, color_scheme="dark") as reader:
        page = reader.open("simulations/two-policies")
        expect(page.get_by_role("heading", name="Completion time")).to_be_visible()
        names = page.locator("table.matrix td").evaluate_all("cells => cells.map((cell) => cell.dataset.column)")
        assert set(names) == {"fifo", "easy"}
