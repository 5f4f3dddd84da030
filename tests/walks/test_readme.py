"""README: every command is typed, every figure is that of the page which proves it, and the picture is what its script makes."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
import tomllib
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from xml.etree import ElementTree

import pyte
import pytest
from bench.live.__main__ import main as bench_live
from click.testing import CliRunner
from tests.envtest.build import KUBERNETES
from tests.worlds.up_process import NAVARCH, running_up

from navarch.cli.main import main

TOP = Path(__file__).resolve().parents[2]
TEXT = (TOP / "README.md").read_text(encoding="utf-8")
PROJECT = tomllib.loads((TOP / "pyproject.toml").read_text(encoding="utf-8"))["project"]
PICTURE = TOP / "docs" / "images" / "up.svg"
MOST_BYTES = 40_000
SCREEN = 50
"""Lines of a screen; README has two."""


def page(name: str) -> str:
    return (TOP / "docs" / name).read_text(encoding="utf-8")


def blocks() -> list[str]:
    return re.findall(r"^```\w*\n(.*?)^```", TEXT, re.MULTILINE | re.DOTALL)


def typed() -> list[list[str]]:
    """The commands of the blocks."""
    lines = [line.removeprefix("$ ") for block in blocks() for line in block.splitlines() if line.startswith(("$ ", "make "))]
    return [words for line in lines if (words := shlex.split(line, comments=True))]


def test_it_has_two_screens_and_at_most_eight_doors() -> None:
    assert len(TEXT.splitlines()) <= 2 * SCREEN
    doors = TEXT.partition("## Where next")[2]
    assert 0 < len(re.findall(r"\]\(", doors)) <= 8


def test_what_is_said_to_be_tested_is_tested() -> None:
    kubernetes, pythons = re.findall(r"Kubernetes ([\d.]+) .*?Python ([\d., and]+),", TEXT)[0]
    assert KUBERNETES.startswith(f"v{kubernetes}.")
    assert f"kube-scheduler {KUBERNETES.removeprefix('v')}" in TEXT
    declared = [each.rpartition(" ")[2] for each in PROJECT["classifiers"] if re.search(r"Python :: 3\.\d", each)]
    assert re.findall(r"3\.\d+", pythons) == declared
    assert PROJECT["version"].startswith(re.findall(r"\*\*State\*\*: (\d+\.\d+),", TEXT)[0])


def test_figures_are_those_of_the_pages() -> None:
    speed, agreement = page("performance.md"), page("parity.md")
    rows = re.findall(r"^\| (?:Navarch|kube-scheduler 1.*?) \|.*", speed, re.MULTILINE)[:2]
    measured = [[cell.strip() for cell in row.split("|")] for row in rows]
    said = [
        [cell.strip() for cell in line.split("|")][2:4] for line in TEXT.splitlines() if re.match(r"\| (binds|gangs|single)", line)
    ]
    for column, cells in enumerate(measured):
        binds, cpu, memory, single, gangs = cells[2:7]
        assert [row[column] for row in said] == [f"{binds}; {cpu} s; {memory}", gangs, single]
    command = re.findall(r"python -m (bench\.live [^`]*)`", TEXT)[0]
    assert f"python -m {command}" in speed
    bench_live.make_context("bench.live", command.split()[1:])
    answers = re.findall(r"(\d+) of\s+(\d+) ([a-z ]+) of\s+(Volcano|KAI|kube-scheduler)", TEXT)
    assert [system for *_, system in answers] == ["Volcano", "KAI", "kube-scheduler"]
    for agree, cases, what, system in answers:
        assert re.search(rf"\| {system} [^|]*\| {cases} {what}[^|]*\| {agree} \|", agreement), (system, what)


def test_the_explanation_is_what_the_command_prints(monkeypatch: pytest.MonkeyPatch) -> None:
    (block,) = (each for each in blocks() if "two-queues.yaml" in each)
    command, *shown = block.splitlines()
    monkeypatch.setenv("COLUMNS", "110")
    monkeypatch.chdir(TOP)
    printed = iter(CliRunner().invoke(main, [*shlex.split(command)[2:], "--seconds", "600"]).stdout.splitlines())
    assert len(shown) == 10
    assert [line for line in shown if line not in printed] == [], "in this order"


def test_make_has_the_targets() -> None:
    inline = [words.split() for words in re.findall(r"`(make [a-z]+(?: \w+=\w+)?)", TEXT)]
    for words in [*inline, *(words for words in typed() if words[0] == "make")]:
        subprocess.run([*words[:1], "--dry-run", *words[1:], f"PYTHON={sys.executable}"], cwd=TOP, capture_output=True, check=True)


@pytest.mark.live
def test_every_command_works_as_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the cluster with the sample, once its last job waits."""
    monkeypatch.chdir(TOP)
    with running_up(tmp_path, "--speed", "20", sample=True) as up:
        assert up.process.stdout is not None
        for line in up.process.stdout:
            if "larger than the cluster" in line:
                break
        monkeypatch.setenv("KUBECONFIG", str(up.kubeconfig))
        done = 0
        for words in typed():
            if words[0] != "navarch" or "-f" in words:
                continue
            command = [*NAVARCH, *words[1:]]
            said = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
            assert said.returncode == 0, f"{shlex.join(words)}: {said.stdout}{said.stderr}"
            if words[1] == "explain":
                assert "cannot start: needs 33 GPUs" in said.stdout and "more node" in said.stdout
            done += 1
        assert done == 3


def test_the_picture_is_small_and_shows_the_sample() -> None:
    text = PICTURE.read_text(encoding="utf-8")
    assert len(text) <= MOST_BYTES
    drawn = "\n".join("".join(each.itertext()) for each in ElementTree.fromstring(text).iter() if each.tag.endswith("}text"))
    script = picture_script()
    for caption, shown in script.STEPS:
        assert caption in drawn
        assert re.search(shown.replace(" +", r"\s+"), drawn), shown
    assert f"$ navarch explain {script.JOB}" in drawn and "what an administrator can change (each was tried):" in drawn


def test_a_line_is_stored_once_and_drawn_where_it_stands() -> None:
    script = picture_script()
    screen = pyte.Screen(20, 3)
    stream = pyte.Stream(screen)
    stream.feed("\x1b[1mJobs\x1b[0m 2 <a>\r\n\r\n  \x1b[32mRunning\x1b[0m  8")
    rows = script.rows_of(screen)
    assert [[(run.column, run.text, run.bold) for run in row] for row in rows] == [
        [(0, "Jobs", True), (5, "2 <a>", False)],
        [],
        [(2, "Running", False), (11, "8", False)],
    ]
    drawn = script.svg([("one", rows), ("two", rows)])
    assert drawn == script.svg([("one", rows), ("two", rows)])
    assert drawn.count(">Running<") == 1 and drawn.count("&lt;a&gt;") == 1 and drawn.count("<animate ") == 2
    ElementTree.fromstring(drawn)


@pytest.mark.slow
def test_the_picture_is_made_again(tmp_path: Path) -> None:
    script = TOP / "docs" / "tools" / "moving_picture.py"
    subprocess.run([sys.executable, script, tmp_path / "up.svg"], check=True, timeout=600)
    again, kept = ((path).read_text(encoding="utf-8").count("<animate ") for path in (tmp_path / "up.svg", PICTURE))
    assert again == kept


def picture_script() -> ModuleType:
    spec = spec_from_file_location("moving_picture", TOP / "docs" / "tools" / "moving_picture.py")
    assert spec is not None and spec.loader is not None
    module = module_from_spec(spec)
    sys.modules[spec.name] = module  # its types name it
    spec.loader.exec_module(module)
    return module
