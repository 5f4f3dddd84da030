"""The `coordination.k8s.io/v1` Lease as a lock: read it, write it, and notice if another candidate wrote it first."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, Protocol

import msgspec

from navarch.kube.client import Client, decoder_for
from navarch.kube.errors import Conflict, NotFound, OutcomeUnknown
from navarch.kube.resources import LEASES
from navarch.kube.watch.decoding import decoded

_ATTEMPTS = 5
"""How often an annotation is written where others write the Lease at the same time."""


class LeaseRecord(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """`Lease.spec`. The times are for people to read: electors never compare another machine's clock with theirs."""

    holder_identity: str = ""
    lease_duration_seconds: int = 0
    acquire_time: str = ""
    renew_time: str = ""
    lease_transitions: int = 0


class LeaseLock(Protocol):
    """Where the record is kept. `write` refuses (`Conflict`, `AlreadyExists`) if another wrote since `read`."""

    async def read(self) -> LeaseRecord | None:
        """The record as it is, None if there is none yet."""

    async def write(self, record: LeaseRecord) -> None:
        """Replace what the last `read` or `write` of ours saw."""


class ApiLeaseLock:
    """A Lease object on an API server.

    `timeout` bounds each request: an elector whose requests hang must notice before its lease runs out.
    """

    def __init__(self, client: Client, namespace: str, name: str, *, timeout: float = 5.0) -> None:
        self._client = client
        self._namespace = namespace
        self._name = name
        self._timeout = timeout
        self._seen: dict[str, Any] | None = None

    async def read(self) -> LeaseRecord | None:
        self._seen = await self._get()
        return None if self._seen is None else msgspec.convert(self._seen.get("spec") or {}, LeaseRecord, strict=False)

    async def write(self, record: LeaseRecord) -> None:
        spec = msgspec.to_builtins(record)
        if self._seen is None:
            metadata = {"name": self._name, "namespace": self._namespace}
            lease = {"apiVersion": LEASES.api_version, "kind": "Lease", "metadata": metadata, "spec": spec}
            self._seen = await self._send("POST", LEASES.path(self._namespace), lease)
        else:
            # With the resourceVersion we saw: the server refuses if it is not the latest. Fields we do not know stay.
            spec = {**(self._seen.get("spec") or {}), **spec}
            if not record.holder_identity:
                spec["holderIdentity"] = ""
            self._seen = await self._put({**self._seen, "spec": spec})
        shown = (self._seen.get("spec") or {}).get("holderIdentity")
        if record.holder_identity and shown not in (None, record.holder_identity):
            # The answer to another request, from a proxy: the lease may not be ours.
            raise OutcomeUnknown(f"wrote the holder {record.holder_identity}, the answer shows {shown}")

    @property
    def annotations(self) -> dict[str, str]:
        """Those of the Lease as `read` and `write` last saw it."""
        return ((self._seen or {}).get("metadata") or {}).get("annotations") or {}

    async def annotate(self, key: str, value: str, *, gone: str = "") -> None:
        """Write an annotation, unless there is no Lease yet. `gone`: a holder that is known to have ended; if it holds the Lease, the
        Lease is given back. An elector may read and write meanwhile: what it has seen stays as it is."""
        for attempt in range(_ATTEMPTS):
            lease = await self._get()
            if lease is None:
                return
            metadata, spec = lease["metadata"], dict(lease.get("spec") or {})
            if gone and spec.get("holderIdentity") == gone:
                spec |= {"holderIdentity": "", "leaseDurationSeconds": 1}
            annotations = {**(metadata.get("annotations") or {}), key: value}
            try:
                await self._put({**lease, "metadata": {**metadata, "annotations": annotations}, "spec": spec})
                return
            except Conflict:
                if attempt == _ATTEMPTS - 1:
                    raise

    async def _get(self) -> dict[str, Any] | None:
        path = LEASES.path(self._namespace, self._name)
        try:
            body = await self._client.transport.request("GET", path, timeout=self._timeout, attempts=1)
        except NotFound:
            return None
        found: dict[str, Any] = decoded(decoder_for(dict[str, Any]), body, "GET", path)
        return found

    async def _put(self, lease: dict[str, Any]) -> dict[str, Any]:
        return await self._send("PUT", LEASES.path(self._namespace, self._name), lease)

    async def _send(self, method: str, path: str, lease: dict[str, Any]) -> dict[str, Any]:
        body = await self._client.transport.request(method, path, body=msgspec.json.encode(lease), timeout=self._timeout, attempts=1)
        stored: dict[str, Any] = decoded(decoder_for(dict[str, Any]), body, method, path)
        return stored


def micro_time(seconds: float) -> str:
    """`metav1.MicroTime`: RFC 3339 with six digits.

    >>> micro_time(0.25)
    '1970-01-01T00:00:00.250000Z'
    """
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
