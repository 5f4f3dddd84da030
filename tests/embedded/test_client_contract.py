"""What clients rely on, point by point (spec, appendix F), on the embedded and on a real API server.

Points 4 and 11 need a history that can be made to expire and a garbage collector: `test_faults` and `test_lifecycle`;
17 is `test_kubectl`.
"""

from __future__ import annotations

import itertools
import threading
from typing import Any

import pytest
from tests.embedded.conftest import fresh_name
from tests.worlds.embedded.objects import binding, config_map, deployment, pod
from tests.worlds.embedded.server import Http

pytestmark = pytest.mark.live
Manifest = dict[str, Any]
INITIAL_EVENTS_END = "k8s.io/initial-events-end"


def pods_of(namespace: str) -> str:
    return f"/api/v1/namespaces/{namespace}/pods"


def maps_of(namespace: str) -> str:
    return f"/api/v1/namespaces/{namespace}/configmaps"


def take(events: Any, count: int) -> list[Manifest]:
    return list(itertools.islice(events, count))


def told(events: list[Manifest]) -> list[tuple[str, str]]:
    return [(event["type"], event["object"]["metadata"].get("name", "")) for event in events]


def revision(obj: Manifest) -> int:
    return int(obj["metadata"]["resourceVersion"])


def another(api: Http) -> Http:
    return Http(api.url, api.token, api.ca_pem, api.kubeconfig)


def test_1_a_watch_from_a_lists_revision_misses_and_repeats_nothing(api: Http, namespace: str) -> None:
    writers = [another(api) for _ in range(3)]

    def write(writer: Http, number: int) -> None:
        for index in range(15):
            assert writer.post(maps_of(namespace), config_map(f"m-{number}-{index}")).code == 201
        writer.close()

    threads = [threading.Thread(target=write, args=(writer, number)) for number, writer in enumerate(writers)]
    for thread in threads:
        thread.start()
    listed = api.get(maps_of(namespace)).body
    names = [item["metadata"]["name"] for item in listed["items"] if item["metadata"]["name"].startswith("m-")]
    with api.watch(maps_of(namespace), resourceVersion=revision(listed)) as events:
        while len(names) < 45:
            event = next(events)
            assert event["type"] == "ADDED"
            if event["object"]["metadata"]["name"].startswith("m-"):
                names.append(event["object"]["metadata"]["name"])
    for thread in threads:
        thread.join()
    assert len(set(names)) == len(names) == 45


def test_2_entering_and_leaving_a_selector(api: Http, namespace: str) -> None:
    path = maps_of(namespace)
    since = revision(api.post(path, config_map("a")).body)
    api.patch(f"{path}/a", {"metadata": {"labels": {"color": "red"}}})
    api.patch(f"{path}/a", {"data": {"x": "1"}})
    left = api.patch(f"{path}/a", {"metadata": {"labels": {"color": "blue"}}}).body
    with api.watch(path, resourceVersion=since, labelSelector="color=red") as events:
        seen = take(events, 3)
    assert [event["type"] for event in seen] == ["ADDED", "MODIFIED", "DELETED"]
    assert seen[2]["object"]["metadata"]["labels"] == {"color": "red"}
    assert revision(seen[2]["object"]) == revision(left)


def test_2_field_selectors_follow_the_node_of_a_pod(api: Http, namespace: str) -> None:
    path = pods_of(namespace)
    since = revision(api.post(path, pod("a")).body)
    with (
        api.watch(path, resourceVersion=since, fieldSelector="spec.nodeName=") as pending,
        api.watch(path, resourceVersion=since, fieldSelector="spec.nodeName=n1") as placed,
    ):
        assert api.post(f"{path}/a/binding", binding("a", "n1")).code == 201
        assert told(take(pending, 1)) == [("DELETED", "a")]
        assert told(take(placed, 1)) == [("ADDED", "a")]


def test_3_revisions_are_ordered_over_all_kinds(api: Http, namespace: str) -> None:
    written = [
        api.post(maps_of(namespace), config_map("a")).body,
        api.post(pods_of(namespace), pod("a")).body,
        api.patch(f"{maps_of(namespace)}/a", {"data": {"b": "2"}}).body,
        api.post(f"/apis/apps/v1/namespaces/{namespace}/deployments", deployment("d")).body,
    ]
    revisions = [revision(obj) for obj in written]
    assert revisions == sorted(set(revisions))
    assert revision(api.get(pods_of(namespace)).body) >= revisions[-1]


def test_5_a_watch_list_ends_with_one_bookmark_even_when_empty(api: Http, namespace: str) -> None:
    query = {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan", "allowWatchBookmarks": "true"}
    with api.watch(pods_of(namespace), **query) as events:
        [bookmark] = take(events, 1)
        assert bookmark["type"] == "BOOKMARK" and bookmark["object"]["kind"] == "Pod"
        assert bookmark["object"]["metadata"]["annotations"] == {INITIAL_EVENTS_END: "true"}
        assert revision(bookmark["object"]) > 0
        api.post(pods_of(namespace), pod("later"))
        assert told(take(events, 1)) == [("ADDED", "later")]
    with api.watch(pods_of(namespace), **query) as events:
        seen = take(events, 2)
    assert [event["type"] for event in seen] == ["ADDED", "BOOKMARK"]


def test_6_a_stale_update_is_a_conflict(api: Http, namespace: str) -> None:
    path = maps_of(namespace)
    old = api.post(path, config_map("a")).body
    api.patch(f"{path}/a", {"data": {"b": "2"}})
    refused = api.put(f"{path}/a", {**old, "data": {"c": "3"}})
    assert (refused.code, refused.reason) == (409, "Conflict")
    assert "the object has been modified; please apply your changes to the latest version and try again" in refused.message
    unconditional = api.put(f"{path}/a", config_map("a", {"d": "4"}))
    assert unconditional.code == 200 and unconditional.body["data"] == {"d": "4"}
    same = api.put(f"{path}/a", unconditional.body)
    assert revision(same.body) == revision(unconditional.body)


def test_6_of_many_binds_one_wins(api: Http, namespace: str) -> None:
    path = pods_of(namespace)
    api.post(path, pod("a"))
    answers: list[tuple[int, str]] = []

    def bind(number: int) -> None:
        client = another(api)
        answers.append((client.post(f"{path}/a/binding", binding("a", f"n{number}")).code, f"n{number}"))
        client.close()

    threads = [threading.Thread(target=bind, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(code for code, _ in answers) == [201] + [409] * 7
    winner = next(name for code, name in answers if code == 201)
    assert api.get(f"{path}/a").body["spec"]["nodeName"] == winner


def test_7_a_binding_schedules_and_clears_the_nomination_in_one_revision(api: Http, namespace: str) -> None:
    path = pods_of(namespace)
    api.post(path, pod("a"))
    nominated = api.patch(f"{path}/a/status", {"status": {"nominatedNodeName": "n0"}}, "strategic-merge-patch+json").body
    with api.watch(path, resourceVersion=revision(nominated)) as events:
        api.post(f"{path}/a/binding", {**binding("a", "n1"), "metadata": {"name": "a", "annotations": {"x": "y"}}})
        [event] = take(events, 1)
    bound = event["object"]
    assert event["type"] == "MODIFIED" and bound["spec"]["nodeName"] == "n1"
    assert "nominatedNodeName" not in bound["status"] and bound["metadata"]["annotations"] == {"x": "y"}
    assert [(each["type"], each["status"]) for each in bound["status"]["conditions"]] == [("PodScheduled", "True")]


def test_8_conditions_merge_by_type_and_can_be_deleted(api: Http, namespace: str) -> None:
    path = f"{pods_of(namespace)}/a/status"
    api.post(pods_of(namespace), pod("a"))
    for kind in ("A", "B"):
        condition = {"type": kind, "status": "False", "reason": "R"}
        api.patch(path, {"status": {"conditions": [condition]}}, "strategic-merge-patch+json")
    patch = {"status": {"conditions": [{"type": "A", "status": "True"}, {"type": "B", "$patch": "delete"}]}}
    found = api.patch(path, patch, "strategic-merge-patch+json").body
    assert [(each["type"], each["status"], each["reason"]) for each in found["status"]["conditions"]] == [("A", "True", "R")]


def test_9_a_pod_on_a_node_is_deleted_in_two_steps(api: Http, namespace: str) -> None:
    path = pods_of(namespace)
    api.post(path, pod("a"))
    since = revision(api.get(path).body)
    api.post(f"{path}/a/binding", binding("a", "n1"))
    with api.watch(path, resourceVersion=since) as events:
        deleted = api.delete(f"{path}/a", {"gracePeriodSeconds": 7}).body
        assert deleted["metadata"]["deletionGracePeriodSeconds"] == 7
        api.delete(f"{path}/a", {"gracePeriodSeconds": 0})
        seen: list[Manifest] = []
        while not seen or seen[-1]["type"] != "DELETED":
            seen.append(next(events))
    marked = [event for event in seen if event["object"]["metadata"].get("deletionTimestamp")]
    assert marked[0]["type"] == "MODIFIED" and seen[-1]["type"] == "DELETED"
    revisions = [revision(event["object"]) for event in seen]
    assert revisions == sorted(set(revisions))


def test_9_a_pod_without_a_node_goes_at_once(api: Http, namespace: str) -> None:
    path = pods_of(namespace)
    api.post(path, pod("a"))
    assert api.delete(f"{path}/a").code == 200
    assert api.get(f"{path}/a").code == 404


def test_10_the_last_finalizer_deletes(api: Http, namespace: str) -> None:
    path = maps_of(namespace)
    made = api.post(path, config_map("a", finalizers=["example.io/hold"])).body
    wrong = api.delete(f"{path}/a", {"preconditions": {"uid": "00000000-0000-0000-0000-000000000000"}})
    assert (wrong.code, wrong.reason) == (409, "Conflict")
    held = api.delete(f"{path}/a", {"preconditions": {"uid": made["metadata"]["uid"]}})
    assert held.code == 200 and held.body["metadata"]["deletionTimestamp"]
    assert api.get(f"{path}/a").code == 200
    assert api.patch(f"{path}/a", {"metadata": {"finalizers": []}}).code == 200
    assert api.get(f"{path}/a").code == 404


def test_12_generated_names_are_all_different(api: Http, namespace: str) -> None:
    body = {"metadata": {"generateName": "many-"}, "data": {}}
    names = {api.post(maps_of(namespace), body).body["metadata"]["name"] for _ in range(60)}
    assert len(names) == 60 and all(name.startswith("many-") and len(name) == 10 for name in names)


def test_13_a_dry_run_leaves_no_trace(api: Http, namespace: str) -> None:
    path = maps_of(namespace)
    kept = api.post(path, config_map("kept")).body
    tried = api.post(path, config_map("tried"), dryRun="All")
    assert tried.code == 201 and tried.body["metadata"]["uid"]
    assert api.patch(f"{path}/kept", {"data": {"z": "1"}}, dryRun="All").body["data"] == {"a": "1", "z": "1"}
    assert api.delete(f"{path}/kept", dryRun="All").code == 200
    after = api.post(path, config_map("after")).body
    assert api.get(f"{path}/tried").code == 404
    assert api.get(f"{path}/kept").body["metadata"]["resourceVersion"] == kept["metadata"]["resourceVersion"]
    with api.watch(path, resourceVersion=revision(kept)) as events:
        assert told(take(events, 1)) == [("ADDED", after["metadata"]["name"])]


def test_14_nothing_new_in_a_namespace_that_ends(api: Http) -> None:
    name = fresh_name("ending")
    api.post("/api/v1/namespaces", {"metadata": {"name": name}})
    api.post(maps_of(name), config_map("held", finalizers=["example.io/hold"]))
    ending = api.delete(f"/api/v1/namespaces/{name}").body
    assert ending["status"]["phase"] == "Terminating"
    refused = api.post(maps_of(name), config_map("late"))
    assert (refused.code, refused.reason) == (403, "Forbidden")
    assert "because it is being terminated" in refused.message
    assert refused.body["details"]["causes"][0]["reason"] == "NamespaceTerminating"
    api.patch(f"{maps_of(name)}/held", {"metadata": {"finalizers": None}})


def test_15_lists_come_in_pages_of_one_moment(api: Http, namespace: str) -> None:
    path = maps_of(namespace)
    for index in range(7):
        api.post(path, config_map(f"m-{index}"), fieldManager="x")
    query = {"limit": 3, "fieldSelector": "metadata.name!=kube-root-ca.crt"}
    first = api.get(path, limit=3).body
    total = 7 if first["metadata"].get("remainingItemCount") == 4 else 8
    assert first["metadata"]["remainingItemCount"] == total - 3
    api.delete(f"{path}/m-5")
    api.post(path, config_map("m-3b"))
    seen = [item["metadata"]["name"] for item in first["items"]]
    token = first["metadata"]["continue"]
    while token:
        page = api.get(path, limit=3, **{"continue": token}).body
        assert page["metadata"]["resourceVersion"] == first["metadata"]["resourceVersion"]
        seen += [item["metadata"]["name"] for item in page["items"]]
        token = page["metadata"].get("continue", "")
    assert [name for name in seen if name.startswith("m-")] == [f"m-{index}" for index in range(7)]
    assert "remainingItemCount" not in api.get(path, **query).body["metadata"]
    exact = api.get(path, resourceVersion=first["metadata"]["resourceVersion"], resourceVersionMatch="Exact").body
    assert "m-5" in [item["metadata"]["name"] for item in exact["items"]]


def test_16_of_two_electors_one_holds_the_lease(api: Http, namespace: str) -> None:
    path = f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases"
    spec = {"holderIdentity": "", "leaseDurationSeconds": 15, "renewTime": "2026-01-02T03:04:05.678901Z"}
    lease = api.post(path, {"metadata": {"name": "l"}, "spec": spec}).body
    assert lease["spec"]["renewTime"] == "2026-01-02T03:04:05.678901Z"
    tries = [{**lease, "spec": {**spec, "holderIdentity": holder}} for holder in ("one", "two")]
    assert [api.put(f"{path}/l", each).code for each in tries] == [200, 409]
    assert api.get(f"{path}/l").body["spec"]["holderIdentity"] == "one"


def test_updates_keep_generation_and_status_apart(api: Http, namespace: str) -> None:
    path = f"/apis/apps/v1/namespaces/{namespace}/deployments"
    made = api.post(path, {**deployment("d"), "status": {"replicas": 9}}).body
    assert made["metadata"]["generation"] == 1 and "replicas" not in made["status"]
    status = api.patch(f"{path}/d/status", {"status": {"replicas": 2}, "spec": {"replicas": 9}}).body
    assert (status["metadata"]["generation"], status["spec"]["replicas"], status["status"]["replicas"]) == (1, 2, 2)
    labelled = api.patch(f"{path}/d", {"metadata": {"labels": {"a": "b"}}}).body
    assert labelled["metadata"]["generation"] == 1
    changed = api.patch(f"{path}/d", {"spec": {"replicas": 3}, "status": {"replicas": 9}}).body
    assert (changed["metadata"]["generation"], changed["status"]["replicas"]) == (2, 2)


def test_a_watch_ends_when_its_time_is_up(api: Http, namespace: str) -> None:
    with api.watch(maps_of(namespace), timeoutSeconds=1, resourceVersion=revision(api.get(maps_of(namespace)).body)) as events:
        assert [event for event in events if event["object"]["metadata"].get("name") == "none"] == []


def test_deleting_a_collection_by_selector(api: Http, namespace: str) -> None:
    path = maps_of(namespace)
    for name, color in (("a", "red"), ("b", "blue"), ("c", "red")):
        api.post(path, config_map(name, labels={"color": color}))
    assert api.delete(path, labelSelector="color=red").code == 200
    left = [item["metadata"]["name"] for item in api.get(path, labelSelector="color").body["items"]]
    assert left == ["b"]
