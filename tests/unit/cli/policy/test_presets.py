"""`navarch policy presets`: the help with the first choice, and the table of docs/policy.md that is made from it."""

from __future__ import annotations

from pathlib import Path

from click.testing import CliRunner

from navarch.cli.policy.command import policy
from navarch.engine.policy import PRESETS, load
from navarch.installed import installed

PAGE = Path(__file__).resolve().parents[4] / "docs" / "policy.md"
EVICTING = {"preempt", "reclaim", "gangpreempt", "gangreclaim", "consolidation", "shuffle", "schedule"}


def presets(*arguments: str) -> str:
    result = CliRunner(env={"COLUMNS": "80"}).invoke(policy, ["presets", *arguments])
    assert result.exit_code == 0, result.output
    return result.stdout


def rows() -> dict[str, str]:
    """preset -> its cost, as the page says it."""
    cells = [line.strip("| ").split(" | ") for line in presets("-o", "markdown").splitlines()[2:]]
    return {name.strip("`"): cost for _, name, cost in cells}


def test_every_preset_is_a_choice_and_the_page_has_the_table() -> None:
    assert set(rows()) == set(PRESETS)
    page = PAGE.read_text(encoding="utf-8")
    assert presets("-o", "markdown") in page
    assert "| if you want |" in "\n".join(page.splitlines()[:20]), "on the first screen"


def test_what_is_said_of_evictions_is_what_the_preset_runs() -> None:
    catalogue = installed().catalogue()
    for name, cost in rows().items():
        actions = load(PRESETS[name], catalogue, name).actions
        evicts = bool(EVICTING & set(actions))
        if name != "kube-scheduler":
            assert evicts == ("evicts" in cost and "evicts nothing" not in cost), (name, cost)


def test_it_fits_a_terminal() -> None:
    assert max(map(len, presets().splitlines())) <= 80
    assert "evicts whole gangs" in " ".join(presets().split())
