"""TaintToleration: hard taints refuse, soft taints cost."""

from __future__ import annotations

from tests.reference.cluster import Object
from tests.reference.normalise import default_normalise
from tests.reference.plugin import Plugin
from tests.reference.status import SUCCESS, Status, unresolvable

from navarch.model.selectors import first_untolerated, read_taint, read_toleration, tolerated
from navarch.model.spec import Taint


def taints_of(node: Object) -> list[Taint]:
    return [read_taint(taint) for taint in (node.get("spec") or {}).get("taints") or ()]


class TaintToleration(Plugin):
    def start(self) -> None:
        self.tolerations = [read_toleration(t) for t in self.pod["spec"].get("tolerations") or ()]

    def filter(self, node: Object) -> Status:
        if first_untolerated(taints_of(node), self.tolerations) is not None:
            return unresolvable("node(s) had untolerated taint(s)")
        return SUCCESS

    def score(self, node: Object) -> int:
        relevant = [t for t in self.tolerations if t.effect in ("", "PreferNoSchedule")]
        soft = [taint for taint in taints_of(node) if taint.effect == "PreferNoSchedule"]
        return sum(not tolerated(taint, relevant) for taint in soft)

    def normalise(self, scores: dict[str, int]) -> dict[str, int]:
        return dict(zip(scores, default_normalise(list(scores.values()), reverse=True), strict=True))
