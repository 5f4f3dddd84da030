"""The image without an engine: every step of the Dockerfile that is ours, done by hand in a folder outside the tree.

The wheel is built from exactly what the build context holds and installed into a fresh environment; then the image's entry
point does there what it does in a pod. What the base image brings (Python, pip) is not tested here.
"""

from __future__ import annotations

import fnmatch
import os
import re
import shutil
import signal
import subprocess
import sys
import sysconfig
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import yaml

from navarch import manifests
from navarch.manifests.installation import Installation

TOP = Path(__file__).resolve().parents[2]
DOCKERFILE = TOP / "deploy" / "Dockerfile"
LOCK = TOP / "deploy" / "requirements.lock"
PROJECT = tomllib.loads((TOP / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def steps() -> list[tuple[str, list[str]]]:
    """(instruction, words) of the Dockerfile."""
    lines = DOCKERFILE.read_text(encoding="utf-8").splitlines()
    return [(line.split()[0], line.split()[1:]) for line in lines if line and not line.startswith("#")]


def of(instruction: str) -> list[list[str]]:
    return [words for name, words in steps() if name == instruction]


def allowed(path: Path) -> bool:
    """Whether the file reaches the build: the last matching rule of the ignore file decides."""
    verdict = True
    for line in (TOP / "deploy" / "Dockerfile.dockerignore").read_text(encoding="utf-8").splitlines():
        pattern = line.strip()
        if not pattern or pattern.startswith("#"):
            continue
        inverse, pattern = pattern.startswith("!"), pattern.removeprefix("!")
        name = path.relative_to(TOP).as_posix()
        parents = [name, *(parent.as_posix() for parent in Path(name).parents if parent != Path())]
        if any(fnmatch.fnmatch(each, pattern) or (pattern.startswith("**/") and Path(each).name == pattern[3:]) for each in parents):
            verdict = inverse
    return verdict


@pytest.fixture(scope="module")
def context(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The build stage's folder after its COPY steps."""
    folder = tmp_path_factory.mktemp("context")
    for words in of("COPY"):
        if words[0].startswith("--from"):
            continue
        *sources, target = words
        for source in sources:
            assert (TOP / source).exists(), f"COPY {source}: not there"
            for file in [TOP / source] if (TOP / source).is_file() else (TOP / source).rglob("*"):
                if file.is_file() and allowed(file):
                    copy = folder / target / (file.name if (TOP / source).is_file() else file.relative_to(TOP / source))
                    copy.parent.mkdir(parents=True, exist_ok=True)
                    shutil.copy(file, copy)
    return folder


@pytest.fixture(scope="module")
def navarch(context: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The installed command. Libraries come from where the tests run, the package from the wheel alone."""
    wheels = tmp_path_factory.mktemp("wheels")
    build = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", str(wheels), str(context)]
    built = subprocess.run(build, capture_output=True, text=True, timeout=900, check=False)
    if built.returncode and re.search(r"No matching distribution|NewConnectionError|Temporary failure", built.stderr + built.stdout):
        pytest.skip("no package index: the build backend cannot be fetched")
    assert built.returncode == 0, built.stdout + built.stderr
    (wheel,) = wheels.iterdir()
    assert wheel.name == f"navarch-{PROJECT['version']}-py3-none-any.whl"
    home = tmp_path_factory.mktemp("opt") / "navarch"
    subprocess.run([sys.executable, "-m", "venv", str(home)], check=True, timeout=600)
    pip = [home / "bin" / "python", "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", wheel]
    subprocess.run([str(word) for word in pip], check=True, timeout=600)
    # A folder named in a .pth file is added as it is: the editable install of this tree, which is a .pth itself, is not.
    (packages,) = (home / "lib").glob("python*/site-packages")
    (packages / "libraries.pth").write_text(sysconfig.get_paths()["platlib"] + "\n", encoding="utf-8")
    yield home / "bin" / "navarch"


def alone() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}


@contextmanager
def started(
    command: list[str | Path], folder: Path, *, stdout: int | None = None, stderr: int | None = None
) -> Iterator[subprocess.Popen[str]]:
    """A process that does not outlive the test, however that ends."""
    with subprocess.Popen(command, cwd=folder, env=alone(), text=True, stdout=stdout, stderr=stderr) as process:
        try:
            yield process
        except BaseException:
            process.kill()
            raise


def run(command: Path, *arguments: str, folder: Path) -> str:
    done = subprocess.run([command, *arguments], cwd=folder, env=alone(), capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_entry_point_is_a_script_of_ours_where_the_path_leads() -> None:
    (entry,), (command,) = of("ENTRYPOINT"), of("CMD")
    assert yaml.safe_load(" ".join(entry)) == list(PROJECT["scripts"]) == ["navarch"]
    assert yaml.safe_load(" ".join(command)) == ["run"]
    assert of("RUN") == [["sh", "environment.sh"]]
    (made,) = re.findall(r"-m venv (\S+)", (TOP / "deploy" / "environment.sh").read_text(encoding="utf-8"))
    (copied,) = [words for words in of("COPY") if words[0] == "--from=build"]
    assert copied[1:] == [made, made]
    environment = dict(word.split("=", 1) for words in of("ENV") for word in words)
    assert environment["PATH"].split(":")[0] == f"{made}/bin"


def test_the_lock_file_names_every_dependency_with_hashes() -> None:
    locked = dict(re.findall(r"^([a-z0-9._-]+)==\S+ \\\n\s+--hash=(sha256:[0-9a-f]{64})", LOCK.read_text(encoding="utf-8"), re.M))
    wanted = [*PROJECT["dependencies"], *PROJECT["optional-dependencies"]["speed"]]
    assert not {re.split(r"[^A-Za-z0-9._-]", each)[0].lower() for each in wanted} - locked.keys(), "run `make lock`"


def test_it_runs_as_the_user_and_on_the_port_that_the_deployment_names() -> None:
    deployment = next(item for item in Installation().objects() if item["kind"] == "Deployment")
    pod = deployment["spec"]["template"]["spec"]
    ((user,),) = of("USER")
    assert user == f"{pod['securityContext']['runAsUser']}:{pod['securityContext']['runAsGroup']}"
    ((port,),) = of("EXPOSE")
    assert int(port) in [each["containerPort"] for each in pod["containers"][0]["ports"]]


def test_only_what_the_image_is_made_of_reaches_the_build(context: Path) -> None:
    assert sorted(path.name for path in context.iterdir()) == [
        "LICENSE",
        "README.md",
        "constraints.txt",
        "environment.sh",
        "pyproject.toml",
        "requirements.lock",
        "src",
    ]
    assert not list(context.rglob("__pycache__"))
    assert not allowed(TOP / "tests" / "conftest.py") and not allowed(TOP / "Makefile")


@pytest.mark.slow
def test_the_installed_package_is_whole(navarch: Path, tmp_path: Path) -> None:
    where = run(navarch.with_name("python"), "-c", "import navarch; print(navarch.__file__)", folder=tmp_path)
    assert Path(where.strip()).is_relative_to(navarch.parents[1]), "the package of the wheel, not of the tree"
    assert run(navarch, "--version", folder=tmp_path).strip() == f"navarch {PROJECT['version']}"
    assert "--leader-elect" in run(navarch, "run", "--help", folder=tmp_path)
    printed = list(yaml.safe_load_all(run(navarch, "install", "--print", folder=tmp_path)))
    assert printed == list(Installation().objects())
    assert sum(item["kind"] == "CustomResourceDefinition" for item in printed) == len(manifests.crds())
    source = {path.relative_to(TOP / "src") for path in (TOP / "src").rglob("*") if path.is_file() and allowed(path)}
    packages = navarch.parents[1].glob("lib/python*/site-packages")
    installed = {path.relative_to(folder) for folder in packages for path in folder.glob("navarch/**/*") if path.is_file()}
    assert source <= installed, sorted(map(str, source - installed))[:10]


@pytest.mark.slow
@pytest.mark.live
def test_a_cluster_and_a_scheduler_start_from_the_wheel_alone(navarch: Path, tmp_path: Path) -> None:
    """`navarch up` plays its sample, and `navarch run`, the image's command, schedules a cluster of another process."""
    said = run(navarch, "up", "--until-settled", "--port", "0", "--speed", "20", "--kubeconfig", "k", folder=tmp_path)
    assert "settled after" in said
    up: list[str | Path] = [navarch, "up", "--no-sample", "--port", "0", "--kubeconfig", str(tmp_path / "config")]
    with started(up, tmp_path, stdout=subprocess.PIPE) as cluster:
        assert cluster.stdout is not None
        assert "KUBECONFIG" in cluster.stdout.readline()
        command: list[str | Path] = [navarch, "run", "--kubeconfig", "config", "--listen="]
        command += ["--scheduler-name=other", "--lock-namespace=default"]
        with started(command, tmp_path, stderr=subprocess.PIPE) as scheduler:
            assert scheduler.stderr is not None
            assert any("leading: 4 nodes" in line for line in iter(scheduler.stderr.readline, ""))
            scheduler.send_signal(signal.SIGTERM)
            assert "stopped" in scheduler.stderr.read()
        assert scheduler.returncode == 0
        cluster.send_signal(signal.SIGINT)
        cluster.stdout.read()
    assert cluster.returncode == 0
