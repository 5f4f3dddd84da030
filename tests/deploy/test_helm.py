"""The chart renders, and what it renders is what `navarch install` applies."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from navarch import manifests

CHART = Path(__file__).resolve().parents[2] / "deploy" / "helm" / "navarch"
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "navarch" / "bin" / "helm"
HELM = shutil.which("helm") or (str(CACHE) if CACHE.is_file() else None)
needs_helm = pytest.mark.skipif(HELM is None, reason=f"no helm: GOBIN={CACHE.parent} go install helm.sh/helm/v3/cmd/helm@v3.22.0")


def helm(*arguments: str) -> subprocess.CompletedProcess[str]:
    assert HELM is not None
    return subprocess.run([HELM, *arguments], capture_output=True, text=True, check=False)


def render(*settings: str) -> dict[str, dict[str, Any]]:
    arguments = [item for setting in settings for item in ("--set", setting)]
    where = ("--namespace", "navarch-system", "--kube-version", "1.36.0")
    result = helm("template", "batch", str(CHART), *where, "--include-crds", *arguments)
    assert result.returncode == 0, result.stderr
    objects = [item for item in yaml.safe_load_all(result.stdout) if item]
    return {f"{item['kind']}/{item['metadata']['name']}": item for item in objects}


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
def test_the_deployment_is_the_shipped_one() -> None:
    found = render()["Deployment/navarch"]["spec"]
    shipped = manifests.deployment()[0]["spec"]
    assert found["replicas"] == shipped["replicas"]
    ours, theirs = found["template"]["spec"], shipped["template"]["spec"]
    assert ours.pop("affinity") and theirs.pop("affinity")  # selects by release as well
    assert ours["containers"][0].pop("imagePullPolicy") == "IfNotPresent"
    assert ours == theirs


@needs_helm
def test_values_reach_the_command_line() -> None:
    rendered = render("image.repository=r/n", "image.tag=v9", "replicas=3", "schedulerNames={navarch,volcano}", "policy=actions: x")
    deployment = rendered["Deployment/navarch"]["spec"]
    container = deployment["template"]["spec"]["containers"][0]
    assert deployment["replicas"] == 3
    assert container["image"] == "r/n:v9"
    names = ["--scheduler-name=navarch", "--scheduler-name=volcano"]
    assert container["args"] == ["run", *names, "--policy=/etc/navarch/policy.yaml"]
    assert rendered["ConfigMap/navarch-policy"]["data"] == {"policy.yaml": "actions: x"}
    assert "ServiceMonitor/navarch" not in rendered
    assert "ServiceMonitor/navarch" in render("serviceMonitor.enabled=true")


@needs_helm
def test_a_misspelt_value_is_refused() -> None:
    result = helm("template", "batch", str(CHART), "--kube-version", "1.36.0", "--set", "replica=3")
    assert result.returncode != 0
    assert "replica" in result.stderr
