"""The report of `navarch policy check`: what runs, which plugins each extension point asks, and what differs from strict mode."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from navarch.cli.policy.reference import hanging, shown
from navarch.engine.policy.values import BACKOFF
from navarch.model.timestamps import go_duration

_EVICTIONS = {
    "api": "victims are evicted through the Eviction API: a pod whose disruption budget allows no disruption is no victim",
    "delete": "victims are deleted with their own grace period: disruption budgets steer the choice of victims and veto nothing",
}


def report_lines(report: Mapping[str, Any], width: int) -> Iterator[str]:
    mode = "strict" if report["compat"] == "strict" else f"as {report['compat']} does it"
    whose = "" if report["dialect"] in ("navarch", report["compat"]) else f", with {report['dialect']}'s plugins"
    yield f"{report['source']}: read {mode}{whose}, because {report['chosen']}"
    if report["warnings"]:
        yield ""
        yield "Warnings"
        for line in report["warnings"]:
            yield from hanging("  - ", line, width)
    yield ""
    yield "Actions, in order"
    for number, action in enumerate(report["actions"], 1):
        yield from hanging(f"  {number}. {action['name']:<19} ", action["doc"], width)
        yield from _arguments(action["arguments"])
    column = max((len(plugin["name"]) for tier in report["tiers"] for plugin in tier), default=0) + 2
    for number, tier in enumerate(report["tiers"], 1):
        yield ""
        yield "Plugins, in order" if len(report["tiers"]) == 1 else f"Plugins of tier {number}"
        for plugin in tier:
            yield from _plugin(plugin, column, width)
    yield ""
    yield "Plugins asked at each extension point"
    for point in report["points"]:
        yield from _point(point, width)
    if report["unanswered"]:
        yield from hanging(f"  {'no plugin answers':<20}", _words(report["unanswered"]), width)
    for title, key in (("Parameters", "parameters"), ("Jobs looked at per queue", "queueDepth")):
        if report[key]:
            yield ""
            yield title
            yield from (f"  {name} = {shown(value)}" for name, value in report[key].items())
    yield ""
    yield "Evictions"
    yield from hanging(f"  {report['evictions']:<8}", _EVICTIONS[report["evictions"]], width)
    if report["profileDifferences"]:
        yield ""
        yield "Profiles"
        first, *_ = report["profiles"]
        yield from hanging("  ", f"{first} is shown above; it also decides for pods that name no profile of the file", width)
        for name, differences in report["profileDifferences"].items():
            yield from hanging(f"  {name}: ", "; ".join(differences) or f"the same as {first}", width)
    if tuple(report["backoff"]) != BACKOFF:
        yield ""
        yield "Back-off of jobs that found no room"
        yield "  {} at first, {} at most".format(*map(go_duration, report["backoff"]))
    if report["searchBudgets"]:
        yield ""
        yield "How long searches for victims may go on"
        yield from (f"  {name} = {_durations(value)}" for name, value in report["searchBudgets"].items())
    if report["departures"]:
        yield ""
        yield f"What differs from strict mode under compat {report['compat']}"
        for line in report["departures"]:
            yield from hanging("  - ", line, width)


def _durations(budget: float | Mapping[str, float]) -> str:
    """One line for all, or one line for each action or way of choosing victims."""
    if isinstance(budget, Mapping):
        return ", ".join(f"{name} {go_duration(seconds)}" for name, seconds in budget.items())
    return go_duration(budget)


def _plugin(plugin: Mapping[str, Any], column: int, width: int) -> Iterator[str]:
    yield from hanging(f"  {plugin['name']:<{column}}", plugin["doc"], width)
    if plugin["switchedOff"]:
        yield f"      not asked: {_words(plugin['switchedOff'])}"
    if plugin["switchedOn"]:
        yield f"      also on: {_words(plugin['switchedOn'])}"
    yield from _arguments(plugin["arguments"])


def _arguments(arguments: list[Mapping[str, Any]]) -> Iterator[str]:
    for argument in arguments:
        value = "unset" if argument["value"] is None else shown(argument["value"], argument["kind"])
        yield f"      {argument['name']} = {value}{'' if argument['given'] else '  (default)'}"


def _point(point: Mapping[str, Any], width: int) -> Iterator[str]:
    """Tiers are separated by a bar."""
    asked = " | ".join(", ".join(names) for names in point["plugins"]) or "no plugin"
    silenced = f"  (switched off: {', '.join(point['switchedOff'])})" if point["switchedOff"] else ""
    yield from hanging(f"  {_words([point['point']]):<19} ", f"{asked}{silenced}", width)
    if point["combined"]:
        yield from hanging(" " * 24, point["combined"], width)


def _words(points: Sequence[str]) -> str:
    return ", ".join(point.replace("_", " ") for point in points)
