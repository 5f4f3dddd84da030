"""Messages of queues that refuse a job, in KAI's words, with the amounts.

Amounts are in the units of the fair shares: thousandths of a core, bytes, GPUs.
"""

from __future__ import annotations

from typing import Final

from navarch.plugins.kai.proportion.share_division import UNLIMITED

_WORDS: Final = {"cpu": ("CPU cores", "CPU cores", "cores", 1000.0), "memory": ("memory", "GB memory", "GB", 1e9)}
_GPUS: Final = ("GPUs", "GPUs", "GPUs", 1.0)


def amount(figure: float, scale: float = 1.0) -> str:
    """Three digits behind the point, the rest cut off, without idle zeros.

    >>> [amount(each) for each in (2.0, 0.25, 2 / 3, 1234567.0, 0.1 + 0.2, float("inf"))]
    ['2', '0.25', '0.666', '1234567', '0.3', 'unlimited']
    """
    if figure == UNLIMITED:
        return "unlimited"
    return f"{figure / scale:.6f}"[:-3].rstrip("0").rstrip(".")


def over_limit(queue: str, resource: str, asked: float, limit: float, held: float) -> str:
    """
    >>> over_limit("red", "gpu", 2, 2.5, 1).partition(". ")[2]
    'Limit is 2.5 GPUs, currently 1 GPUs allocated and workload requested 2 GPUs'
    """
    name, _, unit, scale = _WORDS.get(resource, _GPUS)
    return (
        f"{queue} quota has reached the allowable limit of {name}. Limit is {amount(limit, scale)} {unit}, "
        f"currently {amount(held, scale)} {unit} allocated and workload requested {amount(asked, scale)} {unit}"
    )


def over_quota(queue: str, resource: str, asked: float, quota: float, held: float) -> str:
    _, wanted, unit, scale = _WORDS.get(resource, _GPUS)
    return (
        f"Non-preemptible workload is over quota. Workload requested {amount(asked, scale)} {wanted}, but {queue} quota is "
        f"{amount(quota, scale)} {unit}, while {amount(held, scale)} {unit} are already allocated for non-preemptible pods. "
        "Use a preemptible workload to go over quota."
    )


def beyond_share(queue: str, resource: str, asked: float, share: float, held: float) -> str:
    """Why a queue may not reclaim."""
    _, _, unit, scale = _WORDS.get(resource, _GPUS)
    return (
        f"{queue} may not take from other queues: it holds {amount(held, scale)} {unit} and the workload requested "
        f"{amount(asked, scale)} {unit}, more than its fair share of {amount(share, scale)} {unit}"
    )
