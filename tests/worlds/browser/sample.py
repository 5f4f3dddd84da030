"""The sample of `navarch up` and its dashboard, as a user starts them: a process that prints an address."""

from __future__ import annotations

import base64
import contextlib
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import yaml
from tests.worlds.browser.api import rows, until
from tests.worlds.embedded.server import Http

NAVARCH = [sys.executable, "-m", "navarch.cli.main"]
WAITS = "research/moonshot"
"""The job of the sample that never starts: it needs one pod more than there is room for."""


@dataclass(frozen=True)
class Sample:
    address: str
    """Of the dashboard, with the token."""
    api: Http
    """The cluster's API server."""


@contextlib.contextmanager
def sample(folder: Path) -> Iterator[Sample]:
    """Four nodes with eight GPUs each. Yields when the last job of the sample waits."""
    config = folder / "kubeconfig"
    command = [*NAVARCH, "up", "--port", "0", "--kubeconfig", str(config)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            address = next(line.partition("dashboard: ")[2].strip() for line in process.stdout if "dashboard: " in line)
            until(address, "jobs", lambda found: any(row["id"] == WAITS and row["never"] for row in rows(found)))
            api = _http(config)
            yield Sample(address, api)
            api.close()
        finally:
            process.send_signal(signal.SIGINT)
            process.stdout.read()
            process.wait(timeout=120)


def _http(config: Path) -> Http:
    content = yaml.safe_load(config.read_text())
    cluster, user = content["clusters"][0]["cluster"], content["users"][0]["user"]
    return Http(cluster["server"], user["token"], base64.b64decode(cluster["certificate-authority-data"]), config)
