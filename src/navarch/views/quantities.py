"""Amounts of resources as Kubernetes writes quantities."""

from __future__ import annotations

from collections.abc import Mapping

from navarch.model.resources import UNLIMITED, format_amount

Amounts = Mapping[str, float]
"""Resource -> amount in the units of the model."""


def quantities(amounts: Amounts) -> dict[str, str]:
    """By resource name; a resource without limit is left out.

    >>> quantities({"memory": 1 << 30, "cpu": 1500})
    {'cpu': '1500m', 'memory': '1Gi'}
    """
    return {name: format_amount(name, amount) for name, amount in sorted(amounts.items()) if amount < UNLIMITED}
