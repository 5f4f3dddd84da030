"""Counts in docs/parity.md are those of the cases that are run."""

from __future__ import annotations

import re

import pytest
from tests.parity.kai_counts import COUNTS, CYCLES, has_order, has_shares
from tests.parity.mended import KAI, PLUGINS, VOLCANO, count
from tests.parity.recorded import ABSENT, PROJECT, cases_in, cases_of, parity_root
from tests.parity.volcano_judge import DIFFERENT, PLUGIN_OF

PAGE = (PROJECT / "docs" / "parity.md").read_text(encoding="utf-8")


def documented(what: str) -> tuple[int, str]:
    """Cases of a row of the table, and how many agree."""
    found = re.search(rf"\| ([\d,]+) {re.escape(what)}[^|]*\| ([\d,]+|all) \|", PAGE)
    assert found is not None, what
    return int(found[1].replace(",", "")), found[2].replace(",", "")


def recorded(*files: str) -> int:
    paths = [parity_root() / f"{file}.jsonl" for file in files]
    if not all(path.exists() for path in paths):
        pytest.skip(ABSENT)
    return sum(len(cases_in(path)) for path in paths)


def test_cycles_and_probes_of_volcano() -> None:
    cases = cases_of("volcano")
    if not cases:
        pytest.skip(ABSENT)
    differ = len(DIFFERENT) + count(VOLCANO)
    assert documented("whole cycles") == (len(cases), str(len(cases) - differ))
    probes = sum(file in ("probes", "random") and bool(case["expect"].get("probe")) for file, _, case in cases)
    assert documented("probes") == (probes, str(probes))


@pytest.mark.parametrize(("file", "plugin"), sorted(PLUGIN_OF.items()))
def test_cycles_of_further_plugins_of_volcano(file: str, plugin: str) -> None:
    cases = recorded(f"volcano-plugins/{file}")
    assert documented(f"cycles with `{plugin}`") == (cases, str(cases - count(PLUGINS, file)))


def test_cycles_of_kai() -> None:
    cases = recorded(*(f"kai/{file}" for file in CYCLES))
    assert documented("cases, one cycle or several") == (cases, str(cases - count(KAI)))
    for file in CYCLES:
        cases = recorded(f"kai/{file}")
        assert f"{file} {cases - count(KAI, file)} of {cases}" in " ".join(PAGE.split()), file


def test_orders_and_shares_of_kai() -> None:
    paths = [parity_root() / "kai" / f"{file}.jsonl" for file in CYCLES]
    if not all(path.exists() for path in paths):
        pytest.skip(ABSENT)
    cases = [case for path in paths for case in cases_in(path)]
    for row, has in (("orders of jobs and victims", has_order), ("cycles' fair shares", has_shares)):
        count = sum(map(has, cases))
        assert documented(row) == (count, str(count))


def test_texts_of_kai() -> None:
    agree, simulated, differ = (sum(column) for column in zip(*COUNTS.values(), strict=True))
    assert documented("refusal texts") == (agree + differ, str(agree))
    assert f"{agree + simulated + differ:,} recorded fit" in PAGE and f"{simulated} of these are no refusals" in PAGE


def test_pure_functions_of_kai() -> None:
    assert documented("divisions, ")[0] == recorded("kai/fairshare")
    assert f"{recorded('kai/reclaimable')} reclaim questions" in PAGE


def test_answers_of_kube_scheduler() -> None:
    files = sorted((parity_root() / "kube-scheduler").glob("*.jsonl"))
    if not files:
        pytest.skip(ABSENT)
    assert documented("plugin answers")[0] == sum(len(cases_in(path)) for path in files)
