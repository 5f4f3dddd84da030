"""How a hollow pod behaves, read from its annotations: how long it takes to start, runs, and takes to stop; how it ends.

| annotation | meaning | without it |
|---|---|---|
| `navarch.io/run-for` | `30s`, `1h30m`, or a span `10s-1m`, a time of it for each pod | of a Job: a default; else for ever |
| `navarch.io/exit-code` | what its containers end with | 0 |
| `navarch.io/failure-rate` | 0 to 1: the part of pods that end with 1 instead | 0 |
| `navarch.io/start-after` | from admission to Running | a default |
| `navarch.io/stop-after` | from deletion to gone, within its grace period | a default |

A container whose whole command is `sleep N` is taken at its word where no annotation says otherwise.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeVar

from navarch.embedded.timers import parse_duration
from navarch.object_types import Manifest

T = TypeVar("T")
PREFIX = "navarch.io/"
RUN_FOR, EXIT_CODE, FAILURE_RATE = PREFIX + "run-for", PREFIX + "exit-code", PREFIX + "failure-rate"
START_AFTER, STOP_AFTER = PREFIX + "start-after", PREFIX + "stop-after"


@dataclass(frozen=True)
class KubeletOptions:
    """Seconds where it is time; they pass `speed` times faster."""

    start_after: float = 0.0
    stop_after: float = 0.0
    job_run_for: float = 10.0
    """How long a pod of a Job runs if nothing says how long."""
    seed: int = 0
    events: bool = True


@dataclass(frozen=True)
class PodBehaviour:
    """What one pod will do. `run_for` None: it runs until it is deleted."""

    start_after: float
    stop_after: float
    run_for: float | None
    exit_code: int
    mistakes: tuple[str, ...] = ()
    """Annotations that could not be read. Defaults replace them."""


def behaviour_of(pod: Manifest, options: KubeletOptions, run: int = 0) -> PodBehaviour:
    """The behaviour of a pod in its `run`-th life (restarts of its containers count)."""
    metadata = pod["metadata"]
    annotations: Mapping[str, str] = metadata.get("annotations") or {}
    chance = random.Random(f"{options.seed}/{metadata.get('namespace')}/{metadata['name']}/{run}")
    mistakes: list[str] = []

    def read(key: str, parse: Callable[[str], T], otherwise: T) -> T:
        text = annotations.get(key)
        if text is None:
            return otherwise
        try:
            return parse(text)
        except ValueError as error:
            mistakes.append(f"metadata.annotations[{key}]: {error}")
            return otherwise

    def span(text: str) -> float | None:
        low, dash, high = text.partition("-")
        if not dash:
            return parse_duration(text)
        return chance.uniform(parse_duration(low), parse_duration(high))

    start_after = read(START_AFTER, parse_duration, options.start_after)
    stop_after = read(STOP_AFTER, parse_duration, options.stop_after)
    run_for = read(RUN_FOR, span, _usual_run(pod, options))
    exit_code = read(EXIT_CODE, _exit_code, 0)
    rate = read(FAILURE_RATE, _rate, 0.0)
    if rate and chance.random() < rate:
        exit_code = exit_code or 1
    return PodBehaviour(start_after, stop_after, run_for, exit_code, tuple(mistakes))


def _exit_code(text: str) -> int:
    if not text.isdecimal() or int(text) > 255:
        raise ValueError(f"found {text!r}, expected a number from 0 to 255")
    return int(text)


def _rate(text: str) -> float:
    try:
        rate = float(text)
    except ValueError:
        rate = -1.0
    if not 0.0 <= rate <= 1.0:
        raise ValueError(f"found {text!r}, expected a number from 0 to 1")
    return rate


def _usual_run(pod: Manifest, options: KubeletOptions) -> float | None:
    sleeps = [_sleep(container) for container in pod["spec"].get("containers") or ()]
    told = [each for each in sleeps if each is not None]
    if told and len(told) == len(sleeps):
        return max(told)
    owners = pod["metadata"].get("ownerReferences") or ()
    if any(owner.get("controller") and owner.get("kind") == "Job" for owner in owners):
        return options.job_run_for
    return None


def _sleep(container: Manifest) -> float | None:
    words = [*(container.get("command") or ()), *(container.get("args") or ())]
    if len(words) == 3 and words[0].rpartition("/")[2] in ("sh", "bash") and words[1] == "-c":
        words = words[2].split()
    if len(words) != 2 or words[0].rpartition("/")[2] != "sleep":
        return None
    try:
        return parse_duration(words[1])
    except ValueError:
        return None
