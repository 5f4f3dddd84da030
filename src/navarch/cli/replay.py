"""`navarch replay`: decide recorded cycles again and show what differs.

One file is shown in full. Of several files, or of a folder, each that differs is shown, and a summary counts what was decided then and
what would be decided now, and why jobs wait."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import msgspec
import yaml

from navarch.cli.plugin_dirs import plugin_dirs_option
from navarch.cli.policy.mistakes import tell
from navarch.engine.policy import Policy, PolicyError
from navarch.engine.reasons import dominant
from navarch.engine.record import CycleRecord
from navarch.engine.registry import RegistrationError, Registry
from navarch.installed import installed
from navarch.model.timestamps import rfc3339
from navarch.offline import replay as recordings
from navarch.offline import scenario
from navarch.offline.plan import cycle_dict
from navarch.offline.policies import read_policy
from navarch.version import version

DIFFERS = 1
UNUSABLE = 2
SHOWN_REASONS = 5
EXAMPLES = """\b
Examples:
  navarch replay cycles/cycle-1794728209123-000042.json.gz
  navarch replay cycles/                        # every cycle of `navarch run --record cycles`
  navarch replay cycles/ --policy volcano       # what would another policy have decided?
"""


@dataclass(frozen=True)
class Replayed:
    """A recorded cycle, decided again. `lines`: how it differs; empty: not at all."""

    file: Path
    recording: recordings.Recording
    before: bytes
    record: CycleRecord
    lines: list[str]

    def to_dict(self) -> dict[str, Any]:
        """`decisions` in the form of `navarch plan -o json`."""
        when = rfc3339(self.recording.now)
        return {"file": str(self.file), "time": when, "difference": self.lines, "decisions": cycle_dict(1, self.record)}


@click.command(epilog=EXAMPLES)
@click.argument("files", metavar="FILE|DIR...", nargs=-1, required=True, type=click.Path(exists=True, path_type=Path))
@click.option("--policy", metavar="FILE|PRESET", help="Decide under another policy than the recorded one.")
@click.option("-o", "--output", type=click.Choice(("text", "json")), default="text", show_default=True)
@click.option("--to-scenario", is_flag=True, help="Print the cycle as a scenario in the form of tests/scenarios instead.")
@click.option("--anonymous", is_flag=True, help="With --to-scenario: replace names.")
@plugin_dirs_option
def replay(
    files: tuple[Path, ...], policy: str | None, output: str, to_scenario: bool, anonymous: bool, plugin_dirs: tuple[Path, ...]
) -> None:
    """Decide recorded cycles again and print the decisions, or how they differ from the recorded ones.

    Exits with 0 if nothing differs, with 1 if something does, with 2 if a file or the policy cannot be used.
    """
    found = _recordings(files)
    if to_scenario:
        for file in found:
            _print_scenario(file, anonymous)
        return
    try:
        registry = installed(plugin_dirs)
        other: Policy | None = read_policy(policy, registry) if policy else None
    except PolicyError as error:
        tell(error, policy or "", plugin_dirs)
        raise SystemExit(UNUSABLE) from None
    except RegistrationError as error:
        click.echo(str(error), err=True)
        raise SystemExit(UNUSABLE) from None
    together = len(found) > 1 or files[0].is_dir()
    done: list[Replayed] = []
    unusable = 0
    for file in found:
        try:
            done.append(_replayed(file, registry, other))
        except (recordings.RecordingError, PolicyError) as error:
            click.echo(str(error), err=True)
            unusable += 1
            continue
        if output == "text":
            _show(done[-1], together)
    if output == "json":
        plain: dict[str, Any] = {"cycles": [each.to_dict() for each in done], "summary": _summary(done, unusable)}
        click.echo(json.dumps(plain if together else done[0].to_dict() if done else {}, indent=2, sort_keys=True))
    elif together:
        click.echo("\n".join(_summary_lines(_summary(done, unusable))))
    _tell_versions(done)
    if unusable:
        raise SystemExit(UNUSABLE)
    if any(each.lines for each in done):
        raise SystemExit(DIFFERS)


def _recordings(files: tuple[Path, ...]) -> list[Path]:
    """The files, and the recordings of each folder by their names, which begin with the time."""
    found: list[Path] = []
    for file in files:
        inside = sorted(file.glob("cycle-*.json.gz")) if file.is_dir() else [file]
        if not inside:
            raise click.UsageError(f"{file}: expected recordings (cycle-*.json.gz) of `navarch run --record`, found none")
        found += inside
    return found


def _replayed(file: Path, registry: Registry, policy: Policy | None) -> Replayed:
    recording = recordings.read(file)
    record = recordings.again(recording, registry, policy)
    before, after = bytes(recording.decisions), recordings.decisions(record)
    same = recordings.same(before, after)
    return Replayed(file, recording, before, record, [] if same else recordings.difference(before, after) or ["the wording differs"])


def _show(each: Replayed, together: bool) -> None:
    if together:
        if each.lines:
            click.echo(f"{each.file.name} ({rfc3339(each.recording.now)}):")
            click.echo("\n".join(f"  {line}" for line in each.lines))
        return
    for line in each.lines or _decided(recordings.decisions(each.record)):
        click.echo(line)


def _tell_versions(done: list[Replayed]) -> None:
    others = sorted({each.recording.version for each in done if each.lines} - {"", version()})
    if others:
        click.echo(f"recorded by navarch {', '.join(others)}, decided again by {version()}", err=True)


def _summary(done: list[Replayed], unusable: int) -> dict[str, Any]:
    then: Counter[str] = Counter()
    now: Counter[str] = Counter()
    reasons: Counter[tuple[str, str]] = Counter()
    for each in done:
        old = msgspec.json.decode(each.before)
        for part in ("binds", "evictions", "nominations"):
            then[part] += len(old[part])
            now[part] += len(getattr(each.record, part))
        for job in each.record.jobs:
            if (reason := dominant(job.reasons)) is not None:
                reasons[reason.code, reason.message] += 1
    by_code: Counter[str] = Counter()
    example: dict[str, str] = {}
    for (code, message), count in sorted(reasons.items(), key=lambda item: (-item[1], item[0])):
        by_code[code] += count
        example.setdefault(code, message)
    return {
        "cycles": len(done),
        "same": sum(1 for each in done if not each.lines),
        "differ": sum(1 for each in done if each.lines),
        "unusable": unusable,
        "then": {part: then[part] for part in ("binds", "evictions", "nominations")},
        "now": {part: now[part] for part in ("binds", "evictions", "nominations")},
        "waiting": [{"code": code, "jobs": count, "example": example[code]} for code, count in by_code.most_common()],
    }


def _summary_lines(summary: dict[str, Any]) -> list[str]:
    lines = [f"{summary['cycles']} cycles: {summary['same']} the same, {summary['differ']} differ"]
    if summary["unusable"]:
        lines[0] += f", {summary['unusable']} cannot be used"
    for part in ("binds", "evictions", "nominations"):
        then, now = summary["then"][part], summary["now"][part]
        lines.append(f"  {part:<12} {then} then, {now} now")
    if summary["waiting"]:
        lines.append("why jobs wait, by how often it was decided:")
        lines += [f"  {each['jobs']:>6} {each['code']}: {each['example']}" for each in summary["waiting"][:SHOWN_REASONS]]
    return lines


def _print_scenario(file: Path, anonymous: bool) -> None:
    try:
        recording = recordings.read(file)
    except recordings.RecordingError as error:
        click.echo(str(error), err=True)
        raise SystemExit(UNUSABLE) from None
    name = "a recorded cycle" if anonymous else f"the cycle of {file.name.removesuffix('.json.gz')}"
    found, notes = scenario.to_scenario(recording, name, anonymous=anonymous)
    for note in notes:
        click.echo(f"left out: {note}", err=True)
    click.echo(yaml.safe_dump([found], sort_keys=False, width=120), nl=False)


def _decided(after: bytes) -> list[str]:
    decided = msgspec.json.decode(after)
    lines = [f"bind {each['pod']} to {each['node']}" for each in decided["binds"]]
    lines += [f"evict {each['pod']} from {each['node']}: {each['reason']} for {each['for_']}" for each in decided["evictions"]]
    lines += [f"promise {each['node']} to {each['pod']}" for each in decided["nominations"]]
    for job in decided["jobs"]:
        if job["reasons"]:
            lines.append(f"{job['job']} waits: {'; '.join(reason['message'] for reason in job['reasons'])}")
    return ["the same decisions as then", *lines]
