"""The real programs that Navarch is tested beside: where each comes from, and what is built of it.

All of them are modules of the Go module proxy. It refuses lists of versions and serves a module by its exact version, so each is named
here by one. A module's own `replace` lines count only where it is the main module: `build` carries them over.
"""

from __future__ import annotations

from dataclasses import dataclass, field

KUBERNETES = "v1.37.1"


@dataclass(frozen=True)
class Program:
    """What one module gives: commands (name of the binary -> package below the module) and compiled test suites."""

    module: str
    version: str
    commands: dict[str, str] = field(default_factory=dict)
    suites: dict[str, str] = field(default_factory=dict)
    replace: dict[str, str] = field(default_factory=dict)
    require: dict[str, str] = field(default_factory=dict)
    link_flags: tuple[str, ...] = ()


def _same(*names: str) -> dict[str, str]:
    return {name: f"cmd/{name}" for name in names}


def _kubernetes_version() -> tuple[str, ...]:
    """Feature gates depend on the version, which only a release build sets."""
    major, minor, _ = KUBERNETES.removeprefix("v").split(".")
    variables = {"gitVersion": KUBERNETES, "gitMajor": major, "gitMinor": minor, "gitTreeState": "clean"}
    packages = ("k8s.io/component-base/version", "k8s.io/client-go/pkg/version")
    return tuple(f"-X {package}.{name}={value}" for package in packages for name, value in variables.items())


PROGRAMS: dict[str, Program] = {
    "kubernetes": Program(
        "k8s.io/kubernetes",
        KUBERNETES,
        _same("kube-controller-manager", "kube-scheduler"),
        require={"go.etcd.io/etcd/server/v3": "v3.7.0"},
        link_flags=_kubernetes_version(),
    ),
    "volcano": Program(
        "volcano.sh/volcano",
        "v1.14.1",
        {
            "vc-scheduler": "cmd/scheduler",
            "vc-controller-manager": "cmd/controller-manager",
            "vc-webhook-manager": "cmd/webhook-manager",
            "vcctl": "cmd/cli",
        },
        {
            f"e2e-{suite}": f"test/e2e/{suite}"
            for suite in ("schedulingbase", "schedulingaction", "jobp", "jobseq", "hypernode", "dra")
        },
        replace={"volcano.sh/apis": "v1.14.0"},
    ),
    "kwok": Program("sigs.k8s.io/kwok", "v0.8.0", _same("kwok")),
    "kai": Program(
        "github.com/NVIDIA/KAI-scheduler",
        "v0.12.0",
        _same("scheduler", "binder", "podgrouper", "podgroupcontroller", "queuecontroller", "admission", "operator"),
    ),
}
