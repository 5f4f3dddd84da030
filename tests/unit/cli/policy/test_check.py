"""`navarch policy check` as a user meets it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from navarch.cli.policy.command import policy
from navarch.engine.policy import PRESETS
from navarch.installed import installed

FILE = """\
actions: "enqueue, allocate"
tiers:
- plugins:
  - name: priority
  - name: gang
    enablePreemptable: false
"""


@pytest.fixture
def conf(tmp_path: Path) -> Path:
    path = tmp_path / "conf.yaml"
    path.write_text(FILE)
    return path


def check(*arguments: str, stdin: str | None = None) -> tuple[int, str, str]:
    result = CliRunner().invoke(policy, ["check", *arguments], input=stdin)
    return result.exit_code, result.stdout, result.stderr


def test_the_output_lists_the_actions_and_plugins(conf: Path) -> None:
    code, out, _ = check(str(conf))
    assert code == 0
    assert out.startswith(f"{conf}: read strict, because it names no compat")
    assert "  1. enqueue" in out and "  2. allocate" in out
    assert "not asked: preemptable" in out
    assert "job order           priority, gang\n" in out
    assert "(switched off: gang)" in out


def test_json(conf: Path) -> None:
    code, out, _ = check(str(conf), "-o", "json")
    report = json.loads(out)
    assert code == 0 and report["compat"] == "strict" and report["mistakes"] == []
    assert [action["name"] for action in report["actions"]] == ["enqueue", "allocate"]
    assert "overused" in report["unanswered"]


def test_standard_input() -> None:
    assert check("-", stdin=FILE.replace("gang", "gagn"))[0] == 2


def test_every_mistake_and_exit_two(conf: Path) -> None:
    conf.write_text(FILE.replace("gang", "gagn").replace("allocate", "alocate"))
    code, out, err = check(str(conf))
    assert code == 2 and out == ""
    assert err.splitlines() == [
        f"{conf}: line 1, actions: unknown action 'alocate' (did you mean 'allocate'?)",
        f"{conf}: line 5, tiers[0].plugins[1].name: unknown plugin 'gagn' (did you mean 'gang'?)",
        "2 mistakes; this policy cannot be used",
    ]
    code, out, _ = check(str(conf), "-o", "json")
    assert code == 2 and [m["line"] for m in json.loads(out)["mistakes"]] == [1, 5]


def test_a_name_that_is_neither_file_nor_preset_is_refused() -> None:
    code, _, err = check("nothing-here.yaml")
    assert code == 2 and f"expected a preset ({', '.join(PRESETS)}) or a file that can be read" in err
    code, _, err = check("volcno")
    assert code == 2 and "(did you mean 'volcano'?)" in err


def test_plugins_of_a_directory(tmp_path: Path) -> None:
    (tmp_path / "oldest.py").write_text(
        "from navarch.engine.plugin import Plugin\n\n"
        "class Oldest(Plugin):\n    '''The oldest first.'''\n    name = 'oldest'\n\n"
        "    def job_order(self, job):\n        return job.spec.created\n"
    )
    conf = tmp_path / "conf.yaml"
    conf.write_text(FILE.replace("priority", "oldest"))
    code, _, err = check(str(conf))
    assert code == 2 and "one of your own is found with --plugin-dir DIR" in err.splitlines(), (
        "the option is named to a user who forgot it"
    )
    code, out, _ = check(str(conf), "--plugin-dir", str(tmp_path))
    assert code == 0 and "The oldest first." in out
    assert installed().plugin("oldest") is None


def test_values_read_as_a_file_would_have_them(tmp_path: Path) -> None:
    conf = tmp_path / "conf.yaml"
    conf.write_text(
        "actions: allocate\ntiers:\n- plugins:\n  - {name: sla, arguments: {sla-waiting-time: 1m30s}}\n"
        "  - {name: predicates}\n  - {name: nodegroup, arguments: {strict: false}}\n"
    )
    _, out, _ = check(str(conf))
    assert "sla-waiting-time = 90s\n" in out and "strict = false\n" in out and "predicate.NodePortsEnable = true  (default)" in out


def test_search_budgets_are_shown(tmp_path: Path) -> None:
    conf = tmp_path / "conf.yaml"
    conf.write_text(
        "actions: allocate, reclaim\ntiers:\n- plugins:\n  - name: proportion\ncompat: kai\n"
        "scenarioSearchBudgets: {maxActionSearchDuration: {default: 5m, reclaim: 90s}, maxJobSearchDuration: 0s}\n"
    )
    _, out, _ = check(str(conf))
    assert "\n  maxActionSearchDuration = default 5m0s, reclaim 1m30s\n  maxJobSearchDuration = 0s\n" in out
    assert "searches for victims" not in check("navarch")[1]


@pytest.mark.parametrize("name", ["navarch", "volcano", "kube-batch", "kai", "kube-scheduler"])
def test_every_preset_can_be_read_in_eighty_columns(name: str) -> None:
    result = CliRunner(env={"COLUMNS": "80"}).invoke(policy, ["check", name])
    assert result.exit_code == 0
    assert max(map(len, result.stdout.splitlines()[1:])) <= 80
    assert ("no plugin answers" in result.stdout) == (name not in ("kai", "kube-scheduler"))


def test_points_that_no_file_can_switch_are_told() -> None:
    assert "\n  queue rank          proportion\n" in check("kai")[1]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("actions: allocate\ntiers: &a [*a]\n", "contains the alias"),
        ("a: " + "[" * 5000, "nested too deep"),
        ("", "found nothing"),
    ],
)
def test_files_that_are_none(text: str, said: str) -> None:
    code, _, err = check("-", stdin=text)
    assert code == 2 and said in err


def run_check(*arguments: str) -> Result:
    return CliRunner().invoke(policy, ["check", *arguments])


def test_common_mistakes_are_one_line_each(tmp_path: Path) -> None:
    files = {
        "binary.conf": bytes(range(128, 256)),
        "tab.conf": b"actions: allocate\ntiers:\n- plugins:\n\t- name: gang\n",
        "nmae.conf": b"actions: allocate\ntiers:\n- plugins:\n  - nmae: gang\n",
    }
    said = {}
    for name, content in files.items():
        (tmp_path / name).write_bytes(content)
        found = run_check(str(tmp_path / name))
        assert found.exit_code == 2, found.output
        said[name] = found.output
    assert "it is not UTF-8 text" in said["binary.conf"]
    assert "line 4: not valid YAML: found a tab where only spaces may indent" in said["tab.conf"]
    assert "line 4, tiers[0].plugins[0].nmae: unknown key 'nmae': did you mean 'name'?" in said["nmae.conf"]


def test_at_most_a_hundred_mistakes_are_shown(tmp_path: Path) -> None:
    file = tmp_path / "many.conf"
    file.write_text("actions: allocate\ntiers:\n- plugins:\n" + "".join(f"  - name: nope{n}\n" for n in range(500)))
    found = run_check(str(file))
    assert found.output.count("unknown plugin") == 100
    assert "... and 400 more\n500 mistakes" in found.output
    plain = json.loads(run_check(str(file), "-o", "json").stdout)
    assert (len(plain["mistakes"]), plain["mistakeCount"]) == (100, 500)


def test_skipped_plugins_come_first_and_warnings_may_fail_a_pipeline(tmp_path: Path) -> None:
    file = tmp_path / "volcano.conf"
    plugins = "  - {name: gang, arguments: {nonsense: 1}}\n  - name: their-own\n"
    file.write_text(f"compat: volcano\nactions: enqueue, allocate\ntiers:\n- plugins:\n{plugins}")
    found = run_check(str(file))
    assert found.exit_code == 0
    lines = found.output.splitlines()
    warnings = lines.index("Warnings")
    assert warnings < lines.index("Actions, in order") and "'their-own'" in lines[warnings + 1]
    strict = run_check(str(file), "--fail-on-warning")
    assert strict.exit_code == 1 and strict.stderr.strip().endswith("warnings")
    assert run_check("navarch", "--fail-on-warning").exit_code == 0


PROFILES = """\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
podInitialBackoffSeconds: 2
profiles:
- schedulerName: default-scheduler
  plugins: {multiPoint: {disabled: [{name: ImageLocality}]}}
- schedulerName: packing
  percentageOfNodesToScore: 100
  pluginConfig:
  - name: NodeResourcesFit
    args: {scoringStrategy: {type: MostAllocated}}
- schedulerName: same
  plugins: {multiPoint: {disabled: [{name: ImageLocality}]}}
"""


def test_every_profile_is_shown_by_what_it_has_otherwise() -> None:
    code, out, _ = check("-", stdin=PROFILES)
    text = " ".join(out.split())
    assert code == 0
    assert "default-scheduler is shown above; it also decides for pods that name no profile of the file" in text
    assert 'packing: with ImageLocality; NodeResourcesFit: scoringStrategy = {"type": "MostAllocated"}' in text
    assert "percentageOfNodesToScore = 100" in text and "same: the same as default-scheduler" in text
    assert "2s at first, 10s at most" in text
