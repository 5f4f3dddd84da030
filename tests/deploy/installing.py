"""`navarch install` as a user runs it, whether or not an event loop is running here."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

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


def install_on(server: KubeApiServer) -> None:
    """Until the server answers for every kind, and has said all that it says of CRDs by itself: that comes a moment after they are
    established, which is what `navarch install` waits for."""
    run_install(server.kubeconfig)
    deadline = time.monotonic() + SECONDS
    while unready := [crd["metadata"]["name"] for crd in server.request("GET", CRDS.path())["items"] if not _is_ready(server, crd)]:
        assert time.monotonic() < deadline, unready
        time.sleep(0.05)


def _is_ready(server: KubeApiServer, crd: dict[str, Any]) -> bool:
    """Kinds of the community's own groups are also told whether they are approved."""
    spec, conditions = crd["spec"], {each["type"] for each in crd["status"]["conditions"] or ()}
    try:
        for version in spec["versions"]:
            if version["served"]:
                server.request("GET", f"/apis/{spec['group']}/{version['name']}/{spec['names']['plural']}")
    except RuntimeError:  # 404
        return False
    return APPROVED in conditions or not spec["group"].endswith(".k8s.io")
