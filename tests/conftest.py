"""Fixtures that every suite needs."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from tests import distribution
from xdist.remote import Producer

from navarch.engine.containment.containment import Containment

# What shapes output, redirects requests or names the user; CI systems and shells set some of these for every program.
FOREIGN = (
    "COLUMNS", "LINES", "NO_COLOR", "FORCE_COLOR", "CLICOLOR", "CLICOLOR_FORCE", "TTY_COMPATIBLE", "TTY_INTERACTIVE",
    "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "all_proxy", "no_proxy",
    "KUBECONFIG", "KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT", "POD_NAME", "POD_NAMESPACE",
)  # fmt: skip


@pytest.fixture(scope="session", autouse=True)
def an_environment_of_their_own() -> Iterator[None]:
    """Tests, and the programs they start, see the same terminal and the same network wherever they run."""
    with pytest.MonkeyPatch.context() as patch:
        for name in FOREIGN:
            patch.delenv(name, raising=False)
        yield


@pytest.fixture(scope="session", autouse=True)
def closed_default_loop() -> Iterator[None]:
    """pytest-asyncio asks the policy for a loop when a synchronous test came first, and leaves that one open."""
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    yield
    loop.close()


@pytest.fixture(autouse=True)
def no_callback_fails_unseen(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The loop only logs what a timer or an unawaited task raises: here it fails the test."""
    unseen: list[str] = []
    told = asyncio.BaseEventLoop.default_exception_handler

    def heard(loop: asyncio.BaseEventLoop, context: dict[str, Any]) -> None:
        unseen.append(f"{context.get('message')}: {context.get('exception')!r}")
        told(loop, context)

    monkeypatch.setattr(asyncio.BaseEventLoop, "default_exception_handler", heard)
    yield
    assert unseen == []


@pytest.fixture(autouse=True)
def failures_are_not_contained(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """A cycle sets a job aside on which a rule raises. Here such a failure fails the test, unless it is marked `contained`."""
    if request.node.get_closest_marker("contained") is None:

        def fail(self: Containment, error: Exception) -> bool:
            raise error

        monkeypatch.setattr(Containment, "take", fail)


if signal.getsignal(signal.SIGINT) is signal.SIG_IGN and threading.current_thread() is threading.main_thread():
    # A shell ignores Ctrl-C in what it starts in the background, and processes that tests start would inherit it.
    signal.signal(signal.SIGINT, signal.default_int_handler)

# A slow machine is not a wrong answer: no test fails for the time an example takes. `make test` judges a change, so it tries
# the same examples each time; `make explore` looks for new ones, as long as told.
settings.register_profile("navarch", deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True)
settings.register_profile("explore", settings.get_profile("navarch"), derandomize=False, print_blob=True)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "navarch"))


# What is collected lives until the end, hundreds of thousands of recorded objects among it. The collector would visit it again and
# again: a third of the time of collection, and a part of that of every test.
gc.disable()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    distribution.order(items)


def pytest_collection_finish() -> None:
    gc.freeze()
    gc.enable()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> distribution.Distribution | None:
    return distribution.scheduler(config, log)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Write the ids of failed tests to the file that FAILED_TESTS names, one a line. `.ci/run` runs them once more from it."""
    if path := os.environ.get("FAILED_TESTS"):
        failed = {report.nodeid for kind in ("failed", "error") for report in terminalreporter.stats.get(kind, [])}
        Path(path).write_text("".join(f"{name}\n" for name in sorted(failed)))
