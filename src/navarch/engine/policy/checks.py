"""Mistakes that no single line shows: plugins and actions that do not go together."""

from __future__ import annotations

from collections.abc import Mapping

from navarch.engine.policy.catalogue import Catalogue
from navarch.engine.policy.compat import listed
from navarch.engine.policy.file_form import Choice
from navarch.engine.policy.findings import Findings
from navarch.engine.policy.source import Path
from navarch.engine.policy.values import PluginOption

LOAD_READERS = frozenset({"usage", "rescheduling"})
"""Plugins that read the load of nodes."""
_EVICTING = frozenset({"preempt", "reclaim", "gangpreempt", "gangreclaim", "consolidation"})


def check_together(
    findings: Findings,
    choice: Choice,
    tiers: tuple[tuple[PluginOption, ...], ...],
    actions: tuple[str, ...],
    catalogue: Catalogue,
    metrics: Mapping[str, object],
) -> None:
    if metrics and not any(option.name in LOAD_READERS for tier in tiers for option in tier):
        findings.warn(
            ("metrics",), f"metrics has no effect: no plugin that reads the load of nodes is named ({listed(sorted(LOAD_READERS))} do)"
        )
    if choice.dialect == "kai":
        _scenario_generators(findings, tiers, actions)
        return
    where = {option.name: (i, option) for i, tier in enumerate(tiers) for option in tier}
    drf = where.get("drf")
    if drf is not None and drf[1].is_enabled("hierarchy") and "proportion" in where:
        _hierarchy_twice(findings, choice, ("tiers", drf[0]))
    if {"capacity", "proportion"} <= set(where):
        findings.warn(("tiers", where["capacity"][0]), "capacity and proportion both divide the cluster among queues")
    if "enqueue" in actions and "allocate" in actions and actions.index("enqueue") > actions.index("allocate"):
        findings.warn(("actions",), "enqueue stands after allocate: a job admitted in one cycle starts in the next")
    if "gangreclaim" in actions and choice.compat == "strict":
        _shares_in_gang_reclaim(findings, tiers, catalogue)
    if "gang" not in where and _EVICTING & set(actions) and where:
        findings.warn(("actions",), "no gang plugin: an evicting action may break gangs")


def _shares_in_gang_reclaim(findings: Findings, tiers: tuple[tuple[PluginOption, ...], ...], catalogue: Catalogue) -> None:
    """A plugin with `reclaimable` but without `unified_evictable` does not protect queues against gangreclaim."""
    for index, tier in enumerate(tiers):
        for option in tier:
            entry = catalogue.plugin(option.name)
            points = set(entry.points or ()) if entry is not None else set()
            if option.name == "drf" and not option.is_enabled("hierarchy"):
                continue  # it orders jobs only, and guards no queue
            if {"queue_order", "reclaimable"} <= points and "unified_evictable" not in points:
                message = f"{option.name} is not asked in gangreclaim, which may then take a queue below its share"
                findings.warn(("tiers", index), message)


def _hierarchy_twice(findings: Findings, choice: Choice, path: Path) -> None:
    message = "drf with enableHierarchy and proportion both order the queues, and Volcano refuses the pair"
    if choice.compat == "strict" or findings.source.from_text:
        findings.mistake(path, message)
    else:
        # Volcano's file reader refuses it, its engine does not: a decoded mapping has passed no file reader.
        findings.warn(path, f"{message} in a file; the first of them in tier order decides")


def _scenario_generators(findings: Findings, tiers: tuple[tuple[PluginOption, ...], ...], actions: tuple[str, ...]) -> None:
    evicting = [action for action in actions if action in _EVICTING]
    if evicting and not any(option.name.startswith("sg-") for tier in tiers for option in tier):
        remedy = "KAI before 0.16 did without: name sg-nodelocalgreedy and sg-multinodegang"
        message = f"no sg-* plugin is named, so {', '.join(evicting)} will never find victims ({remedy})"
        findings.warn(("tiers",), message)
