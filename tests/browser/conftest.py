"""Chromium, and the dashboards that it looks at. Once a module: while playwright's event loop runs, no other test can run one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.worlds.browser.chromium import Browser, Visit, chromium, visit
from tests.worlds.browser.sample import Sample, sample


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as started:
        yield started


@pytest.fixture(scope="module")
def up(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sample]:
    """The sample of `navarch up`. After `browser`, so that nothing starts where there is none."""
    with sample(tmp_path_factory.mktemp("up")) as started:
        yield started


@pytest.fixture
def reader(browser: Browser, up: Sample) -> Iterator[Visit]:
    """A reader of the sample's dashboard, on a screen of 1280x800."""
    with visit(browser, up.address) as made:
        yield made


@pytest.fixture(scope="session")
def axe() -> str:
    """axe-core, the checker of accessibility."""
    return (Path(__file__).parent / "vendor" / "axe.min.js").read_text(encoding="utf-8")
