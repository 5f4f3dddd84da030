"""`navarch install` as a user runs it, whether or not an event loop is running here."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from click.testing import CliRunner
from tests.envtest.server import KubeApiServer

from navarch.cli.install import install
from navarch.kube.resources import CRDS

APPROVED = "KubernetesAPIApprovalPolicyConformant"
SECONDS = 120.0


def run_install(kubeconfig: Path, *arguments: str) -> list[str]:
    """The lines it printed to standard output; an exit code other than 0 is an error."""
    with ThreadPoolExecutor(1) as thread:  # the command has a loop of its own, a thread has room for one
        result = thread.submit(CliRunner().invoke, install, ["--kubeconfig", str(kubeconfig), *arguments]).result()
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == 0, result.output
    return str(result.stdout).splitlines()


def install_on(server: KubeApiServer, *arguments: str) -> None:
    """Until the server has said all that it says of CRDs by itself: an approval, where the group is the community's own."""
    run_install(server.kubeconfig, *arguments)
    deadline = time.monotonic() + SECONDS
    while unapproved := [
        crd["metadata"]["name"]
        for crd in server.request("GET", CRDS.path())["items"]
        if crd["spec"]["group"].endswith(".k8s.io") and APPROVED not in {each["type"] for each in crd["status"]["conditions"] or ()}
    ]:
        assert time.monotonic() < deadline, unapproved
        time.sleep(0.05)
