"""VolumeBinding: bound volumes must be reachable, unbound claims must find or get a volume on the node."""

from __future__ import annotations

from tests.reference.claims import claim_missing, claims_of, class_name, find_claim, ownership_problem
from tests.reference.cluster import Object, annotations_of, labels_of, name_of, namespace_of, terminating
from tests.reference.csi_migration import volume_as_csi
from tests.reference.plugin import Plugin
from tests.reference.status import SKIP, SUCCESS, Status, error, unresolvable

from navarch.model.quantity import parse_value
from navarch.model.selectors import node_selector_matches, read_label_selector, read_node_selector, selector_matches

CONFLICT = "node(s) didn't match PersistentVolume's node affinity"
NOTHING_TO_BIND = "node(s) didn't find available persistent volumes to bind"
NO_SPACE = "node(s) did not have enough free storage"
NO_VOLUME = "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)"
SELECTED_NODE = "volume.kubernetes.io/selected-node"


def reachable(volume: Object, node: Object) -> bool:
    required = ((volume["spec"].get("nodeAffinity") or {}).get("required")) if volume["spec"].get("nodeAffinity") else None
    terms = read_node_selector(required)
    return terms is None or node_selector_matches(terms, labels_of(node), "")


def requested_storage(claim: Object) -> int | None:
    amount = ((claim["spec"].get("resources") or {}).get("requests") or {}).get("storage")
    return None if amount is None else parse_value(amount)


def points_to(volume: Object, claim: Object) -> bool:
    reference = volume["spec"].get("claimRef")
    if reference is None:
        return False
    if reference.get("name") != name_of(claim) or reference.get("namespace") != namespace_of(claim):
        return False
    return not reference.get("uid") or reference["uid"] == claim["metadata"].get("uid")


class VolumeBinding(Plugin):
    def pre_filter(self) -> Status:
        uses = claims_of(self.pod)
        if not any(use.name for use in uses):
            return SKIP
        claims = []
        for use in uses:
            if not use.name:
                continue
            claim = find_claim(self.cluster, self.pod, use)
            if claim is None:
                return unresolvable(
                    f'waiting for ephemeral volume controller to create the persistentvolumeclaim "{use.name}"'
                    if use.ephemeral
                    else claim_missing(use.name)
                )
            if (claim.get("status") or {}).get("phase") == "Lost":
                volume = claim["spec"].get("volumeName") or ""
                return unresolvable(f'persistentvolumeclaim "{use.name}" bound to non-existent persistentvolume "{volume}"')
            if terminating(claim):
                return unresolvable(f'persistentvolumeclaim "{use.name}" is being deleted')
            if use.ephemeral and (problem := ownership_problem(self.pod, claim)):
                return unresolvable(problem)
            claims.append(claim)
        return self._sort_out(claims)

    def _sort_out(self, claims: list[Object]) -> Status:
        self.bound: list[Object] = []
        self.delayed: list[Object] = []
        immediate = False
        for claim in claims:
            volume = claim["spec"].get("volumeName")
            if volume and "pv.kubernetes.io/bind-completed" in annotations_of(claim):
                self.bound.append(claim)
                continue
            storage_class = self.cluster.find("StorageClass", class_name(claim)) if class_name(claim) else None
            mode = None
            if storage_class is not None:
                mode = storage_class.get("volumeBindingMode")
                if mode is None:
                    return error(f'VolumeBindingMode not set for StorageClass "{name_of(storage_class)}"')
            if mode == "WaitForFirstConsumer" and not volume:
                self.delayed.append(claim)
            else:
                immediate = True
        return unresolvable("pod has unbound immediate PersistentVolumeClaims") if immediate else SUCCESS

    def filter(self, node: Object) -> Status:
        bound = self._check_bound(node)
        unbound = self._check_unbound(node)
        reasons = [reason for reason in (CONFLICT, NOTHING_TO_BIND, NO_SPACE, NO_VOLUME) if reason in (bound, unbound)]
        return unresolvable(*reasons) if reasons else SUCCESS

    def _check_bound(self, node: Object) -> str:
        csi_node = self.cluster.find("CSINode", name_of(node))
        for claim in self.bound:
            volume = self.cluster.find("PersistentVolume", claim["spec"]["volumeName"])
            if volume is None:
                return NO_VOLUME
            if not reachable(volume_as_csi(volume, csi_node), node):
                return CONFLICT
        return ""

    def _check_unbound(self, node: Object) -> str:
        selected = [annotations_of(claim).get(SELECTED_NODE) for claim in self.delayed]
        if any(name is not None and name != name_of(node) for name in selected):
            return NOTHING_TO_BIND
        to_provision = [claim for claim, name in zip(self.delayed, selected, strict=True) if name is not None]
        to_match = [claim for claim, name in zip(self.delayed, selected, strict=True) if name is None]
        taken: set[str] = set()
        for claim in sorted(to_match, key=lambda claim: requested_storage(claim) or 0):
            volume = self._matching_volume(claim, node, taken)
            if volume is None:
                to_provision.append(claim)
            else:
                taken.add(name_of(volume))
        for claim in to_provision:
            if problem := self._provision(claim, node):
                return problem
        return ""

    def _matching_volume(self, claim: Object, node: Object, taken: set[str]) -> Object | None:
        wanted = requested_storage(claim) or 0
        fitting = []
        volumes = [v for v in self.cluster.of_kind("PersistentVolume") if class_name(v) == class_name(claim)]
        for volume in sorted(volumes, key=name_of):
            spec = volume["spec"]
            capacity = parse_value((spec.get("capacity") or {}).get("storage"))
            mine = points_to(volume, claim)
            if (
                name_of(volume) in taken
                or (spec.get("claimRef") is not None and not mine)
                or capacity < wanted
                or (spec.get("volumeMode") or "Filesystem") != (claim["spec"].get("volumeMode") or "Filesystem")
                or (spec.get("volumeAttributesClassName") or "") != (claim["spec"].get("volumeAttributesClassName") or "")
                or terminating(volume)
            ):
                continue
            if mine:
                return volume if reachable(volume, node) else None
            selector = claim["spec"].get("selector")
            if (
                (volume.get("status") or {}).get("phase") == "Available"
                and (selector is None or selector_matches(read_label_selector(selector), labels_of(volume)))
                and reachable(volume, node)
                and set(claim["spec"].get("accessModes") or ()) <= set(spec.get("accessModes") or ())
            ):
                fitting.append((capacity, name_of(volume), volume))
        return min(fitting, key=lambda entry: entry[:2])[2] if fitting else None

    def _provision(self, claim: Object, node: Object) -> str:
        storage_class = self.cluster.find("StorageClass", class_name(claim))
        provisioner = (storage_class or {}).get("provisioner") or ""
        if storage_class is None or provisioner in ("", "kubernetes.io/no-provisioner"):
            return NOTHING_TO_BIND
        terms = storage_class.get("allowedTopologies") or []
        if terms and not any(self._topology(term, node) for term in terms):
            return NOTHING_TO_BIND
        return "" if self._has_capacity(claim, storage_class, provisioner, node) else NO_SPACE

    @staticmethod
    def _topology(term: Object, node: Object) -> bool:
        expressions = term.get("matchLabelExpressions") or []
        return bool(expressions) and all(labels_of(node).get(e["key"]) in (e.get("values") or ()) for e in expressions)

    def _has_capacity(self, claim: Object, storage_class: Object, provisioner: str, node: Object) -> bool:
        wanted = requested_storage(claim)
        driver = self.cluster.find("CSIDriver", provisioner)
        if wanted is None or driver is None or not (driver.get("spec") or {}).get("storageCapacity"):
            return True
        for capacity in self.cluster.of_kind("CSIStorageCapacity"):
            limit = capacity.get("maximumVolumeSize", capacity.get("capacity"))
            topology = read_label_selector(capacity.get("nodeTopology"))
            if capacity["storageClassName"] == name_of(storage_class) and selector_matches(topology, labels_of(node)):
                if limit is not None and parse_value(limit) >= wanted:
                    return True
        return False
