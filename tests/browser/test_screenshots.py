"""The pictures of docs/dashboard.md: `make screenshots` makes them anew."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.worlds.browser.chromium import PHONE, WIDE, Browser, Page, expect, visit
from tests.worlds.browser.sample import WAITS, Sample
from tests.worlds.browser.served_cluster import Size, served_cluster

FOLDER = os.environ.get("NAVARCH_SCREENSHOTS", "")
pytestmark = [pytest.mark.live, pytest.mark.skipif(not FOLDER, reason="pictures are made by `make screenshots`")]


@pytest.fixture(scope="module")
def large(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with served_cluster(tmp_path_factory.mktemp("large"), Size(nodes=2_000, running=1_400, waiting=40)) as started:
        yield started


def take(page: Page, name: str) -> None:
    path = Path(FOLDER) / f"{name}.png"
    page.mouse.move(0, 0)
    page.screenshot(path=path, animations="disabled")
    assert path.stat().st_size > 10_000


def test_the_sample(browser: Browser, up: Sample) -> None:
    with visit(browser, up.address, WIDE) as reader:
        for name, route in (("overview", "overview"), ("jobs", "jobs"), ("cycles", "cycles")):
            page = reader.open(route)
            expect(page.locator("main")).not_to_contain_text("Loading")
            expect(page.locator(".live")).to_have_text("live")
            if name == "overview":
                expect(page.locator(".stream li").first).to_be_visible()
            take(page, name)
        page = reader.open(f"jobs/{WAITS}")
        page.get_by_role("button", name="What would help").click()
        expect(page.get_by_role("heading", name="What would start it")).to_be_visible()
        page.evaluate("() => document.activeElement.blur()")
        take(page, "job")
        take(reader.open("nodes/node-000"), "node")
    with visit(browser, up.address, PHONE, color_scheme="dark") as reader:
        take(reader.open("jobs"), "phone")


def test_a_large_cluster(browser: Browser, large: str) -> None:
    with visit(browser, large, WIDE, color_scheme="dark") as reader:
        page = reader.open("nodes?colour=queue")
        expect(page.locator(".map canvas")).to_have_attribute("style", re.compile("height"))
        take(page, "nodes")
