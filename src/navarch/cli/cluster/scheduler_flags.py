"""Flags of Volcano, KAI and kube-scheduler on the command line of `navarch run` and `navarch up`.

People copy the arguments of a Deployment first. An unknown option that one of those schedulers has is answered with the option of
the command that does the same, the parameter of a policy, or the reason why there is none. A guess by likeness of names would
mislead: `--scheduler-conf` is not `--scheduler-name`.
"""

from __future__ import annotations

import re
from typing import Final

import click

from navarch.engine.policy.scheduler_params import FLAGS, OPTIONS, PARAMETERS, WITHOUT_OPTION

_ELECT: Final = {
    "--leader-elect=true": "--leader-elect",
    "--leader-elect=false": "--no-leader-elect",
}
"""How manifests of those schedulers write it."""
_SAME_NAME: Final = ("leader-elect", "tls-cert-file", "scheduler-name")
"""Flags that `navarch run` has under the same name. `navarch up` has nothing in their place: it serves fixed scheduler names."""


class SchedulerCommand(click.Command):
    """A command that runs a scheduler."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if "--leader-elect" in _options_of(self):
            args = [_ELECT.get(arg, arg) for arg in args]
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            words = replacement_for(error.option_name, self)
            if not words:
                raise
            raise click.UsageError(f"No such option '{error.option_name}'. {words}", ctx) from None


def replacement_for(option: str, command: click.Command) -> str:
    """What to use on this command for a flag of another scheduler; empty: no such flag is known.

    >>> from navarch.cli.run import run
    >>> from navarch.cli.up.command import up
    >>> replacement_for("--scheduler-conf", run)
    'Use --policy FILE.'
    >>> replacement_for("--kube-api-qps", run)
    'Leave it out: requests are bounded by the number in flight, not by a rate.'
    >>> replacement_for("--default-queue", run)
    'It is a parameter in the file of --policy: schedulerParams: {default-queue: ...}.'
    >>> replacement_for("--listen-address", up)
    'Leave it out: `navarch up` has no such option.'
    """
    flag = option.lstrip("-")
    if flag not in (*OPTIONS, *WITHOUT_OPTION, *FLAGS, *_SAME_NAME):
        return ""
    options = _options_of(command)
    for words in _replacements(flag):
        if options.issuperset(re.findall(r"--[a-z][a-z-]*", words)):
            return words
    return f"Leave it out: `navarch {command.name}` has no such option."


def _replacements(flag: str) -> list[str]:
    """What may be said of a flag, best first. The options that are named here are those of `navarch run`."""
    found = []
    if flag in OPTIONS:
        found.append(f"Use {OPTIONS[flag]}.")
    if flag in WITHOUT_OPTION:
        found.append(f"Leave it out: {WITHOUT_OPTION[flag]}.")
    if flag in FLAGS and flag not in _SAME_NAME:
        parameter = PARAMETERS[FLAGS[flag]]
        file = f"It is a parameter in the file of --policy: schedulerParams: {{{flag}: ...}}."
        found.append(file if parameter.has_effect else f"Leave it out: {parameter.doc}.")
    return found


def _options_of(command: click.Command) -> set[str]:
    return {name for param in command.params for name in (*param.opts, *param.secondary_opts)}
