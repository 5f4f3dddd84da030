"""Lists of CPUs, read and written."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from navarch.model.cpu_sets import cpu_numbers, read_cpu_list, write_cpu_list


@given(st.sets(st.integers(0, 300)))
def test_written_sets_are_read_back(numbers: set[int]) -> None:
    bits = sum(1 << number for number in numbers)
    assert cpu_numbers(bits) == sorted(numbers)
    assert read_cpu_list(write_cpu_list(bits)) == bits


@pytest.mark.parametrize("text", ["a", "1-", "-1", "3-1", "0,,1", "4096", "99999999999"])
def test_other_texts_are_no_list(text: str) -> None:
    with pytest.raises(ValueError, match=r"CPU number|ends before"):
        read_cpu_list(text)
