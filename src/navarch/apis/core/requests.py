"""The requests of a pod, by kube-scheduler's rules.

Requests of containers add up. Init containers run one after another before them, each together with the sidecars started earlier,
so they count by their peak. Pod-level requests replace the sum for the resources they name. The runtime's overhead is added. A pod
on a node may be in an in-place resize: then it counts by the largest of its desired, allocated and actual requests.

Amounts are summed exactly, in billionths, and rounded up once per pod: two containers of 1500u cpu are 3m, not 4m.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from navarch.apis.core.amounts import MOST, is_counted
from navarch.apis.core.objects import Quantity, ResourceList
from navarch.apis.core.pod_objects import Container, ContainerStatus, Pod, PodSpec, PodStatus, ResourceRequirements
from navarch.apis.errors import NOT_NEGATIVE, QUANTITY, ObjectError
from navarch.model.quantity import NANO, QuantityError, nano_to_milli, nano_to_value, parse_nano
from navarch.model.resources import unit_of
from navarch.model.spec import ContainerSpec, Requests

Amounts = dict[str, int]
"""Resource name to billionths."""

SCORING_DEFAULTS: Final[Mapping[str, int]] = {"cpu": NANO // 10, "memory": (200 << 20) * NANO}
"""Scores count a container without a request as 100m and 200Mi."""
_NO_DEFAULTS: Final[Mapping[str, int]] = {}


def pod_requests(
    pod: Pod,
    *,
    use_status: bool = False,
    overhead: bool = True,
    pod_level: bool = True,
    defaults: Mapping[str, int] = _NO_DEFAULTS,
) -> Amounts:
    """The pod's request in billionths. `use_status`: for a pod on a node. `defaults`: for containers without requests.

    >>> from navarch.apis.core.objects import from_manifest
    >>> pod_requests(from_manifest({"spec": {"containers": [{"resources": {"requests": {"cpu": "1500u"}}}] * 2}}, Pod))
    {'cpu': 3000000}
    """
    wanted = (pod.spec.resources.requests if pod.spec.resources else None) or {}
    replaced = [name for name in wanted if _has_pod_level(name)] if pod_level else []
    if replaced:
        total = aggregate(pod, "requests", use_status=use_status)
        for name in replaced:
            total[name] = _pod_level(pod, name, wanted[name], "requests", use_status)
        for name, amount in defaults.items():
            total.setdefault(name, amount)
    else:
        total = aggregate(pod, "requests", use_status=use_status, defaults=defaults)
    if overhead and pod.spec.overhead:
        _add(total, _parsed(pod.spec.overhead))
    return total


def pod_limits(pod: Pod, *, use_status: bool = False, overhead: bool = True, pod_level: bool = True) -> Amounts:
    """The pod's limits in billionths; overhead is added only to resources that have a limit."""
    total = aggregate(pod, "limits", use_status=use_status)
    given = pod.spec.resources
    if pod_level and given is not None:
        for name, quantity in (given.limits or {}).items():
            if _has_pod_level(name):
                total[name] = _pod_level(pod, name, quantity, "limits", use_status)
    if overhead and pod.spec.overhead:
        for name, amount in _parsed(pod.spec.overhead).items():
            if total.get(name):
                total[name] += amount
    return total


def aggregate(pod: Pod, part: str, *, use_status: bool = False, defaults: Mapping[str, int] = _NO_DEFAULTS) -> Amounts:
    """Containers, sidecars and the peak of the init phase; no pod level and no overhead."""
    status = pod.status
    infeasible = use_status and _is_infeasible(status)
    statuses = {each.name: each for each in status.container_statuses or ()} if use_status else {}
    init_statuses = {each.name: each for each in status.init_container_statuses or ()} if use_status else {}
    total: Amounts = {}
    for container in pod.spec.containers or ():
        _add(total, _container(container, part, statuses.get(container.name), infeasible, defaults))
    if not pod.spec.init_containers:
        return total
    peak: Amounts = {}
    sidecars: Amounts = {}
    for container in pod.spec.init_containers:
        if container.restart_policy == "Always":
            own = _container(container, part, init_statuses.get(container.name), infeasible, defaults)
            _add(total, own)
            _add(sidecars, own)
            _raise_to(peak, sidecars)
        else:
            own = dict(_container(container, part, None, False, defaults))
            _add(own, sidecars)
            _raise_to(peak, own)
    _raise_to(total, peak)
    return total


def rounded(total: Amounts) -> Requests:
    """The resources that scheduling counts, in the model's units, each rounded up once."""
    return tuple(
        sorted(
            (name, min(MOST, nano_to_milli(nano) if unit_of(name) == "milli" else nano_to_value(nano)))
            for name, nano in total.items()
            if is_counted(name)
        )
    )


def container_specs(pod: Pod) -> tuple[ContainerSpec, ...]:
    """The pod's containers in the order of their start; empty if one container makes up the whole request."""
    spec = pod.spec
    if not spec.init_containers and len(spec.containers or ()) < 2 and spec.overhead is None and spec.resources is None:
        return ()
    found = []
    for container in spec.init_containers or ():
        phase = "sidecar" if container.restart_policy == "Always" else "init"
        found.append(ContainerSpec(phase, rounded(_part(container.resources, "requests"))))
    found += [ContainerSpec("main", rounded(_part(each.resources, "requests"))) for each in spec.containers or ()]
    return tuple(found)


def exclusive_cpus(spec: PodSpec) -> tuple[tuple[str, int], ...]:
    """The ordinary containers, each with its CPUs if it requests a whole number of them; 0 otherwise."""
    asked = [(each.name, _part(each.resources, "requests").get("cpu", 0)) for each in spec.containers or ()]
    return tuple((name, 0 if cpus % NANO else min(cpus // NANO, MOST)) for name, cpus in asked)


def scoring_pair(total: Amounts) -> tuple[int, int]:
    """(milli-cpu, bytes of memory) of a request."""
    return min(MOST, nano_to_milli(total.get("cpu", 0))), min(MOST, nano_to_value(total.get("memory", 0)))


def scoring_request(pod: Pod) -> tuple[int, int]:
    """The incoming pod for scores: with defaults, without pod-level requests."""
    return scoring_pair(pod_requests(pod, pod_level=False, defaults=SCORING_DEFAULTS))


def footprint(pod: Pod, *, use_status: bool) -> tuple[int, int]:
    """What a placed pod adds to its node's scoring figures."""
    return scoring_pair(pod_requests(pod, use_status=use_status, defaults=SCORING_DEFAULTS))


def burst_limits(pod: Pod, requests: Amounts, *, use_status: bool) -> tuple[int, int]:
    """(milli-cpu, bytes of memory) that the pod may use, where that is more than `requests`; else 0."""
    limits = pod_limits(pod, use_status=use_status)
    cpu, memory = scoring_pair({name: amount for name, amount in limits.items() if amount > requests.get(name, 0)})
    return cpu, memory


def quantity_error(pod: Pod) -> ObjectError | None:
    """The first quantity of the pod that does not parse or is negative, with its field. Called when the sum has failed."""
    lists: list[tuple[str, ResourceList | None]] = []
    for field, containers in (("containers", pod.spec.containers), ("initContainers", pod.spec.init_containers)):
        for i, container in enumerate(containers or ()):
            lists += _lists(f"spec.{field}[{i}].resources", container.resources)
    lists += _lists("spec.resources", pod.spec.resources)
    lists.append(("spec.overhead", pod.spec.overhead))
    for field, statuses in (
        ("containerStatuses", pod.status.container_statuses),
        ("initContainerStatuses", pod.status.init_container_statuses),
    ):
        for i, status in enumerate(statuses or ()):
            lists += _lists(f"status.{field}[{i}].resources", status.resources)
            lists.append((f"status.{field}[{i}].allocatedResources", status.allocated_resources))
    lists += _lists("status.resources", pod.status.resources)
    lists.append(("status.allocatedResources", pod.status.allocated_resources))
    for path, quantities in lists:
        for name, quantity in (quantities or {}).items():
            try:
                expected = "" if parse_nano(quantity) >= 0 else NOT_NEGATIVE
            except QuantityError:
                expected = QUANTITY
            if expected:
                return ObjectError("Pod", pod.key, f"{path}[{name}]", repr(quantity), expected)
    return None


def _lists(path: str, resources: ResourceRequirements | None) -> list[tuple[str, ResourceList | None]]:
    if resources is None:
        return []
    return [(f"{path}.requests", resources.requests), (f"{path}.limits", resources.limits)]


def _container(
    container: Container,
    part: str,
    status: ContainerStatus | None,
    infeasible: bool,
    defaults: Mapping[str, int],
) -> Amounts:
    own = _part(container.resources, part)
    # Only `resources` of a status counts: a kubelet without in-place resize writes allocatedResources alone.
    if status is not None and status.resources is not None:
        wanted, own = own, _part(status.resources, part)
        if part == "requests" and status.allocated_resources:
            _raise_to(own, _parsed(status.allocated_resources))
        if not infeasible:
            _raise_to(own, wanted)
    if defaults:
        for name, amount in defaults.items():
            own.setdefault(name, amount)
    return own


def _part(resources: ResourceRequirements | None, part: str) -> Amounts:
    if resources is None:
        return {}
    quantities = resources.requests if part == "requests" else resources.limits
    return _parsed(quantities) if quantities else {}


def _parsed(quantities: Mapping[str, Quantity]) -> Amounts:
    amounts = {name: parse_nano(quantity) for name, quantity in quantities.items()}
    if amounts and min(amounts.values()) < 0:
        raise QuantityError(min(amounts.values()))
    return amounts


def _add(total: Amounts, more: Mapping[str, int]) -> None:
    for name, amount in more.items():
        total[name] = total.get(name, 0) + amount


def _raise_to(total: Amounts, other: Mapping[str, int]) -> None:
    for name, amount in other.items():
        if name not in total or total[name] < amount:
            total[name] = amount


def _has_pod_level(name: str) -> bool:
    return name in ("cpu", "memory") or name.startswith("hugepages-")


def _pod_level(pod: Pod, name: str, wanted: Quantity, part: str, use_status: bool) -> int:
    status = pod.status
    if not use_status or status.resources is None:
        return parse_nano(wanted)
    actual = (status.resources.requests if part == "requests" else status.resources.limits) or {}
    allocated = (status.allocated_resources or {}) if part == "requests" else {}
    known = [parse_nano(amounts[name]) for amounts in (actual, allocated) if name in amounts]
    if not _is_infeasible(status):
        known.append(parse_nano(wanted))
    return max(known, default=0)


def _is_infeasible(status: PodStatus) -> bool:
    """Whether the node can never grant the resize. The first condition of that type decides, whatever its status."""
    for condition in status.conditions or ():
        if condition.type == "PodResizePending":
            return condition.reason == "Infeasible"
    return False
