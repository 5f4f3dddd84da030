"""Quantities: the grammar, the rounding, and the text they become again."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from navarch.model.quantity import (
    INT64_MAX,
    NANO,
    Form,
    QuantityError,
    canonical,
    form_of,
    format_milli,
    format_nano,
    format_value,
    nano_to_milli,
    parse_milli,
    parse_nano,
    parse_value,
)


@pytest.mark.parametrize(
    ("text", "milli", "value"),
    [
        ("0", 0, 0),
        ("1", 1000, 1),
        (3, 3000, 3),
        (0.5, 500, 1),
        (None, 0, 0),
        ("100m", 100, 1),
        ("1500m", 1500, 2),
        ("1n", 1, 1),
        ("1500u", 2, 1),
        (".5", 500, 1),
        ("5.", 5000, 5),
        ("+2", 2000, 2),
        ("-1.5", -1500, -2),
        ("-1n", -1, -1),
        ("1k", 1_000_000, 1000),
        ("1E", INT64_MAX, 10**18),
        ("1e3", 1_000_000, 1000),
        ("1E3", 1_000_000, 1000),
        ("5e-1", 500, 1),
        ("1.5Gi", 1_610_612_736_000, 1_610_612_736),
        ("1Ei", INT64_MAX, 1 << 60),
        ("99Ei", INT64_MAX, INT64_MAX),
        ("1e99999", INT64_MAX, INT64_MAX),
        ("1e-99999", 1, 1),
        ("0.0000000001", 1, 1),
        (" 1 ", 1000, 1),
    ],
)
def test_grammar_and_rounding(text: str | int | float | None, milli: int, value: int) -> None:
    assert parse_milli(text) == milli
    assert parse_value(text) == value


@pytest.mark.parametrize(
    "text", ["", ".", "m", "1mm", "1 Gi", "1_0", "1ki", "1K", "1e", "1e1.5", "1e3Ki", "--1", "0x10", "\u0661", True]
)
def test_anything_else_is_refused_and_named(text: Any) -> None:
    with pytest.raises(QuantityError, match="is not a quantity"):
        parse_value(text)


def test_fractions_are_rounded_once_after_the_sum() -> None:
    assert nano_to_milli(parse_nano("1500u") + parse_nano("1500u")) == 3


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("0.1", "100m"),
        ("1024Mi", "1Gi"),
        ("1000Mi", "1000Mi"),
        ("1000m", "1"),
        ("1000000", "1M"),
        ("1000000Ki", "1000000Ki"),
        ("512", "512"),
        ("0.5Ki", "512"),
        ("1.5Ki", "1536"),
        ("0.001Ki", "1024m"),
        ("1e3", "1e3"),
        ("12e5", "1200e3"),
        ("100e-3", "100e-3"),
        ("0Gi", "0"),
        ("-2048Ki", "-2Mi"),
    ],
)
def test_a_quantity_is_written_as_the_api_server_writes_it(text: str, written: str) -> None:
    assert canonical(text) == written


def test_amounts_become_text() -> None:
    assert [format_milli(250), format_milli(4000)] == ["250m", "4"]
    assert [format_value(1 << 35, "binary"), format_value(1000, "binary"), format_value(1000)] == ["32Gi", "1k", "1k"]


@given(st.integers(-(10**30), 10**30), st.sampled_from(["decimal", "binary", "exponent"]))
def test_text_reads_back_as_the_same_amount(nano: int, form: Form) -> None:
    limited = max(-INT64_MAX * NANO, min(INT64_MAX * NANO, nano))
    assert parse_nano(format_nano(limited, form)) == limited


@given(st.from_regex(r"\A[+-]?[0-9]{1,12}(\.[0-9]{0,12})?([KMGTPE]i|[numkMGTPE]|[eE][+-]?[0-9]{1,2})?\Z"))
def test_canonical_text_is_stable_and_keeps_the_amount(text: str) -> None:
    written = canonical(text)
    assert parse_nano(written) == parse_nano(text)
    assert canonical(written) == written
    assert form_of(written) in ("decimal", "binary", "exponent")
