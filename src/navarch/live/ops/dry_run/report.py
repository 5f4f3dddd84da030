"""The report of a dry run (`--report FILE.json|FILE.html`): how often Navarch agreed with the scheduler in charge, and where not.

The file is written once a minute and at the end, under another name first, so that a reader never sees half of it.
"""

from __future__ import annotations

import html
import logging
from collections import Counter
from pathlib import Path
from statistics import median
from typing import Any

import msgspec

from navarch.live.ops.dry_run.comparison import AGREED, EARLIER, OUTCOMES, Compared, DryRun
from navarch.model.timestamps import rfc3339

log = logging.getLogger(__name__)
FORMS = (".html", ".json")
SHOWN = 500
"""Pods in each table of the page; the JSON has them all."""
MEANING = {
    "agreed": "bound to the node that Navarch chose",
    "other node": "bound at about the same time, to another node",
    "earlier": "Navarch would have bound it earlier",
    "later": "bound while Navarch still refused it",
    "never": "bound although Navarch says that it can never start",
}


class ReportError(ValueError):
    """The file cannot be written; the message says why."""


class DryRunReport:
    """Raises ReportError at once if the file cannot be written."""

    def __init__(self, path: Path, names: tuple[str, ...], policy: str) -> None:
        if path.suffix not in FORMS:
            raise ReportError(f"{path}: expected a name that ends in .html or .json")
        if not path.absolute().parent.is_dir():
            raise ReportError(f"{path}: the folder {path.absolute().parent} does not exist")
        self._path, self._names, self._policy = path, names, policy

    def write(self, run: DryRun, until: float) -> None:
        plain = document(run, until, self._names, self._policy)
        text = msgspec.json.format(msgspec.json.encode(plain), indent=2) if self._path.suffix == ".json" else page(plain, run).encode()
        partial = self._path.with_name(f".{self._path.name}.partial")
        try:
            partial.write_bytes(text)
            partial.replace(self._path)
        except OSError as error:
            log.error("the report %s was not written: %s", self._path, error.strerror)


def document(run: DryRun, until: float, names: tuple[str, ...], policy: str) -> dict[str, Any]:
    early = [each.seconds for each in run.compared if each.outcome == EARLIER]
    waits = Counter((each.code, each.reason) for each in run.followed.values() if not each.node)
    return {
        "since": rfc3339(run.started),
        "until": rfc3339(until),
        "policy": policy,
        "schedulerNames": list(names),
        "summary": {
            "compared": sum(run.counts.values()),
            **{_camel(outcome): run.counts[outcome] for outcome in OUTCOMES},
            "medianSecondsEarlier": round(median(early), 1) if early else None,
            "wouldStart": sum(1 for each in run.followed.values() if each.node),
            "wouldEvict": sum(run.evictions.values()),
            "refused": sum(waits.values()),
        },
        "waiting": [{"code": code, "reason": reason, "pods": pods} for (code, reason), pods in waits.most_common(SHOWN)],
        "pods": [_pod(each) for each in run.compared],
    }


def _camel(words: str) -> str:
    first, *rest = words.split()
    return first + "".join(word.title() for word in rest)


def _pod(each: Compared) -> dict[str, Any]:
    return {**msgspec.to_builtins(each), "outcome": _camel(each.outcome), "time": rfc3339(each.time)}


def page(plain: dict[str, Any], run: DryRun) -> str:
    summary = plain["summary"]
    total = summary["compared"]
    rows = [(outcome, run.counts[outcome], _percent(run.counts[outcome], total), MEANING[outcome]) for outcome in OUTCOMES]
    when, where = f"{plain['since']} to {plain['until']}", ", ".join(plain["schedulerNames"])
    told = (
        f"{when}, policy {plain['policy']}, pods of {where}. {total} pods compared. Navarch would start {summary['wouldStart']} pods "
        f"that wait now, refuses {summary['refused']}, and would have evicted {summary['wouldEvict']}."
    )
    reasons = [(each["pods"], each["code"], each["reason"]) for each in plain["waiting"]]
    parts = [
        f"<p>{_text(told)}</p>",
        _table("Outcomes", ("outcome", "pods", "", "meaning"), rows),
        _table("Why pods wait", ("pods", "code", "reason"), reasons),
    ]
    for outcome in OUTCOMES:
        found = [each for each in run.compared if each.outcome == outcome]
        if outcome != AGREED and found:
            cells = [(e.pod, e.queue, e.node, e.our_node or "-", e.seconds or "-", e.reason) for e in found[:SHOWN]]
            title = f"{outcome.capitalize()}: {len(found)}" + (f", the first {SHOWN}" if len(found) > SHOWN else "")
            parts.append(_table(title, ("pod", "queue", "bound to", "Navarch's node", "s earlier", "Navarch's reason"), cells))
    return _PAGE.format(body="\n".join(parts))


def _percent(part: int, total: int) -> str:
    return f"{100 * part / total:.1f} %" if total else ""


def _text(value: object) -> str:
    return html.escape(str(value))


def _table(title: str, heads: tuple[str, ...], rows: list[Any]) -> str:
    head = "".join(f"<th>{_text(each)}</th>" for each in heads)
    body = "\n".join(f"<tr>{''.join(f'<td>{_text(cell)}</td>' for cell in row)}</tr>" for row in rows)
    return f"<h2>{_text(title)}</h2>\n<table><tr>{head}</tr>\n{body}\n</table>"


_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Navarch: dry run</title>
<style>
body {{ font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 72rem; padding: 0 1rem; color: #222; background: #fff }}
table {{ border-collapse: collapse; width: 100% }}
th, td {{ text-align: left; padding: .25rem .75rem .25rem 0; border-bottom: 1px solid #ddd; vertical-align: top }}
</style></head><body>
<h1>Dry run beside the scheduler in charge</h1>
{body}
</body></html>
"""
