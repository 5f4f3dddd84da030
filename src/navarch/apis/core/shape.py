"""The shape of a pod: everything that decides where it may go. Pods of equal templates share one Shape object, which is read once.

A live cluster has tens of thousands of pods from a few hundred templates. The fields of a shape are encoded to bytes (about two
microseconds), and these bytes are the key of a memo. So requests, selectors and admission defaults are computed once for each
template. Fields that differ between pods of one template (name, node, generated token volumes) are not part of the key.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from navarch.apis.admission.admission import AdmissionContext, admit_in_place, default_tolerations
from navarch.apis.admission.pod_defaults import default_pod, qos_class
from navarch.apis.core.card_requests import card_request
from navarch.apis.core.pod_objects import Container, Pod, PodSpec, Volume
from navarch.apis.core.requests import (
    burst_limits,
    container_specs,
    exclusive_cpus,
    footprint,
    pod_requests,
    quantity_error,
    rounded,
    scoring_request,
)
from navarch.apis.core.required_features import required_features
from navarch.apis.core.rule_bounds import bounded
from navarch.apis.core.selection import node_affinity, pod_affinity, spread_constraint, toleration
from navarch.apis.devices.extended_requests import extended_requests
from navarch.apis.errors import ObjectError
from navarch.model.quantity import QuantityError
from navarch.model.spec import DeviceRequest, HostPort, Shape, VolumeUse

_FORGET_AFTER = 1 << 16
_encode = msgspec.msgpack.Encoder().encode
_PRIORITY_FIELDS = ("priority", "priorityClassName", "preemptionPolicy")


class ShapeReader:
    """Shapes of pods, memoised. `admission`: pods come from files and need the defaults of an API server.

    One reader serves many clusters if admission looks nothing up; `shape_reader` shares it."""

    def __init__(self, admission: AdmissionContext | None = None) -> None:
        self._admission = admission
        self._known: dict[bytes, Shape] = {}
        self._same: dict[Shape, Shape] = {}

    def read(
        self,
        pod: Pod,
        *,
        placed: bool,
        hints: tuple[tuple[str, str], ...] = (),
        devices: DeviceRequest | None = None,
    ) -> Shape:
        spec, status = pod.spec, pod.status
        volumes = tuple(volume for volume in spec.volumes if volume.matters) if spec.volumes else ()
        affinity = spec.affinity
        elsewhere: Any = None
        if volumes or spec.resource_claims:
            elsewhere = (pod.key, volumes, spec.resource_claims, status.resource_claim_statuses)
        if spec.topology_spread_constraints or (affinity and (affinity.pod_affinity or affinity.pod_anti_affinity)):
            elsewhere = (elsewhere, pod.metadata.namespace, pod.metadata.labels, spec.topology_spread_constraints)
        elif self._admission is not None and self._admission.limit_ranges:
            elsewhere = (elsewhere, pod.metadata.namespace)
        resized: Any = None
        if placed:
            resized = (
                status.container_statuses,
                status.init_container_statuses,
                status.resources,
                status.allocated_resources,
                status.conditions if any(c.type == "PodResizePending" for c in status.conditions or ()) else None,
            )
        key = _encode(
            (
                spec.containers,
                spec.init_containers,
                spec.resources,
                spec.overhead,
                spec.node_selector,
                affinity,
                spec.tolerations,
                spec.host_network,
                spec.host_users,
                spec.runtime_class_name,
                elsewhere,
                resized,
                hints,
                devices,
            )
        )
        found = self._known.get(key)
        if found is None:
            if len(self._known) >= _FORGET_AFTER:
                self._known.clear()
                self._same.clear()
            shape = self._build(pod, volumes, placed, hints, devices)
            found = self._known[key] = self._same.setdefault(shape, shape)
        return found

    def _build(
        self,
        pod: Pod,
        volumes: tuple[Volume, ...],
        placed: bool,
        hints: tuple[tuple[str, str], ...],
        devices: DeviceRequest | None,
    ) -> Shape:
        try:
            # Through JSON rather than to_builtins: admission changes lists in place, and Structs hold tuples.
            plain: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(pod.spec))
            if self._admission is not None:
                plain = self._admitted(pod, plain)
                pod = msgspec.structs.replace(pod, spec=msgspec.convert(plain, PodSpec))
            total = pod_requests(pod, use_status=placed)
            scoring, cost = scoring_request(pod), footprint(pod, use_status=placed)
            limits = burst_limits(pod, total, use_status=placed)
            qos = qos_class(plain)
        except QuantityError:
            error = quantity_error(pod)
            if error is None:
                raise
            raise error from None
        spec, unsupported = bounded(pod.spec, placed=placed)
        labels = pod.metadata.label_map
        namespace = pod.metadata.namespace or "default"
        near = pod_affinity(spec.affinity, namespace, labels)
        spread = tuple(spread_constraint(part, labels) for part in spec.topology_spread_constraints or ())
        use = volume_use(pod, volumes)
        claims = _claims(pod)
        return Shape(
            requests=rounded(total),
            scoring=scoring,
            footprint=cost,
            limits=limits,
            node_selector=tuple(sorted((spec.node_selector or {}).items())),
            node_affinity=node_affinity(spec.affinity.node_affinity if spec.affinity else None),
            tolerations=tuple(toleration(part) for part in spec.tolerations or ()),
            ports=host_ports(spec),
            pod_affinity=near,
            spread=spread,
            has_own_spread=bool(spread),
            volumes=use,
            claims=claims,
            extended=extended_requests(plain),
            images=images(spec, volumes),
            containers=len(spec.init_containers or ()) + len(spec.containers or ()),
            parts=container_specs(pod),
            devices=devices,
            cards=card_request(spec),
            qos=qos,
            exclusive_cpus=exclusive_cpus(spec) if qos == "Guaranteed" else (),
            namespace=namespace if near or spread or use or claims else "",
            hints=hints,
            unsupported=unsupported,
            features=required_features(spec),
        )

    def _admitted(self, pod: Pod, spec: dict[str, Any]) -> dict[str, Any]:
        assert self._admission is not None
        namespace = pod.metadata.namespace or "default"
        for name in _PRIORITY_FIELDS:
            spec.pop(name, None)
        manifest: dict[str, Any] = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": pod.metadata.name, "namespace": namespace, "labels": dict(pod.metadata.label_map)},
            "spec": spec,
        }
        default_pod(manifest)
        if self._admission.limit_ranges.get(namespace) or spec.get("runtimeClassName") in self._admission.runtime_classes:
            # Priority is resolved by the pod reader, for each pod; here no class can be missing.
            without_classes = AdmissionContext(
                runtime_classes=self._admission.runtime_classes, limit_ranges=self._admission.limit_ranges
            )
            refusals = admit_in_place(manifest, without_classes)
            if refusals and not pod.spec.node_name:
                raise ObjectError("Pod", pod.key, "spec", "", f"a pod that admission accepts, but: {refusals[0]}")
        else:
            default_tolerations(spec)
        return spec


_UNADMITTED = ShapeReader()
_ADMITTED = ShapeReader(AdmissionContext())


def shape_reader(admission: AdmissionContext | None) -> ShapeReader:
    """A reader for this context: the shared one, unless defaults depend on objects of this cluster."""
    if admission is None:
        return _UNADMITTED
    if admission.runtime_classes or admission.limit_ranges:
        return ShapeReader(admission)
    return _ADMITTED


def host_ports(spec: PodSpec) -> tuple[HostPort, ...]:
    """Host ports of containers and sidecars. An ordinary init container has ended when the others start."""
    sidecars = tuple(each for each in spec.init_containers or () if each.restart_policy == "Always")
    found = {
        HostPort(port.host_port, port.protocol or "TCP", port.host_ip or "0.0.0.0")
        for container in (spec.containers or ()) + sidecars
        for port in container.ports or ()
        if port.host_port and port.host_port > 0
    }
    return tuple(sorted(found, key=lambda port: (port.port, port.protocol, port.ip)))


def images(spec: PodSpec, volumes: tuple[Volume, ...]) -> tuple[str, ...]:
    """Image names as nodes report them, one for each container, with `:latest` if no tag is given."""
    containers: tuple[Container, ...] = (spec.init_containers or ()) + (spec.containers or ())
    names = [container.image for container in containers if container.image]
    names += [volume.image.reference for volume in volumes if volume.image and volume.image.reference]
    return tuple(name if ":" in name.rpartition("/")[2] else f"{name}:latest" for name in names)


def volume_use(pod: Pod, volumes: tuple[Volume, ...]) -> VolumeUse | None:
    """Claims, and inline disks: API field name and the identity of the disk, for which two pods may conflict."""
    claims: list[tuple[str, bool]] = []
    disks: list[tuple[str, tuple[str, ...], bool]] = []
    for volume in volumes:
        if volume.persistent_volume_claim is not None:
            claims.append((volume.persistent_volume_claim.claim_name, False))
        elif volume.ephemeral is not None:
            claims.append((f"{pod.metadata.name}-{volume.name}", True))
        elif (gce := volume.gce_persistent_disk) is not None:
            disks.append(("gcePersistentDisk", (gce.pd_name,), bool(gce.read_only)))
        elif (aws := volume.aws_elastic_block_store) is not None:
            disks.append(("awsElasticBlockStore", (aws.volume_id,), bool(aws.read_only)))
        elif (iscsi := volume.iscsi) is not None:
            disks.append(("iscsi", (iscsi.iqn, iscsi.target_portal, str(iscsi.lun or 0)), bool(iscsi.read_only)))
        elif (rbd := volume.rbd) is not None:
            disks.append(("rbd", (rbd.pool or "rbd", rbd.image, *(rbd.monitors or ())), bool(rbd.read_only)))
        elif (azure := volume.azure_disk) is not None:
            disks.append(("azureDisk", (azure.disk_uri,), bool(azure.read_only)))
        elif (cinder := volume.cinder) is not None:
            disks.append(("cinder", (cinder.volume_id,), bool(cinder.read_only)))
        elif (portworx := volume.portworx_volume) is not None:
            disks.append(("portworxVolume", (portworx.volume_id,), bool(portworx.read_only)))
    return VolumeUse(tuple(claims), tuple(disks)) if claims or disks else None


def _claims(pod: Pod) -> tuple[tuple[str, str], ...]:
    """(name in the pod, claim); the claim is empty while it is not made. Its controller may say that the pod needs none."""
    made: Mapping[str, str | None] = {each.name: each.resource_claim_name for each in pod.status.resource_claim_statuses or ()}
    found = ((claim.name, claim.resource_claim_name or made.get(claim.name, "")) for claim in pod.spec.resource_claims or ())
    return tuple((name, claim) for name, claim in found if claim is not None)
