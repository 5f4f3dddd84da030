"""The command `navarch`. The module of a sub-command is imported when the sub-command is called."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Mapping

import click

from navarch.live.ops.garbage_collection import collect_rarely
from navarch.places import at

COMPLETE = "_NAVARCH_COMPLETE"
"""The variable by which a shell asks for completions (click's convention)."""
COMMANDS: Mapping[str, tuple[str, str]] = {
    "plan": ("navarch.cli.plan:plan", "Decide for manifests in files, with no cluster at all."),
    "explain": ("navarch.cli.explain:explain", "Say why a job waits and what would start it."),
    "policy": ("navarch.cli.policy.command:policy", "Check a policy file and show what it will really run."),
    "plugin": ("navarch.cli.plugin.command:plugin", "Start a plugin of your own, and check it."),
    "run": ("navarch.cli.run:run", "Schedule the pods of a cluster."),
    "up": ("navarch.cli.up.command:up", "Start an embedded cluster with a scheduler in it."),
    "simulate": ("navarch.cli.simulate:simulate", "Play a trace of jobs in virtual time and compare policies."),
    "replay": ("navarch.cli.replay:replay", "Decide a recorded cycle again and show what differs."),
    "submit": ("navarch.cli.submit.command:submit", "Submit a job: pods that start together or not at all."),
    "cancel": ("navarch.cli.submit.control:cancel", "End jobs and their pods."),
    "suspend": ("navarch.cli.submit.control:suspend", "Remove the pods of jobs until they are resumed."),
    "resume": ("navarch.cli.submit.control:resume", "Let suspended jobs run again."),
    "jobs": ("navarch.cli.jobs:jobs", "List jobs as the scheduler sees them."),
    "queues": ("navarch.cli.queues:queues", "List queues with their shares."),
    "nodes": ("navarch.cli.nodes:nodes", "List nodes with what is free on them."),
    "web": ("navarch.cli.web:web", "Serve the dashboard of a cluster."),
    "completion": ("navarch.cli.cluster.completion:completion", "Print the script that completes names in a shell."),
    "install": ("navarch.cli.install:install", "Put the scheduler into a cluster."),
    "uninstall": ("navarch.cli.uninstall:uninstall", "Remove the scheduler from a cluster."),
}
"""Command -> its place (`navarch.places`), and one line of help."""


class _LazyGroup(click.Group):
    """A group that imports the module of a command when the command is used."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        place, _ = COMMANDS.get(cmd_name, ("", ""))
        if not place:
            return None
        # The BLAS of numpy starts a thread for each core, and nothing here uses it: saves tens of milliseconds and megabytes.
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
        collect_rarely()
        command = at(place)
        assert isinstance(command, click.Command)
        if COMPLETE in os.environ:
            from navarch.cli.cluster.completion import add_completions

            add_completions(cmd_name, command)
        return command

    def resolve_command(self, ctx: click.Context, args: list[str]) -> tuple[str | None, click.Command | None, list[str]]:
        wanted = args[0] if args else ""
        if wanted and not wanted.startswith("-") and wanted not in (known := self.list_commands(ctx)):
            from difflib import get_close_matches

            near = get_close_matches(wanted, known, n=1)
            ctx.fail(f"No such command {wanted!r}." + (f" Did you mean {near[0]!r}?" if near else ""))
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, COMMANDS[name][1]) for name in self.list_commands(ctx)])


def _version(ctx: click.Context, _: click.Parameter, wanted: bool) -> None:
    if wanted and not ctx.resilient_parsing:
        from navarch.version import version

        click.echo(f"navarch {version()}")
        ctx.exit()


@click.group(cls=_LazyGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 120})
@click.option("--version", is_flag=True, is_eager=True, expose_value=False, callback=_version, help="Print the version.")
def main() -> None:
    """Navarch: a batch scheduler for Kubernetes."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # a terminal may lack a character


if __name__ == "__main__":
    main()
