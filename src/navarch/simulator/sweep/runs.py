"""One run of a sweep as a value that can be sent to another process: what it reads, under which policy, with which seed."""

from __future__ import annotations

import hashlib
from pathlib import Path

import msgspec
from msgspec import Struct

from navarch.installed import installed
from navarch.offline.plan import read_policy
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

    @property
    def key(self) -> str:
        """Equal for equal runs: by it a sweep that was interrupted knows what it has."""
        return hashlib.sha256(msgspec.json.encode(self)).hexdigest()[:16]

    @property
    def label(self) -> str:
        return label(policy_name(self.policy), self.parameters)


def run(spec: RunSpec) -> PolicyRun:
    """Carry it out, here."""
    registry = installed(tuple(Path(each) for each in spec.plugin_dirs))
    policy = with_parameters(read_policy(spec.policy, registry), spec.parameters, registry)
    trace = read_trace(spec.trace, spec.window)
    done = run_policy(spec.label, policy, registry, trace.jobs, read_cluster(spec.cluster), spec.seed, spec.options)
    done.left_out.update(trace.left_out)
    return done
