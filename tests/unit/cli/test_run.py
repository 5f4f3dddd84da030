"""What `navarch run` says to an option it cannot use: which, what was found, what is expected; exit code 2, and no traceback."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from navarch.cli.run import run

KUBECONFIG = """
apiVersion: v1
kind: Config
current-context: c
clusters: [{name: c, cluster: {server: "http://127.0.0.1:1"}}]
users: [{name: u, user: {token: t}}]
contexts: [{name: c, context: {cluster: c, user: u}}]
"""


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ("--kubeconfig=/nowhere", "kubeconfig /nowhere: no such file"),
        ("--context=other", "context 'other' is not there; found ['c']"),
        ("--policy=volcanoo", "did you mean 'volcano'?"),
        ("--scheduler-name=", "--scheduler-name: expected a name"),
        ("--lock-name=", "--lock-name: expected a name"),
        ("--listen=localhost:99999", "--listen localhost:99999: expected an address such as 0.0.0.0:8080"),
        ("--listen=host:http", "has to be a number up to 65535, found 'http'"),
        ("--lease-duration=5", "expected lease duration > renew deadline > 1.2 x retry period > 0, found 5, 10, 2"),
        ("--lease-duration=inf", "'--lease-duration': expected a number of seconds, found inf"),
        ("--period=nan", "'--period': expected a number of seconds, found nan"),
        ("--period=0", "0.0 is not in the range x>=0.01"),
        ("--gang-timeout=inf", "'--gang-timeout': expected a number of seconds"),
        ("--partition-label-value=a", "expected --node-pool-label-key beside it"),
        ("--record={file}", "is a file"),
        ("--record={file}/below", "--record {file}/below: expected a folder that can be written: Not a directory"),
        ("--record=/proc/below", "--record /proc/below: expected a folder that can be written"),
        ("--plugin-dir=/nowhere", "Directory '/nowhere' does not exist"),
        ("--log-format=xml", "'xml' is not one of 'text', 'json'"),
        ("--gpu-sharing=some", "'some' is not one of"),
        ("more", "unexpected extra argument (more)"),
    ],
)
def test_an_unusable_option_is_named(arguments: str, said: str, tmp_path: Path) -> None:
    kubeconfig, file = tmp_path / "config", tmp_path / "file"
    kubeconfig.write_text(KUBECONFIG)
    file.touch()
    given = ["--kubeconfig", str(kubeconfig), "--listen=127.0.0.1:0", "--no-leader-elect", arguments.format(file=file)]
    done = CliRunner().invoke(run, given)
    assert done.exit_code == 2, done.output
    assert said.format(file=file) in " ".join(done.output.split())
