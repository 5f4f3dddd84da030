"""Changes that are tried, what each costs others, and the search for the smallest change of a number.

A change becomes part of an explanation only after its trial, and with the answer of the trial. Where the answer depends on how the
input is put together again (kube-batch takes nodes in the order of the list), both ways are tried, and a change on which they
differ is left out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from navarch.engine.reasons import dominant
from navarch.explanation.result import Change, Price
from navarch.explanation.subject import Object, Subject
from navarch.explanation.trials import MOST_CYCLES, Outcome, Trials, evicted_in, started_after
from navarch.ingest.groups import shown_key

_BY_SERVER = ("managedFields", "resourceVersion")
"""Metadata that the API server keeps. `kubectl apply` and `replace` refuse a file that has them of another moment."""


def told_object(manifest: Object) -> Object:
    """A changed object as people may apply it."""
    metadata = {key: each for key, each in manifest["metadata"].items() if key not in _BY_SERVER}
    return {**manifest, "metadata": metadata}


class Changes:
    """The changes of one explanation, each tried."""

    def __init__(self, trials: Trials, subject: Subject, base: Outcome) -> None:
        self.trials, self.subject, self.base = trials, subject, base
        self.found: list[Change] = []

    def attempt(
        self, by: str, kind: str, text: str, objects: Sequence[Object], remove: Sequence[str] = (), *, cycles: int = MOST_CYCLES
    ) -> bool:
        """Try a change and keep it with its answer. False: it does not start the job, or nothing can be said."""
        outcome = self.outcome(objects, remove, cycles)
        if outcome is None:
            return False
        self._keep(by, kind, text, objects, remove, outcome, cycles)
        return outcome.starts

    def starts(self, objects: Sequence[Object], remove: Sequence[str] = ()) -> bool:
        """Try a change without keeping it."""
        outcome = self.outcome(objects, remove, MOST_CYCLES)
        return outcome is not None and outcome.starts

    def least(
        self, most: int, by: str, kind: str, text: Callable[[int], str], change: Callable[[int], Sequence[Object]]
    ) -> int | None:
        """The smallest step in 1..most with which the job starts, by bisection; both sides are kept. None: not even with `most`."""
        if not self.starts(change(most)):
            self.attempt(by, kind, text(most), change(most))
            return None
        low, high = 0, most
        while high - low > 1:
            middle = (low + high) // 2
            if self.starts(change(middle)):
                high = middle
            else:
                low = middle
        if low:
            self.attempt(by, kind, text(low), change(low))
        self.attempt(by, kind, text(high), change(high))
        return high

    def outcome(self, objects: Sequence[Object], remove: Sequence[str], cycles: int) -> Outcome | None:
        """None: nothing is changed, or nothing can be said."""
        if not objects and not remove:
            return None
        outcome = self.trials.run(objects, remove, cycles=cycles)
        if outcome is None or not outcome.sure:
            return None
        moved = any(each["kind"] == "Node" and self.trials.input.has(each) for each in objects)
        if moved and self.trials.rules.policy.semantics.node_order != "name":
            other = self.trials.run(objects, remove, cycles=cycles, at_end=True)
            if other is None or other.cycles != outcome.cycles:
                return None
        return outcome

    def _keep(
        self, by: str, kind: str, text: str, objects: Sequence[Object], remove: Sequence[str], outcome: Outcome, cycles: int
    ) -> None:
        change = Change(
            by=by,
            kind=kind,
            text=text,
            objects=[told_object(each) for each in objects],
            remove=list(remove),
            starts=outcome.starts,
            cycles=outcome.cycles or cycles,
            price=self._price(outcome) if outcome.starts else Price(),
        )
        if kind == "node" and not outcome.starts:
            change.because = self._because(objects)
        if not any(each.objects == change.objects and each.remove == change.remove for each in self.found):
            self.found.append(change)

    def _because(self, objects: Sequence[Object]) -> str:
        """Why the job does not start with these objects in the first cycle."""
        seen = self.trials.run(objects, cycles=1, keep=True)
        reason = dominant(seen.decision.reasons) if seen is not None and seen.decision is not None else None
        return reason.message if reason is not None else ""

    def _price(self, outcome: Outcome) -> Price:
        """Against the same number of cycles without the change."""
        assert outcome.cycles is not None
        records = self.base.records[: outcome.cycles]
        before, after = started_after(records), outcome.started
        own = {self.subject.name, shown_key(outcome.key)}
        return Price(
            evicts=sorted(outcome.evicted - evicted_in(records) - own),
            delays=sorted(job for job, started in after.items() if not started and before.get(job) and job not in own),
            also_starts=sorted(job for job, started in after.items() if started and before.get(job) is False and job not in own),
        )
