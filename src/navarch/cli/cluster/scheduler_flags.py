"""Flags of Volcano, KAI and kube-scheduler on the command line of `navarch run`: what stands in their place.

People copy the arguments of a Deployment first. An unknown option that one of those schedulers has is answered with the option of
`navarch run` that does the same, the parameter of a policy, or the reason why there is none. A guess by likeness of names would
mislead: `--scheduler-conf` is not `--scheduler-name`.
"""

from __future__ import annotations

from typing import Final

import click

from navarch.engine.policy.scheduler_params import FLAGS, OPTIONS, PARAMETERS, WITHOUT_OPTION

_ELECT: Final = {
    "--leader-elect=true": "--leader-elect",
    "--leader-elect=false": "--no-leader-elect",
}
"""How manifests of those schedulers write it."""


class SchedulerCommand(click.Command):
    """A command that runs a scheduler."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        try:
            return super().parse_args(ctx, [_ELECT.get(arg, arg) for arg in args])
        except click.NoSuchOption as error:
            words = in_place_of(error.option_name)
            if not words:
                raise
            raise click.UsageError(f"No such option '{error.option_name}'. {words}", ctx) from None


def in_place_of(option: str) -> str:
    """What to use for a flag of another scheduler; empty: no such flag is known.

    >>> in_place_of("--scheduler-conf")
    'Use --policy FILE.'
    >>> in_place_of("--kube-api-qps")
    'Leave it out: requests are bounded by the number in flight, not by a rate.'
    >>> in_place_of("--default-queue")
    'It is a parameter in the file of --policy: schedulerParams: {default-queue: ...}.'
    """
    flag = option.lstrip("-")
    if flag in OPTIONS:
        return f"Use {OPTIONS[flag]}."
    if flag in WITHOUT_OPTION:
        return f"Leave it out: {WITHOUT_OPTION[flag]}."
    if flag not in FLAGS:
        return ""
    parameter = PARAMETERS[FLAGS[flag]]
    if not parameter.has_effect:
        return f"Leave it out: {parameter.doc}."
    return f"It is a parameter in the file of --policy: schedulerParams: {{{flag}: ...}}."
