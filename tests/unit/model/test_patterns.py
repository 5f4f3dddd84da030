"""Patterns that come from objects."""

from __future__ import annotations

import subprocess
import sys

import pytest

from navarch.model.patterns import PatternError, compile_pattern


def test_search_is_not_anchored() -> None:
    assert compile_pattern("ck-[0-9]").search("rack-12")
    assert not compile_pattern("^ck-[0-9]").search("rack-12")
    assert compile_pattern("^rack-\\d+$").search("rack-12")


def test_nested_repetition_takes_linear_time() -> None:
    assert not compile_pattern("(a+)+$").search("a" * 100_000 + "!")


@pytest.mark.parametrize("text", ["(", "(?=a)", "a{1001}", "(a{1000}){1000}", "\\1", "\ud800"])
def test_an_invalid_pattern_is_refused(text: str) -> None:
    with pytest.raises(PatternError, match=r"."):
        compile_pattern(text)


def test_many_patterns_that_need_many_states_take_little_memory() -> None:
    """Each of them needs 2^13 states for this text. A process of its own: its memory is measured."""
    script = """
import random
from pathlib import Path
from navarch.model.patterns import compile_pattern
text = "".join(random.Random(1).choices("ab", k=30_000))
memory = lambda: int(Path("/proc/self/statm").read_text().split()[1]) * 4096
compile_pattern("a").search(text)
before = memory()
for i in range(200):
    compile_pattern(f"(a|b)*a(a|b){{13}}c{{{i + 1}}}").search(text)
print((memory() - before) >> 20)
"""
    found = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert int(found.stdout) < 100


def test_the_library_is_imported_with_the_first_pattern() -> None:
    modules = "navarch.plugins.predicates.devices.dynamic_resources, navarch.apis.volcano.hyper_nodes"
    script = f"import sys, {modules}; print('re2' in sys.modules)"
    found = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert found.stdout == "False\n"
