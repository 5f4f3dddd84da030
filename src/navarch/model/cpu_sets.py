"""Sets of CPUs, as lists such as `0-3,8` in objects and as the bits of an integer in computations."""

from __future__ import annotations

from typing import Final

MOST_CPUS: Final = 4096
"""CPU numbers are below this. No machine has so many, and a set has a bit for each number below its largest."""


def read_cpu_list(text: str) -> int:
    """The set as bits. Raises ValueError for what is no list of CPUs.

    >>> read_cpu_list("0-2,5"), read_cpu_list("")
    (39, 0)
    """
    bits = 0
    for part in text.split(",") if text else ():
        first, dash, last = part.strip().partition("-")
        low, high = _number(first), _number(last) if dash else _number(first)
        if low > high:
            raise ValueError(f"{part!r} ends before it begins")
        bits |= (1 << (high + 1)) - (1 << low)
    return bits


def write_cpu_list(bits: int) -> str:
    """
    >>> write_cpu_list(39), write_cpu_list(0)
    ('0-2,5', '')
    """
    parts, numbers = list[str](), cpu_numbers(bits)
    start = 0
    for i, number in enumerate(numbers):
        if i + 1 == len(numbers) or numbers[i + 1] != number + 1:
            parts.append(str(number) if i == start else f"{numbers[start]}-{number}")
            start = i + 1
    return ",".join(parts)


def cpu_numbers(bits: int) -> list[int]:
    """The members, ascending."""
    return [number for number in range(bits.bit_length()) if bits >> number & 1]


def _number(text: str) -> int:
    if not text.isdecimal() or len(text) > 5 or int(text) >= MOST_CPUS:
        raise ValueError(f"{text!r} is no CPU number below {MOST_CPUS}")
    return int(text)
