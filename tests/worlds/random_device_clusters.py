"""Random clusters of devices: partitions, shared devices, pools of several slices, and pods with claims on them."""

from __future__ import annotations

from random import Random
from typing import Any

from navarch.testing.builders import node, pod

Object = dict[str, Any]
IN_MEMORY = "<extended-resources>"
API = "resource.k8s.io/v1"
DRIVER = "d.example.com"
EXTENDED = {"any": "deviceclass.resource.kubernetes.io/any", "fast": "example.com/fast"}
"""Class -> the extended resource by which pods can ask for it."""


class DeviceMaker:
    """`partitions`: some devices consume counters of their pool. `repeats`: several devices of one request may have to differ. `wide`:
    more taints and tolerations, claims that pods share, a second class for one extended resource, and pods that ask for extended
    resources in any container."""

    def __init__(self, seed: int, *, partitions: bool = True, repeats: bool = True, wide: bool = False) -> None:
        self.draw = Random(seed)
        self.repeats = repeats
        self.wide = wide
        self.claims: list[str] = []
        self.kinds = ("plain", "plain", "partitions", "shared", "shared partitions") if partitions else ("plain", "shared")

    def case(self, pods: int = 4) -> list[Object]:
        """Nodes, classes, slices, then claims and pods. Pods have different priorities; the first has the highest."""
        draw = self.draw
        names = [f"n{number}" for number in range(draw.randint(1, 4))]
        objects: list[Object] = [dict(node(name).cpu(32).label("rack", draw.choice("ab"))) for name in names]
        objects += [self._class("any", ""), self._class("fast", f'device.attributes["{DRIVER}"].model == "a"')]
        objects[-1]["spec"]["extendedResourceName"] = EXTENDED["fast"]
        alike = [self._pool_kind() for _ in range(2)]
        for name in names:
            objects += self._pool(name, {"nodeName": name}, draw.choice([*alike, self._pool_kind()]))
        if draw.random() < 0.5:
            objects += self._pool("racks", {"nodeSelector": _rack("a")}, self._pool_kind())
        if draw.random() < 0.4:
            objects += self._pool("all", {"allNodes": True}, self._pool_kind())
        if self.wide:
            slices = [each["spec"] for each in objects if each["kind"] == "ResourceSlice"]
            objects += self._extras([device for spec in slices for device in spec.get("devices", ())])
        for number in range(pods):
            objects += self._user(number, 100 - number)
        return objects

    def _extras(self, devices: list[Object]) -> list[Object]:
        """More taints on devices, and a second class behind one extended resource."""
        draw = self.draw
        made: list[Object] = []
        for device in (each for each in devices if draw.random() < 0.15):
            taint = {"key": draw.choice(("broken", "old")), "effect": draw.choice(("NoSchedule", "NoExecute", "None"))}
            if draw.random() < 0.5:
                taint["value"] = draw.choice("yz")
            if taint["key"] not in {each["key"] for each in device.get("taints", ())}:
                device.setdefault("taints", []).append(taint)
        if draw.random() < 0.4:
            other = self._class(draw.choice(("also-fast", "fast-too")), f'device.attributes["{DRIVER}"].model == "b"')
            other["spec"]["extendedResourceName"] = EXTENDED["fast"]
            made.append(other)
        return made

    def _class(self, name: str, expression: str) -> Object:
        spec = {"selectors": [{"cel": {"expression": expression}}]} if expression else {}
        return {"apiVersion": API, "kind": "DeviceClass", "metadata": {"name": name}, "spec": spec}

    def _pool_kind(self) -> list[Object]:
        """Devices of one pool; the counters they consume come first."""
        draw = self.draw
        kind = draw.choice(self.kinds)
        counters = {"memory": {"value": str(draw.choice((4, 8)))}, "engines": {"value": "3"}}
        made: list[Object] = [{"sharedCounters": [{"name": "card", "counters": counters}]}] if "partitions" in kind else []
        for number in range(draw.randint(1, 4)):
            device: Object = {
                "name": f"dev-{number}",
                "attributes": {"model": {"string": draw.choice("aab")}, "index": {"int": number}, "numa": {"int": draw.randint(0, 1)}},
            }
            if draw.random() < 0.15:
                device["taints"] = [{"key": "broken", "effect": draw.choice(("NoSchedule", "NoExecute", "None"))}]
            if "partitions" in kind:
                used = {"memory": {"value": str(draw.choice((1, 2, 4, 8)))}}
                if draw.random() < 0.5:
                    used["engines"] = {"value": str(draw.randint(1, 2))}
                device["consumesCounters"] = [{"counterSet": "card", "counters": used}]
            if "shared" in kind or draw.random() < 0.2:
                device["capacity"] = {"memory": self._capacity() if "shared" in kind else {"value": "8"}}
            if "shared" in kind:
                device["allowMultipleAllocations"] = True
            made.append(device)
        return made

    def _capacity(self) -> Object:
        draw = self.draw
        found: Object = {"value": str(draw.choice((8, 12)))}
        policy = draw.choice(("none", "range", "values", "default"))
        if policy == "range":
            found["requestPolicy"] = {"default": "2", "validRange": {"min": "2", "max": "8", "step": "2"}}
        elif policy == "values":
            found["requestPolicy"] = {"default": "4", "validValues": ["1", "4", "6"]}
        return found

    def _pool(self, name: str, place: Object, kind: list[Object]) -> list[Object]:
        draw = self.draw
        devices = [each for each in kind if "name" in each]
        counters = [each for each in kind if "sharedCounters" in each]
        cut = draw.randint(0, len(devices)) if draw.random() < 0.3 else len(devices)
        parts: list[Object] = [{"devices": part} for part in (devices[:cut], devices[cut:]) if part]
        parts += counters
        pool = {"name": name, "generation": 1, "resourceSliceCount": len(parts) + (draw.random() < 0.05)}
        made = []
        for number, part in enumerate(parts):
            spec = {"driver": DRIVER, "pool": pool, **place, **part}
            metadata = {"name": f"{name}-{number}", "uid": f"{name}-{number}"}
            made.append({"apiVersion": API, "kind": "ResourceSlice", "metadata": metadata, "spec": spec})
        return made

    def _user(self, number: int, priority: int) -> list[Object]:
        draw = self.draw
        made: list[Object] = []
        names = []
        for index in range(draw.choice((1, 1, 1, 2))):
            name = f"c{number}-{index}"
            names.append(name)
            requests = [self._request(f"r{i}") for i in range(draw.choice((1, 1, 2)))]
            devices: Object = {"requests": requests}
            if draw.random() < 0.3:
                kind = draw.choice(("matchAttribute", "distinctAttribute"))
                devices["constraints"] = [{kind: f"{DRIVER}/{draw.choice(('numa', 'model', 'index'))}"}]
                if draw.random() < 0.4:
                    devices["constraints"][0]["requests"] = ["r0"]
                if kind == "distinctAttribute" and not self.repeats:
                    for body in (body for each in requests for body in each.get("firstAvailable") or (each["exactly"],)):
                        body.update({"allocationMode": "ExactCount", "count": 1} if "allocationMode" in body else {})
            metadata = {"name": name, "namespace": "default", "uid": name}
            made.append({"apiVersion": API, "kind": "ResourceClaim", "metadata": metadata, "spec": {"devices": devices}})
        user = dict(pod(f"p{number}").cpu("1").priority(priority))
        if draw.random() < 0.2:
            amount = {EXTENDED[draw.choice(("any", "fast"))]: str(draw.choice((1, 1, 2)))}
            resources = user["spec"]["containers"][0]["resources"]
            resources["requests"] |= amount
            resources["limits"] = amount
            if self.wide:
                self._more_containers(user["spec"], next(iter(amount)))
            if draw.random() < 0.7:
                return [user]
        if self.wide and self.claims and draw.random() < 0.25:
            made, names = [], [draw.choice(self.claims)]  # a claim of an earlier pod
        self.claims += [name for name in names if name not in self.claims]
        user["spec"]["resourceClaims"] = [{"name": name, "resourceClaimName": name} for name in names]
        return [*made, user]

    def _more_containers(self, spec: Object, resource: str) -> None:
        draw = self.draw
        for number in range(draw.choice((0, 0, 1, 2))):
            amount = {resource: str(draw.randint(1, 3))}
            made: Object = {"name": f"more-{number}", "image": "busybox", "resources": {"requests": amount, "limits": dict(amount)}}
            kind = draw.choice(("containers", "initContainers", "sidecar"))
            if kind == "sidecar":
                made["restartPolicy"] = "Always"
            spec.setdefault("containers" if kind == "containers" else "initContainers", []).append(made)

    def _request(self, name: str) -> Object:
        draw = self.draw
        if draw.random() < 0.2:
            return {"name": name, "firstAvailable": [{"name": f"s{i}", **self._exactly()} for i in range(draw.randint(1, 3))]}
        exact = self._exactly()
        if draw.random() < 0.1:
            exact["adminAccess"] = True
        return {"name": name, "exactly": exact}

    def _exactly(self) -> Object:
        draw = self.draw
        found: Object = {"deviceClassName": draw.choice(("any", "fast"))}
        if self.wide and draw.random() < 0.05:
            found["deviceClassName"] = "absent"
        if draw.random() < 0.15:
            found["allocationMode"] = "All"
        else:
            found |= {"allocationMode": "ExactCount", "count": draw.choice((1, 1, 1, 2, 3))}
        if draw.random() < 0.2:
            found["selectors"] = [{"cel": {"expression": f'device.attributes["{DRIVER}"].index {draw.choice("<>")}= 1'}}]
        if draw.random() < 0.3:
            found["capacity"] = {"requests": {"memory": str(draw.choice((1, 3, 4, 7, 11)))}}
        if draw.random() < 0.2:
            found["tolerations"] = [{"key": "broken", "operator": "Exists"}]
        if self.wide and draw.random() < 0.3:
            equal = {
                "key": "broken",
                "operator": "Equal",
                "value": draw.choice("yz"),
                "effect": draw.choice(("NoSchedule", "NoExecute")),
            }
            found["tolerations"] = [draw.choice(({"operator": "Exists"}, {"key": "old", "operator": "Exists"}, equal))]
        return found


def extended_claim(user: Object) -> Object | None:
    """The claim that stands for the extended resources of such a pod."""
    resources = user["spec"]["containers"][0]["resources"]
    asked = {name: device_class for device_class, name in EXTENDED.items() if name in resources["requests"]}
    requests = []
    for resource, device_class in asked.items():
        place = sorted(resources["requests"]).index(resource)
        exactly = {"deviceClassName": device_class, "count": int(resources["requests"][resource])}
        requests.append({"name": f"container-0-request-{place}", "exactly": exactly})
    return {"metadata": {"name": IN_MEMORY}, "spec": {"devices": {"requests": requests}}} if requests else None


def _rack(value: str) -> Object:
    return {"nodeSelectorTerms": [{"matchExpressions": [{"key": "rack", "operator": "In", "values": [value]}]}]}
