"""Credentials from a program: the `exec` form of a kubeconfig user (cloud vendors' log-in helpers).

The program prints an `ExecCredential` with a token, a client certificate, or both, and optionally their expiry. It runs when there
is no credential, shortly before the expiry, and after a 401; requests meanwhile wait for that run. A certificate is given to the
endpoint's `Tls`: new connections use it, and older connections are closed.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from weakref import WeakKeyDictionary

import msgspec
from msgspec import Struct, field

from navarch.kube.auth.credentials import bearer
from navarch.kube.auth.tls import Tls
from navarch.kube.errors import ConfigError

log = logging.getLogger(__name__)

API_VERSIONS = ("client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1")
EXPIRY_MARGIN = 10.0
"""A token is renewed this many seconds before its expiry: requests take time, and clocks differ."""
LEAST_USE = 5.0
"""A new credential is used for at least this long, whatever its expiry says. A program with a cache, or a wrong clock, may give an
expired one; then the server decides."""


class ExecStatus(msgspec.Struct, frozen=True, rename="camel"):
    token: str = ""
    client_certificate_data: str = ""
    client_key_data: str = ""
    expiration_timestamp: datetime | None = None


class ExecCredential(msgspec.Struct, frozen=True, rename="camel"):
    api_version: str = ""
    kind: str = ""
    status: ExecStatus | None = None


class ExecCommand(Struct, frozen=True):
    """The `exec` block of a kubeconfig user."""

    command: str
    args: Sequence[str] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    api_version: str = API_VERSIONS[0]
    install_hint: str = ""
    cluster: Mapping[str, object] | None = None
    """The `spec.cluster` for the program, if the kubeconfig has `provideClusterInfo`."""
    timeout: float = 60.0


class ExecCredentials:
    """The `Authorization` header from an `ExecCommand`. Expiry is compared with `wall_clock`."""

    def __init__(self, command: ExecCommand, tls: Tls | None, wall_clock: Callable[[], float] = time.time) -> None:
        self._command = command
        self._tls = tls
        self._wall_clock = wall_clock
        self._locks: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Lock] = WeakKeyDictionary()
        """A lock for each event loop that asks. Two loops may run the program at the same time, which does no harm."""
        self._value: str | None = None
        self._renew_at: float | None = None

    def cached(self) -> str | None:
        if self._renew_at is not None and self._wall_clock() >= self._renew_at:
            return None
        return self._value

    async def authorization(self) -> str:
        async with self._locks.setdefault(asyncio.get_running_loop(), asyncio.Lock()):
            value = self.cached()
            return await self._run() if value is None else value

    def rejected(self) -> None:
        self._value = None

    async def _run(self) -> str:
        status = await self._credential()
        if status.client_certificate_data:
            if self._tls is None:
                raise ConfigError(f"exec plugin {self._command.command}: a client certificate is of no use without TLS")
            self._tls.show(status.client_certificate_data.encode(), status.client_key_data.encode())
        self._value = bearer(status.token, f"exec plugin {self._command.command}: status.token") if status.token else ""
        expiry = status.expiration_timestamp
        self._renew_at = max(expiry.timestamp() - EXPIRY_MARGIN, self._wall_clock() + LEAST_USE) if expiry else None
        return self._value

    async def _credential(self) -> ExecStatus:
        name = f"exec plugin {self._command.command}"
        output = await self._output(name)
        try:
            credential = msgspec.json.decode(output, type=ExecCredential)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise ConfigError(f"{name}: expected an ExecCredential in JSON on its output: {error}") from error
        if credential.kind != "ExecCredential" or credential.api_version != self._command.api_version:
            raise ConfigError(
                f"{name}: expected ExecCredential of {self._command.api_version}, "
                f"found {credential.kind!r} of {credential.api_version!r}"
            )
        status = credential.status
        if status is None or not (status.token or status.client_certificate_data):
            raise ConfigError(f"{name}: expected status.token or status.clientCertificateData, found neither")
        if bool(status.client_certificate_data) != bool(status.client_key_data):
            raise ConfigError(f"{name}: expected clientCertificateData and clientKeyData together, found one of them")
        return status

    async def _output(self, name: str) -> bytes:
        spec: dict[str, object] = {"interactive": False}
        if self._command.cluster is not None:
            spec["cluster"] = dict(self._command.cluster)
        info = {"apiVersion": self._command.api_version, "kind": "ExecCredential", "spec": spec}
        env = {**os.environ, **self._command.env, "KUBERNETES_EXEC_INFO": msgspec.json.encode(info).decode()}
        try:
            process = await asyncio.create_subprocess_exec(
                self._command.command,
                *self._command.args,
                env=env,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
            )
        except OSError as error:
            hint = f"; {self._command.install_hint}" if self._command.install_hint else ""
            raise ConfigError(f"{name}: could not be started: {error}{hint}") from error
        try:
            output, complaint = await asyncio.wait_for(process.communicate(), self._command.timeout)
        except (TimeoutError, asyncio.CancelledError) as error:
            with contextlib.suppress(ProcessLookupError):  # it has just ended
                process.kill()
            await process.wait()
            if isinstance(error, asyncio.CancelledError):
                raise
            raise ConfigError(f"{name}: no answer within {self._command.timeout:g} s") from error
        if process.returncode != 0:
            said = complaint.decode("utf-8", "replace").strip()[-500:]
            raise ConfigError(f"{name}: exit code {process.returncode}: {said}")
        return output
