"""Credentials from a program: the `exec` form of a kubeconfig user (cloud vendors' log-in helpers).

The program prints an `ExecCredential` with a token, or a client certificate, or both, and perhaps until when they hold.
It is run when there is none, shortly before it expires, and after a 401; requests that need it meanwhile wait for the
one run. A certificate is handed to the endpoint's `Tls`: connections made from then on show it, and older ones are let go.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime

import msgspec
from msgspec import Struct, field

from navarch.kube.auth.credentials import bearer
from navarch.kube.auth.tls import Tls
from navarch.kube.errors import ConfigError

log = logging.getLogger(__name__)

API_VERSIONS = ("client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1")
#: A token this close to its end is renewed first: requests take time, clocks differ.
EXPIRY_MARGIN = 10.0
#: What a program just handed out is used for so long, whatever it says of its end: a program with a cache of its own, or a clock
#: that was set, gives what has run out already, and then the server is the one to say so.
LEAST_USE = 5.0


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
    #: The `spec.cluster` handed over where the user asked for `provideClusterInfo`.
    cluster: Mapping[str, object] | None = None
    timeout: float = 60.0


class ExecCredentials:
    """The `Authorization` header from an `ExecCommand`. `wall_clock` is what expiry is compared with."""

    def __init__(self, command: ExecCommand, tls: Tls | None, wall_clock: Callable[[], float] = time.time) -> None:
        self._command = command
        self._tls = tls
        self._wall_clock = wall_clock
        self._lock = asyncio.Lock()
        self._value: str | None = None
        self._renew_at: float | None = None

    def cached(self) -> str | None:
        if self._renew_at is not None and self._wall_clock() >= self._renew_at:
            return None
        return self._value

    async def authorization(self) -> str:
        async with self._lock:
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
        except (msgspec.DecodeError, msgspec.ValidationError) as error:
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
            with contextlib.suppress(ProcessLookupError):  # it ended at this very moment
                process.kill()
            await process.wait()
            if isinstance(error, asyncio.CancelledError):
                raise
            raise ConfigError(f"{name}: no answer within {self._command.timeout:g} s") from error
        if process.returncode != 0:
            said = complaint.decode("utf-8", "replace").strip()[-500:]
            raise ConfigError(f"{name}: exit code {process.returncode}: {said}")
        return output
