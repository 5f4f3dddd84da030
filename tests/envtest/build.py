"""Build the real servers, and helm, once for each content of this folder's Go files.

    python -m tests.envtest.build          (what `make envtest` runs)

The binaries lie under ${XDG_CACHE_HOME:-~/.cache}/navarch/envtest/KEY, where KEY is a digest of go.mod, go.sum and the
Go sources: a second run finds them and ends at once, a new version gets a folder of its own, and a fresh checkout
does not build again. Nothing cached costs about nine minutes of CPU, mostly kube-apiserver's packages.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
KUBERNETES = "v1.36.1"
COMMANDS = {"kube-apiserver-etcd": "./apiserver", "kube-scheduler": "./scheduler", "helm": "helm.sh/helm/v3/cmd/helm"}


def sources() -> list[Path]:
    return [HERE / "go.mod", HERE / "go.sum", *sorted(HERE.glob("*/*.go"))]


def cache_folder() -> Path:
    """Where the binaries of these very sources lie, or would lie."""
    digest = hashlib.sha256(KUBERNETES.encode())
    for source in sources():
        digest.update(f"\0{source.relative_to(HERE)}\0".encode() + source.read_bytes())
    root = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return root / "navarch" / "envtest" / digest.hexdigest()[:16]


def is_built() -> bool:
    return all((cache_folder() / name).is_file() for name in COMMANDS)


def go_command() -> str | None:
    """The go tool from PATH, or from where its archive installs it."""
    usual = Path("/usr/local/go/bin/go")
    return shutil.which("go") or (str(usual) if usual.is_file() else None)


def link_flags() -> str:
    """kube-apiserver reads its own version from variables that only a release build sets."""
    major, minor, _ = KUBERNETES.removeprefix("v").split(".")
    variables = {"gitVersion": KUBERNETES, "gitMajor": major, "gitMinor": minor, "gitTreeState": "clean"}
    packages = ("k8s.io/component-base/version", "k8s.io/client-go/pkg/version")
    settings = [f"-X {package}.{name}={value}" for package in packages for name, value in variables.items()]
    return " ".join(["-s", "-w", *settings])


def build() -> Path:
    """Build what is missing and return the folder. Go's own cache makes an interrupted build go on where it was."""
    folder = cache_folder()
    if is_built():
        return folder
    go = go_command()
    if go is None:
        raise SystemExit("make envtest needs Go 1.26 or newer (https://go.dev/dl/); none in PATH nor in /usr/local/go")
    folder.mkdir(parents=True, exist_ok=True)
    environment = dict(os.environ, CGO_ENABLED="0")
    for name, package in COMMANDS.items():
        partial = folder / f".{name}.{os.getpid()}"
        command = [go, "build", "-trimpath", "-buildvcs=false", "-ldflags", link_flags(), "-o", str(partial), package]
        subprocess.run(command, cwd=HERE, env=environment, check=True)
        partial.replace(folder / name)
    return folder


if __name__ == "__main__":
    sys.stdout.write(f"{build()}\n")
