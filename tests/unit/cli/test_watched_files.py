"""`navarch plan --watch`: decided again when a manifest or a plugin changes, and a mistake does not end it."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path
from typing import IO

from click.testing import CliRunner

from navarch.cli.main import main

CLUSTER = """
apiVersion: v1
kind: Node
metadata: {name: n1}
status: {allocatable: {cpu: "4", pods: "10"}}
---
apiVersion: v1
kind: Pod
metadata: {name: %s}
spec: {containers: [{name: c, resources: {requests: {cpu: "1"}}}]}
"""


def read_until(stream: IO[str], text: str) -> str:
    """The output up to the line with the text. The end of the process ends it too."""
    found = ""
    for line in stream:
        found += line
        if text in line:
            break
    return found


def replace(file: Path, text: str) -> None:
    """Write the whole content at once: a file that is seen half written would be decided too."""
    written = file.with_suffix(".new")
    written.write_text(text)
    written.rename(file)


def test_a_change_is_decided_again_and_a_mistake_is_told(tmp_path: Path) -> None:
    file = tmp_path / "cluster.yaml"
    file.write_text(CLUSTER % "first")
    command = [sys.executable, "-m", "navarch.cli.main", "plan", "-f", str(file), "--watch"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, bufsize=1) as process:
        assert process.stdout is not None
        try:
            assert "default/first" in read_until(process.stdout, "watching for changes")
            replace(file, "kind: [")
            said = read_until(process.stdout, "watching for changes")
            assert f"changed: {file}" in said
            assert "1 mistake in the input" in said
            replace(file, CLUSTER % "second")
            assert "default/second" in read_until(process.stdout, "watching for changes")
        finally:
            process.send_signal(signal.SIGINT)
    assert process.returncode == 0


def test_standard_input_cannot_be_watched() -> None:
    result = CliRunner().invoke(main, ["plan", "-f", "-", "--watch"], input="")
    assert result.exit_code == 2
    assert "standard input cannot be read again" in result.output
