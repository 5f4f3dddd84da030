"""The cache: whatever happens, in whatever order, its figures are those of a cache made from what is there in the end."""

from __future__ import annotations

from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.worlds.live_parts.cluster_cache import SETTINGS, cache, figures, group, names, node, pod, put

from navarch.apis.core.objects import from_manifest
from navarch.apis.core.pod_objects import Pod
from navarch.apis.kube_batch import PodGroup as OldGroup
from navarch.apis.kube_batch import read_pod_group as read_old_group
from navarch.apis.upstream.podgroups import PodGroup as UpstreamGroup
from navarch.apis.upstream.podgroups import read_pod_group as read_upstream_group
from navarch.apis.volcano.podgroups import PodGroup, Queue, read_pod_group, read_queue
from navarch.engine.reasons import Event
from navarch.live.cache.assumed_pods import AssumedBind, AssumedPods
from navarch.live.cache.cluster_cache import ClusterCache
from navarch.model.spec import NamespaceSpec, ObjectSpec, PriorityClassSpec
from navarch.model.status import TaskStatus

PHASES = ("Pending", "Running", "Succeeded", "Failed")


nodes = st.sampled_from(["n1", "n2"])
changes = st.one_of(
    st.tuples(
        st.just("pod"), names, st.sampled_from(["", "n1", "n2"]), st.sampled_from(PHASES), st.sampled_from(["", "g"]),
        st.sampled_from(["1", "2"]), st.sampled_from(["navarch", "other"]),
    ),
    st.tuples(st.just("no pod"), names),
    st.tuples(st.just("node"), nodes, st.sampled_from(["4", "8"])),
    st.tuples(st.just("no node"), nodes),
    st.tuples(st.just("group"), st.integers(1, 3)),
    st.tuples(st.just("no group")),
    st.tuples(st.just("bind"), names, nodes),
    st.tuples(st.just("evict"), names),
    st.tuples(st.just("forget"), names),
)  # fmt: skip


@settings(max_examples=200, deadline=None)
@given(st.lists(changes, max_size=40))
@example([("pod", "a", "n1", "Pending", "g", "1", "other"), ("pod", "a", "", "Pending", "g", "1", "other")])
def test_any_history_ends_in_the_figures_of_its_end(history: list[tuple[Any, ...]]) -> None:
    assumed = AssumedPods()
    made, _ = cache(assumed)
    there: dict[tuple[str, str], Any] = {}
    for kind, *rest in history:
        match kind:
            case "pod":
                name, where, phase, of, cpu, scheduler = rest
                there["pod", name] = pod(name, where, phase, of, cpu, scheduler)
                put(made, there["pod", name])
            case "no pod":
                if there.pop(("pod", rest[0]), None):
                    del made.pods["default", rest[0]]
                    made.remove_pod(f"uid-{rest[0]}")
            case "node":
                there["node", rest[0]] = node(*rest)
                made.put(there["node", rest[0]])
            case "no node":
                if gone := there.pop(("node", rest[0]), None):
                    made.remove(gone)
            case "group":
                there["group", "g"] = group("g", rest[0])
                made.put(there["group", "g"])
            case "no group":
                if gone := there.pop(("group", "g"), None):
                    made.remove(gone)
            case "bind":
                task = made.cluster.task(f"uid-{rest[0]}")
                if task is not None and task.status == TaskStatus.PENDING:
                    assumed.binds[task.uid] = AssumedBind(task.uid, "default", rest[0], rest[1], task.job, 0.0)
                    made.refresh(f"uid-{rest[0]}")
            case "evict":
                task = made.cluster.task(f"uid-{rest[0]}")
                if task is not None and task.node and ("pod", rest[0]) in there:
                    assumed.evictions[task.uid] = 0.0
                    made.refresh(f"uid-{rest[0]}")
            case "forget":
                assumed.gone(f"uid-{rest[0]}")
                made.refresh(f"uid-{rest[0]}")
    fresh, _ = cache(assumed)
    for (kind, _), found in there.items():
        if kind == "pod":
            put(fresh, found)
        else:
            fresh.put(found)
    assert figures(made) == figures(fresh)


def test_new_waiting_pods_and_freed_room_are_urgent_and_our_own_bind_is_not() -> None:
    assumed = AssumedPods()
    made, heard = cache(assumed)
    put(made, pod("a"))
    assert heard.notices[-1] == (Event.POD_CHANGED, "default/pod/a", True)
    assumed.binds["uid-a"] = AssumedBind("uid-a", "default", "a", "n1", "default/pod/a", 0.0)
    made.refresh("uid-a")
    heard.notices.clear()
    put(made, pod("a", "n1"))
    assert all(not urgent for _, _, urgent in heard.notices)
    put(made, pod("a", "n1", "Succeeded"))
    assert heard.notices[-1] == (Event.POD_REMOVED, "default/pod/a", True)


def test_a_heartbeat_of_a_node_is_no_change() -> None:
    made, heard = cache()
    made.put(node("n1"))
    heard.notices.clear()
    made.put(node("n1"))
    assert heard.notices == []
    made.put(node("n1", "8"))
    assert heard.notices == [(Event.NODE_CHANGED, "", True)]


def test_a_status_that_comes_back_to_a_group_is_no_reason_to_hurry() -> None:
    made, heard = cache()
    made.put(group("g", 2))
    heard.notices.clear()
    metadata = {"name": "g", "namespace": "default", "uid": "uid-g"}
    manifest = {"metadata": metadata, "spec": {"minMember": 2}, "status": {"phase": "Running"}}
    made.put(read_pod_group(from_manifest(manifest, PodGroup), SETTINGS))
    assert heard.notices == [(Event.JOB_CHANGED, "default/g", False)]


def test_priority_classes_and_namespaces_reach_the_groups_that_are_there_already() -> None:
    made, _ = cache()
    made.put(group("g", 1, priorityClassName="high"))
    made.put(PriorityClassSpec("high", 1000))
    made.put(NamespaceSpec("default", annotations={"scheduling.volcano.sh/queue-name": "team"}))
    row = made.cluster.jobs.rows.of["default/g"]
    spec = made.cluster.jobs.specs[row]
    assert spec is not None
    assert (spec.priority, spec.queue) == (1000, "team")


def test_two_dialects_with_a_group_of_the_same_name() -> None:
    made, _ = cache()
    metadata = {"name": "g", "namespace": "default", "uid": "o"}
    old = {"apiVersion": "scheduling.sigs.dev/v1alpha2", "metadata": metadata, "spec": {"minMember": 7}}
    made.put(group("g", 2))
    made.put(read_old_group(from_manifest(old, OldGroup), SETTINGS))
    row = made.cluster.jobs.rows.of["default/g"]
    assert made.cluster.jobs.min_member[row] == 7
    made.remove(read_old_group(from_manifest(old, OldGroup), SETTINGS))
    assert made.cluster.jobs.min_member[row] == 2


def test_a_group_shown_in_another_version_after_an_upgrade_is_the_same_group() -> None:
    made, _ = cache()

    def upstream(version: str, members: int) -> Any:
        spec = {"schedulingPolicy": {"gang": {"minCount": members}}}
        manifest = {"apiVersion": f"scheduling.k8s.io/{version}", "metadata": {"name": "g", "uid": "u"}, "spec": spec}
        return read_upstream_group(from_manifest(manifest, UpstreamGroup), SETTINGS)

    made.put(upstream("v1alpha2", 2))
    made.put(upstream("v1beta1", 3))
    found = made.group("default/g")
    assert found is not None and (found.api_version, found.min_member) == ("scheduling.k8s.io/v1beta1", 3)
    made.remove(upstream("v1beta1", 3))
    assert made.groups() == []


def test_assumed_objects_outlive_a_change_of_policy() -> None:
    """A device on its way to a claim would be given away again, as if it were free, by the first cycle of a new policy."""
    made, _ = cache()
    claim = ObjectSpec("ResourceClaim", "default", "c", {"status": {}})
    allocated: dict[str, Any] = {"status": {"allocation": {"devices": {}}}}
    made.put(claim)
    made.assume_object("ResourceClaim", "default", "c", allocated, lambda value: "allocation" in value["status"])
    made.configure(SETTINGS)
    assert made.cluster.objects["ResourceClaim"]["default", "c"] == allocated
    made.put(claim)
    assert made.cluster.objects["ResourceClaim"]["default", "c"] == allocated
    assert made.api_object("ResourceClaim", "default", "c") == {"status": {}}
    made.forget_object("ResourceClaim", "default", "c")
    assert made.cluster.objects["ResourceClaim"]["default", "c"] == {"status": {}}
    made.configure(SETTINGS)
    assert made.cluster.objects == {}


def test_queues_exist_without_an_object_until_one_comes() -> None:
    made, _ = cache()
    assert sorted(made.cluster.queues) == ["default", "root"]
    queue = read_queue(from_manifest({"metadata": {"name": "default"}, "spec": {"weight": 3}}, Queue), SETTINGS)
    made.put(queue)
    assert made.cluster.queues["default"].weight == 3
    made.remove(queue)
    assert made.cluster.queues["default"].dialect == "implied"


def test_the_root_of_volcanos_tree_needs_no_object() -> None:
    made, _ = cache()
    made.configure(replace(SETTINGS, imply_queues=False))
    queue = read_queue(from_manifest({"metadata": {"name": "team"}, "spec": {}}, Queue), SETTINGS)
    made.put(queue)
    assert sorted(made.cluster.queues) == ["root", "team"]
    made.remove(queue)
    assert sorted(made.cluster.queues) == ["default", "root"], "nothing is said about queues at all"


def test_only_the_pod_that_makes_a_gang_complete_is_worth_a_cycle() -> None:
    made, heard = cache()
    put(made, pod("a", group="g"))
    made.put(group("g", 3))
    heard.notices.clear()
    put(made, pod("b", group="g"))
    put(made, pod("c", group="g"))
    assert heard.notices == [(Event.POD_CHANGED, "default/g", False), (Event.POD_CHANGED, "default/g", True)]


def test_labels_that_a_pod_gets_from_its_node_change_nothing_of_its_job() -> None:
    made, _ = cache()
    put(made, pod("a"))
    before = made.cluster.jobs.specs[made.cluster.jobs.rows.of["default/pod/a"]]
    put(made, pod("a", node="n1"))
    assert made.cluster.jobs.specs[made.cluster.jobs.rows.of["default/pod/a"]] is before
    assert made.cluster.tasks.specs[0] is not None and made.cluster.tasks.specs[0].labels


def shadow(made: ClusterCache, key: str) -> tuple[int, str, str]:
    spec = made.cluster.jobs.specs[made.cluster.jobs.rows.of[key]]
    assert spec is not None
    return spec.priority, spec.priority_class, spec.queue


def test_priority_classes_and_namespaces_reach_the_groups_made_in_memory_too() -> None:
    """Informers start together, so pods may well be learned of before the classes and namespaces that they are in."""
    labels = {"kai.scheduler/queue": "team-a", "priorityClassName": "urgent"}
    metadata = {"name": "k", "namespace": "default", "uid": "uid-k", "labels": labels}
    labelled = from_manifest({"metadata": metadata, "spec": {"schedulerName": "navarch", "containers": [{"name": "c"}]}}, Pod)
    urgent = PriorityClassSpec("urgent", 300)
    space = NamespaceSpec("default", annotations={"scheduling.volcano.sh/queue-name": "team"})
    first, _ = cache()
    last, heard = cache()
    for each in (urgent, space):
        first.put(each)
    for made in (first, last):
        put(made, pod("a"))
        put(made, labelled)
    heard.notices.clear()
    for each in (urgent, space):
        last.put(each)
    assert [shadow(last, f"default/pod/{name}") for name in "ak"] == [(0, "", "team"), (300, "urgent", "team-a")]
    assert [shadow(first, f"default/pod/{name}") for name in "ak"] == [(0, "", "team"), (300, "urgent", "team-a")]
    left = (Event.POD_REMOVED, "", False)  # its priority or its queue is another one: others may be due more
    assert heard.notices == [(Event.JOB_CHANGED, "default/pod/k", True), left, (Event.JOB_CHANGED, "default/pod/a", True), left]
    last.remove(urgent)
    last.put(NamespaceSpec("default"))
    assert [shadow(last, f"default/pod/{name}")[::2] for name in "ak"] == [(0, "default"), (50, "team-a")]
