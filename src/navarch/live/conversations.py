"""Cycles that stop at a question to an extender: it is asked beside the event loop, and the cycle runs again with the answer.

While a cycle waits for answers no other cycle starts, and watches go on. The cycle is decided over the snapshot that it began with, so
what the cluster lost in the meantime is left out of the decisions (`LiveCore.drop_outdated`).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any

import msgspec

from navarch.engine.points.conversation import Exchange, Manifest
from navarch.engine.record import CycleRecord
from navarch.extenders import ExtenderClient, converse
from navarch.ingest.spec_manifests import manifest_of
from navarch.live.cache.cluster_cache import ClusterCache
from navarch.live.cycle import Cycle

log = logging.getLogger(__name__)


class Conversations:
    """`again` runs the cycle again with these exchanges; `decided` takes the cycle when it has no more questions; `ended` is called
    whenever a conversation is over, also without a decision."""

    def __init__(
        self,
        cache: ClusterCache,
        again: Callable[[Cycle, list[Exchange]], Cycle],
        decided: Callable[[Cycle], None],
        ended: Callable[[BaseException | None], None],
    ) -> None:
        self._cache = cache
        self._again = again
        self._decided = decided
        self._ended = ended
        self.extenders = ExtenderClient(self._manifest)
        self._task: asyncio.Task[None] | None = None

    @property
    def under_way(self) -> bool:
        return self._task is not None

    def start(self, cycle: Cycle) -> None:
        self._task = asyncio.create_task(self._run(cycle), name="extender conversation")

    async def close(self) -> None:
        """End the conversation under way without a decision."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        await self.extenders.close()

    async def _run(self, cycle: Cycle) -> None:
        error: BaseException | None = None

        def run(exchanges: list[Exchange]) -> CycleRecord:
            nonlocal cycle
            cycle = self._again(cycle, exchanges)
            return cycle.record

        try:
            await converse(cycle.record, run, self.extenders)
            self._decided(cycle)
            await self.extenders.tell(cycle.record.notices)
        except Exception as raised:
            # The process goes on, as after a cycle that fails without a conversation: `ended` counts and logs it.
            error = raised
        finally:
            self._task = None
            self._ended(error)

    def _manifest(self, place: Manifest) -> Any:
        """The pod as the API has it while it waits; all else as the model has it."""
        pod = self._cache.pods.get((place.namespace, place.name)) if place.kind == "Pod" else None
        if pod is not None and pod.spec.containers and not pod.spec.node_name:
            return {"apiVersion": "v1", "kind": "Pod", **_plain(pod)}
        return manifest_of(self._cache.cluster, place.kind, place.namespace, place.name, place.uid)


def _plain(pod: Any) -> dict[str, Any]:
    found: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(pod))
    return found
