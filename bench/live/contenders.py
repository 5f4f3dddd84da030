"""Who is measured: each a process with a kubeconfig, a scheduler name of its own, CPU seconds and memory."""

from __future__ import annotations

import contextlib
import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from tests.envtest import assets
from tests.envtest.server import KubeApiServer, free_port

TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Usage:
    """CPU seconds so far and the most memory ever held, in MB of 10^6."""

    cpu: float
    memory: float

    @classmethod
    def of(cls, process_id: int) -> Usage:
        fields = Path(f"/proc/{process_id}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
        peak = 0
        for line in Path(f"/proc/{process_id}/status").read_text(encoding="ascii").splitlines():
            if line.startswith("VmHWM:"):
                peak = int(line.split()[1]) * 1024
        return cls((int(fields[11]) + int(fields[12])) / TICKS, peak / 1e6)


@dataclass(frozen=True)
class Contender:
    """`command(server, pods, nodes)` starts it. `upstream_gangs`: its gangs are Kubernetes' own PodGroups. `lease`: the name of the
    Lease by which its replicas elect a leader."""

    name: str
    scheduler_name: str
    command: Callable[[KubeApiServer, int, int], list[str]]
    decides: bool = True
    upstream_gangs: bool = False
    lease: str = ""
    environment: dict[str, str] = field(default_factory=dict)

    @contextlib.contextmanager
    def running(
        self, server: KubeApiServer, pods: int, nodes: int, replica: str = "", *, may_end: bool = False
    ) -> Iterator[subprocess.Popen[bytes]]:
        """Its process for as long as the block lasts. It is an error if it ends by itself, unless it `may_end`."""
        log_file = server.folder / f"{self.name}{replica}.log"
        with log_file.open("wb") as log, _process(self.command(server, pods, nodes), log, self.environment, may_end) as process:
            try:
                yield process
            except BaseException:
                sys.stderr.write(log_file.read_text(encoding="utf-8", errors="replace")[-3000:])
                raise


@contextlib.contextmanager
def _process(command: list[str], log: IO[bytes], environment: dict[str, str], may_end: bool) -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT, env={**os.environ, **environment})
    try:
        yield process
        if process.poll() is not None and not may_end:
            raise RuntimeError(f"{shlex.join(command)} ended with {process.returncode} in the middle of the measurement")
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(15)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _bare(*extra: str) -> Callable[[KubeApiServer, int, int], list[str]]:
    def command(server: KubeApiServer, pods: int, nodes: int) -> list[str]:
        sizes = [f"--pods={pods}", f"--nodes={nodes}"]
        return [sys.executable, "-m", "bench.live.bare", f"--kubeconfig={server.kubeconfig}", *sizes, *extra]

    return command


def contenders(navarch_command: str, *, elected: bool = False) -> dict[str, Contender]:
    """All of them by name. `navarch_command` is what runs our scheduler; --kubeconfig is added to it. `elected`: replicas elect one
    leader by a Lease in the namespace default."""

    def kube_scheduler(server: KubeApiServer, pods: int, nodes: int) -> list[str]:
        binary = assets.find().scheduler
        if binary is None:
            raise assets.Unavailable("no kube-scheduler: run `make envtest`")
        return [
            str(binary),
            f"--kubeconfig={server.kubeconfig}",
            *(("--leader-elect=true", "--leader-elect-resource-namespace=default") if elected else ("--leader-elect=false",)),
            # The default of 50 requests a second would be all that is measured.
            "--kube-api-qps=5000",
            "--kube-api-burst=5000",
            "--bind-address=127.0.0.1",
            f"--secure-port={free_port()}",
            f"--cert-dir={server.folder / 'kube-scheduler'}",
            "--feature-gates=GenericWorkload=true,GangScheduling=true",
        ]

    def navarch(server: KubeApiServer, pods: int, nodes: int) -> list[str]:
        election = ("--leader-elect", "--lock-namespace=default") if elected else ("--no-leader-elect",)
        listen = f"--listen=127.0.0.1:{free_port()}"
        return [*shlex.split(navarch_command), f"--kubeconfig={server.kubeconfig}", listen, *election]

    everyone = [
        Contender("bare", "nobody", _bare(), decides=False),
        Contender("bare+events", "nobody", _bare("--events"), decides=False),
        Contender("kube-scheduler", "default-scheduler", kube_scheduler, upstream_gangs=True, lease="kube-scheduler"),
        Contender("navarch", "navarch", navarch, lease="navarch"),
    ]
    return {contender.name: contender for contender in everyone}
