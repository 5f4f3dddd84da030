"""`navarch replay`: decide a recorded cycle again and show what differs."""

from __future__ import annotations

import json
from pathlib import Path

import click
import msgspec
import yaml

from navarch.cli.plugin_dirs import plugin_dirs_option
from navarch.engine.policy import Policy, PolicyError
from navarch.engine.registry import RegistrationError
from navarch.installed import installed
from navarch.offline import replay as recordings
from navarch.offline import scenario
from navarch.offline.plan import read_policy
from navarch.version import version

DIFFERS = 1
UNUSABLE = 2


@click.command()
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--policy", metavar="FILE|PRESET", help="Decide under another policy than the recorded one.")
@click.option("-o", "--output", type=click.Choice(("text", "json")), default="text", show_default=True)
@click.option("--to-scenario", is_flag=True, help="Print the cycle as a scenario in the form of tests/scenarios instead.")
@click.option("--anonymous", is_flag=True, help="With --to-scenario: replace names.")
@plugin_dirs_option
def replay(file: Path, policy: str | None, output: str, to_scenario: bool, anonymous: bool, plugin_dirs: tuple[Path, ...]) -> None:
    """Decide the cycle in FILE again and print the decisions, or how they differ from the recorded ones.

    Exits with 0 if nothing differs, with 1 if something does, with 2 if the file or the policy cannot be used.
    """
    if to_scenario:
        _print_scenario(file, anonymous)
        return
    try:
        registry = installed(plugin_dirs)
        recording = recordings.read(file)
        other: Policy | None = read_policy(policy, registry) if policy else None
        after = recordings.decisions(recordings.again(recording, registry, other))
    except (recordings.RecordingError, PolicyError, RegistrationError) as error:
        click.echo(str(error), err=True)
        raise SystemExit(UNUSABLE) from None
    before = bytes(recording.decisions)
    lines = [] if recordings.same(before, after) else recordings.difference(before, after) or ["the wording differs"]
    if output == "json":
        click.echo(json.dumps({"difference": lines, "decisions": msgspec.json.decode(after)}, indent=2, sort_keys=True))
    else:
        for line in lines or _decided(after):
            click.echo(line)
    if lines:
        if recording.version not in ("", version()):
            click.echo(f"recorded by navarch {recording.version}, decided again by {version()}", err=True)
        raise SystemExit(DIFFERS)


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
