"""The report of `navarch policy check`: what runs, which plugins each extension point asks, and what differs from strict mode."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
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
    for title, lines in _sections(report, width):
        found = list(lines)
        if found:
            yield from ("", title, *found)


def _sections(report: Mapping[str, Any], width: int) -> Iterator[tuple[str, Iterable[str]]]:
    """Titles and their lines. A section without lines is left out."""
    yield "Warnings", (line for each in report["warnings"] for line in hanging("  - ", each, width))
    yield "Actions, in order", _actions(report["actions"], width)
    column = max((len(plugin["name"]) for tier in report["tiers"] for plugin in tier), default=0) + 2
    for number, tier in enumerate(report["tiers"], 1):
        title = "Plugins, in order" if len(report["tiers"]) == 1 else f"Plugins of tier {number}"
        yield title, (line for plugin in tier for line in _plugin(plugin, column, width))
    yield "Plugins asked at each extension point", _points(report, width)
    for title, key in (("Parameters", "parameters"), ("Jobs looked at per queue", "queueDepth")):
        yield title, (f"  {name} = {shown(value)}" for name, value in report[key].items())
    yield "Evictions", hanging(f"  {report['evictions']:<8}", _EVICTIONS[report["evictions"]], width)
    if report["profileDifferences"]:
        yield "Profiles", _profiles(report, width)
    if tuple(report["backoff"]) != BACKOFF:
        yield "Back-off of jobs that found no room", ["  {} at first, {} at most".format(*map(go_duration, report["backoff"]))]
    budgets = (f"  {name} = {_durations(value)}" for name, value in report["searchBudgets"].items())
    yield "How long searches for victims may go on", budgets
    for title, key in (
        (f"What differs from strict mode under compat {report['compat']}", "departures"),
        (f"What {report['compat']} does and Navarch does in no mode (docs/parity.md says why)", "notFollowed"),
    ):
        yield title, [line for each in report[key] for line in hanging("  - ", each, width)]


def _actions(actions: Iterable[Mapping[str, Any]], width: int) -> Iterator[str]:
    for number, action in enumerate(actions, 1):
        yield from hanging(f"  {number}. {action['name']:<19} ", action["doc"], width)
        yield from _arguments(action["arguments"])


def _points(report: Mapping[str, Any], width: int) -> Iterator[str]:
    for point in report["points"]:
        yield from _point(point, width)
    if report["unanswered"]:
        yield from hanging(f"  {'no plugin answers':<20}", _words(report["unanswered"]), width)


def _profiles(report: Mapping[str, Any], width: int) -> Iterator[str]:
    first, *_ = report["profiles"]
    yield from hanging("  ", f"{first} is shown above; it also decides for pods that name no profile of the file", width)
    for name, differences in report["profileDifferences"].items():
        yield from hanging(f"  {name}: ", "; ".join(differences) or f"the same as {first}", width)


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
