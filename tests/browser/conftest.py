"""Chromium, and the dashboards that it looks at. Once a module: while playwright's event loop runs, no other test can run one."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.worlds.browser.chromium import Browser, chromium
from tests.worlds.browser.sample import Sample, sample
from tests.worlds.browser.served_cluster import Size, served_cluster


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as started:
        yield started


@pytest.fixture(scope="module")
def up(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sample]:
    """The sample of `navarch up`. After `browser`, so that nothing starts where there is none."""
    with sample(tmp_path_factory.mktemp("up")) as started:
        yield started


@pytest.fixture(scope="module")
def small(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of the dashboard of a small cluster: every page has something to show."""
    with served_cluster(tmp_path_factory.mktemp("small"), Size(nodes=6, running=4, waiting=3)) as started:
        yield started
