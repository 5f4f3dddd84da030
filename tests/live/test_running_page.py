"""Every command of docs/running.md, as it is written, with only that page, a kubeconfig and a checkout."""

from __future__ import annotations

import asyncio
import os
import re
import shlex
import signal
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner
from tests.envtest.fixtures import binaries_or_skip
from tests.envtest.server import KubeApiServer
from tests.worlds.declared_metrics import declared_metrics
from tests.worlds.live.cluster import World
from tests.worlds.live.servers import embedded_world

import navarch
from navarch.cli.main import main
from navarch.cli.run import run as run_command
from navarch.kube.connect import Endpoint
from navarch.live.run_options import RunOptions
from navarch.live.scheduler import Scheduler
from navarch.testing import node

pytestmark = pytest.mark.live

TOP = Path(__file__).resolve().parents[2]
PAGE = (TOP / "docs" / "running.md").read_text(encoding="utf-8")
RECORDED = "cycle-1794728209123-000042.json.gz"


def commands() -> list[list[str]]:
    blocks = re.findall(r"^```(\w*)\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    return [words for kind, block in blocks if not kind for line in block.splitlines() if (words := shlex.split(line, comments=True))]


class Reader:
    """Types commands, in a folder that holds what a checkout holds."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.folder = world.folder / "checkout"
        self.folder.mkdir()
        (self.folder / "examples").symlink_to(TOP / "examples")
        self._environment = {**os.environ, "KUBECONFIG": str(world.kubeconfig)}

    async def types(self, words: list[str]) -> asyncio.subprocess.Process:
        command = [sys.executable, "-m", "navarch.cli.main", *words[1:]] if words[0] == "navarch" else words
        pipe = asyncio.subprocess.PIPE
        return await asyncio.create_subprocess_exec(*command, cwd=self.folder, env=self._environment, stdout=pipe, stderr=pipe)

    async def output(self, words: list[str], *fine: int) -> str:
        process = await self.types(words)
        said, complaint = await asyncio.wait_for(process.communicate(), 300)
        assert process.returncode in fine, f"{shlex.join(words)}: {said.decode()}{complaint.decode()}"
        return said.decode()

    async def schedules(self, words: list[str], pod: str) -> None:
        """Start it, see that a pod finds its node, press Ctrl-C."""
        process = await self.types([*words, "--listen="])
        assert process.stderr is not None
        reading = asyncio.create_task(process.stderr.read())
        try:
            await self.world.pod(pod)
            await self.world.eventually(lambda: self.world.get_pod(pod), lambda found: found["spec"].get("nodeName"), timeout=120)
        finally:
            process.send_signal(signal.SIGINT)
            said = (await reading).decode()
        assert await process.wait() == 0 and said.rstrip().endswith("stopped"), said


@pytest.fixture(params=["embedded", "kube-apiserver"])
async def fresh(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[World]:
    """A cluster of the reader's own: he installs into it."""
    if request.param == "embedded":
        async with embedded_world(tmp_path) as world:
            yield world
        return
    async with KubeApiServer(binaries=binaries_or_skip()) as real:
        world = World(Path(real.kubeconfig), "default", tmp_path)
        yield world
        await world.close()


async def test_every_command_works_as_written(fresh: World) -> None:
    world = fresh
    await world.node("n0", cpu="16")
    reader = Reader(world)
    done = 0
    for number, words in enumerate(commands()):
        match words[:2]:
            case ["docker", verb]:
                assert verb in ("build", "push")
                assert verb == "push" or (TOP / words[words.index("-f") + 1]).is_file()
            case ["navarch", "run"]:
                await reader.schedules(words, f"pod-{number}")
            case ["navarch", "install"]:
                said = await reader.output(words, 0)
                if "--image" in words:
                    assert words[words.index("--image") + 1] in await reader.output([*words, "--print"], 0)
                    assert "deployments/navarch created" in said
            case ["navarch", "replay"]:
                recorded = sorted((reader.folder / "cycles").iterdir())[-1].name
                assert re.fullmatch(r"cycle-\d{13}-\d{6}\.json\.gz", RECORDED) and len(recorded) == len(RECORDED)
                said = await reader.output([word.replace(RECORDED, recorded) for word in words], 0, 1)
                assert "--policy" in words or said.startswith("the same decisions as then") or " the same, 0 differ" in said
            case ["ls", folder]:
                assert (await reader.output(words, 0)).split() == sorted(each.name for each in (reader.folder / folder).iterdir())
            case _:
                raise AssertionError(f"{shlex.join(words)}: no test tries this")
        done += 1
    assert done >= 9


def test_the_table_of_options_is_whole() -> None:
    """Each option is on the page, and nothing on the page is not an option."""
    table = PAGE.partition("## Options")[2].partition("##")[0]
    named = set(re.findall(r"--[a-z][a-z-]+", table))
    there = {name for parameter in run_command.params for name in (*parameter.opts, *parameter.secondary_opts)}
    assert named == there


def migrations() -> list[list[str]]:
    """What `navarch` is asked in the blocks of the sections for those who come from other systems."""
    sections = re.findall(r"^## Coming from .*?(?=^## )", PAGE, re.MULTILINE | re.DOTALL)
    assert len(sections) == 3
    blocks = [block for section in sections for block in re.findall(r"^```sh\n(.*?)^```", section, re.MULTILINE | re.DOTALL)]
    lines = [shlex.split(line, comments=True) for block in blocks for line in block.splitlines()]
    return [words for words in lines if words and words[0] == "navarch"]


FILES = {
    "volcano.conf": "compat: volcano\nactions: enqueue, allocate\ntiers: [{plugins: [{name: gang}, {name: predicates}]}]\n",
    "scheduler-config.yaml": "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\nparallelism: 16\n",
    "shards.yaml": "apiVersion: kai.scheduler/v1\nkind: SchedulingShard\nmetadata: {name: default}\nspec: {}\n",
}


@pytest.mark.parametrize("words", migrations(), ids=shlex.join)
def test_the_commands_of_a_migration_are_right(words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Options and files are read; a dry run and an installation need a cluster, and other tests have one."""
    monkeypatch.chdir(tmp_path)
    for name, text in FILES.items():
        Path(name).write_text(text, encoding="utf-8")
    if words[1] == "run":
        assert run_command.make_context("run", words[2:]).params["dry_run"]
        return
    more = ["--print"] if words[1] == "install" else []
    told = CliRunner().invoke(main, [words[1], *more, *words[2:]])
    assert told.exit_code == 0, told.output


async def test_the_table_of_metrics_is_whole() -> None:
    """Names and labels, of a scheduler that has not begun."""
    table = PAGE.partition("## Metrics")[2].partition("## ")[0]
    rows = [line.split("|")[1:3] for line in table.splitlines() if line.startswith("| `")]
    documented = {name: set(re.findall(r"`(\w+)`", labels)) for names, labels in rows for name in re.findall(r"`(\w+)`", names)}
    scheduler = Scheduler(Endpoint("http://127.0.0.1:1"), RunOptions(listen="", leader_elect=False))
    exposed: dict[str, set[str]] = {}
    for family, labels in declared_metrics(scheduler.metrics.registry):
        exposed[family.name + ("_total" if family.type == "counter" else "")] = labels
    assert exposed == documented
    assert not {"pod", "job", "namespace", "node", "uid"} & set().union(*documented.values())


def test_the_first_gang_starts_whole_or_not_at_all() -> None:
    (gang,) = re.findall(r"^```yaml\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    manifests = list(yaml.safe_load_all(gang))
    for cpus, started in ((4, 4), (3, 0)):
        (cycle,) = navarch.plan([node("n").cpu(cpus), *manifests]).to_dict()["cycles"]
        assert len(cycle["binds"]) == started
        assert [(job["job"], job["queue"]) for job in cycle["jobs"]] == [("default/train", "research")]
