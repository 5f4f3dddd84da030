"""Plugins that failed and cannot be done without: where they fail again, they refuse.

A cycle goes on without the orders and scores of a plugin that fails. Without its filters and limits it would place pods where they
must not be. So the plugin stays in the cycle with a guard: a call that raises is answered with a refusal, for the job, queue, task or
victims it was asked about. What does not need its consent goes on. A plugin that cannot open refuses whatever it is asked about. So
does one that fails when it is told of a placement, because it no longer knows what is placed: the cycle starts once more for that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import wraps
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from navarch.engine.containment.containment import REFUSED, CycleTimeout, LostCount
from navarch.engine.containment.culprit import error_text, where_failed
from navarch.engine.figures import Figures
from navarch.engine.node_functions import NodeFilter, Refusal, Rejection, Scope, TaskClass
from navarch.engine.plugin import Plugin
from navarch.engine.points.gang_protocols import NoNodeSet
from navarch.engine.points.protocols import FeasibleAnswer, Vote
from navarch.engine.reasons import Event, Reason
from navarch.model.resources import BoolArray

if TYPE_CHECKING:
    from navarch.engine.policy.values import PluginOption
    from navarch.engine.session import Session

Refusing = Callable[[Any, Reason], Any]
"""Plugin and reason -> the answer that refuses."""
PLUGIN_FAILED = "PluginFailed"


def _reason(plugin: Plugin, reason: Reason) -> Reason:
    return reason


def _no(plugin: Plugin, reason: Reason) -> bool:
    return False


def _rejects(plugin: Plugin, reason: Reason) -> Vote:
    return Vote.REJECT


def _none_of_them(plugin: Plugin, reason: Reason) -> list[int]:
    return []


def _one_more(plugin: Plugin, reason: Reason) -> int:
    return 1


def _no_nodes(plugin: Plugin, reason: Reason) -> BoolArray:
    return np.zeros(len(plugin.session.nodes), dtype=bool)


def _nothing(plugin: Plugin, reason: Reason) -> None:
    return None


REFUSALS: dict[str, Refusing] = {
    **dict.fromkeys(
        (
            *("job_valid", "job_enqueueable", "turn_refusal", "overused", "allocatable", "preemptive", "pre_predicate"),
            *("chunk_refusal", "bounds_reason", "may_reclaim", "may_preempt", "unresolvable_reason"),
        ),
        _reason,
    ),
    **dict.fromkeys(
        (
            *("job_ready", "sub_job_ready", "job_starving", "same_place", "reclaim_victim", "preempt_victim"),
            *("reclaim_scenario", "reclaim_bound", "preempt_scenario"),
        ),
        _no,
    ),
    **dict.fromkeys(("job_pipelined", "sub_job_pipelined"), _rejects),
    **dict.fromkeys(("job_missing", "sub_job_missing"), _one_more),
    **dict.fromkeys(("preemptable", "reclaimable", "unified_evictable", "victim_tasks"), _none_of_them),
    **dict.fromkeys(("hyper_node_gradient_for_job", "hyper_node_gradient_for_sub_job", "hard_limits"), _none_of_them),
    "within_bounds": _no_nodes,
    "node_sets": lambda plugin, reason: NoNodeSet((reason,)),
    "filter_feasible": lambda plugin, reason: FeasibleAnswer(_no_nodes(plugin, reason), {}, reason.message),
    "review_preemption": lambda plugin, reason: reason.message,
}
"""Method of a point -> the answer that refuses."""
OPENING = ("open", "after_open")
NEWS = ("on_allocate", "on_deallocate", "on_allocate_each", "job_enqueued", "turn_failed", "search_started", "on_evicted_again")
"""Methods that tell a plugin what happens: after a failure there it does not know what it has to know."""
GUARDED_POINTS = frozenset(
    [
        *("job_valid", "job_enqueueable", "job_enqueued", "job_ready", "job_missing", "job_pipelined", "sub_job_ready"),
        *("sub_job_missing", "sub_job_pipelined", "job_starving", "job_turn", "overused", "allocatable", "preemptive"),
        *("preemptable", "reclaimable", "unified_evictable", "victim_tasks", "node_filters", "hyper_node_gradient"),
        *("pre_predicate", "events", "feasible_nodes", "preemption_review", "chunk_refusal", "within_bounds", "same_place"),
        *("node_sets", "search_started", "evicted_again", "may_reclaim", "may_preempt", "reclaim_victim", "preempt_victim"),
        *("reclaim_scenario", "reclaim_bound", "preempt_scenario", "unresolvable_reason", "hard_limits"),
    ]
)
"""Points at which a guarded plugin is asked. At the others it has no say: they refuse nothing."""


def guarded(kind: type[Plugin], reason: Reason | None = None) -> Callable[[Session, PluginOption], Plugin]:
    """The same plugin with a guard. `reason`: it refuses whatever it is asked about."""

    def make(session: Session, option: PluginOption) -> Plugin:
        plugin: Any = _guarded_class(kind)(session, option)
        plugin.refuses_all = plugin.refuses_all or reason
        return cast(Plugin, plugin)

    return make


def _guarded_class(kind: type[Plugin]) -> type[Plugin]:
    """Made once a class."""
    known: type[Plugin] | None = vars(kind).get("guarded_subclass")
    if known is not None:
        return known
    members: dict[str, Any] = {"__init__": _guarded_init(kind), "close": _guard(kind.close, _nothing)}
    for name, refusing in REFUSALS.items():
        if callable(getattr(kind, name, None)):
            members[name] = _guard(getattr(kind, name), refusing)
    for name in OPENING:
        members[name] = _guard(getattr(kind, name), _nothing, for_good=True)
    for name in NEWS:
        if callable(getattr(kind, name, None)):
            members[name] = _guarded_news(getattr(kind, name))
    if callable(getattr(kind, "node_filters", None)):
        members["node_filters"] = _guarded_filters(kind)
    made: type[Plugin] = type(
        kind.__name__,
        (kind,),
        {"__doc__": kind.__doc__, "__module__": kind.__module__, "__qualname__": kind.__qualname__, "refuses_all": None, **members},
    )
    type.__setattr__(kind, "guarded_subclass", made)
    return made


def refusal_for(error: BaseException) -> Reason:
    """The refusal of a plugin that raised. A cycle that took too long is not the plugin's to answer for."""
    if isinstance(error, CycleTimeout):
        raise error
    where, text = where_failed(error), error_text(error)
    message = f"{where} failed: {text}; {REFUSED}"
    return Reason(
        PLUGIN_FAILED, message, figures={"where": where, "error": text}, undone_by=(Event.QUEUE_CHANGED, Event.POLICY_CHANGED)
    )


def _guarded_init(kind: type[Plugin]) -> Callable[..., None]:
    def init(self: Any, session: Any, option: Any) -> None:
        Plugin.__init__(self, session, option)
        try:
            kind.__init__(self, session, option)
        except (Exception, SystemExit) as error:
            self.refuses_all = refusal_for(error)

    return init


def _guard(method: Callable[..., Any], refusing: Refusing, *, for_good: bool = False) -> Callable[..., Any]:
    """`for_good`: after a failure the plugin refuses whatever it is asked about."""

    @wraps(method)
    def ask(self: Any, *arguments: Any, **named: Any) -> Any:
        if self.refuses_all is not None:
            return refusing(self, self.refuses_all)
        try:
            return method(self, *arguments, **named)
        except (Exception, SystemExit) as error:
            reason = refusal_for(error)
            if for_good:
                self.refuses_all = reason
            return refusing(self, reason)

    return ask


def _guarded_news(method: Callable[..., Any]) -> Callable[..., None]:
    @wraps(method)
    def tell(self: Any, *arguments: Any, **named: Any) -> None:
        if self.refuses_all is None:
            try:
                method(self, *arguments, **named)
            except (Exception, SystemExit) as error:
                raise LostCount(self.name, refusal_for(error)) from error

    return tell


def _guarded_filters(kind: type[Plugin]) -> Callable[..., list[NodeFilter]]:
    method = kind.node_filters  # type: ignore[attr-defined]

    @wraps(method)
    def ask(self: Any) -> list[NodeFilter]:
        if self.refuses_all is None:
            try:
                return [GuardedFilter(self, rule) for rule in method(self)]
            except (Exception, SystemExit) as error:
                self.refuses_all = refusal_for(error)
        return [GuardedFilter(self, None)]

    return ask


class GuardedFilter(NodeFilter):
    """A filter that refuses the tasks it fails on. Its scope is GLOBAL, so that no refusal is kept for the next cycle. Without a
    `rule` it refuses every task."""

    name = "guarded"
    scope = Scope.GLOBAL

    def __init__(self, plugin: Any, rule: NodeFilter | None) -> None:
        self._plugin, self._rule = plugin, rule
        self._failed: dict[int, Reason] = {}
        """Class of tasks -> the refusal."""
        if rule is not None:
            self.name = rule.name  # type: ignore[misc]
            self.undone_by = rule.undone_by  # type: ignore[misc]
            self.selects_nodes = rule.selects_nodes  # type: ignore[misc]
            self.has_last_word = rule.has_last_word

    def _ask(self, task: TaskClass, question: Callable[[NodeFilter], Any], otherwise: Any) -> Any:
        if self._refusal(task) is None and self._rule is not None:
            try:
                return question(self._rule)
            except (Exception, SystemExit) as error:
                self._failed[task.number] = refusal_for(error)
        return otherwise

    def _refusal(self, task: TaskClass) -> Reason | None:
        found: Reason | None = self._plugin.refuses_all or self._failed.get(task.number)
        return found

    def applies(self, task: TaskClass) -> bool:
        return bool(self._ask(task, lambda rule: rule.applies(task), True))

    def reject(self, task: TaskClass) -> Rejection | None:
        found: Rejection | None = self._ask(task, lambda rule: rule.reject(task), None)
        reason = self._refusal(task)
        return found if reason is None else Rejection(reason.message)

    def named_nodes(self, task: TaskClass) -> frozenset[str] | None:
        found: frozenset[str] | None = self._ask(task, lambda rule: rule.named_nodes(task), None)
        return found

    def mask(self, task: TaskClass, at: Figures) -> BoolArray:
        none = np.zeros(at.used.shape[1], dtype=bool)
        found: BoolArray = self._ask(task, lambda rule: rule.mask(task, at), none)
        return found

    def mask_now(self, task: TaskClass, at: Figures) -> BoolArray | None:
        found: BoolArray | None = self._ask(task, lambda rule: rule.mask_now(task, at), None)
        return found

    def explain(self, task: TaskClass, at: Figures) -> Iterable[Refusal]:
        found: Iterable[Refusal] = self._ask(task, lambda rule: list(rule.explain(task, at)), ())
        reason = self._refusal(task)
        if reason is None:
            return found
        return [Refusal(reason.message, np.ones(at.used.shape[1], dtype=bool), True, PLUGIN_FAILED)]
