"""Amounts of one resource in one sentence: all in the same unit.

`asks 500, holds 16200m of 125600m` must be converted before it can be compared. Kubernetes writes each quantity in the largest unit
that needs no decimal point. Here the largest amount picks the unit for all, and decimal points are used.
"""

from __future__ import annotations

from navarch.model.resources import UNLIMITED, unit_of

_BINARY = ("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")


def side_by_side(name: str, *amounts: float) -> list[str]:
    """
    >>> side_by_side("cpu", 500_000, 16_200, 125_600), side_by_side("cpu", 500, 0, 900)
    (['500', '16.2', '125.6'], ['500m', '0', '900m'])
    >>> side_by_side("memory", 512 << 20, 3 << 30), side_by_side("nvidia.com/gpu", 500, 8000), side_by_side("pods", 3, 110)
    (['0.5Gi', '3Gi'], ['0.5', '8'], ['3', '110'])
    """
    most = max((abs(each) for each in amounts if abs(each) < UNLIMITED), default=0)
    match unit_of(name):
        case "milli" if name == "cpu" and most < 1000:
            return [_written(each, 1, "m") for each in amounts]
        case "milli":
            return [_written(each, 1000) for each in amounts]
        case "bytes":
            power = max(0, min((int(most).bit_length() - 1) // 10, len(_BINARY) - 1))
            return [_written(each, 1024**power, _BINARY[power]) for each in amounts]
        case _:
            return [_written(each, 1) for each in amounts]


def _written(amount: float, scale: int, unit: str = "") -> str:
    """Three digits behind the point at the most; what is there is never written as none."""
    if abs(amount) >= UNLIMITED:
        return "unlimited"
    text = f"{amount / scale:.3f}".rstrip("0").rstrip(".")
    if text in ("0", "-0"):
        return "0" if not amount else f"{'-' if amount < 0 else ''}<0.001{unit}"
    return text + unit
