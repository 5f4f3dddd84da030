"""Resource lists of objects (allocatable, capability, minResources ...) as the model's integers.

Only resources that a scheduler accounts for are kept: cpu, memory, ephemeral storage, pods, and scalars (huge pages, attachable
volumes, names of Kubernetes itself, extended resources). Other names are dropped, as in kube-scheduler, Volcano and KAI. So are the
names that only quotas know (`count/pods`, `requests.cpu`, `limits.memory`), which Volcano's controller writes into minResources.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from navarch.apis.core.objects import Quantity
from navarch.apis.errors import NOT_NEGATIVE, QUANTITY, ObjectError
from navarch.model.quantity import QuantityError
from navarch.model.resources import is_extended, parse_amount
from navarch.model.spec import Requests

_FORGET_AFTER = 1 << 14
_known: dict[tuple[tuple[str, Quantity], ...], Requests] = {}
"""Entries of the cache: nodes of one model and groups of one template repeat the same few lists."""
_PLAIN = ("cpu", "memory", "ephemeral-storage")
_OF_QUOTAS = ("count/", "requests.", "limits.")
"""Prefixes of names that only a ResourceQuota limits. No node has any of `count/pods`, although the name has a domain."""
MOST = (1 << 53) - 1
"""The largest amount that one object may name (8Pi of memory). A larger one is cut to this, so that sums fit a column."""


@lru_cache(maxsize=4096)
def is_counted(name: str) -> bool:
    """Whether a pod's request for this name takes part in scheduling."""
    return name in _PLAIN or name.startswith(("hugepages-", "attachable-volumes-")) or "kubernetes.io/" in name or is_extended(name)


def amounts(resources: Mapping[str, Quantity] | None, kind: str, name: str, path: str) -> Requests:
    """A resource list in the model's units, sorted by name; `pods` counts here too."""
    if not resources:
        return ()
    key = tuple(resources.items())
    known = _known.get(key)
    if known is None:
        if len(_known) >= _FORGET_AFTER:
            _known.clear()
        known = _known[key] = _parsed(resources, kind, name, path)
    return known


def _parsed(resources: Mapping[str, Quantity], kind: str, name: str, path: str) -> Requests:
    found = []
    for resource, quantity in resources.items():
        if resource != "pods" and (not is_counted(resource) or resource.startswith(_OF_QUOTAS)):
            continue
        try:
            amount = parse_amount(resource, 0 if quantity is None else quantity)
        except QuantityError as error:
            raise ObjectError(kind, name, f"{path}[{resource}]", repr(quantity), QUANTITY) from error
        if amount < 0:
            raise ObjectError(kind, name, f"{path}[{resource}]", repr(quantity), NOT_NEGATIVE)
        found.append((resource, min(amount, MOST)))
    found.sort()
    return tuple(found)


def optional_amounts(resources: Mapping[str, Quantity] | None, kind: str, name: str, path: str) -> Requests | None:
    """The same where absent and empty differ: absent is None."""
    return None if resources is None else amounts(resources, kind, name, path)
