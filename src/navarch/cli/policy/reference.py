"""The reference of plugins and actions: as a list or in full for the terminal, and as the text of docs/plugins.md."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

Described = Mapping[str, Any]
SECTIONS: tuple[tuple[str, str, str], ...] = (
    ("navarch", "for batch work", "Meant by Navarch's own policies and by files of Volcano; by kube-batch's, but for those below."),
    ("kube-batch", "as kube-batch has them", "Meant by files with `compat: kube-batch`."),
    ("kai", "KAI's", "Meant by files of KAI (`compat: kai`, or a file that names something only KAI has)."),
    ("kube-scheduler", "kube-scheduler's", "Meant by a KubeSchedulerConfiguration."),
)
_INTRODUCTION = """\
# Plugins and actions

All plugins and actions that a policy file may name, with their arguments. `navarch policy plugins -o markdown` writes this file from
the declarations in the code, and a test compares them. [policy.md](policy.md) describes policy files,
[CONTRIBUTING.md](../CONTRIBUTING.md) describes how to write a plugin.

```
navarch policy plugins             # the list
navarch policy plugins binpack     # one of them, with its arguments
```
"""
_POINTS = """\
A plugin answers at an extension point if it has the methods of the point. The switch is the key of a policy file that turns one plugin
off at this point. [policy.md](policy.md#switches) describes how several answers are combined; `navarch policy check` shows it for a
given file.

Every action that places gangs uses filters, scores, events and the orders of jobs and tasks. Of the other points, the actions for
batch work use those up to `events`, and KAI's actions use those below. kube-scheduler's `schedule` uses filters, scores and events.
"""


def section_of(entry: Described) -> str:
    """The name under which it is listed."""
    systems = entry["systems"]
    return systems[0] if systems and systems[0] in ("kai", "kube-scheduler") else entry["dialect"] or "navarch"


def in_sections(entries: Sequence[Described]) -> Iterator[tuple[str, str, list[Described]]]:
    """(title, system, entries) for every section with entries."""
    for section, title, whose in SECTIONS:
        found = [entry for entry in entries if section_of(entry) == section]
        if found:
            yield title, whose, found


# docs/plugins.md


def markdown(reference: Mapping[str, Sequence[Described]]) -> str:
    lines = [_INTRODUCTION]
    for kind in ("actions", "plugins"):
        for title, whose, entries in in_sections(reference[kind]):
            lines += [f"## {kind.capitalize()}: {title}", "", whose, ""]
            for entry in entries:
                lines += _in_full(entry)
    lines += ["## Extension points", "", _POINTS, "| point | methods | about | switch |", "|---|---|---|---|"]
    for point in reference["points"]:
        methods = "<br>".join(f"`{method}`" for method in point["methods"])
        switch = f"`{point['switch']}`" if point["switch"] else ""
        lines.append(_row(f"`{point['point']}`", methods, point["about"], switch))
    return "\n".join(lines) + "\n"


def _in_full(entry: Described) -> list[str]:
    lines = [f"### `{entry['name']}`", "", f"{entry['doc']}.".replace("..", "."), ""]
    if entry["about"]:
        lines += [entry["about"], ""]
    if entry["points"]:
        lines += [f"Asked at: {', '.join(f'`{point}`' for point in entry['points'])}.", ""]
    if entry["arguments"]:
        lines += ["| argument | kind | default | meaning |", "|---|---|---|---|"]
        lines += [_row(f"`{a['name']}`", a["kind"], _default(a), _meaning(a)) for a in entry["arguments"]]
        lines.append("")
    return lines


def _row(*cells: str) -> str:
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


def _default(argument: Described) -> str:
    return "" if argument["default"] is None else f"`{shown(argument['default'], argument['kind'])}`"


def _meaning(argument: Described) -> str:
    parts = [argument["doc"]]
    if argument.get("choices"):
        parts.append("one of " + ", ".join(f"`{choice}`" for choice in argument["choices"]))
    least, most = argument.get("minimum"), argument.get("maximum")
    if least is not None and most is not None:
        parts.append(f"{least:g} to {most:g}")
    elif least is not None:
        parts.append(f"{least:g} or more")
    elif most is not None:
        parts.append(f"{most:g} or less")
    return "; ".join(part for part in parts if part)


# the terminal


def listed(reference: Mapping[str, Sequence[Described]], width: int) -> Iterator[str]:
    for kind in ("actions", "plugins"):
        for title, _, entries in in_sections(reference[kind]):
            yield f"{kind.capitalize()}: {title}"
            column = max(len(entry["name"]) for entry in entries) + 2
            for entry in entries:
                yield from hanging(f"  {entry['name']:<{column}}", entry["doc"], width)
            yield ""


def in_full(entry: Described, kind: str, width: int) -> Iterator[str]:
    systems = f" ({', '.join(entry['systems'])})" if entry["systems"] else ""
    yield f"{kind} {entry['name']}{systems}"
    yield from hanging("  ", entry["doc"], width)
    if entry["about"]:
        yield ""
        yield from _folded(entry["about"], width)
    if entry["points"]:
        yield ""
        yield from hanging("  asked at: ", ", ".join(entry["points"]).replace("_", " "), width)
    for argument in entry["arguments"]:
        default = "unset" if argument["default"] is None else shown(argument["default"], argument["kind"])
        yield ""
        yield f"  {argument['name']} = {default}  ({argument['kind']})"
        yield from hanging("      ", _meaning(argument).replace("`", ""), width)


def _folded(text: str, width: int) -> Iterator[str]:
    """Fold paragraphs to the width. Indented lines and list items stay as they are."""
    for number, paragraph in enumerate(text.split("\n\n")):
        if number:
            yield ""
        if any(line.startswith((" ", "-")) for line in paragraph.splitlines()):
            yield from textwrap.indent(paragraph, "  ").splitlines()
        else:
            yield from hanging("  ", " ".join(paragraph.split()), width)


def shown(value: object, kind: str = "") -> str:
    """A value as it is written in a policy file.

    >>> shown(True), shown(90.0, "duration"), shown({"a": [1]}), shown("x")
    ('true', '90s', '{"a": [1]}', 'x')
    """
    if kind == "duration" and isinstance(value, int | float):
        return f"{value:g}s"
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def hanging(lead: str, text: str, width: int) -> list[str]:
    """The lead, then the text with a hanging indent."""
    indent = " " * len(lead)
    folded = textwrap.wrap(
        text,
        max(width, len(lead) + 30),
        initial_indent=lead,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    )
    return folded or [lead.rstrip()]
