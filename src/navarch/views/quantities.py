"""Amounts of resources as Kubernetes writes quantities, and as plain numbers: cores, bytes, devices."""

from __future__ import annotations

from collections.abc import Mapping

from navarch.model.resources import UNLIMITED, format_amount, unit_of

Amounts = Mapping[str, float]
"""Resource -> amount in the units of the model."""


def quantities(amounts: Amounts) -> dict[str, str]:
    """By resource name; a resource without limit is left out.

    >>> quantities({"memory": 1 << 30, "cpu": 1500})
    {'cpu': '1500m', 'memory': '1Gi'}
    """
    return {name: format_amount(name, amount) for name, amount in sorted(amounts.items()) if amount < UNLIMITED}


def plain(name: str, amount: float) -> float:
    """
    >>> plain("cpu", 1500), plain("nvidia.com/gpu", 8000), plain("memory", 1024)
    (1.5, 8, 1024)
    """
    if unit_of(name) == "milli":
        amount = amount / 1000
    return int(amount) if amount == int(amount) else round(amount, 3)


def numbers(amounts: Amounts | None) -> dict[str, float]:
    """By name; a resource without limit is left out."""
    return {name: plain(name, amount) for name, amount in sorted((amounts or {}).items()) if amount < UNLIMITED}
