"""A description of a policy in effect, as plain data: the output of `navarch policy check`."""

from __future__ import annotations

import json
from collections.abc import Mapping

from navarch.engine.arguments import Argument, Arguments, find
from navarch.engine.policy.catalogue import Catalogue
from navarch.engine.policy.not_followed import not_followed
from navarch.engine.policy.point_switches import BY_NAME, DEFAULTS, POINTS, SAME_SWITCH
from navarch.engine.policy.values import PluginOption, Policy
from navarch.engine.semantics import Semantics

_VICTIM_POINTS = frozenset({"preemptable", "reclaimable", "unified_evictable"})
_NOT_ASKED = frozenset({"hierarchy"})
_OTHER_QUESTIONS = frozenset({"kai", "kube-scheduler"})
"""Dialects whose actions never ask most switchable points, so that a point without a plugin is not worth a note."""


def describe(policy: Policy, catalogue: Catalogue) -> dict[str, object]:
    """JSON-ready, in a total order: actions, plugins, the plugins of each point, and arguments in effect."""
    points = _points(policy, catalogue)
    answered = {point["point"] for point in points if point["plugins"]}
    all_points = policy.dialect not in _OTHER_QUESTIONS
    return {
        "source": policy.source,
        "compat": policy.compat,
        "dialect": policy.dialect,
        "chosen": policy.chosen,
        "actions": [_action(policy, name, catalogue) for name in policy.actions],
        "tiers": [[_plugin(option, policy.dialect, catalogue) for option in tier] for tier in policy.tiers],
        "points": points,
        "unanswered": [p.name for p in POINTS if all_points and p.name not in answered and p.name not in _NOT_ASKED],
        "departures": list(policy.semantics.departures()),
        "notFollowed": not_followed(policy),
        "parameters": dict(sorted(policy.params.items())),
        "metrics": dict(policy.metrics),
        "usage": dict(policy.usage),
        "queueDepth": dict(sorted(policy.queue_depth.items())),
        "searchBudgets": dict(policy.search_budgets),
        "evictions": policy.evictions,
        "repeatedEvictions": policy.repeated_evictions,
        "profiles": {name: [option.name for option in profile.plugins] for name, profile in policy.profiles.items()},
        "profileDifferences": {name: _differences(policy, name) for name in [*policy.profiles][1:]},
        "backoff": list(policy.backoff),
        "warnings": list(policy.warnings),
        "mistakes": [],
    }


def combined(point: str, semantics: Semantics) -> str:
    """How several answers become one under these switches, in words."""
    if point in _VICTIM_POINTS and semantics.victims_first_tier_decides:
        inside = "inside a tier only what all offer"
        if semantics.victims_reinitialise_on_empty:
            inside += ", starting afresh where nothing is left in common"
        return f"{inside}; the first tier that offers any decides alone"
    if point == "job_starving":
        if semantics.starving_is_pending:
            return "not asked: every job with a pending task may evict"
    return BY_NAME[point].combined


def _action(policy: Policy, name: str, catalogue: Catalogue) -> dict[str, object]:
    entry = catalogue.action(name, policy.dialect)
    declared = () if entry is None else entry.arguments
    return {
        "name": name,
        "doc": "" if entry is None else entry.doc,
        "arguments": _arguments(declared, policy.configurations.get(name, {})),
    }


def _plugin(option: PluginOption, dialect: str, catalogue: Catalogue) -> dict[str, object]:
    entry = catalogue.plugin(option.name, dialect)
    answers = _answers(option, dialect, catalogue)
    changed = [p for p in DEFAULTS if option.enabled.get(p, DEFAULTS[p]) != DEFAULTS[p]]
    return {
        "name": option.name,
        "doc": "" if entry is None else entry.doc,
        "line": option.line,
        "switchedOff": [p for p in changed if DEFAULTS[p] and (answers is None or p in answers)],
        "switchedOn": [p for p in changed if not DEFAULTS[p]],
        "arguments": _arguments(() if entry is None else entry.arguments, option.arguments),
    }


def _differences(policy: Policy, name: str) -> list[str]:
    """What a further profile has otherwise than the first."""
    first, other = next(iter(policy.profiles.values())), policy.profiles[name]
    ours, theirs = ({option.name: option for option in profile.plugins} for profile in (first, other))
    out = [f"without {plugin}" for plugin in ours if plugin not in theirs]
    out += [f"with {plugin}" for plugin in theirs if plugin not in ours]
    for plugin, option in theirs.items():
        if plugin in ours:
            before = ours[plugin]
            out += [f"{plugin}: {line}" for line in _changes(before.arguments, option.arguments)]
            out += [
                f"{plugin}: {'asked' if option.is_enabled(point) else 'not asked'} for {point.replace('_', ' ')}"
                for point in DEFAULTS
                if option.is_enabled(point) != before.is_enabled(point)
            ]
    return out + _changes(first.arguments, other.arguments)


def _changes(before: Mapping[str, object], after: Mapping[str, object]) -> list[str]:
    names = [name for name in sorted({*before, *after}) if before.get(name) != after.get(name)]
    return [f"{name} = {json.dumps(after[name]) if name in after else 'its default'}" for name in names]


def _arguments(declared: tuple[Argument, ...], given: Mapping[str, object]) -> list[dict[str, object]]:
    shown = Arguments(declared, given).items()
    kinds = {name: "any" if (found := find(declared, name)) is None else found.kind for name, _, _ in shown}
    return [{"name": name, "value": value, "given": was_given, "kind": kinds[name]} for name, value, was_given in shown]


def _answers(option: PluginOption, dialect: str, catalogue: Catalogue) -> set[str] | None:
    """The switches of the points that a plugin implements; None if unknown."""
    entry = catalogue.plugin(option.name, dialect)
    if entry is None or entry.points is None:
        return None
    return {SAME_SWITCH.get(point, point) for point in entry.points}


def _points(policy: Policy, catalogue: Catalogue) -> list[dict[str, object]]:
    described: list[dict[str, object]] = []
    for point in POINTS:
        if point.name in _NOT_ASKED:
            continue
        asked, silenced = [], []
        for tier in policy.tiers:
            speaking = [o for o in tier if point.name in (_answers(o, policy.dialect, catalogue) or ())]
            asked.append([o.name for o in speaking if o.is_enabled(point.name)])
            silenced += [o.name for o in speaking if not o.is_enabled(point.name)]
        if any(asked) or silenced:
            described.append(
                {
                    "point": point.name,
                    "plugins": [names for names in asked if names],
                    "switchedOff": silenced,
                    "combined": combined(point.name, policy.semantics),
                }
            )
    return described + _unswitched(policy, catalogue)


def _unswitched(policy: Policy, catalogue: Catalogue) -> list[dict[str, object]]:
    """Points without a switch, which only the actions of one system ask."""
    found: dict[str, list[list[str]]] = {}
    for number, tier in enumerate(policy.tiers):
        for option in tier:
            for point in sorted(_answers(option, policy.dialect, catalogue) or ()):
                if point not in BY_NAME:
                    found.setdefault(point, [[] for _ in policy.tiers])[number].append(option.name)
    return [
        {"point": point, "plugins": [names for names in asked if names], "switchedOff": [], "combined": ""}
        for point, asked in sorted(found.items())
    ]
