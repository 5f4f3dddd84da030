"""What `navarch.simulate` accepts, and the one line that it says to anything else."""

from __future__ import annotations

from typing import Any

import pytest

import navarch
from navarch.simulator.jobs import PodSet, TraceJob

CLUSTER = "a=1x8gpu"


def job(name: str, submit: float = 0.0) -> TraceJob:
    return TraceJob(name=name, submit=submit, duration=60, pods=(PodSet(gpus=8),))


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"trace": 5}, "trace: found 5, expected KIND:FILE or jobs in order of submission"),
        ({"trace": [5]}, "trace: found 5, expected a TraceJob"),
        ({"trace": [job("late", 10), job("early")]}, "trace: found job 'early' at 0 after one at 10, expected order of submission"),
        ({"cluster": 5}, "cluster: found 5, expected a text such as h100=16x8gpu, or a ClusterSetup"),
        ({"policies": []}, "policies: found [], expected a policy or policies: presets, paths or decoded mappings"),
        ({"policies": [5]}, "policies: found [5], expected a policy or policies: presets, paths or decoded mappings"),
        ({"checkpoint": 0}, "checkpoint: found 0, expected a number, above 0"),
        ({"estimates": "guess"}, "estimates: found 'guess', expected one of walltime, exact, history"),
        ({"failures": 3}, "failures: found 3, expected NodeFailures"),
        ({"arrivals": "1"}, "arrivals: found '1', expected a number, above 0"),
        ({"seeds": 5}, "seeds: found 5, expected a list of whole numbers"),
        ({"seeds": [-1]}, "seeds: found -1, expected a whole number, at least 0"),
        ({"plugin_dirs": "no-such"}, "plugin_dirs: found 'no-such', expected a directory that exists"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_a_wrong_argument_is_named_with_what_is_expected(given: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError) as refused:
        navarch.simulate(**{"trace": [job("j")], "cluster": CLUSTER, "policies": "fifo", **given})
    assert str(refused.value) == said


def test_jobs_of_a_generator_serve_every_policy() -> None:
    found = navarch.simulate((job(name) for name in ("a", "b")), CLUSTER, ["fifo", "navarch"])
    assert [run.measures.finished for run in found.runs] == [2, 2]
