"""ResourceQuota: counts what each namespace uses, refuses what would exceed it, and keeps `status` true.

Usage is counted object by object as the store changes, so a create costs the same in a namespace of ten pods and of ten
thousand. Only namespaces that have a quota pay anything.
"""

from __future__ import annotations

from typing import Any

from navarch.apis.admission.pod_defaults import aggregate
from navarch.embedded.api.errors import forbidden
from navarch.embedded.api.kinds.registry import Kind
from navarch.embedded.storage.record import Event, Record
from navarch.embedded.storage.store import Store
from navarch.model.quantity import canonical, form_of, format_nano, parse_nano
from navarch.object_types import Manifest

NANO = 1_000_000_000
COUNTED = {
    "pods": "pods",
    "services": "services",
    "secrets": "secrets",
    "configmaps": "configmaps",
    "persistentvolumeclaims": "persistentvolumeclaims",
    "replicationcontrollers": "replicationcontrollers",
    "resourcequotas": "resourcequotas",
}
"""Resources that a quota may name without `count/`."""
Usage = dict[str, int]


class Quotas:
    """Usage of all quotas."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._shares: dict[str, dict[str, Usage]] = {}
        """quota key -> object key -> what it uses."""
        self._writing = False
        store.observe(self._on_event)

    def admit(self, kind: Kind, obj: Manifest) -> None:
        """403 if creating the object would exceed a quota of its namespace."""
        namespace = obj["metadata"].get("namespace") or ""
        if not kind.namespaced or not self._store.count("resourcequotas"):
            return
        for record in self._store.list("resourcequotas", namespace):
            quota = record.obj
            hard = (quota.get("spec") or {}).get("hard") or {}
            asked = usage_of(kind.resource, obj, quota)
            if asked is None:
                continue
            used = self._used(record)
            missing = [name for name in sorted(hard) if name not in asked and _must_name(kind.resource, name)]
            if missing:
                said = f"failed quota: {record.name}: must specify {','.join(missing)} for: {_containers(obj)}"
                raise forbidden(kind.resource, obj["metadata"]["name"], said)
            over = [
                name for name in sorted(hard) if asked.get(name, 0) > 0 and used.get(name, 0) + asked[name] > parse_nano(hard[name])
            ]
            if over:
                said = ", used: ".join(
                    (
                        f"exceeded quota: {record.name}, requested: " + _show({name: asked[name] for name in over}, hard),
                        _show({name: used.get(name, 0) for name in over}, hard)
                        + ", limited: "
                        + ",".join(f"{name}={canonical(hard[name])}" for name in over),
                    )
                )
                raise forbidden(kind.resource, obj["metadata"]["name"], said)

    def _used(self, quota: Record) -> Usage:
        total: Usage = {}
        for share in self._shares_of(quota).values():
            for name, nano in share.items():
                total[name] = total.get(name, 0) + nano
        return total

    def _shares_of(self, quota: Record) -> dict[str, Usage]:
        found = self._shares.get(quota.key)
        if found is None:
            found = self._shares[quota.key] = {}
            for resource in self._store.resources():
                for record in self._store.list(resource, quota.namespace):
                    usage = usage_of(resource, record.obj, quota.obj)
                    if usage:
                        found[f"{resource}/{record.key}"] = usage
        return found

    def _on_event(self, event: Event) -> None:
        record = event.record
        if self._writing or not record.namespace or not self._store.count("resourcequotas"):
            if record.resource == "resourcequotas" and event.type == "DELETED":
                self._shares.pop(record.key, None)
            return
        if record.resource == "resourcequotas":
            self._shares.pop(record.key, None)
        for quota in self._store.list("resourcequotas", record.namespace):
            shares = self._shares_of(quota)
            usage = None if event.type == "DELETED" else usage_of(record.resource, record.obj, quota.obj)
            key = f"{record.resource}/{record.key}"
            if usage:
                shares[key] = usage
            elif shares.pop(key, None) is None and record.resource != "resourcequotas":
                continue
            self._write_status(quota)

    def _write_status(self, quota: Record) -> None:
        hard = (quota.obj.get("spec") or {}).get("hard") or {}
        used = self._used(quota)
        status = {
            "hard": {name: canonical(amount) for name, amount in hard.items()},
            "used": {name: format_nano(used.get(name, 0), form_of(hard[name])) for name in hard},
        }

        def change(obj: Manifest) -> Manifest:
            obj["status"] = status
            return obj

        self._writing = True
        try:
            self._store.modify("resourcequotas", quota.namespace, quota.name, change)
        finally:
            self._writing = False


def usage_of(resource: str, obj: Manifest, quota: Manifest) -> Usage | None:
    """What an object uses of the names a quota limits; None if the quota does not look at such objects."""
    hard = (quota.get("spec") or {}).get("hard") or {}
    usage: Usage = {}
    plain = COUNTED.get(resource)
    if plain in hard:
        usage[plain or ""] = NANO
    if f"count/{resource}" in hard:
        usage[f"count/{resource}"] = NANO
    if resource == "pods":
        if not _in_scope(obj, quota):
            return None
        if (obj.get("status") or {}).get("phase") in ("Succeeded", "Failed"):
            return {"count/pods": NANO} if "count/pods" in hard else None
        usage.update(_pod_usage(obj, hard))
        return usage
    if resource == "persistentvolumeclaims":
        amount = ((obj["spec"].get("resources") or {}).get("requests") or {}).get("storage")
        if "requests.storage" in hard and amount is not None:
            usage["requests.storage"] = parse_nano(amount)
        return usage
    return usage or None


def _pod_usage(pod: Manifest, hard: Manifest) -> Usage:
    spec = pod["spec"]
    usage: Usage = {}
    for part in ("requests", "limits"):
        amounts: dict[str, Any] = {**aggregate(spec, part), **((spec.get("resources") or {}).get(part) or {})}
        for name, amount in amounts.items():
            nano = parse_nano(amount) + parse_nano((spec.get("overhead") or {}).get(name))
            if f"{part}.{name}" in hard:
                usage[f"{part}.{name}"] = nano
            if part == "requests" and name in hard and name in ("cpu", "memory", "ephemeral-storage"):
                usage[name] = nano
            if part == "requests" and name.startswith("hugepages-") and name in hard:
                usage[name] = nano
    return usage


def _in_scope(pod: Manifest, quota: Manifest) -> bool:
    spec = quota.get("spec") or {}
    best_effort = (pod.get("status") or {}).get("qosClass") == "BestEffort"
    terminating = pod["spec"].get("activeDeadlineSeconds") is not None
    facts = {
        "BestEffort": best_effort,
        "NotBestEffort": not best_effort,
        "Terminating": terminating,
        "NotTerminating": not terminating,
    }
    if not all(facts.get(scope, True) for scope in spec.get("scopes") or ()):
        return False
    for each in (spec.get("scopeSelector") or {}).get("matchExpressions") or ():
        if each.get("scopeName") != "PriorityClass":
            if not facts.get(each.get("scopeName", ""), True):
                return False
            continue
        name = pod["spec"].get("priorityClassName") or ""
        operator, values = each.get("operator"), each.get("values") or ()
        holds = {"In": name in values, "NotIn": name not in values, "Exists": bool(name), "DoesNotExist": not name}
        if not holds.get(operator, True):
            return False
    return True


def _must_name(resource: str, name: str) -> bool:
    """cpu and memory under quota have to be named by every pod."""
    plain = name.removeprefix("requests.").removeprefix("limits.")
    return resource == "pods" and plain in ("cpu", "memory")


def _containers(obj: Manifest) -> str:
    return ",".join(sorted(each.get("name", "") for each in (obj.get("spec") or {}).get("containers") or ()))


def _show(amounts: Usage, hard: Manifest) -> str:
    return ",".join(f"{name}={format_nano(nano, form_of(hard[name]))}" for name, nano in amounts.items())
