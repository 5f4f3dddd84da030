"""Jobs made in memory for pods without a group."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import pytest
from msgspec.structs import replace
from tests.worlds.live_parts.cluster_cache import cache

from navarch.apis.core.objects import from_manifest
from navarch.apis.core.pod_objects import Pod
from navarch.apis.dialect import Settings
from navarch.ingest.groups import ShadowGroups, completed, is_shadow, shown_key
from navarch.ingest.pod_reader import PodReader
from navarch.model.spec import DisruptionBudgetSpec, JobSpec, NamespaceSpec, PriorityClassSpec, TaskSpec
from navarch.testing.builders import pod


def task(manifest: dict[str, Any]) -> TaskSpec:
    found = PodReader(Settings()).read(from_manifest(manifest, Pod))
    assert found is not None
    return found


def test_the_oldest_pod_speaks_whatever_the_order() -> None:
    pods = [
        task(pod("b").owned_by("Job", "j").created("2026-01-01T00:00:02Z").annotate("volcano.sh/queue-name", "late")),
        task(pod("c").owned_by("Job", "j").created("2026-01-01T00:00:01Z").annotate("volcano.sh/queue-name", "early")),
        task(pod("a").owned_by("Job", "j").created("2026-01-01T00:00:03Z")),
    ]
    last = set()
    for order in permutations(pods):
        groups = ShadowGroups(Settings(), {})
        changes = [groups.put(each, each.annotations.get("volcano.sh/queue-name", "")) for each in order]
        job = [change for change in changes if change is not None][-1]
        last.add((job.key, job.queue, job.created, job.min_member, job.shadow))
    assert last == {("default/job/j", "early", 1767225601.0, 1, True)}


def test_a_job_follows_its_pods() -> None:
    groups = ShadowGroups(Settings(), {})
    first = task(pod("a").owned_by("Job", "j").created("2026-01-01T00:00:01Z"))
    second = task(pod("b").owned_by("Job", "j").created("2026-01-01T00:00:02Z").priority(5))
    assert groups.put(first) is not None
    assert groups.put(second) is None, "a younger pod changes nothing"
    assert groups.put(first) is None, "the same pod again changes nothing"
    changed, gone = groups.remove(first.job, first.uid)
    assert changed is not None and changed.priority == 5 and not gone
    assert groups.remove(first.job, second.uid) == (None, True)


def test_where_a_group_is_required_a_budget_makes_the_job_and_its_end_unmakes_it() -> None:
    made, _ = cache(settings=Settings(shadow_groups=False))
    owned = from_manifest(pod("b").owned_by("StatefulSet", "db", "u"), Pod)
    made.put_pod(owned)
    jobs, key = made.cluster.jobs, "default/statefulset/db"
    assert jobs.specs[jobs.rows.of[key]] is None
    budget = DisruptionBudgetSpec("default", "p", None, 0, min_available=2, owner=("StatefulSet", "db", "u"))
    made.put(budget)
    spec = jobs.specs[jobs.rows.of[key]]
    assert spec is not None and spec.min_member == 2
    made.put(replace(budget, owner=("StatefulSet", "elsewhere", "w")))
    assert jobs.specs[jobs.rows.of[key]] is None
    made.put(budget)
    made.remove(budget)
    assert jobs.specs[jobs.rows.of[key]] is None, "as before it came"


def test_minimum_from_annotation_or_a_budget_of_the_same_controller() -> None:
    groups = ShadowGroups(Settings(), {})
    annotated = groups.put(task(pod("a").annotate("scheduling.k8s.io/group-min-member", "3")))
    assert annotated is not None and annotated.min_member == 3
    owned = task(pod("b").owned_by("StatefulSet", "db", "u"))
    groups.put(owned)
    budget = DisruptionBudgetSpec("default", "p", None, 0, min_available=2, owner=("StatefulSet", "db", "u"))
    assert [(job.key, job.min_member) for job in groups.put_budget(budget)] == [(owned.job, 2)]
    assert groups.put_budget(budget) == []
    assert [job.min_member for job in groups.remove_budget("default", "p")] == [1]


def test_what_a_cycle_decided_about_a_job_is_kept() -> None:
    groups = ShadowGroups(Settings(), {})
    first = task(pod("a"))
    groups.put(first)
    decided = JobSpec(first.job, "default", phase="Inqueue", last_started=1.0, last_evicted=2.0, stale_since=3.0)
    settled = groups.settle(first.job, decided)
    assert settled is not None
    assert (settled.phase, settled.last_started, settled.last_evicted, settled.stale_since) == ("Inqueue", 1.0, 2.0, 3.0)
    assert groups.settle(first.job, decided) is None


@pytest.mark.parametrize(
    ("wanted", "settings", "annotation", "queue"),
    [
        ("", Settings(), None, "default"),
        ("mine", Settings(), "theirs", "mine"),
        ("default", Settings(), "theirs", "theirs"),
        ("", Settings(namespace_as_queue=True), None, "prod"),
        ("mine", Settings(namespace_as_queue=True), None, "mine"),
        ("", Settings(default_queue="other"), None, "other"),
    ],
)
def test_the_queue_of_a_job(wanted: str, settings: Settings, annotation: str | None, queue: str) -> None:
    annotations = {"scheduling.volcano.sh/queue-name": annotation} if annotation else {}
    namespaces = {"prod": NamespaceSpec("prod", annotations=annotations)}
    classes = {"high": PriorityClassSpec("high", 9), "usual": PriorityClassSpec("usual", 3, global_default=True)}
    job = completed(JobSpec("prod/g", wanted, namespace="prod", priority_class="high"), settings, namespaces, classes)
    assert (job.queue, job.priority) == (queue, 9)
    assert completed(JobSpec("prod/g", "q", namespace="prod"), settings, namespaces, classes).priority == 3


def test_keys_of_jobs_in_memory_are_told_apart() -> None:
    assert is_shadow("ns/pod/a") and not is_shadow("ns/a")
    assert shown_key("ns/replicaset/web") == "ns/web" and shown_key("ns/g") == "ns/g"
    assert shown_key("") == "", "an eviction for no job"
