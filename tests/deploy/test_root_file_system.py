"""The root file system of the image (`make root-file-system`), run as the Deployment says, against a real kube-apiserver.

bubblewrap stands for the container engine: the command, arguments, user, capabilities, read-only root and mounts are those of the
Deployment that `navarch install` applies. The account is the one that it makes.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import signal
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import yaml
from tests.envtest.server import KubeApiServer
from tests.worlds.deploy.installing import install_on
from tests.worlds.live.cluster import World
from tests.worlds.live.servers import real_world

from navarch.job_history import read_history
from navarch.kube.resources import LEASES
from navarch.manifests.installation import Installation
from navarch.version import version

TOP = Path(__file__).resolve().parents[2]
ROOT = Path(os.environ.get("ROOT_FILE_SYSTEM", Path.home() / ".cache" / "navarch" / "root"))
POLICY = TOP / "examples" / "power-saving.conf"
PLUGINS = TOP / "examples" / "plugins"
PATH = "/opt/navarch/bin:/usr/bin:/bin"
pytestmark = pytest.mark.live
_AGAIN = "`make root-file-system` makes one, as root"


@pytest.fixture(autouse=True)
def present() -> None:
    """A root file system that has this tree's package."""
    if not (ROOT / "opt" / "navarch" / "bin" / "navarch").exists() or shutil.which("bwrap") is None:
        pytest.skip(f"no root file system in {ROOT}, or no bubblewrap: {_AGAIN}")
    (packages,) = (ROOT / "opt" / "navarch" / "lib").glob("python3.*/site-packages")
    source = {path.relative_to(TOP / "src"): path.read_bytes() for path in (TOP / "src").rglob("*.py")}
    installed = {path.relative_to(packages): path.read_bytes() for path in packages.glob("navarch/**/*.py")}
    if source != installed:
        pytest.skip(f"the root file system in {ROOT} has the package of another tree: {_AGAIN}")


class Container:
    """Runs commands as the Deployment's container, with folders of the test as its volumes."""

    def __init__(self, folder: Path) -> None:
        installation = Installation(policy=POLICY.read_text(encoding="utf-8"))
        deployment = next(item for item in installation.objects() if item["kind"] == "Deployment")
        self.pod = deployment["spec"]["template"]["spec"]
        (self.spec,) = self.pod["containers"]
        policy = folder / "policy"
        policy.mkdir()
        shutil.copy(POLICY, policy / "policy.yaml")
        self.folders = {"policy": policy, "crashes": folder / "crashes"}
        self.environment = {"PATH": PATH}
        self.accounts, self.history = folder / "account", folder / "history"
        for made in (self.folders["crashes"], self.history):
            made.mkdir()

    def account(self, kubeconfig: Path, server: KubeApiServer) -> None:
        """Give it what a pod of this account has: token, authority, namespace, and where the API server is."""
        (user,) = yaml.safe_load(kubeconfig.read_text(encoding="utf-8"))["users"]
        self.accounts.mkdir()
        shutil.copy(server.ca_file, self.accounts / "ca.crt")
        (self.accounts / "token").write_text(user["user"]["token"], encoding="utf-8")
        (self.accounts / "namespace").write_text("navarch-system", encoding="utf-8")
        host, _, port = server.url.removeprefix("https://").partition(":")
        self.environment |= {"KUBERNETES_SERVICE_HOST": host, "KUBERNETES_SERVICE_PORT": port, "POD_NAME": "navarch-0"}

    def command(self, *words: str) -> list[str]:
        security, user = self.spec["securityContext"], self.pod["securityContext"]
        assert security["readOnlyRootFilesystem"] and security["capabilities"] == {"drop": ["ALL"]} and user["runAsNonRoot"]
        mounts = ["--ro-bind", str(ROOT), "/", "--dev", "/dev", "--proc", "/proc", "--tmpfs", "/run"]
        for mount in self.spec["volumeMounts"]:
            kind = "--ro-bind" if mount.get("readOnly") else "--bind"
            mounts += [kind, str(self.folders[mount["name"]]), mount["mountPath"]]
        mounts += ["--bind", str(self.history), "/history", "--ro-bind", str(PLUGINS), "/run/plugins"]
        if self.accounts.exists():
            mounts += ["--ro-bind", str(self.accounts), "/run/secrets/kubernetes.io/serviceaccount"]
        rights = ["--unshare-user", "--uid", str(user["runAsUser"]), "--gid", str(user["runAsGroup"]), "--cap-drop", "ALL"]
        process = ["--unshare-pid", "--as-pid-1", "--die-with-parent", "--clearenv"]
        process += [word for name, value in self.environment.items() for word in ("--setenv", name, value)]
        return ["bwrap", *mounts, *rights, *process, *words]


async def output(command: list[str]) -> tuple[int | None, str]:
    process = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT)
    said, _ = await asyncio.wait_for(process.communicate(), 120)
    return process.returncode, said.decode()


def inner(pid: int) -> int:
    """The process in the container: the last of bubblewrap's children."""
    while children := Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="utf-8").split():
        pid = int(children[0])
    return pid


@contextlib.asynccontextmanager
async def running(command: list[str], log: Path) -> AsyncIterator[asyncio.subprocess.Process]:
    with log.open("wb") as file:
        process = await asyncio.create_subprocess_exec(*command, stderr=file)
    try:
        yield process
    finally:
        print(log.read_text(encoding="utf-8"))  # for whoever reads a failure
        if process.returncode is None:
            process.kill()
            await process.wait()


@pytest.fixture
async def world(kube_apiserver: KubeApiServer, tmp_path: Path) -> AsyncIterator[World]:
    await asyncio.to_thread(install_on, kube_apiserver)
    async with real_world(Path(kube_apiserver.kubeconfig), "root-file-system", tmp_path) as made:
        yield made


async def test_it_is_this_version_and_nothing_can_be_written(tmp_path: Path) -> None:
    container = Container(tmp_path)
    assert await output(container.command("navarch", "--version")) == (0, f"navarch {version()}\n")
    code, said = await output(
        container.command("python3", "-c", "import os; print(os.getuid(), os.getpid(), flush=True); open('/etc/x', 'w')")
    )
    assert code == 1 and said.startswith("65532 1\n") and "Read-only file system: '/etc/x'" in said


async def test_it_schedules_as_the_leader_with_policy_plugin_and_history(
    world: World, kube_apiserver: KubeApiServer, tmp_path: Path
) -> None:
    account = await asyncio.to_thread(kube_apiserver.service_account, "navarch-system", "navarch")
    container = Container(tmp_path)
    container.account(account, kube_apiserver)
    added = ["--plugin-dir=/run/plugins", "--history=/history/jobs.db", "--listen=127.0.0.1:0"]
    await world.node("a-spared", cpu="4", **{"example.com/switch-off": "true"})
    await world.node("b-kept", cpu="4")
    command = container.command("navarch", *container.spec["args"], *added)
    assert "--policy=/etc/navarch/policy.yaml" in command and "--leader-elect=false" not in command
    async with running(command, tmp_path / "log") as process:
        await world.pod("first")
        found = await world.eventually(
            lambda: world.get_pod("first"), lambda pod: pod["spec"].get("nodeName") or process.returncode is not None
        )
        assert found["spec"].get("nodeName") == "b-kept", "the plugin's score"
        lease = await world.client.get(LEASES, "navarch", namespace="navarch-system")
        assert lease["spec"]["holderIdentity"].startswith("navarch-0")
        os.kill(inner(process.pid), signal.SIGTERM)
        assert await asyncio.wait_for(process.wait(), 120) == 0
    assert (tmp_path / "log").read_text(encoding="utf-8").rstrip().endswith("stopped")
    assert [run.owner for run in read_history(container.history / "jobs.db") if run.namespace == world.namespace]
