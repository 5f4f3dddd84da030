"""`navarch run --dry-run`: what Navarch would decide, beside the scheduler in charge, and how the two compare.

Decisions are logged once and not assumed, so each cycle decides them again. A pod that Navarch would bind or refuse is followed until
the scheduler in charge binds it, or until it is gone. Then its outcome is one of these:

- agreed: bound to the node that Navarch chose last;
- other node: bound to another node;
- earlier: Navarch had decided to bind it at least `TOLERANCE` seconds before;
- later: bound while Navarch still refused it, and the reason says why;
- never: bound although Navarch says that it can never start.

Once a minute the counts are logged. `--report` writes them with every pod, also at the end.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable
from typing import Final

from msgspec import Struct

from navarch.engine.reasons import NEVER, dominant, without_next_step
from navarch.ingest.groups import shown_key
from navarch.live.cycle import Cycle
from navarch.model.cluster import Cluster

log = logging.getLogger(__name__)

TOLERANCE: Final = 5.0
SUMMARY_SECONDS: Final = 60.0
MOST_PODS: Final = 100_000
"""Outcomes kept for the report; later ones are only counted."""
AGREED, OTHER_NODE, EARLIER, LATER, NEVER_STARTS = OUTCOMES = ("agreed", "other node", "earlier", "later", "never")


class Followed(Struct):
    """A pending pod. `node` and `since`: where Navarch would bind it, and since when; empty while it refuses it."""

    pod: str
    job: str
    queue: str
    node: str = ""
    since: float = 0.0
    code: str = ""
    reason: str = ""


class Compared(Struct, frozen=True, rename="camel"):
    """One pod that the scheduler in charge has bound. `seconds`: how much earlier Navarch would have bound it."""

    pod: str
    job: str
    queue: str
    outcome: str
    node: str
    our_node: str
    seconds: float
    time: float
    reason: str = ""


class DryRun:
    """`clock` is seconds since the epoch."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self.started = clock()
        self.counts: Counter[str] = Counter()
        self.compared: list[Compared] = []
        self.followed: dict[str, Followed] = {}
        self.evictions: Counter[str] = Counter()
        """Queue whose pods would be evicted -> how many."""
        self._said: set[tuple[str, str, str]] = set()
        self._waits: dict[str, str] = {}
        """Job -> the code of the reason that was logged last."""
        self._next_summary = self.started + SUMMARY_SECONDS

    def take(self, cycle: Cycle) -> bool:
        """Log what the cycle decides. Returns whether it decided anything that was not logged before."""
        record = cycle.record
        queues = {decision.job: decision.queue for decision in record.jobs}
        news = False
        for bind in record.binds:
            found = self._follow(bind.uid, bind.pod, bind.job, queues.get(bind.job, ""))
            if not found.node:
                found.since = cycle.now
            found.node, found.code, found.reason = bind.node, "", ""
            news |= self._log("bind", bind.pod, bind.node, found, cycle.number, f"dry run: would bind {bind.pod} to {bind.node}")
        for each in record.evictions:
            fields = {"pod": each.pod, "node": each.node, "job": shown_key(each.job), "queue": queues.get(each.job, "")}
            text = f"dry run: would evict {each.pod} from {each.node} for {each.for_}"
            if self._once("evict", each.pod, each.node):
                news = True
                self.evictions[queues.get(each.job, "")] += 1
                log.info("%s", text, extra={**fields, "cycle": cycle.number, "reason": each.reason})
        bound = {bind.uid for bind in record.binds}
        for decision in record.jobs:
            reason = dominant(decision.reasons)
            if reason is None or not decision.refusals:
                self._waits.pop(decision.job, None)
                continue
            message = without_next_step(reason.message)
            for refusal in decision.refusals:
                if refusal.uid not in bound:
                    found = self._follow(refusal.uid, refusal.pod, decision.job, decision.queue)
                    found.node, found.code, found.reason = "", reason.code, message
            if self._waits.get(decision.job) != reason.code:
                self._waits[decision.job] = reason.code
                waits = {"job": shown_key(decision.job), "queue": decision.queue, "cycle": cycle.number, "reason": reason.code}
                log.info("dry run: %s waits: %s", shown_key(decision.job), message, extra=waits)
        return news

    def compare(self, cluster: Cluster) -> None:
        """Look which of the followed pods were bound by the scheduler in charge, or are gone. Called once a second."""
        now = self._clock()
        for uid, found in list(self.followed.items()):
            task = cluster.task(uid)
            if task is not None and not task.node:
                continue
            del self.followed[uid]
            if task is not None:
                self._compared(found, task.node, now)
        if now >= self._next_summary:
            self._next_summary = now + SUMMARY_SECONDS
            log.info("dry run: %s", self.summary())

    def summary(self) -> str:
        """
        >>> DryRun(lambda: 0.0).summary()
        'no pod was bound by the scheduler in charge yet; Navarch would start 0 pods now that it has not started, and refuses 0'
        """
        total = sum(self.counts.values())
        starts = sum(1 for each in self.followed.values() if each.node)
        what = ", ".join(f"{self.counts[outcome]} {outcome}" for outcome in OUTCOMES)
        text = f"{total} pods compared: {what}" if total else "no pod was bound by the scheduler in charge yet"
        refused = len(self.followed) - starts
        return f"{text}; Navarch would start {starts} pods now that it has not started, and refuses {refused}"

    def _compared(self, found: Followed, node: str, now: float) -> None:
        seconds = now - found.since if found.node else 0.0
        if not found.node:
            outcome = NEVER_STARTS if found.code == NEVER else LATER
        elif seconds >= TOLERANCE:
            outcome = EARLIER
        else:
            outcome = AGREED if node == found.node else OTHER_NODE
        self.counts[outcome] += 1
        pod = Compared(found.pod, shown_key(found.job), found.queue, outcome, node, found.node, round(seconds, 1), now, found.reason)
        if len(self.compared) < MOST_PODS:
            self.compared.append(pod)
        if outcome not in (AGREED, OTHER_NODE):
            fields = {"pod": pod.pod, "node": node, "job": pod.job, "queue": pod.queue, "reason": found.code or outcome}
            log.info("dry run: %s was bound to %s: %s%s", pod.pod, node, outcome, _details(pod), extra=fields)

    def _follow(self, uid: str, pod: str, job: str, queue: str) -> Followed:
        found = self.followed.get(uid)
        if found is None:
            found = self.followed[uid] = Followed(pod, job, queue)
        return found

    def _log(self, verb: str, pod: str, node: str, found: Followed, cycle: int, text: str) -> bool:
        if not self._once(verb, pod, node):
            return False
        log.info("%s", text, extra={"pod": pod, "node": node, "job": shown_key(found.job), "queue": found.queue, "cycle": cycle})
        return True

    def _once(self, verb: str, pod: str, where: str) -> bool:
        if (verb, pod, where) in self._said:
            return False
        if len(self._said) > MOST_PODS:
            self._said.clear()
        self._said.add((verb, pod, where))
        return True


def _details(pod: Compared) -> str:
    if pod.outcome == EARLIER:
        return f": Navarch would have bound it {pod.seconds:.0f} s before, to {pod.our_node}"
    return f": Navarch refuses it: {pod.reason}"
