"""Kubernetes quantities as exact integers.

A quantity is a decimal number with an optional suffix: ``100m``, ``1.5Gi``, ``2e3``, ``-1``. The API
keeps nothing finer than a billionth, so one integer of nano-units holds every quantity exactly; sums
over containers are taken there. The scheduler then reads cpu in milli-units and everything else in
whole units, and a fraction that is left is rounded away from zero once: half a byte asked for is one byte.

Numbers beyond int64 are cut to it, as the API does, so that a value always fits an array column.

>>> parse_milli("1.5"), parse_value("1Gi"), canonical("1024Mi"), canonical("0.5")
(1500, 1073741824, '1Gi', '500m')
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final, Literal, TypeAlias

Quantity: TypeAlias = str | int | float | None
"""What a manifest may hold: text, a bare number, or null, which the API reads as zero."""

Form: TypeAlias = Literal["decimal", "binary", "exponent"]
"""The family of suffixes a quantity was written with; kept when it is written back."""

NANO: Final = 1_000_000_000
INT64_MAX: Final = (1 << 63) - 1

_NANO_PER_MILLI: Final = 1_000_000
_MAX_NANO: Final = INT64_MAX * NANO
_DECIMAL: Final = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY: Final = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_DECIMAL_SUFFIX: Final = {exponent: suffix for suffix, exponent in _DECIMAL.items()}
_GRAMMAR: Final = re.compile(r"([+-]?)([0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:([KMGTPE]i)|[eE]([+-]?[0-9]+)|([numkMGTPE]?))", re.ASCII)
# Exponents past these only decide between "cut to the largest" and "rounded up to the smallest".
_EXPONENT_BOUND: Final = 64
# Python converts at most 4300 digits; nothing that is meant is half as long.
_LONGEST: Final = 2000


class QuantityError(ValueError):
    """A text that is not a quantity; says what was found and what was expected."""

    def __init__(self, found: object) -> None:
        super().__init__(
            f"{found!r} is not a quantity: expected a number with an optional suffix "
            "(n u m k M G T P E, Ki Mi Gi Ti Pi Ei, or an exponent such as e3)"
        )
        self.found = found


def _divide_away_from_zero(number: int, divisor: int) -> int:
    return -(-number // divisor) if number >= 0 else number // divisor


def _cut(number: int) -> int:
    return max(-INT64_MAX, min(INT64_MAX, number))


@lru_cache(maxsize=65536)
def _parse(text: str) -> tuple[int, Form]:
    match = _GRAMMAR.fullmatch(text.strip())
    if match is None or len(text) > _LONGEST:
        raise QuantityError(text)
    sign, number, binary, exponent, suffix = match.groups()
    whole, _, fraction = number.partition(".")
    mantissa = int((whole + fraction) or "0")
    scale = 9 - len(fraction)
    form: Form
    if binary:
        mantissa <<= _BINARY[binary]
        form = "binary"
    elif exponent is not None:
        scale += max(-_EXPONENT_BOUND, min(_EXPONENT_BOUND, int(exponent)))
        form = "exponent"
    else:
        scale += _DECIMAL[suffix]
        form = "decimal"
    nano = mantissa * 10**scale if scale >= 0 else _divide_away_from_zero(mantissa, 10**-scale)
    nano = min(nano, _MAX_NANO)
    return (-nano if sign == "-" else nano), form


def _text(value: Quantity) -> str:
    if value is None:
        return "0"
    if isinstance(value, str):
        return value
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise QuantityError(value)
    return str(value)


def parse_nano(value: Quantity) -> int:
    """The exact amount in billionths; add these up before rounding."""
    return _parse(value if isinstance(value, str) else _text(value))[0]


def nano_to_milli(nano: int) -> int:
    """Milli-units, a remainder rounded away from zero."""
    return _cut(_divide_away_from_zero(nano, _NANO_PER_MILLI))


def nano_to_value(nano: int) -> int:
    """Whole units, a remainder rounded away from zero."""
    return _cut(_divide_away_from_zero(nano, NANO))


@lru_cache(maxsize=65536)
def _milli(text: str) -> int:
    return nano_to_milli(_parse(text)[0])


@lru_cache(maxsize=65536)
def _value(text: str) -> int:
    return nano_to_value(_parse(text)[0])


def parse_milli(value: Quantity) -> int:
    """Milli-units, as cpu is counted.

    >>> parse_milli("250m"), parse_milli(2), parse_milli("1500u")
    (250, 2000, 2)
    """
    return _milli(value if isinstance(value, str) else _text(value))


def parse_value(value: Quantity) -> int:
    """Whole units: bytes, devices, pods.

    >>> parse_value("1Ki"), parse_value("1.5"), parse_value("-1.5"), parse_value("100m")
    (1024, 2, -2, 1)
    """
    return _value(value if isinstance(value, str) else _text(value))


def form_of(value: Quantity) -> Form:
    """Which family of suffixes the quantity was written with."""
    return _parse(_text(value))[1]


def format_nano(nano: int, form: Form = "decimal") -> str:
    """The canonical text: no fraction, no loss, the largest suffix that allows both.

    >>> format_nano(2048 * NANO, "binary"), format_nano(1500 * NANO), format_nano(NANO // 10)
    ('2Ki', '1500', '100m')
    """
    if nano == 0:
        return "0"
    if form == "binary" and nano % NANO == 0 and abs(nano) >= 1024 * NANO:
        number = nano // NANO
        suffix = ""
        for candidate, shift in _BINARY.items():
            if number % (1 << shift) == 0:
                suffix = candidate
        return f"{number >> _BINARY[suffix] if suffix else number}{suffix}"
    exponent = -9
    while nano % 1000 == 0 and exponent < 18:
        nano //= 1000
        exponent += 3
    if form == "exponent":
        return f"{nano}e{exponent}" if exponent else str(nano)
    return f"{nano}{_DECIMAL_SUFFIX[exponent]}"


def format_milli(milli: int) -> str:
    """Text for an amount of milli-units.

    >>> format_milli(1500), format_milli(2000)
    ('1500m', '2')
    """
    return format_nano(milli * _NANO_PER_MILLI)


def format_value(value: int, form: Form = "decimal") -> str:
    """Text for an amount of whole units; ``binary`` for memory and storage.

    >>> format_value(209715200, "binary"), format_value(8)
    ('200Mi', '8')
    """
    return format_nano(value * NANO, form)


def canonical(value: Quantity) -> str:
    """The quantity as the API server would write it back.

    >>> canonical("0.1"), canonical("1500m"), canonical("1e3"), canonical("1000Ki")
    ('100m', '1500m', '1e3', '1000Ki')
    """
    return format_nano(*_parse(_text(value)))
