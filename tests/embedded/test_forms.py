"""Pure parts: normal form, selectors, patches, protobuf bodies, field sets, columns."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from navarch.embedded.api.errors import ApiError
from navarch.embedded.api.input.bodies import accepted
from navarch.embedded.api.input.protobuf import MAGIC, decode_object
from navarch.embedded.api.kinds.normalise import Mistyped, Normaliser
from navarch.embedded.api.kinds.registry import Registry
from navarch.embedded.api.kinds.types import shape_of
from navarch.embedded.api.output.columns import human_duration
from navarch.embedded.api.patches.field_sets import compare, difference, intersection, paths, set_of, union
from navarch.embedded.api.patches.json_patch import apply_json_patch, merge
from navarch.embedded.api.patches.strategic_merge import strategic_merge
from navarch.embedded.api.selectors import match_record, object_selector, parse_labels
from navarch.embedded.api.targets import resolve
from navarch.embedded.storage.record import Record
from navarch.embedded.storage.store import Store

POD = shape_of("core.v1.Pod")


def normal(obj: dict[str, Any], kind: str = "core.v1.Pod") -> dict[str, Any]:
    return Normaliser().struct(obj, shape_of(kind), "")


def test_normal_form_drops_what_go_would_drop() -> None:
    given_pod = {
        "metadata": {"name": "a", "labels": {}, "creationTimestamp": None},
        "spec": {"nodeName": "", "tolerations": [], "containers": [{"name": "c", "resources": {"limits": {"cpu": "1000m"}}}]},
    }
    assert normal(given_pod) == {
        "metadata": {"name": "a"},
        "spec": {"containers": [{"name": "c", "resources": {"limits": {"cpu": "1"}}}]},
        "status": {},
    }


def test_an_empty_storage_class_is_kept_because_it_means_something() -> None:
    claim = normal({"spec": {"storageClassName": "", "volumeName": ""}}, "core.v1.PersistentVolumeClaim")
    assert claim["spec"]["storageClassName"] == "" and "volumeName" not in claim["spec"]


def test_times_come_back_in_utc() -> None:
    lease = {"spec": {"renewTime": "2026-01-01T02:00:00.5+02:00"}}
    assert normal(lease, "coordination.v1.Lease")["spec"]["renewTime"] == "2026-01-01T00:00:00.500000Z"


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ({"containers": 1}, "cannot unmarshal number into Go struct field PodSpec.spec.containers of type []"),
        ({"priority": 1.5}, "cannot unmarshal number 1.5 into Go struct field PodSpec.spec.priority of type int32"),
        ({"priority": 2**40}, "of type int32"),
        ({"hostNetwork": "yes"}, "cannot unmarshal string into Go struct field PodSpec.spec.hostNetwork of type bool"),
    ],
)
def test_wrong_types_are_named(spec: Any, said: str) -> None:
    with pytest.raises(Mistyped) as refused:
        normal({"spec": spec})
    assert said in str(refused.value)


@pytest.mark.parametrize(
    ("text", "labels", "holds"),
    [
        ("a=b", {"a": "b"}, True),
        ("a==b,c!=d", {"a": "b"}, True),
        ("a in (x, y)", {"a": "y"}, True),
        ("a notin (x)", {}, True),
        ("a", {}, False),
        ("!a", {}, True),
        ("a>1", {"a": "2"}, True),
        ("a<1", {"a": "x"}, False),
        ("example.io/a=", {"example.io/a": ""}, True),
        ("in in (in)", {"in": "in"}, True),
    ],
)
def test_a_label_selector_matches_as_kube_apiserver_reads_it(text: str, labels: dict[str, str], holds: bool) -> None:
    test = parse_labels(text)
    assert test is not None and test(labels) is holds


@pytest.mark.parametrize("text", ["a in", "a in (", "=b", "a=b,", "a b", "a in (b", "a>x", "-a=b", "a=b c", "!", "a in b"])
def test_label_selectors_that_make_no_sense(text: str) -> None:
    with pytest.raises(ApiError) as refused:
        parse_labels(text)
    assert refused.value.code == 400


def test_a_selector_object_matches_all_of_its_terms() -> None:
    expressions = [{"key": "a", "operator": "In", "values": ["1"]}, {"key": "b", "operator": "DoesNotExist"}]
    test = object_selector({"matchLabels": {"c": "3"}, "matchExpressions": expressions})
    assert test({"a": "1", "c": "3"}) and not test({"a": "1", "b": "", "c": "3"})
    assert not object_selector(None)({}) and object_selector({})({})


def test_field_selectors_read_the_index() -> None:
    record = Record("pods", {"metadata": {"name": "a", "namespace": "n"}}, 1, ("node-1",))
    matches = match_record("", "metadata.namespace=n,spec.nodeName!=node-2", ("spec.nodeName",))
    assert matches is not None and matches(record)


def test_paths_that_lead_nowhere() -> None:
    registry = Registry()
    for path in ("/api/v1/pods/a", "/api/v1/namespaces/x/nodes", "/apis/apps/v2/deployments", "/api/v1/namespaces/x/pods/a/zz"):
        with pytest.raises(ApiError, match="could not find the requested resource"):
            resolve(path, registry)
    target = resolve("/api/v1/namespaces/x/status", registry)
    assert (target.kind.kind, target.name, target.subresource) == ("Namespace", "x", "status")


def test_strategic_merge_follows_the_fields_declarations() -> None:
    pod: dict[str, Any] = {
        "metadata": {"finalizers": ["a", "b"]},
        "spec": {"containers": [{"name": "a", "image": "1"}, {"name": "b", "image": "1"}], "tolerations": [{"key": "x"}]},
    }
    before = copy.deepcopy(pod)
    patch: dict[str, Any] = {
        "metadata": {"$deleteFromPrimitiveList/finalizers": ["a"], "finalizers": ["c"]},
        "spec": {
            "containers": [{"name": "b", "image": "2"}, {"name": "c", "image": "3"}, {"name": "a", "$patch": "delete"}],
            "tolerations": [{"key": "y"}],
        },
    }
    assert strategic_merge(pod, patch, POD) == {
        "metadata": {"finalizers": ["c", "b"]},
        "spec": {"containers": [{"name": "b", "image": "2"}, {"name": "c", "image": "3"}], "tolerations": [{"key": "y"}]},
    }
    assert pod == before
    volume = {"spec": {"volumes": [{"name": "v", "emptyDir": {}}]}}
    swap = {"spec": {"volumes": [{"name": "v", "$retainKeys": ["name", "hostPath"], "hostPath": {"path": "/"}}]}}
    assert strategic_merge(volume, swap, POD) == {"spec": {"volumes": [{"name": "v", "hostPath": {"path": "/"}}]}}


def test_json_patches_apply_or_name_what_does_not_fit() -> None:
    document = {"a": {"b": [1, 2]}, "c/d": 1}
    operations = [
        {"op": "add", "path": "/a/b/1", "value": 9},
        {"op": "move", "from": "/c~1d", "path": "/e"},
        {"op": "copy", "from": "/a/b/0", "path": "/f"},
        {"op": "remove", "path": "/a/b/2"},
    ]
    assert apply_json_patch(copy.deepcopy(document), operations) == {"a": {"b": [1, 9]}, "e": 1, "f": 1}
    for wrong in (
        {"op": "remove", "path": "/zz"},
        {"op": "add", "path": "/a/b/9", "value": 1},
        {"op": "replace", "path": "/q", "value": 1},
    ):
        with pytest.raises(ApiError) as refused:
            apply_json_patch(copy.deepcopy(document), [wrong])
        assert refused.value.code == 422


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)


@given(JSON, JSON)
def test_a_merge_patch_applied_twice_is_the_same_as_once(target: Any, patch: Any) -> None:
    once = merge(target, patch)
    assert merge(once, patch) == once


def field(number: int, content: bytes | int) -> bytes:
    if isinstance(content, int):
        return bytes([number << 3, content])
    return bytes([number << 3 | 2, len(content)]) + content


def test_protobuf_bodies_become_the_json_they_stand_for() -> None:
    metadata = field(1, field(1, b"a") + field(11, field(1, b"k") + field(2, b"v")))
    quantity = field(1, b"cpu") + field(2, field(1, b"500m"))
    container = field(1, b"main") + field(2, b"x") + field(8, field(2, quantity))
    volume = field(1, b"v") + field(2, field(2, b""))
    spec = field(2, field(1, volume) + field(2, container) + field(4, 30))
    kind = field(1, field(1, b"v1") + field(2, b"Pod"))
    assert decode_object(MAGIC + kind + field(2, metadata + spec)) == {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "a", "labels": {"k": "v"}},
        "spec": {
            "volumes": [{"name": "v", "emptyDir": {}}],
            "containers": [{"name": "main", "image": "x", "resources": {"requests": {"cpu": "500m"}}}],
            "terminationGracePeriodSeconds": 30,
        },
    }


def test_protobuf_that_is_cut_short_is_a_bad_request() -> None:
    for body in (b"", b"k8s", MAGIC + b"\x0a\xff", MAGIC + field(1, field(1, b"v9") + field(2, b"Pod"))):
        with pytest.raises(ApiError) as refused:
            decode_object(body)
        assert refused.value.code == 400


def test_field_sets_name_items_of_keyed_lists() -> None:
    old = {"spec": {"containers": [{"name": "a", "image": "1"}]}}
    new = {"spec": {"containers": [{"name": "a", "image": "2"}, {"name": "b"}], "nodeName": "n"}}
    changed, removed = compare(old, new, POD)
    assert sorted(paths(changed)) == [
        '.spec.containers[name="a"].image',
        '.spec.containers[name="b"]',
        '.spec.containers[name="b"].name',
        ".spec.nodeName",
    ]
    assert removed is None
    assert list(paths(compare(new, old, POD)[1]))[-1] == ".spec.nodeName"


CONTAINER: st.SearchStrategy[dict[str, str]] = st.fixed_dictionaries(
    {"name": st.sampled_from("xyz")}, optional={"image": st.sampled_from("12")}
)
CONTAINERS = st.lists(CONTAINER, unique_by=lambda each: each["name"])
OBJECTS = st.fixed_dictionaries(
    {},
    optional={
        "metadata": st.dictionaries(st.sampled_from(["labels", "annotations"]), st.dictionaries(st.sampled_from("abc"), st.just("1"))),
        "spec": st.fixed_dictionaries(
            {},
            optional={
                "nodeName": st.sampled_from(["n", "m"]),
                "containers": CONTAINERS,
            },
        ),
    },
)


@given(OBJECTS, OBJECTS)
def test_sets_of_fields_behave_like_sets(one: dict[str, Any], other: dict[str, Any]) -> None:
    left, right = set_of(one, POD), set_of(other, POD)

    def as_paths(tree: Any) -> set[str]:
        return set(paths(tree))

    assert as_paths(union(left, right)) == as_paths(left) | as_paths(right)
    assert as_paths(intersection(left, right)) == as_paths(left) & as_paths(right)
    assert as_paths(difference(left, right)) == as_paths(left) - as_paths(right)


@given(st.lists(st.tuples(st.sampled_from("abcd"), st.integers(0, 2)), max_size=30), st.integers(0, 30))
def test_a_list_at_a_revision_shows_what_was_there(writes: list[tuple[str, int]], asked: int) -> None:
    store = Store()
    seen: list[dict[str, int]] = [{}]
    for name, value in writes:
        found = store.find("things", "ns", name)
        if found is None:
            store.create("things", {"metadata": {"name": name, "namespace": "ns"}, "value": value})
        elif value == 0:
            store.delete("things", "ns", name)
        else:
            store.update("things", {**found.decode(), "value": value})
        while len(seen) <= store.revision:
            seen.append({record.name: record.obj["value"] for record in store.list("things")})
    revision = min(asked, store.revision)
    at = {record.name: record.obj["value"] for record in store.collection("things").at(revision)}
    assert at == seen[revision]
    replayed = dict(seen[revision])
    for event in store.collection("things").since(revision):
        if event.type == "DELETED":
            del replayed[event.record.name]
        else:
            replayed[event.record.name] = event.obj["value"]
    assert replayed == seen[-1]


def test_forms_of_answers_are_taken_in_order() -> None:
    table = "application/json;as=Table;v=v1;g=meta.k8s.io"
    assert accepted(f"{table},application/json").shape == "Table"
    assert accepted("application/vnd.kubernetes.protobuf,application/json").shape == ""
    assert accepted(f"application/json,{table}").shape == ""
    with pytest.raises(ApiError) as refused:
        accepted("application/xml")
    assert refused.value.code == 406


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0s"), (119, "119s"), (120, "2m"), (610, "10m"), (10800, "3h"), (10860, "3h1m"), (259200, "3d"), (-5, "<invalid>")],
)
def test_durations_as_kubectl_writes_them(seconds: float, text: str) -> None:
    assert human_duration(seconds) == text
