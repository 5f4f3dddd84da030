"""The command `navarch plan`, as a user sees it."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner
from rich.console import Console

from navarch.cli.main import COMMANDS, main
from navarch.cli.tables.plan import show
from navarch.offline.plan import plan
from navarch.testing.builders import Builder, node, pod, pod_group

SAMPLE = Path(__file__).resolve().parents[3] / "examples" / "two-queues.yaml"
POLICY = {"actions": "allocate, backfill", "tiers": [{"plugins": [{"name": "priority"}, {"name": "gang"}]}]}


@pytest.fixture
def policy(tmp_path: Path) -> str:
    path = tmp_path / "policy.yaml"
    path.write_text(yaml.safe_dump(POLICY))
    return str(path)


def written(tmp_path: Path, *objects: dict[str, object]) -> str:
    path = tmp_path / "objects.json"
    path.write_text("\n".join(json.dumps(each) for each in objects))
    return str(path)


def test_the_sample_places_what_fits_and_says_why_the_rest_waits(policy: str) -> None:
    result = CliRunner(env={"COLUMNS": "160"}).invoke(main, ["plan", "-f", str(SAMPLE), "--policy", policy])
    assert result.exit_code == 0, result.output
    assert "Placed: 6" in result.stdout
    for word in ("research/train-worker-0", "gpu-1", "research/sweep", "nvidia.com/gpu", "production"):
        assert word in result.stdout


def test_json_and_yaml_say_the_same_twice(policy: str) -> None:
    def run(output: str) -> str:
        result = CliRunner().invoke(main, ["plan", "-f", str(SAMPLE), "--policy", policy, "-o", output])
        assert result.exit_code == 0, result.output
        return result.stdout

    text = run("json")
    decoded = json.loads(text)
    assert run("json") == text
    assert text == json.dumps(decoded, indent=2, sort_keys=True) + "\n"
    assert yaml.safe_load(run("yaml")) == decoded
    assert len(decoded["cycles"]) == 1


def test_standard_input_and_cycles(policy: str) -> None:
    objects = json.dumps({"apiVersion": "v1", "kind": "List", "items": [node("n").cpu("1"), pod("a")]})
    result = CliRunner().invoke(main, ["plan", "-f", "-", "--policy", policy, "--cycles", "2", "-o", "json"], input=objects)
    cycles = json.loads(result.stdout)["cycles"]
    assert [len(cycle["binds"]) for cycle in cycles] == [1, 0]


def test_every_mistake_is_listed_and_the_exit_code_is_2(tmp_path: Path, policy: str) -> None:
    bad = tmp_path / "bad.yaml"
    bad.write_text("a: [1\n")
    path = written(tmp_path, pod("a").cpu("much"), pod_group("g", -1), pod("fine"), node("n").cpu("1"))
    arguments = ["plan", "-f", path, "-f", str(bad), "-f", str(tmp_path / "absent"), "--policy", policy]
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code == 2
    assert f"{path} document 1: Pod default/a: spec.containers[0].resources.requests[cpu]: found 'much'" in result.stderr
    assert f"{path} document 2: PodGroup default/g: spec.minMember: found -1, expected 0 or more" in result.stderr
    assert f"{bad} document 1 line" in result.stderr and "absent" in result.stderr
    assert "4 mistakes" in result.stderr and not result.stdout
    going = CliRunner().invoke(main, [*arguments, "--keep-going", "-o", "json"])
    assert going.exit_code == 0
    assert [bind["pod"] for bind in json.loads(going.stdout)["cycles"][0]["binds"]] == ["default/fine"]
    assert going.stderr.count("left out:") == 4


def test_a_policy_with_mistakes_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path, node("n"))
    result = CliRunner().invoke(main, ["plan", "-f", path, "--policy", "no-such"])
    assert result.exit_code == 2 and "expected a preset" in result.stderr
    wrong = tmp_path / "wrong.yaml"
    wrong.write_text("actions: allocat\ntiers: []\n")
    result = CliRunner().invoke(main, ["plan", "-f", path, "--policy", str(wrong)])
    assert result.exit_code == 2 and "allocat" in result.stderr


def test_unknown_kinds_are_counted_on_standard_error(tmp_path: Path, policy: str) -> None:
    path = written(tmp_path, Builder("v1", "ConfigMap", "c"), node("n"))
    result = CliRunner().invoke(main, ["plan", "-f", path, "--policy", policy, "-o", "json"])
    assert result.stderr == "not used in scheduling: 1 v1 ConfigMap\n"


@pytest.mark.parametrize(("text", "ok"), [("2026-01-01T00:00:00Z", True), ("1767225600", True), ("tomorrow", False)])
def test_now_is_a_moment_or_refused_with_what_is_expected(tmp_path: Path, policy: str, text: str, ok: bool) -> None:
    result = CliRunner().invoke(main, ["plan", "-f", written(tmp_path, node("n")), "--policy", policy, "--now", text])
    assert (result.exit_code == 0) == ok
    assert ok or "expected seconds since the epoch" in result.stderr


def test_help_names_only_commands_that_are_there() -> None:
    result = CliRunner().invoke(main, ["--help"])
    assert result.exit_code == 0
    assert COMMANDS["plan"][1] in result.stdout
    for name in COMMANDS:
        assert (f"\n  {name} " in result.stdout) == (CliRunner().invoke(main, [name, "--help"]).exit_code == 0)
    assert CliRunner().invoke(main, ["no-such"]).exit_code == 2


def test_asking_for_help_reads_no_command() -> None:
    script = (
        "import sys; from click.testing import CliRunner; from navarch.cli.main import main; "
        "CliRunner().invoke(main, ['--help']); sys.exit('numpy' in sys.modules or 'aiohttp' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0


def test_tables_fit_eighty_columns_and_a_gang_is_told_how_far_it_got() -> None:
    result = CliRunner(env={"COLUMNS": "80"}).invoke(main, ["plan", "-f", str(SAMPLE), "-v"])
    lines = result.stdout.splitlines()
    assert max(map(len, lines)) <= 80 and not any(line.endswith(" ") for line in lines)
    why = lines.index("    there is room for 2 of its 6 pending pods, but the gang starts with 6 or not")
    assert lines[why - 1].split() == ["research/sweep", "research", "Inqueue", "6", "6"]
    assert any(line.startswith("    sweep-2: 0/3 nodes are available: 3 Insufficient nvidia.com/gpu, with 2") for line in lines[why:])
    assert "Unused queues: default, root" in lines
    assert any(line.startswith("Timings: policy ") for line in lines)


def test_a_plugins_part_of_the_time_is_told_from_a_millisecond_on(policy: str) -> None:
    found = plan([node("n").cpu("1"), pod("a")], policy)
    found.timings = {"policy": 0.0001, "drf (open)": 0.0123, "gang (open)": 0.0009, "allocate": 0.0}
    out = io.StringIO()
    show(found, verbose=True, console=Console(file=out, width=80, force_terminal=False))
    assert out.getvalue().splitlines()[-1] == "Timings: policy 0.1 ms, drf (open) 12.3 ms, allocate 0.0 ms"


def test_placements_count_for_their_queue_without_a_queue_plugin(policy: str) -> None:
    result = CliRunner().invoke(main, ["plan", "-f", str(SAMPLE), "--policy", policy, "-o", "json"])
    queues = {each["queue"]: each["allocated"] for each in json.loads(result.stdout)["cycles"][0]["queues"]}
    assert queues["research"] == {"cpu": "8", "memory": "32Gi", "nvidia.com/gpu": "4", "pods": "4"}


def test_nothing_to_decide_is_said(tmp_path: Path, policy: str) -> None:
    result = CliRunner().invoke(main, ["plan", "-f", written(tmp_path, node("n")), "--policy", policy])
    assert result.stdout.startswith("Nothing waits, nothing to decide.\n")


def test_empty_input_and_moments_that_are_none(tmp_path: Path, policy: str) -> None:
    result = CliRunner().invoke(main, ["plan", "-f", "-", "--policy", policy], input="")
    assert result.exit_code == 2 and "File stdin: found nothing, expected objects" in result.stderr
    for moment in ("nan", "inf", "99999-01-01"):
        arguments = ["plan", "-f", written(tmp_path, node("n")), "--policy", policy, "--now", moment]
        assert CliRunner().invoke(main, arguments).exit_code == 2


def test_mistakes_in_files_do_not_hide_those_in_the_policy(tmp_path: Path) -> None:
    result = CliRunner().invoke(main, ["plan", "-f", str(tmp_path / "absent"), "--policy", "no-such"])
    assert result.exit_code == 2 and "absent" in result.stderr and "expected a preset" in result.stderr


def test_a_file_of_volcano_that_strict_mode_refuses_is_shown_the_way_out(tmp_path: Path) -> None:
    conf = tmp_path / "volcano.conf"
    conf.write_text("actions: allocate\ntiers:\n- plugins: [{name: binpack, arguments: {binpack.weight: '5'}}, {name: usage}]\n")
    result = CliRunner().invoke(main, ["plan", "-f", str(SAMPLE), "--policy", str(conf)])
    assert result.exit_code == 2
    assert "the line `compat: volcano` would have it read as Volcano reads it, with " in result.stderr
    conf.write_text(conf.read_text() + "compat: volcano\n")
    assert CliRunner().invoke(main, ["plan", "-f", str(SAMPLE), "--policy", str(conf)]).exit_code == 0


def test_a_command_that_almost_exists() -> None:
    result = CliRunner().invoke(main, ["plna"])
    assert result.exit_code == 2 and "Did you mean 'plan'?" in result.stderr


def test_letters_that_the_terminal_lacks_and_a_locale_that_is_none(tmp_path: Path, policy: str) -> None:
    objects = json.dumps([node("n").cpu("1"), pod("größe").cpu("1")], ensure_ascii=False)
    command = [sys.executable, "-m", "navarch.cli.main", "plan", "-f", "-", "--policy", policy]
    env = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "PYTHONIOENCODING": "ascii"}
    result = subprocess.run(command, input=objects.encode(), env=env, capture_output=True, check=False)
    assert result.returncode == 0, result.stderr
    assert b"default/gr\\xf6\\xdfe  n" in result.stdout


def test_a_plugin_that_fails_is_told_by_file_and_line(tmp_path: Path) -> None:
    plugins = tmp_path / "plugins"
    plugins.mkdir()
    (plugins / "hasty.py").write_text(
        "from navarch.engine.plugin import Plugin\n\n"
        "class Hasty(Plugin):\n    name = 'hasty'\n\n    def job_order(self, job):\n        return job.spec.annotations['team']\n"
    )
    conf = tmp_path / "hasty.yaml"
    conf.write_text(yaml.safe_dump({"actions": "allocate", "tiers": [{"plugins": [{"name": "gang"}, {"name": "hasty"}]}]}))
    result = CliRunner().invoke(main, ["plan", "-f", str(SAMPLE), "--policy", str(conf), "--plugin-dir", str(plugins)])
    assert result.exit_code == 1
    assert "a plugin failed: " in result.stderr and "hasty.py:7, in job_order: KeyError: 'team'" in result.stderr
    assert "return job.spec.annotations['team']" in result.stderr
    assert "Traceback" not in result.output


def test_a_plugin_of_a_relative_directory_is_told_by_file_and_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "plugins").mkdir()
    (tmp_path / "here").mkdir()
    source = "from navarch.engine.plugin import Plugin\n\nclass Hasty(Plugin):\n    name = 'hasty'\n\n    def job_order(self, job):\n"
    (tmp_path / "plugins" / "hasty.py").write_text(f"{source}        return job.spec.annotations['team']\n")
    conf = {"actions": "allocate", "tiers": [{"plugins": [{"name": "gang"}, {"name": "hasty"}]}]}
    (tmp_path / "hasty.yaml").write_text(yaml.safe_dump(conf))
    monkeypatch.chdir(tmp_path / "here")
    words = ["-f", str(SAMPLE.resolve()), "--policy", "../hasty.yaml", "--plugin-dir", "../plugins"]
    for command in (["plan"], ["explain", "sweep"]):
        result = CliRunner().invoke(main, [*command, *words])
        assert "hasty.py:7" in result.output and "Traceback" not in result.output, result.output
