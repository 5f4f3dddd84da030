"""A write pool without a wire: the test reads what was submitted and says how it ended."""

from __future__ import annotations

from typing import Any

import msgspec

from navarch.kube.connect import Endpoint
from navarch.kube.errors import KubeError
from navarch.kube.write.http1 import Reply
from navarch.kube.write.pool import Done, Write, WritePool

NOWHERE = Endpoint("http://127.0.0.1:1")


class Submitted(WritePool):
    """The writes in their order; `end` gives the oldest open one its outcome."""

    def __init__(self, endpoint: Endpoint = NOWHERE, **options: Any) -> None:
        super().__init__(endpoint, **options)
        self.writes: list[Write] = []
        self.open: list[tuple[Write, Done]] = []

    def submit(self, write: Write, done: Done) -> None:
        self.writes.append(write)
        self.open.append((write, done))

    def end(self, outcome: KubeError | dict[str, Any] | None = None) -> None:
        _, done = self.open.pop(0)
        if isinstance(outcome, KubeError):
            done(outcome)
        else:
            done(Reply(200, msgspec.json.encode(outcome or {}), None, True))

    def reply(self, body: bytes) -> None:
        """The oldest open one is answered with these bytes."""
        _, done = self.open.pop(0)
        done(Reply(200, body, None, True))

    def bodies(self) -> list[dict[str, Any]]:
        return [msgspec.json.decode(write.body) for write in self.writes]

    @property
    def pool(self) -> WritePool:
        return self
