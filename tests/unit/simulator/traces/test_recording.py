"""Recordings of a live scheduler as a trace and as a cluster."""

from __future__ import annotations

from pathlib import Path

from navarch.engine.cycle import decide
from navarch.ingest.expected_duration import EXPECTED_DURATION
from navarch.ingest.settings import settings_for
from navarch.installed import installed
from navarch.offline.inventory import Inventory
from navarch.offline.manifests import Document
from navarch.offline.policies import read_policy
from navarch.offline.replay import record
from navarch.simulator.estimates import Estimates
from navarch.simulator.simulate import simulate
from navarch.simulator.traces import read_trace
from navarch.testing.builders import Builder, node, pod, pod_group


def write(folder: Path, now: float, objects: list[Builder]) -> None:
    registry = installed(())
    policy = read_policy("fifo", registry)
    cluster = Inventory([Document(each) for each in objects], settings_for(policy)).cluster
    decided = decide(cluster.snapshot(), policy, registry, now, "c")
    recording = record(cluster.snapshot(), policy, now, "c", {}, decided)
    (folder / f"cycle-{int(now * 1000):013d}.json.gz").write_bytes(recording)


def running(name: str, started: str, created: str = "1970-01-01T00:01:40Z", phase: str = "Running") -> list[Builder]:
    member = pod(f"{name}-0").gpu(2).in_group(name).on("n1")
    member["status"] = {"phase": phase, "startTime": started}
    return [pod_group(name).created(created), member]


def test_jobs_start_and_end_as_recordings_show(tmp_path: Path) -> None:
    here = node("n1").gpu(4)
    waits = [pod_group("late").created("1970-01-01T00:03:20Z"), pod("late-0").gpu(4).in_group("late")]
    write(tmp_path, 150.0, [here, *running("first", "1970-01-01T00:02:00Z")])
    write(tmp_path, 250.0, [here, *running("first", "1970-01-01T00:02:00Z"), *waits])
    write(tmp_path, 400.0, [here, *waits])
    trace = read_trace(f"recording:{tmp_path}")
    (job,) = trace.jobs
    assert (job.submit, job.duration, job.gpus) == (100.0, 400.0 - 120.0, 2)
    assert trace.left_out == {"never started in the recordings": 1}
    (run,) = simulate(f"recording:{tmp_path}", f"recording:{tmp_path}", ["fifo"]).runs
    assert list(run.measures.completion) == [280.0]


def test_an_active_deadline_is_the_walltime_of_the_job(tmp_path: Path) -> None:
    group, member = running("first", "1970-01-01T00:02:00Z")
    member.child("spec")["activeDeadlineSeconds"] = 90
    write(tmp_path, 150.0, [node("n1").gpu(4), group, member])
    write(tmp_path, 400.0, [node("n1").gpu(4), pod("other")])
    (job,) = read_trace(f"recording:{tmp_path}").jobs
    assert job.walltime == 90.0


def test_an_expected_duration_ends_no_job(tmp_path: Path) -> None:
    group, member = running("first", "1970-01-01T00:02:00Z")
    group.child("metadata")["annotations"] = {EXPECTED_DURATION: "90s"}
    write(tmp_path, 150.0, [node("n1").gpu(4), group, member])
    write(tmp_path, 400.0, [node("n1").gpu(4), pod("other")])
    (job,) = read_trace(f"recording:{tmp_path}").jobs
    assert (job.walltime, job.expected, Estimates().expected(job)) == (None, 90.0, 90.0)
    (run,) = simulate(f"recording:{tmp_path}", f"recording:{tmp_path}", ["fifo"]).runs
    assert (run.measures.finished, run.ended_early) == (1, 0)


def test_a_job_whose_pods_are_done_has_ended_though_its_objects_stay(tmp_path: Path) -> None:
    started, other = "1970-01-01T00:02:00Z", pod("other")
    write(tmp_path, 150.0, [node("n1").gpu(4), *running("first", started)])
    write(tmp_path, 300.0, [node("n1").gpu(4), *running("first", started, phase="Succeeded"), other])
    write(tmp_path, 600.0, [node("n1").gpu(4), *running("first", started, phase="Succeeded"), other])
    (job,) = read_trace(f"recording:{tmp_path}").jobs
    assert job.duration == 300.0 - 120.0


def test_a_failed_pod_that_is_made_again_does_not_end_the_job(tmp_path: Path) -> None:
    started = "1970-01-01T00:02:00Z"
    write(tmp_path, 150.0, [node("n1").gpu(4), *running("first", started)])
    write(tmp_path, 300.0, [node("n1").gpu(4), *running("first", started, phase="Failed"), pod("other")])
    write(tmp_path, 350.0, [node("n1").gpu(4), *running("first", started, phase="Failed"), pod("first-1").gpu(2).in_group("first")])
    write(tmp_path, 600.0, [node("n1").gpu(4), pod("other")])
    (job,) = read_trace(f"recording:{tmp_path}").jobs
    assert job.duration == 600.0 - 120.0


def test_a_job_that_is_made_again_under_its_name_is_another_job(tmp_path: Path) -> None:
    write(tmp_path, 150.0, [node("n1").gpu(4), *running("first", "1970-01-01T00:02:00Z")])
    write(tmp_path, 450.0, [node("n1").gpu(4), *running("first", "1970-01-01T00:07:00Z", "1970-01-01T00:06:40Z")])
    write(tmp_path, 600.0, [node("n1").gpu(4), pod("other")])
    jobs = read_trace(f"recording:{tmp_path}").jobs
    assert [(job.submit, job.duration) for job in jobs] == [(100.0, 450.0 - 120.0), (400.0, 600.0 - 420.0)]
    assert len({job.name for job in jobs}) == 2
