"""START in the browser: a span where walltimes are known, and what is missing where nothing is."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from tests.worlds.browser.chromium import PHONE, WIDE, Browser, expect, visit
from tests.worlds.browser.served_cluster import Size, served_cluster

pytestmark = pytest.mark.live
FIRST = "vision/train-0002"
"""Both nodes are full for two hours. The first job that waits starts when a node is free."""


@pytest.fixture(scope="module")
def full(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with served_cluster(tmp_path_factory.mktemp("full"), Size(nodes=2, running=2, waiting=3, asked=8, walltime=7200)) as started:
        yield started


def test_a_job_that_waits_says_when_it_starts(browser: Browser, full: str) -> None:
    in_two_hours = re.compile("in (1h|2h)")
    with visit(browser, full, WIDE) as reader:
        page = reader.open("jobs?sort=start")
        row = page.locator("[data-row]", has_text=FIRST)
        expect(row.locator("td").nth(6)).to_have_text(in_two_hours)
        expect(page.locator("main")).not_to_contain_text("Start times are unknown")
        reader.open("overview")
        expect(page.get_by_role("region", name="Waiting jobs").locator("tr", has_text=FIRST)).to_contain_text(in_two_hours)
        reader.open(f"jobs/{FIRST}")
        expect(page.locator(".facts > div", has_text="Starts")).to_contain_text(in_two_hours)
    with visit(browser, full, PHONE) as reader:
        expect(reader.open("jobs").locator("[data-row]", has_text=FIRST)).to_contain_text(in_two_hours)


def test_without_a_basis_the_page_says_what_is_missing(browser: Browser, small: str) -> None:
    with visit(browser, small, WIDE) as reader:
        page = reader.open("jobs?text=train-0004")
        expect(page.locator("[data-row]")).to_contain_text("never")  # it asks for nine of eight GPUs, so no start time is missing
        expect(page.locator("main")).not_to_contain_text("Start times are unknown")
