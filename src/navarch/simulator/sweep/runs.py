"""One run of a sweep as a value that can be sent to another process: what it reads, under which policy, with which seed."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from navarch.engine.policy import Policy
from navarch.engine.registry import Registry
from navarch.installed import installed
from navarch.offline.policies import read_policy
from navarch.simulator.clusters import read_cluster
from navarch.simulator.simulate import PolicyRun, RunOptions, policy_name, run_policy
from navarch.simulator.sweep.parameters import Parameters, label, with_parameters
from navarch.simulator.traces import Window, read_trace


class RunSpec(Struct, frozen=True):
    """Everything that decides the outcome of a run."""

    trace: str
    cluster: str
    policy: str
    parameters: Parameters = ()
    seed: int | None = None
    window: Window = Window()
    options: RunOptions = RunOptions()
    plugin_dirs: tuple[str, ...] = ()
    name: str = ""
    """Of the policy, where another one of the sweep has a file of the same name."""

    @property
    def key(self) -> str:
        """Equal for equal runs: by it a sweep that was interrupted knows what it has. The contents of the files that the run reads are
        part of it, so a policy that was edited is run again."""
        read = [_contents(each.partition(":")[2] or each) for each in (self.trace, self.cluster, self.policy)]
        read += map(_contents, self.plugin_dirs)
        return hashlib.sha256(msgspec.json.encode((replace(self, name=""), read))).hexdigest()[:16]

    @property
    def label(self) -> str:
        return label(self.name or policy_name(self.policy), self.parameters)


def _contents(name: str) -> str:
    """A digest of a file, or of all files in a folder; empty for a name that is neither."""
    path = Path(name)
    files = sorted(each for each in path.rglob("*") if each.is_file()) if path.is_dir() else [path] if path.is_file() else []
    return " ".join(_digest(str(each), (stat := each.stat()).st_size, stat.st_mtime_ns) for each in files)


@lru_cache(maxsize=4096)
def _digest(name: str, size: int, changed: int) -> str:
    """Of one file, read once while its size and time of change stay."""
    with Path(name).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def policy_of(spec: RunSpec, registry: Registry) -> Policy:
    """Its policy with its parameters. Raises `PolicyError`."""
    return with_parameters(read_policy(spec.policy, registry), spec.parameters, registry)


def check(specs: Iterable[RunSpec]) -> None:
    """Read every policy of a sweep with every parameter, so that a mistake in the last one is told before the first run."""
    registry: Registry | None = None
    for spec in {(each.policy, each.parameters): each for each in specs}.values():
        registry = registry or installed(tuple(Path(each) for each in spec.plugin_dirs))
        policy_of(spec, registry)


def run(spec: RunSpec) -> PolicyRun:
    """Carry it out, here."""
    registry = installed(tuple(Path(each) for each in spec.plugin_dirs))
    policy = policy_of(spec, registry)
    trace = read_trace(spec.trace, spec.window)
    done = run_policy(spec.label, policy, registry, trace.jobs, read_cluster(spec.cluster), spec.seed, spec.options)
    done.left_out.update(trace.left_out)
    done.outside = trace.outside
    return done
