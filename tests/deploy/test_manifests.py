"""What the shipped files say, read without a cluster."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner
from tests.worlds.deploy.samples import samples

from navarch import manifests
from navarch.cli.install import RESOURCES, install
from navarch.live.cache.watched_kinds import watched
from navarch.manifests.installation import DIALECTS, Installation

TOP = Path(__file__).resolve().parents[2]
DEPLOY = TOP / "deploy"
READ = {"get", "list", "watch"}
CRDS = manifests.crds()


def rules() -> list[dict[str, Any]]:
    return next(item["rules"] for item in manifests.rbac() if item["kind"] == "ClusterRole")


def verbs(group: str, resource: str) -> set[str]:
    return {verb for rule in rules() if group in rule["apiGroups"] and resource in rule["resources"] for verb in rule["verbs"]}


def granted() -> dict[tuple[str, str], set[str]]:
    """Group and resource -> verbs, of the ClusterRole."""
    pairs = [(group, resource) for rule in rules() for group in rule["apiGroups"] for resource in rule["resources"]]
    return {(group, resource): verbs(group, resource) for group, resource in pairs}


WRITTEN = {
    "podgroups.scheduling.incubator.k8s.io",
    "podgroups.scheduling.sigs.dev",
    "podgroups.scheduling.volcano.sh",
    "podgroups.scheduling.run.ai",
    "podgroups.scheduling.x-k8s.io",
    "queues.scheduling.volcano.sh",
}
"""CRDs whose objects' status we write; queues of the other dialects have none that is a scheduler's."""
POLICIES = {("kai.scheduler", "schedulingshards"), ("kai.scheduler", "configs")}
"""What only a scheduler reads, for `run --shard`."""


def by_name(crd: dict[str, Any]) -> str:
    return str(crd["metadata"]["name"])


@pytest.mark.parametrize("crd", CRDS, ids=by_name)
def test_a_crd_is_named_as_the_api_wants_it(crd: dict[str, Any]) -> None:
    spec, names = crd["spec"], crd["spec"]["names"]
    assert crd["metadata"]["name"] == f"{names['plural']}.{spec['group']}"
    assert names["listKind"] == f"{names['kind']}List"
    assert [version["storage"] for version in spec["versions"]].count(True) == 1
    assert all(version["served"] for version in spec["versions"])


@pytest.mark.parametrize("crd", CRDS, ids=by_name)
def test_the_scheduler_may_watch_every_dialect(crd: dict[str, Any]) -> None:
    assert verbs(crd["spec"]["group"], crd["spec"]["names"]["plural"]) >= READ


def test_every_kind_that_the_cache_watches_may_be_watched() -> None:
    resources = [resource for kind in watched() for resource in kind.candidates]
    assert [str(resource) for resource in resources if not verbs(resource.group, resource.plural) >= READ] == []


def test_nothing_else_may_be_read() -> None:
    watches = {(resource.group, resource.plural) for kind in watched() for resource in kind.candidates}
    watches |= {("", "pods"), ("apiextensions.k8s.io", "customresourcedefinitions")}
    watches |= POLICIES
    assert {where for where, verbs in granted().items() if verbs & READ} == watches


@pytest.mark.parametrize("crd", [crd for crd in CRDS if by_name(crd) in WRITTEN], ids=by_name)
def test_status_is_written_where_the_crd_keeps_it(crd: dict[str, Any]) -> None:
    plural, group = crd["spec"]["names"]["plural"], crd["spec"]["group"]
    has_subresource = "status" in crd["spec"]["versions"][0].get("subresources", {})
    assert "patch" in verbs(group, f"{plural}/status" if has_subresource else plural)
    if not has_subresource:
        assert not verbs(group, f"{plural}/status"), "a right to something that does not exist"


@pytest.mark.parametrize(
    ("crd", "subresource"),
    [
        ("podgroups.scheduling.incubator.k8s.io", False),
        ("podgroups.scheduling.sigs.dev", True),
        ("podgroups.scheduling.volcano.sh", False),
        ("podgroups.scheduling.run.ai", True),
        ("podgroups.scheduling.x-k8s.io", True),
        ("queues.scheduling.volcano.sh", True),
        ("queues.scheduling.run.ai", True),
    ],
)
def test_status_subresources_are_those_of_the_real_crds(crd: str, subresource: bool) -> None:
    version = next(item for item in CRDS if item["metadata"]["name"] == crd)["spec"]["versions"][0]
    assert ("status" in version.get("subresources", {})) is subresource


def test_every_kind_has_a_sample() -> None:
    assert {(resource.group, resource.plural) for resource, _ in samples()} == {
        (crd["spec"]["group"], crd["spec"]["names"]["plural"]) for crd in CRDS
    }


def test_every_crd_belongs_to_one_dialect() -> None:
    groups = [group for members in DIALECTS.values() for group in sorted(members)]
    assert sorted(groups) == sorted({crd["spec"]["group"] for crd in CRDS})


def test_permissions_are_the_least_that_does() -> None:
    for rule in rules():
        assert "*" not in rule["apiGroups"] + rule["resources"] + rule["verbs"]
        assert not {"secrets", "configmaps", "roles", "clusterroles"} & set(rule["resources"])
        assert not {"escalate", "bind", "impersonate", "deletecollection"} & set(rule["verbs"])
    assert verbs("", "pods") == READ | {"delete"}
    assert verbs("", "nodes") == READ
    assert verbs("", "pods/binding") == {"create"}
    assert verbs("", "pods/eviction") == {"create"}
    assert verbs("", "pods/status") == {"patch"}
    assert {(group, resource): verbs for (group, resource), verbs in granted().items() if verbs - READ} == {
        ("", "pods"): READ | {"delete"},
        ("", "pods/binding"): {"create"},
        ("", "pods/eviction"): {"create"},
        ("", "pods/status"): {"patch"},
        ("", "persistentvolumeclaims"): READ | {"patch"},
        ("", "persistentvolumes"): READ | {"patch"},
        ("authentication.k8s.io", "tokenreviews"): {"create"},
        ("authorization.k8s.io", "subjectaccessreviews"): {"create"},
        ("events.k8s.io", "events"): {"create", "patch"},
        ("resource.k8s.io", "resourceclaims"): READ | {"patch", "create", "delete"},
        ("resource.k8s.io", "resourceclaims/status"): {"update"},
        ("resource.k8s.io", "resourceclaims/binding"): {"update"},
        ("scheduling.k8s.io", "podgroups/status"): {"patch"},
        ("scheduling.incubator.k8s.io", "podgroups"): READ | {"patch"},
        ("scheduling.sigs.dev", "podgroups/status"): {"patch"},
        ("scheduling.volcano.sh", "podgroups"): READ | {"patch"},
        ("scheduling.volcano.sh", "queues"): READ | {"create"},
        ("scheduling.volcano.sh", "queues/status"): {"patch"},
        ("scheduling.run.ai", "podgroups"): READ | {"patch"},
        ("scheduling.run.ai", "podgroups/status"): {"patch"},
        ("scheduling.run.ai", "bindrequests"): READ | {"create", "delete"},
        ("scheduling.x-k8s.io", "podgroups/status"): {"patch"},
    }
    roles = {item["metadata"]["name"]: item["rules"] for item in manifests.rbac() if item["kind"] == "Role"}
    assert {
        name: [(rule["resources"], rule["verbs"], rule.get("resourceNames")) for rule in found] for name, found in roles.items()
    } == {
        "navarch-leader-election": [(["leases"], ["create"], None), (["leases"], ["get", "update"], ["navarch"])],
        "navarch-state": [
            (["configmaps"], ["create", "patch"], ["navarch-state"]),
            (["secrets"], ["create", "patch"], ["navarch-pages"]),
        ],
        "navarch-state-reader": [(["configmaps"], ["get"], ["navarch-state"])],
        "navarch-pages-reader": [(["secrets"], ["get"], ["navarch-pages"]), (["pods/proxy"], ["get"], None)],
    }
    deleted = [(rule["apiGroups"], rule["resources"]) for rule in rules() if "delete" in rule["verbs"]]
    assert deleted == [([""], ["pods"]), (["resource.k8s.io"], ["resourceclaims"]), (["scheduling.run.ai"], ["bindrequests"])]


def test_the_deployment_survives_a_node_and_keeps_to_itself() -> None:
    deployment, budget = manifests.deployment()
    pod = deployment["spec"]["template"]["spec"]
    assert deployment["spec"]["replicas"] == 2
    assert budget["spec"]["maxUnavailable"] == 1
    assert pod["serviceAccountName"] == "navarch"
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["containers"][0]["securityContext"]["readOnlyRootFilesystem"] is True
    paths = [pod["containers"][0][probe]["httpGet"]["path"] for probe in ("livenessProbe", "readinessProbe")]
    assert paths == ["/livez", "/readyz"]


def test_deploy_has_no_second_copy() -> None:
    package = TOP / "src" / "navarch" / "manifests"
    for name in ("namespace", "rbac", "deployment", "service", "networkpolicy", "servicemonitor", "web"):
        assert (DEPLOY / f"{name}.yaml").resolve() == package / f"{name}.yaml"
    chart = DEPLOY / "helm" / "navarch"
    assert (DEPLOY / "crds").resolve() == (chart / "crds").resolve() == package / "crds"
    for name in ("rbac", "web"):
        assert (chart / "files" / f"{name}.yaml").resolve() == package / f"{name}.yaml"


def test_the_dashboard_reads_what_the_scheduler_reads_and_writes_nothing() -> None:
    (role,) = (item for item in manifests.web() if item["kind"] == "ClusterRole")
    found = {
        (group, resource): set(rule["verbs"])
        for rule in role["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
    }
    asked = {("authentication.k8s.io", "tokenreviews"): {"create"}, ("authorization.k8s.io", "subjectaccessreviews"): {"create"}}
    reads = {where: READ for where, verbs in granted().items() if verbs & READ and where not in POLICIES}
    assert found == {**reads, **asked, ("events.k8s.io", "events"): {"list"}}


def test_the_dashboard_is_installed_only_if_asked_for_and_keeps_to_itself() -> None:
    assert not [item for item in Installation().objects() if "web" in item["metadata"]["name"]]
    found = Installation(name="pool-a", namespace="batch", image="r/n:1", web=True).objects()
    kinds = {item["kind"]: item for item in found if item["metadata"]["name"] == "pool-a-web"}
    expected = {"ServiceAccount", "ClusterRole", "ClusterRoleBinding", "RoleBinding", "Deployment", "Service", "NetworkPolicy"}
    assert set(kinds) == expected
    assert kinds["RoleBinding"]["roleRef"]["name"] == "pool-a-pages-reader"
    pod = kinds["Deployment"]["spec"]["template"]
    container = pod["spec"]["containers"][0]
    assert (container["image"], pod["spec"]["serviceAccountName"]) == ("r/n:1", "pool-a-web")
    assert container["args"][2:] == ["--state=batch/pool-a"]
    assert container["securityContext"]["readOnlyRootFilesystem"] is True
    assert kinds["Service"]["spec"]["selector"].items() <= pod["metadata"]["labels"].items()
    scheduler = next(item for item in found if item["kind"] == "Service" and item["metadata"]["name"] == "pool-a")
    assert not scheduler["spec"]["selector"].items() <= pod["metadata"]["labels"].items()


def test_print_shows_every_object_with_the_choices_filled_in(tmp_path: Path) -> None:
    policy = tmp_path / "policy.yaml"
    policy.write_text('actions: "enqueue, allocate"\n', encoding="utf-8")
    arguments = ["--print", "--namespace", "batch", "--image", "r/n:1", "--replicas", "3", "--policy", str(policy)]
    result = CliRunner().invoke(install, [*arguments, "--scheduler-name", "volcano", "--dialect", "volcano"])
    assert result.exit_code == 0, result.output
    objects = list(yaml.safe_load_all(result.output))
    kinds = [item["kind"] for item in objects]
    assert kinds[0] == "Namespace"
    assert kinds.count("CustomResourceDefinition") == 5
    assert set(kinds) == set(RESOURCES)
    deployment = objects[kinds.index("Deployment")]
    container = deployment["spec"]["template"]["spec"]["containers"][0]
    assert deployment["spec"]["replicas"] == 3
    assert container["image"] == "r/n:1"
    assert container["args"] == [
        "run",
        "--crash-dir=/var/lib/navarch",
        "--scheduler-name=volcano",
        "--policy=/etc/navarch/policy.yaml",
    ]
    assert objects[kinds.index("ConfigMap")]["data"] == {"policy.yaml": 'actions: "enqueue, allocate"\n'}
    assert {item["metadata"].get("namespace", "batch") for item in objects} == {"batch"}
    subjects = [subject for item in objects for subject in item.get("subjects", ())]
    assert {subject["namespace"] for subject in subjects if subject["kind"] == "ServiceAccount"} == {"batch"}
    assert [subject["name"] for subject in subjects if subject["kind"] == "Group"] == ["system:authenticated"]


def test_a_policy_that_would_not_start_is_warned_of(tmp_path: Path) -> None:
    good, bad = tmp_path / "good.conf", tmp_path / "bad.conf"
    good.write_text("actions: allocate\ntiers:\n- plugins:\n  - name: gang\n")
    bad.write_text("actions: alocate\ntiers:\n- plugins:\n  - name: gang\n")
    said = CliRunner().invoke(install, ["--print", "--policy", str(bad)])
    assert said.exit_code == 0 and "unknown action 'alocate' (did you mean 'allocate'?)" in said.stderr
    assert "warning: unless its image has more plugins" in said.stderr and "warning" not in said.stdout
    assert "--plugin-dir" not in said.stderr, "it takes none"
    fine = CliRunner().invoke(install, ["--print", "--image", "r/n:1", "--policy", str(good)])
    assert (fine.exit_code, fine.stderr) == (0, "")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("# Not a policy: at all: really\nactions: [", "not valid YAML"),
        (
            "actions: allocate\ntiers:\n- plugins:\n  - name: mine\n  - name: binpack\n    arguments: {binpack.weight: much}\n",
            "binpack.weight",
        ),
    ],
)
def test_a_policy_that_no_image_could_start_with_is_refused(tmp_path: Path, text: str, said: str) -> None:
    (policy := tmp_path / "policy.conf").write_text(text)
    result = CliRunner().invoke(install, ["--print", "--policy", str(policy)])
    assert (result.exit_code, result.stdout) == (2, "")
    assert said in result.stderr and "warning: unless its image" not in result.stderr


def test_without_choices_the_shipped_files_are_installed_as_they_are() -> None:
    shipped = [
        *manifests.namespace(),
        *manifests.crds(),
        *manifests.rbac(),
        *manifests.deployment(),
        *manifests.service(),
        *manifests.network_policy(),
        *manifests.service_monitor(),
    ]
    assert Installation().objects() == shipped
