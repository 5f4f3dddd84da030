"""Every example in a docstring gives what it says."""

from __future__ import annotations

import doctest
import importlib
from pathlib import Path

import pytest

SOURCES = Path(__file__).resolve().parents[2] / "src"
PROMPT = ">>> "
WITH_EXAMPLES = [path for path in sorted(SOURCES.rglob("*.py")) if PROMPT in path.read_text(encoding="utf-8")]


def module_of(path: Path) -> str:
    return ".".join(path.relative_to(SOURCES).with_suffix("").parts).removesuffix(".__init__")


@pytest.mark.parametrize("path", WITH_EXAMPLES, ids=module_of)
def test_the_examples_of_a_module_give_what_they_say(path: Path) -> None:
    result = doctest.testmod(importlib.import_module(module_of(path)))
    assert result.failed == 0, "the output above names the example"
    assert result.attempted == path.read_text(encoding="utf-8").count(PROMPT), "an example is in no docstring that is read"


def test_there_are_modules_with_examples() -> None:
    assert len(WITH_EXAMPLES) > 100
