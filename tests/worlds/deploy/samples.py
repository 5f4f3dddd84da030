"""The sample objects of `samples.yaml`, each with the resource that serves it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from navarch import manifests
from navarch.kube.resources import Resource


def resource_of(crd: dict[str, Any], version: str) -> Resource:
    spec = crd["spec"]
    return Resource(spec["group"], version, spec["names"]["plural"], namespaced=spec["scope"] == "Namespaced")


def samples() -> list[tuple[Resource, dict[str, Any]]]:
    kinds = {(crd["spec"]["group"], crd["spec"]["names"]["kind"]): crd for crd in manifests.crds()}
    text = Path(__file__).with_name("samples.yaml").read_text(encoding="utf-8")
    found = []
    for item in yaml.load_all(text, Loader=yaml.CSafeLoader):
        group, version = item["apiVersion"].split("/")
        found.append((resource_of(kinds[group, item["kind"]], version), item))
    return found
