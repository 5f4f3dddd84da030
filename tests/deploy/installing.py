"""`navarch install` as a user runs it, whether or not an event loop is running here."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from click.testing import CliRunner

from navarch.cli.install import install


def run_install(kubeconfig: Path, *arguments: str) -> list[str]:
    """The lines it printed to standard output; an exit code other than 0 is an error."""
    with ThreadPoolExecutor(1) as thread:  # the command has a loop of its own, a thread has room for one
        result = thread.submit(CliRunner().invoke, install, ["--kubeconfig", str(kubeconfig), *arguments]).result()
    assert result.exit_code == 0, result.output
    return str(result.stdout).splitlines()
