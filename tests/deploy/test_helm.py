"""The chart renders, and what it renders is what `navarch install` applies; helm installs it into a real API server and out again."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.envtest.fixtures import binaries_or_skip
from tests.envtest.server import KubeApiServer
from tests.worlds.deploy.charts import CHART, helm, needs_helm

from navarch import manifests
from navarch.cli.install import RESOURCES
from navarch.manifests.installation import CUSTOM_METRICS, Installation
from navarch.object_types import Manifest

EVERYTHING: dict[str, Any] = {
    "image": {"repository": "r.example.com/navarch", "tag": "v9", "pullPolicy": "Always", "pullSecrets": [{"name": "reg"}]},
    "replicas": 3,
    "schedulerNames": ["navarch", "volcano", "kai-scheduler"],
    "policy": 'actions: "allocate"\ntiers:\n- plugins:\n  - name: gang # {{ not for helm }}\n',
    "extraArgs": ["--log-format=json", "--record=/var/cycles"],
    "resources": {"requests": {"cpu": "2", "memory": "2Gi"}, "limits": {"memory": "4Gi"}},
    "priorityClassName": "",
    "nodeSelector": {"node-role.kubernetes.io/control-plane": ""},
    "tolerations": [{"key": "node-role.kubernetes.io/control-plane", "operator": "Exists", "effect": "NoSchedule"}],
    "affinity": {
        "podAntiAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": [
                {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app.kubernetes.io/name": "navarch"}}}
            ]
        }
    },
    "podAnnotations": {"example.com/owner": "platform"},
    "extraVolumes": [{"name": "cycles", "emptyDir": {"sizeLimit": "1Gi"}}],
    "extraVolumeMounts": [{"name": "cycles", "mountPath": "/var/cycles"}],
    "networkPolicy": {"enabled": True, "from": [{"podSelector": {"matchLabels": {"app": "prometheus"}}}]},
    "serviceMonitor": {"enabled": True, "interval": "30s", "labels": {"release": "prometheus"}},
    "policyCheck": {"enabled": False},
    "prometheusRule": {"enabled": True, "labels": {"release": "prometheus"}},
    "web": {
        "enabled": True,
        "extraArgs": ["--host=dash.example.com"],
        "resources": {"requests": {"cpu": "1", "memory": "1Gi"}, "limits": {"memory": "2Gi"}},
    },
    "grafanaDashboard": {"enabled": False, "labels": {"grafana_dashboard": "1"}},
}
"""A value for each that there is."""


def rendered_as(release: str, *arguments: str) -> list[Manifest]:
    where = ("--namespace", "navarch-system", "--kube-version", "1.36.0")
    result = helm("template", release, str(CHART), *where, "--include-crds", *arguments)
    assert result.returncode == 0, result.stderr
    return [item for item in yaml.safe_load_all(result.stdout) if item]


def render(*settings: str, release: str = "navarch") -> dict[str, Manifest]:
    arguments = [item for setting in settings for item in ("--set", setting)]
    return {f"{item['kind']}/{item['metadata']['name']}": item for item in rendered_as(release, *arguments)}


def values(tmp_path: Path, **given: Any) -> str:
    file = tmp_path / "values.yaml"
    file.write_text(json.dumps(given), encoding="utf-8")
    return f"--values={file}"


def without_labels(value: Any) -> Any:
    """The value without labels and label selectors."""
    if isinstance(value, dict):
        kept = {name: each for name, each in value.items() if name not in ("labels", "matchLabels", "imagePullPolicy", "annotations")}
        if value.get("kind") == "Service":
            kept["spec"] = {**value["spec"], "selector": ...}
        return {name: without_labels(each) for name, each in kept.items()}
    return [without_labels(each) for each in value] if isinstance(value, list) else value


def by_name(objects: list[Manifest]) -> dict[str, Any]:
    return {f"{item['kind']}/{item['metadata']['name']}": without_labels(item) for item in objects}


def test_every_value_has_an_example_here() -> None:
    given = yaml.safe_load((CHART / "values.yaml").read_text(encoding="utf-8"))
    schema = json.loads((CHART / "values.schema.json").read_text(encoding="utf-8"))["properties"]
    assert given.keys() == schema.keys() - {"global"} == EVERYTHING.keys() | {"fullnameOverride"}
    for name, value in given.items():
        if isinstance(value, dict) and value and name != "resources":
            assert value.keys() == schema[name]["properties"].keys() == EVERYTHING[name].keys()


def test_chart_and_package_have_one_version() -> None:
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text(encoding="utf-8"))
    image = manifests.deployment()[0]["spec"]["template"]["spec"]["containers"][0]["image"]
    assert image == f"navarch:{chart['appVersion']}"


@needs_helm
def test_the_chart_is_clean() -> None:
    result = helm("lint", "--strict", str(CHART))
    assert result.returncode == 0, result.stdout + result.stderr


@needs_helm
def test_rules_and_crds_are_the_shipped_ones() -> None:
    rendered = render()
    for shipped in [*manifests.crds(), *manifests.rbac()]:
        found = rendered[f"{shipped['kind']}/{shipped['metadata']['name']}"]
        for part in ("spec", "rules", "roleRef", "subjects"):
            assert found.get(part) == shipped.get(part)


@needs_helm
@pytest.mark.parametrize(("source", "granted"), [("prometheus_adaptor", True), ("prometheus", False)])
def test_rights_on_custom_metrics_come_with_a_policy_that_reads_them(source: str, granted: bool, tmp_path: Path) -> None:
    policy = f"actions: allocate\nmetrics:\n  type: {source}\n"
    rendered = by_name(rendered_as("navarch", values(tmp_path, policy=policy)))["ClusterRole/navarch"]
    assert rendered == by_name(Installation(policy=policy).objects())["ClusterRole/navarch"]
    assert (CUSTOM_METRICS in rendered["rules"]) == granted


@needs_helm
def test_the_deployment_is_the_shipped_one() -> None:
    found = render()["Deployment/navarch"]["spec"]
    shipped = manifests.deployment()[0]["spec"]
    assert found["replicas"] == shipped["replicas"]
    ours, theirs = found["template"]["spec"], shipped["template"]["spec"]
    assert ours.pop("affinity") and theirs.pop("affinity")  # selects by release as well
    assert ours["containers"][0].pop("imagePullPolicy") == "IfNotPresent"
    assert ours == theirs


@needs_helm
@pytest.mark.parametrize(("release", "name"), [("navarch", "navarch"), ("navarch-b", "navarch-b"), ("pool-a", "pool-a-navarch")])
def test_the_chart_and_the_command_install_the_same(release: str, name: str, tmp_path: Path) -> None:
    """With every choice that both have: names, rights and command line are the same, whatever the labels."""
    names, policy = ("navarch", "volcano"), "actions: allocate\n"
    options = ("--log-format=json", "--node-pool-label-key=pool")
    command = Installation(
        name=name,
        image="r/n:v9",
        replicas=3,
        scheduler_names=names,
        policy=policy,
        run_options=options,
        namespace="navarch-system",
        web=True,
    )
    given = values(
        tmp_path,
        image={"repository": "r/n", "tag": "v9"},
        replicas=3,
        schedulerNames=names,
        policy=policy,
        extraArgs=options,
        serviceMonitor={"enabled": True},
        policyCheck={"enabled": False},
        web={"enabled": True},
    )
    chart = by_name(rendered_as(release, given))
    assert chart == {name: item for name, item in by_name(command.objects()).items() if not name.startswith("Namespace/")}


@needs_helm
def test_selectors_select_only_pods_of_the_release() -> None:
    for objects in (rendered_as("a", "--set=serviceMonitor.enabled=true"), Installation(name="a").objects()):
        found = {item["kind"]: item for item in objects}
        pods = found["Deployment"]["spec"]["template"]["metadata"]["labels"]
        service = found["Service"]
        selectors = [found[kind]["spec"]["selector"]["matchLabels"] for kind in ("Deployment", "PodDisruptionBudget")]
        (spread,) = found["Deployment"]["spec"]["template"]["spec"]["affinity"]["podAntiAffinity"].popitem()[1]
        for selector in (*selectors, service["spec"]["selector"], spread["podAffinityTerm"]["labelSelector"]["matchLabels"]):
            assert selector.items() <= pods.items()
            assert selector["app.kubernetes.io/instance"] == "a"
        assert found["ServiceMonitor"]["spec"]["selector"]["matchLabels"].items() <= service["metadata"]["labels"].items()


@needs_helm
def test_values_reach_the_command_line() -> None:
    rendered = render("image.repository=r/n", "image.tag=v9", "replicas=3", "schedulerNames={navarch,volcano}", "policy=actions: x")
    deployment = rendered["Deployment/navarch"]["spec"]
    container = deployment["template"]["spec"]["containers"][0]
    assert deployment["replicas"] == 3
    assert container["image"] == "r/n:v9"
    names = ["--scheduler-name=navarch", "--scheduler-name=volcano"]
    assert container["args"] == ["run", "--crash-dir=/var/lib/navarch", *names, "--policy=/etc/navarch/policy.yaml"]
    assert rendered["ConfigMap/navarch-policy"]["data"] == {"policy.yaml": "actions: x"}
    assert "ServiceMonitor/navarch" not in rendered
    assert "ServiceMonitor/navarch" in render("serviceMonitor.enabled=true")


@needs_helm
def test_a_misspelt_value_is_refused() -> None:
    result = helm("template", "batch", str(CHART), "--kube-version", "1.36.0", "--set", "replica=3")
    assert result.returncode != 0
    assert "replica" in result.stderr


@needs_helm
def test_every_value_reaches_its_place(tmp_path: Path) -> None:
    objects = rendered_as("navarch", values(tmp_path, **EVERYTHING))
    found = {item["kind"]: item for item in objects if item["metadata"]["name"] != "navarch-web"}
    (dashboard,) = (item for item in objects if item["kind"] == "Deployment" and item["metadata"]["name"] == "navarch-web")
    (shown,) = dashboard["spec"]["template"]["spec"]["containers"]
    assert (shown["image"], shown["imagePullPolicy"]) == ("r.example.com/navarch:v9", "Always")
    assert shown["args"][-1] == "--host=dash.example.com"
    assert shown["resources"]["limits"] == {"memory": "2Gi"}
    template = found["Deployment"]["spec"]["template"]
    pod, (container,) = template["spec"], template["spec"]["containers"]
    assert found["ConfigMap"]["data"]["policy.yaml"] == EVERYTHING["policy"]
    assert template["metadata"]["annotations"] == EVERYTHING["podAnnotations"]
    assert "priorityClassName" not in pod
    assert pod["imagePullSecrets"] == [{"name": "reg"}]
    assert (container["image"], container["imagePullPolicy"]) == ("r.example.com/navarch:v9", "Always")
    assert {name: pod[name] for name in ("nodeSelector", "tolerations", "affinity")} == {
        name: EVERYTHING[name] for name in ("nodeSelector", "tolerations", "affinity")
    }
    assert container["resources"] == EVERYTHING["resources"]
    assert container["args"][-2:] == EVERYTHING["extraArgs"]
    assert (
        [each["name"] for each in pod["volumes"]]
        == [each["name"] for each in container["volumeMounts"]]
        == ["crashes", "policy", "cycles"]
    )
    monitor = found["ServiceMonitor"]
    assert monitor["metadata"]["labels"]["release"] == "prometheus"
    assert monitor["spec"]["endpoints"] == [{"port": "http", "path": "/metrics", "interval": "30s"}]


@needs_helm
@pytest.mark.parametrize(
    ("setting", "said"),
    [
        ("replicas=0", "replicas"),
        ("policy.actions=allocate", "policy"),
        ("extraArgs=--dry-run", "extraArgs"),
        ("image.pullSecrets={reg}", "pullSecrets"),
        ("fullnameOverride=Not_A_Name", "fullnameOverride"),
    ],
)
def test_a_value_of_the_wrong_kind_is_refused(setting: str, said: str) -> None:
    result = helm("template", "batch", str(CHART), "--kube-version", "1.36.0", "--set", setting)
    assert result.returncode != 0
    assert said in result.stderr


@pytest.fixture
def server() -> Iterator[KubeApiServer]:
    """One of its own: CRDs stay when a release goes, and other suites expect none."""
    with KubeApiServer(binaries=binaries_or_skip()) as started:
        yield started


@needs_helm
@pytest.mark.live
def test_an_api_server_takes_it_beside_another_release_and_gives_everything_back(server: KubeApiServer, tmp_path: Path) -> None:
    access = (f"--kubeconfig={server.kubeconfig}", "--namespace=chart")

    def done(*arguments: str) -> str:
        result = helm(*arguments, *access)
        assert result.returncode == 0, result.stderr
        return result.stdout

    def there(release: str) -> set[str]:
        """What the API server has of a release; secrets are helm's own."""
        query = f"labelSelector=app.kubernetes.io/instance%3D{release}"
        found = set()
        for kind, resource in RESOURCES.items():
            if kind in ("CustomResourceDefinition", "Namespace", "ServiceMonitor"):
                continue
            group = f"/apis/{resource.group}/{resource.version}" if resource.group else f"/api/{resource.version}"
            folder = "/namespaces/chart" if resource.namespaced else ""
            listed = server.request("GET", f"{group}{folder}/{resource.plural}?{query}")
            found |= {f"{kind}/{item['metadata']['name']}" for item in listed["items"]}
        return found

    full = {name: value for name, value in EVERYTHING.items() if name not in ("serviceMonitor", "prometheusRule")}
    done("install", "navarch", str(CHART), "--create-namespace", values(tmp_path, **full))
    done("install", "pool-b", str(CHART), "--set=web.enabled=true")
    first, second = there("navarch"), there("pool-b")
    assert {each.split("/")[0] for each in first} == set(RESOURCES) - {"CustomResourceDefinition", "Namespace", "ServiceMonitor"}
    assert {each.replace("navarch", "pool-b-navarch") for each in first} - second == {"ConfigMap/pool-b-navarch-policy"}
    done("upgrade", "navarch", str(CHART), "--reset-values", "--set=replicas=4", "--set=web.enabled=true")
    deployment = server.request("GET", "/apis/apps/v1/namespaces/chart/deployments/navarch")
    assert deployment["spec"]["replicas"] == 4
    assert deployment["spec"]["template"]["spec"]["containers"][0]["args"] == ["run", "--crash-dir=/var/lib/navarch"]
    assert there("navarch") == first - {"ConfigMap/navarch-policy"}
    for release in ("navarch", "pool-b"):
        done("uninstall", release)
        assert there(release) == set()
    crds = server.request("GET", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions")["items"]
    assert {crd["metadata"]["name"] for crd in manifests.crds()} <= {crd["metadata"]["name"] for crd in crds}
