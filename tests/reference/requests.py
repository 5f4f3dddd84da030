"""What a pod asks for, from its spec or, once it runs, from its status. Exact billionths until the very end."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from tests.reference.cluster import Object, sidecar

from navarch.model.label_syntax import key_complaints
from navarch.model.quantity import nano_to_milli, nano_to_value, parse_nano

Amounts = dict[str, int]
DEFAULTS: Amounts = {"cpu": parse_nano("100m"), "memory": parse_nano("200Mi")}


def read(quantities: Mapping[str, str] | None) -> Amounts:
    return {name: parse_nano(quantity) for name, quantity in (quantities or {}).items()}


def add(left: Amounts, right: Amounts) -> Amounts:
    return {name: left.get(name, 0) + right.get(name, 0) for name in {**left, **right}}


def largest(*lists: Amounts) -> Amounts:
    names = {name for amounts in lists for name in amounts}
    return {name: max(amounts[name] for amounts in lists if name in amounts) for name in names}


def infeasible(pod: Object) -> bool:
    for condition in (pod.get("status") or {}).get("conditions") or ():
        if condition.get("type") == "PodResizePending":
            return bool(condition.get("reason") == "Infeasible")
    return False


def container_amounts(pod: Object, container: Object, kind: str, use_status: bool) -> Amounts:
    spec = read((container.get("resources") or {}).get(kind))
    if not use_status:
        return spec
    status = pod.get("status") or {}
    entries = [*(status.get("containerStatuses") or ()), *(status.get("initContainerStatuses") or ())]
    for entry in entries:
        if entry.get("name") == container.get("name") and entry.get("resources") is not None:
            seen = [read(entry["resources"].get(kind))]
            if kind == "requests":
                seen.append(read(entry.get("allocatedResources")))
            return largest(*seen) if infeasible(pod) else largest(spec, *seen)
    return spec


def aggregate(pod: Object, kind: str, use_status: bool = False, defaults: Amounts | None = None) -> Amounts:
    """Containers and sidecars together, or the most demanding moment of the initialisation."""

    def amounts(container: Object, status: bool) -> Amounts:
        return {**(defaults or {}), **container_amounts(pod, container, kind, status)}

    total: Amounts = {}
    for container in pod["spec"].get("containers") or ():
        total = add(total, amounts(container, use_status))
    sidecars: Amounts = {}
    peak: Amounts = {}
    for container in pod["spec"].get("initContainers") or ():
        if sidecar(container):
            own = amounts(container, use_status)
            total = add(total, own)
            sidecars = add(sidecars, own)
            peak = largest(peak, sidecars)
        else:
            peak = largest(peak, add(amounts(container, False), sidecars))
    return largest(total, peak)


def pod_level_name(name: str) -> bool:
    return name in ("cpu", "memory") or name.startswith("hugepages-")


def pod_level(pod: Object, kind: str) -> Amounts:
    return read((pod["spec"].get("resources") or {}).get(kind))


def has_pod_level(pod: Object, *kinds: str) -> bool:
    return any(pod_level_name(name) for kind in kinds for name in pod_level(pod, kind))


def pod_level_requests(pod: Object, use_status: bool) -> Amounts:
    spec = pod_level(pod, "requests")
    status = pod.get("status") or {}
    if not use_status or status.get("resources") is None:
        return spec
    seen = largest(read(status["resources"].get("requests")), read(status.get("allocatedResources")))
    if infeasible(pod):
        return {name: seen.get(name, 0) for name in spec}
    return {name: max(amount, seen.get(name, amount)) for name, amount in spec.items()}


def pod_requests(
    pod: Object,
    *,
    use_status: bool = False,
    skip_pod_level: bool = False,
    exclude_overhead: bool = False,
    defaults: Amounts | None = None,
) -> Amounts:
    result = aggregate(pod, "requests", use_status, defaults)
    if not skip_pod_level and has_pod_level(pod, "requests"):
        chosen = pod_level_requests(pod, use_status)
        result.update({name: amount for name, amount in chosen.items() if pod_level_name(name)})
    if not exclude_overhead:
        result = add(result, read(pod["spec"].get("overhead")))
    return result


def pod_limits(pod: Object, *, use_status: bool = False, skip_pod_level: bool = False, exclude_overhead: bool = False) -> Amounts:
    result = aggregate(pod, "limits", use_status)
    if not skip_pod_level and has_pod_level(pod, "requests", "limits"):
        chosen = pod_level(pod, "limits")
        result.update({name: amount for name, amount in chosen.items() if pod_level_name(name)})
    if not exclude_overhead:
        for name, amount in read(pod["spec"].get("overhead")).items():
            if result.get(name):
                result[name] += amount
    return result


def extended(name: str) -> bool:
    return "/" in name and "kubernetes.io/" not in name and not name.startswith("requests.") and not key_complaints(f"requests.{name}")


def scalar(name: str) -> bool:
    return "kubernetes.io/" in name or name.startswith(("hugepages-", "attachable-volumes-")) or extended(name)


def rounded(amounts: Amounts) -> dict[str, int]:
    """cpu in thousandths, the rest in whole units; names the scheduler does not count are gone."""
    result = {"cpu": nano_to_milli(amounts.get("cpu", 0))}
    for name in ("memory", "ephemeral-storage"):
        result[name] = nano_to_value(amounts.get(name, 0))
    result.update({name: nano_to_value(amount) for name, amount in amounts.items() if scalar(name)})
    return result


def sum_of(parts: Iterable[dict[str, int]]) -> dict[str, int]:
    total: dict[str, int] = {}
    for part in parts:
        total = add(total, part)
    return total


def placed_cost(pod: Object) -> dict[str, int]:
    """What a pod on a node takes from it."""
    return rounded(pod_requests(pod, use_status=True))


def placed_scoring_cost(pod: Object) -> dict[str, int]:
    """The same for scoring: containers that name no cpu or memory are given a little."""
    defaults = DEFAULTS
    if has_pod_level(pod, "requests"):
        named = pod_requests(pod, use_status=True)
        defaults = {name: amount for name, amount in DEFAULTS.items() if name not in named}
    return rounded(pod_requests(pod, use_status=True, defaults=defaults))


def incoming_cost(pod: Object) -> dict[str, int]:
    return rounded(pod_requests(pod))


def incoming_scoring_cost(pod: Object) -> dict[str, int]:
    """As NodeResourcesFit scores the pending pod: defaults, overhead, no pod-level resources."""
    return rounded(pod_requests(pod, skip_pod_level=True, defaults=DEFAULTS))


def allocatable(node: Object) -> dict[str, int]:
    amounts = read((node.get("status") or {}).get("allocatable"))
    return {**rounded(amounts), "pods": nano_to_value(amounts.get("pods", 0))}
