from __future__ import annotations

from typing import Any

from navarch.cluster.bodies import Accepted
from navarch.cluster.kinds import Kind
from navarch.cluster.record import Record


class Form:
    def one(self, record: Record) -> bytes: return record.raw
    def many(self, records: list[Record], metadata: dict[str, Any]) -> bytes: return b""
    def watched(self, record: Record, first: bool) -> bytes: return record.raw


def form_of(accepted: Accepted, kind: Kind, include: str) -> Form | None:
    return None
