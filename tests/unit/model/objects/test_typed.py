"""One volume that cannot be read does not stop a cycle; pods that need it are told that it is missing."""

from __future__ import annotations

import navarch
from navarch.testing import node, pod

CLASS = {
    "apiVersion": "storage.k8s.io/v1",
    "kind": "StorageClass",
    "metadata": {"name": "fast"},
    "provisioner": "example.com/disk",
    "volumeBindingMode": "WaitForFirstConsumer",
}


def claim(name: str, size: object) -> dict[str, object]:
    spec = {"storageClassName": "fast", "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": size}}}
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": name, "namespace": "default"}, "spec": spec}


def with_claim(name: str, claim_name: str) -> dict[str, object]:
    made = pod(name).cpu("1")
    made["spec"]["volumes"] = [{"name": "data", "persistentVolumeClaim": {"claimName": claim_name}}]
    return made


def test_a_claim_that_cannot_be_read_is_set_aside() -> None:
    claims = [claim("good", "1Gi"), claim("bad", "one gigabyte")]
    plan = navarch.plan([node("n1").cpu("4"), CLASS, *claims, with_claim("a", "good"), with_claim("b", "bad")], keep_going=True)
    cycle = plan.to_dict()["cycles"][0]
    assert [bind["pod"] for bind in cycle["binds"]] == ["default/a"]
    waiting = next(job for job in cycle["jobs"] if job["job"] == "default/b")
    assert "bad" in str(waiting["reasons"])
    assert any("PersistentVolumeClaim default/bad cannot be read" in warning for warning in plan.warnings) or plan.mistakes
