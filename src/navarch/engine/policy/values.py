"""A loaded policy as plain frozen values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal

import msgspec

from navarch.engine.policy.point_switches import DEFAULTS, SAME_SWITCH
from navarch.engine.policy.scheduler_params import PARAMETERS
from navarch.engine.semantics import STRICT, Semantics

Evictions = Literal["api", "delete"]
RepeatedEvictions = Literal["protect", "allow"]


class PluginOption(msgspec.Struct, frozen=True):
    """One plugin of a policy. `arguments` holds the given values, converted to their declared kinds."""

    name: str
    enabled: Mapping[str, bool] = msgspec.field(default_factory=lambda: DEFAULTS)
    """Switchable point -> whether it is on; defaults filled in."""
    arguments: Mapping[str, object] = msgspec.field(default_factory=dict)
    line: int | None = None

    def is_enabled(self, point: str) -> bool:
        """Whether this plugin is asked at a point. Points that no file can switch are always on.

        >>> PluginOption("gang").is_enabled("job_ready"), PluginOption("gang").is_enabled("hierarchy")
        (True, False)
        """
        return self.enabled.get(SAME_SWITCH.get(point, point), True)


class Profile(msgspec.Struct, frozen=True):
    """The plugins and the action's arguments for the pods of one scheduler name."""

    plugins: tuple[PluginOption, ...]
    arguments: Mapping[str, object]


BACKOFF: Final = (1.0, 10.0)


@dataclass(frozen=True, slots=True)
class Policy:
    """One scheduling policy, checked: what runs, in which order, under which rules.

    `compat` names the system whose behaviour is reproduced ("strict": none). `dialect` names the system whose plugin is meant
    where several share a name. `semantics` are the switches of `compat`. `document` is the decoded file.
    """

    actions: tuple[str, ...]
    tiers: tuple[tuple[PluginOption, ...], ...]
    configurations: Mapping[str, Mapping[str, object]] = field(default_factory=dict)
    """Action -> the arguments given to it, of their declared kinds."""
    compat: str = "strict"
    dialect: str = "navarch"
    semantics: Semantics = STRICT
    params: Mapping[str, object] = field(default_factory=dict)
    """`schedulerParams` as given: what a peer takes as flags, durations in seconds; `param` knows the defaults."""
    metrics: Mapping[str, object] = field(default_factory=dict)
    usage: Mapping[str, object] = field(default_factory=dict)
    queue_depth: Mapping[str, int] = field(default_factory=dict)
    """Action -> how many jobs of a queue it looks at; an action that is absent looks at all."""
    search_budgets: Mapping[str, object] = field(default_factory=dict)
    evictions: Evictions = "api"
    """How victims are removed: through the Eviction API, which keeps disruption budgets, or by deleting the pod."""
    repeated_evictions: RepeatedEvictions = "protect"
    """Whether a job that is evicted again and again is protected for a growing time."""
    backoff: tuple[float, float] = BACKOFF
    """Seconds that a job which found no room waits before it is tried again without an event: at first, and at most."""
    scheduler_name: str = ""
    profiles: Mapping[str, Profile] = field(default_factory=dict)
    """Scheduler name -> profile, if there are several. The first, which is that of `tiers`, applies to all other names."""
    warnings: tuple[str, ...] = ()
    source: str = ""
    chosen: str = ""
    """Why this dialect and this compat, in a sentence."""
    document: Mapping[str, object] = field(default_factory=dict, repr=False, compare=False)

    @property
    def plugins(self) -> tuple[PluginOption, ...]:
        """Every plugin, tiers flattened, in order."""
        return tuple(option for tier in self.tiers for option in tier)

    def plugin(self, name: str) -> PluginOption | None:
        return next((option for option in self.plugins if option.name == name), None)

    def param(self, name: str) -> object:
        """A scheduler parameter in effect: what was given, else its default.

        >>> Policy((), ()).param("defaultQueue")
        'default'
        """
        return self.params[name] if name in self.params else PARAMETERS[name].default


class Mistake(msgspec.Struct, frozen=True):
    """One thing wrong in a policy file: where, and what was found against what was expected."""

    message: str
    path: str = ""
    line: int | None = None
    not_here: bool = False
    """It names a plugin or an action that is not installed here; another installation may have it."""
    skipped: bool = False
    """Of a warning: the plugin or action is not run."""

    def __str__(self) -> str:
        where = ", ".join(part for part in (f"line {self.line}" if self.line else "", self.path) if part)
        return f"{where}: {self.message}" if where else self.message


class PolicyError(ValueError):
    """Every mistake of one policy file at once."""

    def __init__(self, source: str, mistakes: list[Mistake]) -> None:
        self.source = source
        self.mistakes = mistakes
        super().__init__("\n".join(f"{source}: {m}" if source else str(m) for m in mistakes))

    def __reduce__(self) -> tuple[type[PolicyError], tuple[str, list[Mistake]]]:
        """A process that runs a part of a sweep sends it to the one that asked."""
        return type(self), (self.source, self.mistakes)


def found_as(value: object) -> str:
    """A value of the wrong kind, for a message."""
    match value:
        case None:
            return "nothing"
        case str():
            return f"the string {value!r}"
        case Mapping():
            return "a mapping"
        case list() | tuple():
            return "a list"
    return repr(value)
