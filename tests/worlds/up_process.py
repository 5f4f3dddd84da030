"""`navarch up` in a process of its own, and the commands that a user types beside it."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from click.testing import CliRunner, Result

from navarch.cli.main import main

KUBECTL = shutil.which("kubectl")
NAVARCH = [sys.executable, "-m", "navarch.cli.main"]


@dataclass
class UpProcess:
    """A running `navarch up`."""

    process: subprocess.Popen[str]
    kubeconfig: Path
    home: Path

    def kubectl(self, *arguments: str, manifests: Any = None) -> str:
        assert KUBECTL is not None
        text = None if manifests is None else yaml.safe_dump_all(manifests)
        command = [KUBECTL, f"--kubeconfig={self.kubeconfig}", f"--cache-dir={self.home}", *arguments]
        done = subprocess.run(command, input=text, capture_output=True, text=True, timeout=360, check=False)
        assert done.returncode == 0, f"kubectl {' '.join(arguments)}: {done.stderr}"
        return done.stdout

    def navarch(self, *arguments: str) -> str:
        result = self.invoke(*arguments)
        assert result.exit_code == 0, result.output
        return result.stdout

    def invoke(self, command: str, *arguments: str) -> Result:
        """A command, whatever it exits with."""
        return CliRunner().invoke(main, [command, "--kubeconfig", str(self.kubeconfig), *arguments])


@contextmanager
def running_up(folder: Path, *options: str, sample: bool = False) -> Iterator[UpProcess]:
    """An embedded cluster. Into a pipe it writes plain lines, also where colours are forced, as CI systems do."""
    config = folder / "kubeconfig"
    web = () if "--web-port" in options else ("--no-web",)
    play = () if sample else ("--no-sample",)
    command = [*NAVARCH, "up", *play, "--port", "0", "--kubeconfig", str(config), *web, *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env={**os.environ, "FORCE_COLOR": "1"}) as process:
        assert process.stdout is not None
        try:
            assert process.stdout.readline().strip() == f"export KUBECONFIG={config}"
            assert " is up" in process.stdout.readline()
            yield UpProcess(process, config, folder / "cache")
        finally:
            process.send_signal(signal.SIGINT)
        assert process.wait(timeout=120) == 0
