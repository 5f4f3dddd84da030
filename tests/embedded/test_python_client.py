"""The official Python client against the embedded server: typed objects, watches, and informers that survive faults."""

from __future__ import annotations

import queue
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from kubernetes import client, config, watch
from kubernetes.client.exceptions import ApiException
from kubernetes.informer import ADDED, DELETED, SharedInformer
from tests.worlds.embedded.objects import binding, deployment, node, pod, widget, widget_definition
from tests.worlds.embedded.server import ServerThread

pytestmark = [pytest.mark.live, pytest.mark.filterwarnings("ignore::DeprecationWarning")]


@pytest.fixture
def api_client(thread: ServerThread, tmp_path: Path) -> Iterator[client.ApiClient]:
    assert thread.server is not None
    path = thread.server.kubeconfig(tmp_path / "kubeconfig")
    with config.new_client_from_config(str(path)) as made:
        yield made
        made.rest_client.pool_manager.clear()


@pytest.fixture
def core(api_client: client.ApiClient) -> client.CoreV1Api:
    return client.CoreV1Api(api_client)


def test_pods_are_typed_bound_and_deleted(core: client.CoreV1Api) -> None:
    made = core.create_namespaced_pod("default", pod("a", {"app": "x"}))
    assert made.spec.scheduler_name == "default-scheduler" and made.status.phase == "Pending"
    core.create_node(node("n1"))
    core.create_namespaced_pod_binding("a", "default", binding("a", "n1"), _preload_content=False)
    found = core.read_namespaced_pod("a", "default")
    assert found.spec.node_name == "n1" and found.status.conditions[0].type == "PodScheduled"
    with pytest.raises(ApiException) as refused:
        core.create_namespaced_pod_binding("a", "default", binding("a", "n2"), _preload_content=False)
    assert refused.value.status == 409
    at_once = client.V1DeleteOptions(grace_period_seconds=0)
    body = client.V1Eviction(metadata=client.V1ObjectMeta(name="a"), delete_options=at_once)
    core.create_namespaced_pod_eviction("a", "default", body, _preload_content=False)
    with pytest.raises(ApiException) as gone:
        core.read_namespaced_pod("a", "default")
    assert gone.value.status == 404


def test_lists_page_and_select(core: client.CoreV1Api) -> None:
    for index in range(5):
        core.create_namespaced_pod("default", pod(f"p{index}", {"odd": str(index % 2)}))
    page = core.list_namespaced_pod("default", limit=2)
    names = [item.metadata.name for item in page.items]
    while page.metadata._continue:
        page = core.list_namespaced_pod("default", limit=2, _continue=page.metadata._continue)
        names += [item.metadata.name for item in page.items]
    assert names == [f"p{index}" for index in range(5)]
    odd = core.list_pod_for_all_namespaces(label_selector="odd=1", field_selector="status.phase=Pending")
    assert [item.metadata.name for item in odd.items] == ["p1", "p3"]


def test_patches_and_scale(api_client: client.ApiClient) -> None:
    apps = client.AppsV1Api(api_client)
    apps.create_namespaced_deployment("default", deployment("web"))
    apps.patch_namespaced_deployment("web", "default", {"spec": {"replicas": 3}})
    apps.patch_namespaced_deployment_scale("web", "default", {"spec": {"replicas": 4}})
    scale = apps.read_namespaced_deployment_scale("web", "default")
    assert scale.spec.replicas == 4 and scale.status.selector == "app=web"
    stale = apps.read_namespaced_deployment("web", "default")
    apps.patch_namespaced_deployment("web", "default", [{"op": "replace", "path": "/spec/replicas", "value": 5}])
    with pytest.raises(ApiException) as refused:
        apps.replace_namespaced_deployment("web", "default", stale)
    assert refused.value.status == 409
    apps.delete_namespaced_deployment("web", "default")
    assert apps.list_namespaced_deployment("default").items == []


def test_custom_objects(api_client: client.ApiClient) -> None:
    client.ApiextensionsV1Api(api_client).create_custom_resource_definition(widget_definition())
    custom = client.CustomObjectsApi(api_client)
    place: dict[str, Any] = {"group": "example.io", "version": "v1", "namespace": "default", "plural": "widgets"}
    custom.create_namespaced_custom_object(**place, body=widget("w"))
    custom.patch_namespaced_custom_object(**place, name="w", body={"spec": {"size": 7}})
    custom.patch_namespaced_custom_object_status(**place, name="w", body={"status": {"replicas": 2}})
    found = custom.get_namespaced_custom_object(**place, name="w")
    assert found["spec"] == {"size": 7, "color": "red"} and found["status"] == {"replicas": 2}


def test_the_watch_helper_takes_up_where_it_was_cut(thread: ServerThread, core: client.CoreV1Api) -> None:
    assert thread.server is not None
    core.create_namespaced_pod("default", pod("a"))
    seen = []
    watcher = watch.Watch()
    for event in watcher.stream(core.list_namespaced_pod, "default"):
        seen.append((event["type"], event["object"].metadata.name))
        if len(seen) == 1:
            thread.run(thread.server.faults.cut_watches)
            core.create_namespaced_pod("default", pod("b"))
        elif len(seen) == 2:
            watcher.stop()
    assert seen == [("ADDED", "a"), ("ADDED", "b")]


def test_an_informer_survives_cuts_errors_and_lost_history(thread: ServerThread, core: client.CoreV1Api) -> None:
    assert thread.server is not None
    faults = thread.server.faults
    heard: queue.Queue[tuple[str, str]] = queue.Queue()
    informer = SharedInformer(core.list_namespaced_pod, namespace="default")
    informer.add_event_handler(ADDED, lambda obj: heard.put(("ADDED", obj.metadata.name)))
    informer.add_event_handler(DELETED, lambda obj: heard.put(("DELETED", obj.metadata.name)))
    core.create_namespaced_pod("default", pod("first"))
    informer.start()
    try:
        assert heard.get(timeout=120) == ("ADDED", "first")
        thread.run(faults.cut_watches)
        core.create_namespaced_pod("default", pod("after-cut"))
        assert heard.get(timeout=120) == ("ADDED", "after-cut")
        faults.errors(503, path="/pods", method="GET", times=2)
        thread.run(faults.cut_watches)
        core.create_namespaced_pod("default", pod("after-errors"))
        assert heard.get(timeout=120) == ("ADDED", "after-errors")
        core.delete_namespaced_pod("first", "default")
        assert heard.get(timeout=120) == ("DELETED", "first")
        thread.run(faults.expire_history)
        thread.run(faults.cut_watches)
        core.create_namespaced_pod("default", pod("after-expiry"))
        assert heard.get(timeout=120) == ("ADDED", "after-expiry")
        assert sorted(informer.cache.list_keys()) == ["default/after-cut", "default/after-errors", "default/after-expiry"]
    finally:
        informer._stop_event.set()
        thread.run(faults.cut_watches)
        core.create_namespaced_pod("default", pod("last"))
        informer.stop()
