"""Amounts as plain numbers: cores, bytes, devices."""

from __future__ import annotations

from typing import Any

import numpy as np

from navarch.model.resources import IntArray, unit_of
from navarch.model.spec import Requests
from navarch.views.quantities import numbers


def numbers_of(requests: Requests | None) -> dict[str, float]:
    return numbers(dict(requests or ()))


def plain_list(name: str, amounts: IntArray) -> list[Any]:
    """A column of numbers. Whole numbers stay whole: they take fewer bytes."""
    if unit_of(name) != "milli":
        found: list[Any] = amounts.tolist()
        return found
    if not np.any(amounts % 1000):
        found = (amounts // 1000).tolist()
        return found
    found = (amounts / 1000).round(3).tolist()
    return found


def shown_resources(names: list[str], total: IntArray) -> list[int]:
    """Columns of the resources that pages show: devices that some node has, then cpu and memory."""
    devices = [i for i, name in enumerate(names[: len(total)]) if "/" in name and not name.startswith("hugepages-") and total[i] > 0]
    return sorted(devices, key=lambda i: names[i]) + [0, 1]
