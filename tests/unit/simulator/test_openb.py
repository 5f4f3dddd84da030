"""The openb readers, on small lists of our own making, and the arrival protocol through the whole simulator."""

from __future__ import annotations

import json
import math
import re
import shlex
from collections import Counter
from pathlib import Path

import pytest
from click.testing import CliRunner

from navarch.cli.simulate import simulate as command
from navarch.ingest.settings import settings_for
from navarch.installed import installed
from navarch.offline.policies import read_policy
from navarch.simulator.arrivals import allocated_at, arrivals, steady_arrivals, typical_pods
from navarch.simulator.clusters import ClusterError, read_cluster
from navarch.simulator.jobs import PodSet, TraceJob
from navarch.simulator.measures import Measures
from navarch.simulator.simulate import simulate
from navarch.simulator.simulation import Simulation
from navarch.simulator.traces import TraceError, Window, read_trace

ROOT = Path(__file__).parents[3]
HEAD = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time"
PODS = f"""{HEAD}
p-0,4000,1024,1,1000,,LS,Running,100,400,100
p-1,2000,512,1,470,,BE,Running,50,60,51
p-2,8000,2048,2,1000,T4|A10,LS,Running,50,1050,51
p-3,500,256,0,0,,LS,Running,70,,
"""
NODES = """sn,cpu_milli,memory_mib,gpu,model
n-0,64000,262144,2,T4
n-1,96000,393216,4,G2
n-2,32000,131072,0,
"""


@pytest.fixture
def pods(tmp_path: Path) -> Path:
    path = tmp_path / "pods.csv"
    path.write_text(PODS)
    return path


@pytest.fixture
def nodes(tmp_path: Path) -> Path:
    path = tmp_path / "nodes.csv"
    path.write_text(NODES)
    return path


def test_pods_become_jobs_in_order_of_creation(pods: Path) -> None:
    jobs = read_trace(f"openb:{pods}").jobs
    assert [(job.name, job.submit, job.duration) for job in jobs] == [
        ("p-1", 50, 10),
        ("p-2", 50, 1000),
        ("p-3", 70, math.inf),
        ("p-0", 100, 300),
    ]
    assert [job.pods[0] for job in jobs] == [
        PodSet(cpu=2000, memory=512 << 20, gpu_milli=470),
        PodSet(cpu=8000, memory=2048 << 20, gpus=2, gpu_types=("A10", "T4")),
        PodSet(cpu=500, memory=256 << 20),
        PodSet(cpu=4000, memory=1024 << 20, gpus=1),
    ]
    inside = read_trace(f"openb:{pods}", Window(60, 80))
    assert [job.name for job in inside.jobs] == ["p-3"] and inside.outside == 3


def test_a_list_without_times_is_read(tmp_path: Path) -> None:
    path = tmp_path / "short.csv"
    path.write_text("name,cpu_milli,memory_mib,num_gpu,gpu_milli\na,1000,1024,8,1000\n")
    (job,) = read_trace(f"openb:{path}").jobs
    assert (job.submit, job.duration, job.pods[0].gpus) == (0, math.inf, 8)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("p-9,x,1024,1,1000,,,,,,", "line 6 cpu_milli: found 'x', expected a whole number of 0 or more"),
        ("p-9,1000,1024,2,500,,,,,,", "line 6 gpu_milli: found 500, expected 1000 for 2 GPUs"),
        ("p-9,1000,1024,1,0,,,,,,", "line 6 gpu_milli: found 0, expected 1 to 1000 for 1 GPUs"),
        ("p-9,1000,1024,1,1000,,,,90,80,", "line 6 deletion_time: found 80, expected a time from creation_time 90 on"),
        ("p-0,1000,1024,1,1000,,,,,,", "line 6 name: found 'p-0', which line 2 has as well"),
        (",1000,1024,1,1000,,,,,,", "line 6 name: found nothing, expected the name of a pod"),
    ],
)
def test_mistakes_name_line_and_field(pods: Path, line: str, words: str) -> None:
    pods.write_text(PODS + line + "\n")
    with pytest.raises(TraceError) as error:
        read_trace(f"openb:{pods}")
    assert words in str(error.value)


def test_unknown_columns_are_refused(pods: Path) -> None:
    pods.write_text(PODS.replace("qos", "color", 1))
    with pytest.raises(TraceError, match="line 1 column color"):
        read_trace(f"openb:{pods}")


def test_the_node_list_gives_nodes_with_their_gpu_type(nodes: Path) -> None:
    documents = [document.manifest for document in read_cluster(f"openb:{nodes}").documents]
    first, last = documents[0], documents[-1]
    assert first["metadata"]["labels"]["nvidia.com/gpu.product"] == "T4"
    assert first["status"]["allocatable"]["nvidia.com/gpu"] == "2" and first["status"]["allocatable"]["cpu"] == "64000m"
    assert "nvidia.com/gpu" not in last["status"]["allocatable"]


def test_a_wrong_node_list_names_line_and_field(nodes: Path) -> None:
    nodes.write_text(NODES.replace("64000", "many"))
    with pytest.raises(ClusterError, match="line 2 cpu_milli: found 'many'"):
        read_cluster(f"openb:{nodes}")


def jobs_of(count: int) -> list[TraceJob]:
    kinds = (PodSet(cpu=1000, gpus=1), PodSet(cpu=1000, gpu_milli=500), PodSet(cpu=1000))
    return [TraceJob(name=f"j{number:03d}", submit=0, duration=1, pods=(kinds[number % 3],)) for number in range(count)]


def test_jobs_come_shuffled_and_are_drawn_again_until_the_ratio_is_reached() -> None:
    jobs = jobs_of(30)
    come = arrivals(jobs, 20, 1.3, 42)
    first = [job.name.rpartition("-")[2] for job in come[:30]]
    assert sorted(first) == [job.name for job in jobs] and first != sorted(first)
    assert 25 < sum(job.gpus for job in come) <= 26, "the next one would have passed 26"
    assert [job.name for job in come] == sorted(job.name for job in come), "names keep the order"
    assert arrivals(list(reversed(jobs)), 20, 1.3, 42) == come != arrivals(jobs, 20, 1.3, 43)


def test_a_list_that_asks_for_more_loses_jobs() -> None:
    come = arrivals(jobs_of(300), 20, 1.3, 1)
    assert len({job.name for job in come}) == len(come) and sum(job.gpus for job in come) <= 26


def test_jobs_without_gpus_alone_come_once() -> None:
    assert len(arrivals([TraceJob(name="a", submit=0, duration=1, pods=(PodSet(cpu=1),))], 8, 1.3, 1)) == 1


def test_steady_arrivals_ask_for_the_load_on_average() -> None:
    jobs = [TraceJob(name=f"j{n}", submit=0, duration=100.0 * (n % 4), pods=(PodSet(cpu=1000, gpus=n % 3),)) for n in range(12)]
    come = list(steady_arrivals(jobs, 50, 0.9, 7, until=100_000, walltime=250))
    asked = sum(job.gpus * min(job.duration, 250) for job in come) / 100_000
    assert asked == pytest.approx(0.9 * 50, rel=0.1)
    assert [job.submit for job in come] == sorted(job.submit for job in come) and all(job.submit % 10 == 0 for job in come)
    assert come == list(steady_arrivals(jobs[::-1], 50, 0.9, 7, until=100_000, walltime=250))


def test_a_job_without_patience_leaves_unless_it_starts() -> None:
    jobs = [TraceJob(name=f"j{n}", submit=float(n // 2), duration=1.5, pods=(PodSet(gpus=1),)) for n in range(6)]
    registry = installed()
    policy = read_policy("packing", registry)
    cluster, _ = read_cluster("a=1x1gpu").build(settings_for(policy))
    measures = Measures(1)
    Simulation(cluster, policy, registry, measures, patience=0.0).run(jobs)
    assert (measures.jobs, measures.ended, measures.finished) == (6, 6, 2), "at 0 and, once that one is done, at 2"


def test_figures_are_means_over_arrivals_that_round_to_a_level() -> None:
    order = [TraceJob(name=f"j{n}", submit=0, duration=1, pods=(PodSet(gpus=1),)) for n in range(13)]
    held = {f"j{n}": 1.0 for n in range(9)}
    assert allocated_at(order, held, 10, 1.3) == {"100": 90.0, "130": 90.0}
    assert allocated_at(order, held, 10, 1.0) == {"100": 90.0, "130": None}
    assert allocated_at(order[:4], held, 3.4, 1.2) == {"100": pytest.approx(300 / 3.4), "130": None}, "3 of 3.4 GPUs, then 4"


def test_the_workload_of_a_trace_is_counted_by_kind() -> None:
    assert typical_pods(pods for job in jobs_of(6) for pods in job.pods) == [
        {"cpu": 1.0, "gpu": 0.0, "types": [], "count": 2},
        {"cpu": 1.0, "gpu": 0.5, "types": [], "count": 2},
        {"cpu": 1.0, "gpu": 1, "types": [], "count": 2},
    ]


def test_no_gpu_is_given_twice_and_halves_share_one() -> None:
    jobs = [TraceJob(name=f"j{n}", submit=0, duration=1, pods=(PodSet(cpu=1000, gpu_milli=500),)) for n in range(3)]
    result = simulate(jobs, "a=1x2gpu", ["packing"], arrivals=3.0, seeds=(1,))
    (run,) = result.runs
    assert run.measures.held() and sum(run.measures.held().values()) == 2.0, "four halves on two GPUs"
    assert len(run.waiting) == 12 - 4


def test_the_simulate_command_with_an_openb_trace_and_cluster(tmp_path: Path) -> None:
    pods, nodes = tmp_path / "pods.csv", tmp_path / "nodes.csv"
    pods.write_text("\n".join([HEAD, *(f"p-{n},100,64,1,{20 + 10 * (n % 2)},,,,,," for n in range(60))]) + "\n")
    nodes.write_text("sn,cpu_milli,memory_mib,gpu,model\nn-0,64000,262144,2,T4\n")
    arguments = ["--trace", f"openb:{pods}", "--cluster", f"openb:{nodes}", "--arrivals", "1.3", "--seeds", "42-44"]
    first = CliRunner().invoke(command, [*arguments, "--policy", "packing", "-o", "json"])
    assert first.exit_code == 0, first.output
    found = json.loads(first.stdout)["policies"]["packing"]
    assert 95 < found["gpuAllocated"]["at"]["100"] <= found["gpuAllocated"]["at"]["130"] <= 100
    again = CliRunner().invoke(command, [*arguments, "--policy", "packing", "-o", "json"])
    assert json.loads(again.stdout)["policies"]["packing"] == found
    wrong = CliRunner().invoke(command, [*arguments[:7], "42-x"])
    assert wrong.exit_code == 2 and "found '42-x', expected a whole number or a range such as 42-51" in wrong.output


def test_the_command_of_the_docs_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    (text,) = re.findall(r"```\nnavarch simulate (--trace openb:.*?)```", Path("docs/simulate.md").read_text(encoding="utf-8"), re.S)
    arguments = shlex.split(text.replace("\\\n", " ").replace("42-51", "42"))
    found = CliRunner().invoke(command, arguments)
    assert found.exit_code == 0, found.output
    at = {name: each["gpuAllocated"]["at"]["130"] for name, each in json.loads(found.stdout)["policies"].items()}
    assert at["packing"] > 90 and at["fgd"] > 90


@pytest.mark.parametrize("policy", ["packing", "bench/policies/fgd.yaml", "bench/policies/random.yaml"])
def test_no_gpu_is_used_twice_while_pods_come_and_go(policy: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    registry = installed()
    rule = read_policy(policy, registry)
    cluster, nodes = read_cluster("openb:examples/openb/nodes.csv").build(settings_for(rule))
    gpus = {node.name: dict(node.allocatable).get("nvidia.com/gpu", 0) for node in nodes}
    jobs = read_trace("openb:examples/openb/pods.csv").jobs
    come = steady_arrivals(jobs, sum(gpus.values()) / 1000, 1.2, 3, until=900, walltime=400)
    measures = Measures(sum(gpus.values()) / 1000)
    simulation = Simulation(cluster, rule, registry, measures, patience=0.0)
    for _ in simulation.steps(come, 900):
        whole: Counter[str] = Counter()
        shared: Counter[tuple[str, str]] = Counter()
        for spec in cluster.tasks.specs:
            if spec is None or not spec.node:
                continue
            whole[spec.node] += dict(spec.shape.requests).get("nvidia.com/gpu", 0)
            if spec.shape.devices is not None:
                (group,) = spec.gpu_groups
                shared[spec.node, group] += spec.shape.devices.fraction
        assert max(shared.values(), default=0) <= 1000
        for node, _ in shared:
            whole[node] += 1000
        assert all(taken <= gpus[node] for node, taken in whole.items())
    assert measures.ended > 100 and any(job.nodes for job in simulation.jobs.values())


def test_a_node_that_is_listed_twice_or_has_too_many_fields_is_named(tmp_path: Path) -> None:
    nodes = tmp_path / "nodes.csv"
    nodes.write_text("sn,cpu_milli,memory_mib,gpu,model\na,1000,1024,1,T4\na,1000,1024,1,T4\nb,1000,1024,1,T4,more\n")
    with pytest.raises(ClusterError) as caught:
        read_cluster(f"openb:{nodes}")
    said = [line.removeprefix(f"{nodes}: ") for line in str(caught.value).splitlines()]
    assert said == ["line 3 sn: found 'a', which line 2 has as well", "line 4: found 6 fields, expected 5"]
