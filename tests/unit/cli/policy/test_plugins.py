"""`navarch policy plugins`: the reference, and the file that is made from it."""

from __future__ import annotations

import json
from pathlib import Path

from click.testing import CliRunner

from navarch.cli.policy.command import policy
from navarch.cli.policy.reference import listed
from navarch.engine.policy.reference import reference
from navarch.engine.registry import Registry
from navarch.installed import installed

DOCS = Path(__file__).resolve().parents[4] / "docs" / "plugins.md"


def plugins(*arguments: str) -> tuple[int, str, str]:
    result = CliRunner(env={"COLUMNS": "80"}).invoke(policy, ["plugins", *arguments])
    return result.exit_code, result.stdout, result.stderr


def test_the_file_in_docs_is_what_the_code_declares() -> None:
    code, out, _ = plugins("-o", "markdown")
    assert code == 0
    assert DOCS.read_text(encoding="utf-8") == out, "run `make reference`"


def test_everything_that_is_installed_is_there_with_a_sentence() -> None:
    found = json.loads(plugins("-o", "json")[1])
    catalogue = installed().catalogue()
    for kind, known in (("actions", catalogue.actions), ("plugins", catalogue.plugins)):
        assert {f"{e['dialect']}:{e['name']}".lstrip(":") for e in found[kind]} == set(known)
        assert [e["name"] for e in found[kind] if not e["doc"]] == []
        for entry in found[kind]:
            assert [a["name"] for a in entry["arguments"] if not a["doc"]] == [], entry["name"]
    assert [point["point"] for point in found["points"] if not point["about"] or not point["methods"]] == []


def test_the_list_fits_eighty_columns() -> None:
    _, out, _ = plugins()
    assert "\nPlugins: KAI's\n" in out and "\nActions: kube-scheduler's\n  schedule " in out
    assert max(map(len, out.splitlines())) <= 80


def test_one_of_them_in_full() -> None:
    _, out, _ = plugins("sla")
    assert out.startswith("plugin sla (volcano)\n") and "sla-waiting-time = unset  (duration)" in out
    assert plugins("proportion")[1].count("plugin proportion (") == 3


def test_an_unknown_name_gets_a_suggestion() -> None:
    code, _, err = plugins("binpakc")
    assert code == 2 and "no plugin or action is called 'binpakc'; did you mean 'binpack'?" in err


def test_plugins_of_a_directory_are_told_as_well(tmp_path: Path) -> None:
    (tmp_path / "oldest.py").write_text(
        "from navarch.engine.arguments import Argument\nfrom navarch.engine.plugin import Plugin\n\n"
        'class Oldest(Plugin):\n    """The oldest first\n\n    By the hour.\n    """\n    name = \'oldest\'\n'
        "    arguments = (Argument('round', 'duration', 3600.0, 'what counts as equal', minimum=1),)\n\n"
        "    def job_order(self, job):\n        return job.spec.created\n"
    )
    _, out, _ = plugins("oldest", "--plugin-dir", str(tmp_path))
    assert "  By the hour.\n" in out and "round = 3600s  (duration)\n      what counts as equal; 1 or more" in out


def test_nothing_installed() -> None:
    assert not list(listed(reference(Registry().catalogue()), 80))
