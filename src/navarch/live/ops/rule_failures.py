"""Tells operators of jobs and nodes on which a rule failed, and of plugins that fail: the traceback once in the log, a metric, and a
line on /readyz.

The job itself is told by the cycle's record (`InternalError`), like every refusal: by its condition and an event. A node gets an event
from here.
"""

from __future__ import annotations

import logging
from collections import Counter as Counted
from collections.abc import Callable

from prometheus_client import Counter

from navarch.engine.containment.containment import REFUSED
from navarch.engine.record import CycleRecord

log = logging.getLogger(__name__)

REMEMBERED = 256
"""Failures whose traceback is not logged again; the oldest is forgotten first."""


class RuleFailures:
    """`exists(job)`: whether there still is such a job. `tell_node(node, message)` writes an event on the node."""

    def __init__(
        self,
        job_failures: Counter,
        node_failures: Counter,
        plugin_failures: Counter,
        exists: Callable[[str], bool],
        tell_node: Callable[[str, str], None] = lambda node, message: None,
    ) -> None:
        self._job_failures = job_failures
        self._node_failures = node_failures
        self._plugin_failures = plugin_failures
        self._exists = exists
        self._tell_node = tell_node
        self._logged: dict[tuple[str, str], None] = {}
        self._last: dict[str, str] = {}
        """Job -> which rule failed on it when it was last tried."""
        self._nodes: dict[str, str] = {}
        """Node that the last cycle left out -> which rule failed on it."""
        self._plugins: list[str] = []
        """Plugins that failed in the last cycle."""

    def take(self, record: CycleRecord) -> None:
        failed = {failure.job for failure in record.failures}
        for job in (*(bind.job for bind in record.binds), *(decision.job for decision in record.jobs)):
            if self._last and job not in failed:
                self._last.pop(job, None)
        for failure in record.failures:
            self._last[failure.job] = failure.where
            self._job_failures.labels(failure.where).inc()
            self._log(failure.where, failure.error, f"job {failure.job}, which is set aside", failure.traceback)
        self._nodes = {node: self._nodes.get(node, "") for node in record.left_out_nodes}
        for each in record.node_failures:
            self._nodes[each.node] = each.where
            self._node_failures.labels(each.where).inc()
            self._tell_node(each.node, f"{each.where} failed on this node, which takes no more pods for a while: {each.error}")
            self._log(each.where, each.error, f"node {each.node}, which is left out", each.traceback)

        self._plugins = [each.where for each in record.plugin_failures]
        for found in record.plugin_failures:
            self._plugin_failures.labels(found.where).inc()
            self._log(found.where, found.error, f"this cycle: {REFUSED}", found.traceback)

    def _log(self, where: str, error: str, what: str, traceback: str) -> None:
        if (where, error) not in self._logged:
            self._logged[where, error] = None
            if len(self._logged) > REMEMBERED:
                del self._logged[next(iter(self._logged))]
            log.error("%s failed on %s\n%s", where, what, traceback)

    def notes(self) -> list[str]:
        """For /readyz, which everyone may read: plugins, and how many jobs and nodes, without their names."""
        self._last = {job: where for job, where in self._last.items() if self._exists(job)}
        jobs, nodes = (sorted(Counted(each.values()).items()) for each in (self._last, self._nodes))
        return [
            *(f"{where} failed: {REFUSED}" for where in self._plugins),
            *(f"{count} job{'s are' if count > 1 else ' is'} set aside: {where} failed" for where, count in jobs),
            *(f"{count} node{'s are' if count > 1 else ' is'} left out: {where} failed" for where, count in nodes),
        ]
