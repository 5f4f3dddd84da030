"""A real kube-apiserver with etcd on free loopback ports, for as long as a `with` block lasts.

    with KubeApiServer() as server:
        subprocess.run(["navarch", "run", "--kubeconfig", server.kubeconfig])

or `async with`, which starts and stops it beside the event loop. Everything it writes lies in one temporary folder.
`kill()` and `start()` inside the block model a crash: port, certificates, tokens and data stay. RBAC is on; the admin
token belongs to system:masters, `user()` makes a kubeconfig for any other user. Two admission plugins are off because
the controllers that they rely on do not run: nothing would make a service account for pods, nothing would take the
not-ready taint off a node.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import http.client
import json
import os
import secrets
import shutil
import signal
import socket
import ssl
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterable, Sequence
from datetime import timedelta
from pathlib import Path
from typing import IO, Any, Self

from tests.envtest import assets
from tests.envtest.certificates import VALID_FOR, Authority
from tests.worlds.kube.ports import hold_port

START_SECONDS = 120.0  # five seconds on an idle machine; two cores that others use as well can take far longer
STOP_SECONDS = 15.0
REQUEST_SECONDS = 120.0
ETCD_BATCH = 128
"""Puts of one transaction; etcd allows no more."""
FROM_THE_START = ("default", "kube-system")
"""Namespaces that the server makes beside /readyz, not before it."""
RBAC = "/apis/rbac.authorization.k8s.io/v1"
_GATES = ("GenericWorkload", "GangScheduling", "TopologyAwareWorkloadScheduling", "WorkloadAwarePreemption")
UPSTREAM_GROUPS = (
    f"--feature-gates={','.join(f'{gate}=true' for gate in _GATES)}",
    "--runtime-config=scheduling.k8s.io/v1alpha2=true",
)
"""The PodGroups of Kubernetes 1.36 with all their fields."""


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


class KubeApiServer:
    """One API server. `arguments` are added to kube-apiserver's command line."""

    def __init__(self, arguments: Sequence[str] = (), *, binaries: assets.Assets | None = None) -> None:
        self._binaries = binaries or assets.find()
        self._arguments = list(arguments)
        self._processes: list[subprocess.Popen[bytes]] = []
        self._log: IO[bytes] | None = None
        self.folder = Path(tempfile.mkdtemp(prefix="navarch-envtest-"))
        self.log_file = self.folder / "server.log"
        self.token = secrets.token_hex(16)
        # Ours for as long as this is, also between a crash and the next start: Go's listeners share an address with a socket that
        # is bound to it and does not listen.
        self._held = [hold_port(), hold_port()]
        self.port, etcd_port = (int(held.getsockname()[1]) for held in self._held)
        self.url = f"https://127.0.0.1:{self.port}"
        self._etcd_url = f"http://127.0.0.1:{etcd_port}"
        self._authority = Authority(self.folder)
        self.ca_file = self._authority.certificate_file
        self._certificate, self._key = self._authority.server()
        self._account_public, self._account_private = self._authority.service_account_key()
        (self.folder / "tokens.csv").write_text(f'{self.token},admin,admin,"system:masters"\n', encoding="utf-8")
        self.kubeconfig = self._write_kubeconfig("admin", {"token": self.token})

    # -- life ---------------------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Start, and return when /readyz says ok."""
        self._log = self.log_file.open("ab")
        for command in self._commands():
            self._processes.append(
                subprocess.Popen(command, cwd=self.folder, stdin=subprocess.PIPE, stdout=self._log, stderr=subprocess.STDOUT)
            )
        try:
            self._wait_until_ready(time.monotonic() + START_SECONDS)
        except BaseException:
            self.kill()
            raise

    def stop(self) -> None:
        """Ask the processes to end, the API server before etcd, and wait for them."""
        for process in reversed(self._processes):
            self._end(process, signal.SIGTERM)
        self._forget_processes()

    def kill(self) -> None:
        """End the processes with SIGKILL, as a crash would. `start()` brings the same server back."""
        for process in self._processes:
            self._end(process, signal.SIGKILL)
        self._forget_processes()

    @property
    def process_ids(self) -> list[int]:
        return [process.pid for process in self._processes]

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self._remove_folder()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
        self._remove_folder()

    async def __aenter__(self) -> Self:
        return await asyncio.to_thread(self.__enter__)

    async def __aexit__(self, *exception: object) -> None:
        await asyncio.to_thread(self.__exit__, *exception)

    # -- users ------------------------------------------------------------------------------------------

    def user(self, name: str, *groups: str, valid_for: timedelta = VALID_FOR) -> Path:
        """A kubeconfig with a client certificate for this user; once more: the same files with another certificate."""
        certificate, key = self._authority.user(name, list(groups), valid_for)
        return self._write_kubeconfig(name, {"client-certificate": str(certificate), "client-key": str(key)})

    def service_account(self, namespace: str, name: str) -> Path:
        """A kubeconfig with a token that the server signs for this service account, as a pod would have it."""
        path = f"/api/v1/namespaces/{namespace}/serviceaccounts/{name}/token"
        answer = self.request("POST", path, {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest"})
        token = answer["status"]["token"]
        self._wait_for_rights(namespace, name, token)
        return self._write_kubeconfig(f"{namespace}-{name}", {"token": token})

    def request(self, method: str, path: str, body: Any = None, token: str = "") -> Any:
        """One request, as admin if no token is given, decoded: for setting a scene, not for what is under test."""
        data = None if body is None else json.dumps(body).encode()
        headers = {"Authorization": f"Bearer {token or self.token}", "Content-Type": "application/json"}
        request = urllib.request.Request(self.url + path, data, headers, method=method)
        try:
            with self._open(request) as answer:
                text = answer.read().decode()
        except urllib.error.HTTPError as error:
            raise RuntimeError(f"{method} {path}: {error.code} {error.read().decode()}") from None
        return json.loads(text) if text.startswith(("{", "[")) else text

    def compact(self) -> int:
        """Let etcd forget every version up to now, as it does by itself after five minutes; the revision that is left.

        A kind with a watch cache still remembers what passed since the server's start: `--watch-cache-sizes=pods#0`."""
        revision = int(self.request("GET", "/api/v1/namespaces/default/configmaps?limit=1")["metadata"]["resourceVersion"])
        self._etcd("compaction", {"revision": str(revision), "physical": True})
        return revision

    def store(self, objects: Iterable[tuple[str, bytes]]) -> None:
        """Write objects straight into etcd: pairs of a key below /registry and JSON. A hundred thousand pods take seconds this way.
        Nothing is validated; defaults are set when the server reads them."""
        puts: list[dict[str, Any]] = []
        for key, value in objects:
            put = {"key": base64.b64encode(f"/registry/{key}".encode()).decode(), "value": base64.b64encode(value).decode()}
            puts.append({"requestPut": put})
            if len(puts) == ETCD_BATCH:
                self._etcd("txn", {"success": puts})
                puts.clear()
        if puts:
            self._etcd("txn", {"success": puts})

    def tls(self) -> ssl.SSLContext:
        return ssl.create_default_context(cafile=str(self.ca_file))

    def log_tail(self, characters: int = 4000) -> str:
        return self.log_file.read_text(encoding="utf-8", errors="replace")[-characters:]

    # -- inside -------------------------------------------------------------------------------------------------------

    def _commands(self) -> list[list[str]]:
        data = str(self.folder / "etcd")
        flags = [
            "--bind-address=127.0.0.1",
            "--advertise-address=127.0.0.1",
            f"--secure-port={self.port}",
            f"--tls-cert-file={self._certificate}",
            f"--tls-private-key-file={self._key}",
            f"--client-ca-file={self.ca_file}",
            f"--token-auth-file={self.folder / 'tokens.csv'}",
            "--service-account-issuer=https://navarch.envtest",
            f"--service-account-key-file={self._account_public}",
            f"--service-account-signing-key-file={self._account_private}",
            "--service-cluster-ip-range=10.0.0.0/24",
            "--endpoint-reconciler-type=none",
            "--authorization-mode=RBAC",
            "--disable-admission-plugins=ServiceAccount,TaintNodesByCondition",
            "--profiling=false",
            *self._arguments,
        ]
        if self._binaries.etcd is None:
            return [[str(self._binaries.apiserver), data, self._etcd_url, *flags]]
        peer = "http://127.0.0.1:0"
        etcd = [
            str(self._binaries.etcd),
            f"--data-dir={data}",
            f"--listen-client-urls={self._etcd_url}",
            f"--advertise-client-urls={self._etcd_url}",
            f"--listen-peer-urls={peer}",
            "--log-level=error",
            "--unsafe-no-fsync",
        ]
        return [etcd, [str(self._binaries.apiserver), f"--etcd-servers={self._etcd_url}", *flags]]

    def _etcd(self, verb: str, body: dict[str, Any]) -> None:
        request = urllib.request.Request(f"{self._etcd_url}/v3/kv/{verb}", json.dumps(body).encode(), method="POST")
        with self._open(request) as answer:
            answer.read()

    def _open(self, request: urllib.request.Request) -> Any:
        """Without the proxies that the environment may name: they are not for the loopback interface."""
        secure = urllib.request.HTTPSHandler(context=self.tls())
        return urllib.request.build_opener(urllib.request.ProxyHandler({}), secure).open(request, timeout=REQUEST_SECONDS)

    def _wait_for_rights(self, namespace: str, name: str, token: str) -> None:
        """The server judges by what its watches of roles and bindings have shown it, a moment after they were stored. Until then it
        forbids what is allowed."""
        who = {"kind": "ServiceAccount", "namespace": namespace, "name": name}
        granted: list[tuple[str, list[Any]]] = []
        for kind in ("clusterrolebindings", "rolebindings"):
            for binding in self.request("GET", f"{RBAC}/{kind}")["items"]:
                if any(who.items() <= subject.items() for subject in binding.get("subjects") or ()):
                    where, role = binding["metadata"].get("namespace", ""), binding["roleRef"]
                    folder = f"namespaces/{where}/roles" if role["kind"] == "Role" else "clusterroles"
                    granted.append((where or namespace, self.request("GET", f"{RBAC}/{folder}/{role['name']}").get("rules") or []))
        deadline = time.monotonic() + START_SECONDS
        for where, rules in granted:
            body = {"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectRulesReview", "spec": {"namespace": where}}
            while True:
                review = self.request("POST", "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews", body, token)
                if all(rule in review["status"]["resourceRules"] for rule in rules if "resources" in rule):
                    break
                if time.monotonic() > deadline:
                    raise TimeoutError(f"{namespace}/{name}: rights in {where} not known to the server after {START_SECONDS:.0f} s")
                time.sleep(0.05)

    def _wait_until_ready(self, deadline: float) -> None:
        while True:
            for process in self._processes:
                if process.poll() is not None:
                    raise RuntimeError(f"{process.args!r} ended with {process.returncode}:\n{self.log_tail()}")
            with contextlib.suppress(OSError, RuntimeError, http.client.HTTPException):
                if self.request("GET", "/readyz") == "ok":
                    for namespace in FROM_THE_START:
                        self.request("GET", f"/api/v1/namespaces/{namespace}")
                    return
            if time.monotonic() > deadline:
                raise TimeoutError(f"API server not ready after {START_SECONDS:.0f} s:\n{self.log_tail()}")
            time.sleep(0.1)

    def _end(self, process: subprocess.Popen[bytes], number: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError):
            process.send_signal(number)
        try:
            process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        if process.stdin is not None:
            process.stdin.close()

    def _forget_processes(self) -> None:
        self._processes.clear()
        if self._log is not None:
            self._log.close()
            self._log = None

    def _remove_folder(self) -> None:
        for held in self._held:
            held.close()
        if not os.environ.get("NAVARCH_KEEP_ENVTEST"):
            shutil.rmtree(self.folder, ignore_errors=True)

    def _write_kubeconfig(self, name: str, user: dict[str, str]) -> Path:
        cluster = {"server": self.url, "certificate-authority": str(self.ca_file)}
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "envtest",
            "clusters": [{"name": "envtest", "cluster": cluster}],
            "users": [{"name": name, "user": user}],
            "contexts": [{"name": "envtest", "context": {"cluster": "envtest", "user": name}}],
        }
        path = self.folder / f"{name.replace(':', '-')}.kubeconfig"
        path.touch(mode=0o600)
        path.write_text(json.dumps(config, indent=1), encoding="utf-8")  # JSON is YAML
        return path
