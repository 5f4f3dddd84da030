"""Build the real programs of `programs.PROGRAMS` from the Go module proxy, each once for a version.

    python -m tests.field.build [NAME ...]          (what `make field-programs` runs; without names all)

The binaries lie under ${XDG_CACHE_HOME:-~/.cache}/navarch/field/NAME-KEY, where KEY is a digest of what is built, so a second run ends
at once. Go's build cache would grow to 23 GB: each program gets one of its own, which goes when its binaries are there.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import astuple
from pathlib import Path

from tests.envtest.build import go_command
from tests.field.programs import PROGRAMS, Program

HERE = Path(__file__).resolve().parent
ENVTEST = HERE.parent / "envtest"


class NotServed(Exception):
    """The module proxy does not have the module, or not this version."""


def folder_of(name: str) -> Path:
    """Where the binaries of this program lie, or would lie."""
    digest = hashlib.sha256(repr(astuple(PROGRAMS[name])).encode())
    if name == "kubernetes":
        digest.update((ENVTEST / "apiserver/main.go").read_bytes())
    root = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return root / "navarch" / "field" / f"{name}-{digest.hexdigest()[:12]}"


def binaries(name: str) -> list[str]:
    program = PROGRAMS[name]
    return [*program.commands, *program.suites, *(["kube-apiserver-etcd"] if name == "kubernetes" else [])]


def is_built(name: str) -> bool:
    return all((folder_of(name) / binary).is_file() for binary in binaries(name))


class Build:
    """One program in a folder of its own, whose go.mod requires the module as the module itself requires others."""

    def __init__(self, program: Program, go: str, work: Path) -> None:
        self.program, self.go, self.work = program, go, work
        self.environment = dict(os.environ, CGO_ENABLED="0", GOCACHE=str(work / "cache"), GOFLAGS="-mod=mod", GOWORK="off")

    def run(self, *words: str) -> str:
        done = subprocess.run([self.go, *words], cwd=self.work, env=self.environment, capture_output=True, text=True, check=False)
        if done.returncode:
            raise NotServed(f"go {' '.join(words[:3])} ...: {(done.stderr or done.stdout).strip()[-2000:]}")
        return done.stdout

    def prepare(self) -> Path:
        """Write go.mod and go.sum; return the folder with the module's sources."""
        module = f"{self.program.module}@{self.program.version}"
        (self.work / "go.mod").write_text("module navarch.dev/field\n")
        source = Path(json.loads(self.run("mod", "download", "-json", module))["Dir"])
        (self.work / "go.mod").write_bytes((source / "go.mod").read_bytes())
        if (source / "go.sum").is_file():
            (self.work / "go.sum").write_bytes((source / "go.sum").read_bytes())
        self.run("mod", "edit", "-module=navarch.dev/field", f"-require={module}")
        for name, version in self.program.require.items():
            self.run("mod", "edit", f"-require={name}@{version}")
        self._name_staging_modules()
        for name, version in self.program.replace.items():
            self.run("mod", "edit", f"-replace={name}={name}@{version}")
        return source

    def _name_staging_modules(self) -> None:
        """Modules that lie beside the main one in its repository are on the proxy by a version: those of v1.37.1 by v0.37.1."""
        written = json.loads(self.run("mod", "edit", "-json"))
        beside = [each["Old"]["Path"] for each in written.get("Replace") or () if each["New"]["Path"].startswith("./")]
        version = self.program.version.replace("v1.", "v0.", 1)
        for name in beside:
            self.run("mod", "edit", f"-replace={name}={name}@{version}", f"-require={name}@{version}")

    def command(self, package: str, binary: Path) -> None:
        flags = " ".join(["-s", "-w", *self.program.link_flags])
        self.run("build", "-trimpath", "-buildvcs=false", "-ldflags", flags, "-o", str(binary), package)

    def suite(self, package: str, binary: Path) -> None:
        self.run("test", "-c", "-trimpath", "-o", str(binary), package)


def build(name: str) -> Path:
    """Build what is missing of one program and return its folder."""
    program, folder = PROGRAMS[name], folder_of(name)
    if is_built(name):
        return folder
    go = go_command()
    if go is None:
        raise SystemExit("make field needs Go 1.26 or newer (https://go.dev/dl/); none in PATH nor in /usr/local/go")
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f"field-{name}-") as work:
        one = Build(program, go, Path(work))
        one.prepare()
        if name == "kubernetes":
            # The API server with etcd inside is our own main package over Kubernetes' libraries.
            shutil.copytree(ENVTEST / "apiserver", Path(work) / "apiserver")
            one.command("./apiserver", folder / "kube-apiserver-etcd")
        for binary, package in program.commands.items():
            one.command(f"{program.module}/{package}".removesuffix("/."), folder / binary)
        for binary, package in program.suites.items():
            one.suite(f"{program.module}/{package}", folder / binary)
        subprocess.run([go, "clean", "-cache"], env=one.environment, check=False, capture_output=True)
    return folder


def main(names: list[str]) -> None:
    for name in names or list(PROGRAMS):
        try:
            sys.stdout.write(f"{name}: {build(name)}\n")
        except NotServed as error:
            sys.stdout.write(f"{name}: not built: {error}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main(sys.argv[1:])
