"""The requests that the API server received, by user: kube-apiserver's audit log, or the embedded server's ear.

Processes are told apart by the user they impersonate (`World.process(name=...)`).
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from aiohttp import web

from navarch.embedded.api.server import ApiServer

POLICY = {"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "omitStages": ["RequestReceived"], "rules": [{"level": "Metadata"}]}
_VERBS = {"create": "POST", "update": "PUT", "patch": "PATCH", "delete": "DELETE", "deletecollection": "DELETE"}


@dataclass(frozen=True)
class Sent:
    """One request, in the order in which the server took them up."""

    who: str
    method: str
    path: str


Audit = Callable[[], list[Sent]]
"""All requests so far."""


def listen(server: ApiServer) -> Audit:
    """From now on hear every request of the embedded server."""
    heard: list[Sent] = []

    async def hear(request: web.BaseRequest) -> None:
        heard.append(Sent(request.headers.get("Impersonate-User", ""), request.method, request.path))

    server.faults.intercept(hear)
    return lambda: list(heard)


def flags(folder: Path) -> list[str]:
    """What makes kube-apiserver write `folder`/audit.log."""
    (folder / "audit-policy.json").write_text(json.dumps(POLICY), encoding="utf-8")
    return [f"--audit-policy-file={folder / 'audit-policy.json'}", f"--audit-log-path={folder / 'audit.log'}"]


def read(folder: Path) -> Audit:
    """The log of a server that was started with `flags`."""

    def requests() -> list[Sent]:
        lines = (folder / "audit.log").read_text(encoding="utf-8").splitlines()
        entries = [json.loads(line) for line in lines if line.endswith("}")]
        entries.sort(key=lambda entry: entry["requestReceivedTimestamp"])
        return [
            Sent(
                entry.get("impersonatedUser", {}).get("username", ""),
                _VERBS.get(entry["verb"], "GET"),
                entry["requestURI"].partition("?")[0],
            )
            for entry in entries
            if entry["stage"] == "ResponseComplete"
        ]

    return requests


def writes(sent: list[Sent], who: str) -> list[Sent]:
    """All but questions and the lease."""
    return [each for each in sent if each.who == who and each.method != "GET" and "/leases" not in each.path]


def since_lease(sent: list[Sent], who: str) -> list[Sent]:
    """What was sent after this one first wrote the lease (a candidate writes it only to take it)."""
    first = next(i for i, each in enumerate(sent) if each.who == who and "/leases" in each.path and each.method != "GET")
    return sent[first:]
