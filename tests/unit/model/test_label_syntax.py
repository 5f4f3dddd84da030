from __future__ import annotations

import pytest

from navarch.model.label_syntax import parse_int64


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("7", 7), ("-7", -7), ("+7", 7), ("0", 0), ("-0", 0), ("007", 7), ("0" * 5000 + "1", 1),
        ("9223372036854775807", 2**63 - 1), ("-9223372036854775808", -(2**63)), ("9223372036854775808", None),
        ("9" * 5000, None), ("-" + "9" * 5000, None), ("", None), ("-", None), ("²", None), ("1_0", None), (" 1", None), ("1.0", None),
    ],
)  # fmt: skip
def test_an_integer_is_read_as_go_reads_it(text: str, number: int | None) -> None:
    assert parse_int64(text) == number
