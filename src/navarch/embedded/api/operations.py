"""What the API does with objects: create, update, patch, delete, with all rules applied; over HTTP or without.

The HTTP layer, the controllers and the hollow kubelets all write through here, so that a pod made by a ReplicaSet gets
the same defaults, admission and validation as one that a user posts.

    operations = Operations(Store(), Registry())
    pods = operations.kind("pods")
    record = operations.create(pods, "default", {...})
    operations.update_status(pods, record.decode() | {"status": {...}})
    operations.modify(pods, "default", "a", change)       # change(copy) -> new object, retried never: one thread
    operations.delete(pods, "default", "a", DeleteOptions(grace=0))
"""

from __future__ import annotations

import uuid

from navarch.apis.admission.workload_defaults import default_object
from navarch.embedded.api.admission import Admission
from navarch.embedded.api.deletion import DeleteOptions, Deletion, begin, is_finished
from navarch.embedded.api.errors import already_exists, bad_request, cause, conflict, invalid, not_found, stale
from navarch.embedded.api.kinds.registry import CREATES_ON_UPDATE, Kind, Registry, fields_reader
from navarch.embedded.api.patches.managed_fields import track
from navarch.embedded.api.strategies import generate, prepare_create, prepare_update
from navarch.embedded.api.validation.admin_access import Hook, admin_access_hooks
from navarch.embedded.api.validation.validation import validate_create, validate_update
from navarch.embedded.api.writing import GENERATED_NAME_TRIES, WriteOptions, generated_name, name_missing, place, read_object
from navarch.embedded.storage.record import Record
from navarch.embedded.storage.store import Change, Store, timestamp
from navarch.model.quantity import QuantityError
from navarch.object_types import Manifest


class Operations:
    """The API's verbs on one store."""

    def __init__(self, store: Store, registry: Registry, taint_new_nodes: bool = True) -> None:
        self.store = store
        self.registry = registry
        for kind in registry.all():
            if not kind.stored_as:
                store.select_fields(kind.stored, fields_reader(kind))
        self.admission = Admission(store, taint_new_nodes)
        self.hooks: dict[str, Hook] = admin_access_hooks(store)
        """Called before a write of a resource is stored: (kind, new, old or None, options). May change or refuse."""

    def kind(self, resource: str) -> Kind:
        """The preferred version of a resource (`pods`, `jobs.batch`)."""
        found = self.registry.by_resource(resource)
        if found is None:
            raise not_found("customresourcedefinitions.apiextensions.k8s.io", resource)
        return found

    # ------------------------------------------------------------------ create

    def create(self, kind: Kind, namespace: str, body: Manifest, options: WriteOptions | None = None) -> Record:
        """Store a new object and return it as stored."""
        options = options or WriteOptions()
        obj = read_object(kind, body, options)
        place(kind, obj, namespace)
        metadata = obj["metadata"]
        version = metadata.get("resourceVersion") or ""
        if version.isdecimal() and version.strip("0"):  # "0" and what is not a number are accepted, as by kube-apiserver
            raise bad_request("resourceVersion should not be set on objects to be created")
        metadata.pop("resourceVersion", None)
        if metadata.get("name"):
            return self._create(kind, obj, options)
        prefix = metadata.get("generateName")
        if not prefix:
            raise name_missing(kind)
        for attempt in range(GENERATED_NAME_TRIES):
            metadata["name"] = generated_name(prefix)
            found = self.store.find(kind.stored, metadata.get("namespace") or "", metadata["name"])
            if found is None or attempt == GENERATED_NAME_TRIES - 1:
                break
        return self._create(kind, obj, options)

    def create_applied(self, kind: Kind, namespace: str, body: Manifest, entry: Manifest, options: WriteOptions) -> Record:
        """Create what server-side apply asks for; `entry` says what its manager owns."""
        obj = read_object(kind, body, options)
        place(kind, obj, namespace)
        return self._create(kind, obj, options, entry)

    def _create(self, kind: Kind, obj: Manifest, options: WriteOptions, applied: Manifest | None = None) -> Record:
        metadata = obj["metadata"]
        metadata["uid"] = str(uuid.uuid4())
        metadata["creationTimestamp"] = timestamp(self.store.clock())
        prepare_create(kind, obj)
        self._default(kind, obj)
        if applied is None:
            metadata.pop("managedFields", None)
            track(kind, obj, None, options, "", self.store.clock())
        else:
            metadata["managedFields"] = [applied]
        generate(kind, obj)
        self.admission.on_create(kind, obj, options)
        validate_create(kind, obj)
        hook = self.hooks.get(kind.resource)
        if hook is not None:
            hook(kind, obj, None, options)
        stored = kind.to_storage(obj) if kind.to_storage else obj
        if options.dry_run:
            if self.store.find(kind.stored, metadata.get("namespace") or "", metadata["name"]):
                raise already_exists(kind.resource, metadata["name"])
            return Record(kind.stored, stored, 0)
        return self.store.create(kind.stored, stored)

    def _default(self, kind: Kind, obj: Manifest) -> None:
        try:
            default_object(obj)
        except QuantityError as error:
            raise bad_request(f'{kind.kind} "{obj["metadata"].get("name", "")}": {error}') from None
        if kind.definition is not None:
            kind.definition["schema"].default(obj)

    # ------------------------------------------------------------------ update

    def update(
        self, kind: Kind, namespace: str, name: str, body: Manifest, options: WriteOptions | None = None, subresource: str = ""
    ) -> tuple[Record, bool]:
        """Replace an object (or its status); the answer says whether it was created by this."""
        options = options or WriteOptions()
        obj = read_object(kind, body, options)
        place(kind, obj, namespace)
        metadata = obj["metadata"]
        if metadata.setdefault("name", name) != name:
            raise bad_request(f"the name of the object ({metadata['name']}) does not match the name on the URL ({name})")
        current = self.store.find(kind.stored, namespace, name)
        if current is None:
            if kind.resource in CREATES_ON_UPDATE and not subresource and not metadata.get("uid"):
                metadata.pop("resourceVersion", None)
                return self._create(kind, obj, options), True
            raise not_found(kind.resource, name)
        version = metadata.get("resourceVersion")
        if not version and kind.needs_version and not subresource:
            message = "Invalid value: 0: must be specified for an update"
            why = [cause("FieldValueInvalid", message, "metadata.resourceVersion")]
            raise invalid(kind.plural, kind.group, name, why)
        if metadata.get("uid") and metadata["uid"] != current.uid:
            said = f"Precondition failed: UID in precondition: {metadata['uid']}, UID in object meta: {current.uid}"
            raise conflict(kind.resource, name, said)
        return self._replace(kind, current, obj, options, subresource), False

    def modify(
        self,
        kind: Kind,
        namespace: str,
        name: str,
        change: Change,
        options: WriteOptions | None = None,
        subresource: str = "",
    ) -> Record:
        """Change a copy of the current object and store it like an update; None from `change` leaves it."""
        options = options or WriteOptions()
        current = self.store.get(kind.stored, namespace, name)
        changed = change(self.served(kind, current))
        if changed is None:
            return current
        return self._replace(kind, current, read_object(kind, changed, options), options, subresource)

    def served(self, kind: Kind, record: Record) -> Manifest:
        """A fresh copy of a stored object in the version of `kind`."""
        obj = record.decode()
        if kind.from_storage is not None:
            obj = kind.from_storage(obj)
        elif obj.get("apiVersion") != kind.api_version:
            obj["apiVersion"] = kind.api_version
        return obj

    def replace_applied(self, kind: Kind, current: Record, obj: Manifest, options: WriteOptions, subresource: str) -> Record:
        """Store what server-side apply made of an object; its managedFields are settled already."""
        return self._replace(kind, current, read_object(kind, obj, options), options, subresource, applied=True)

    def _replace(
        self, kind: Kind, current: Record, obj: Manifest, options: WriteOptions, subresource: str, applied: bool = False
    ) -> Record:
        old = self.served(kind, current)
        endpoint = "" if subresource == "scale" else subresource
        version, uid = obj["metadata"].get("resourceVersion"), obj["metadata"].get("uid")
        if version and version != str(current.revision):
            raise stale(kind.resource, current.name)
        if uid and uid != current.uid:
            why = [cause("FieldValueInvalid", f'Invalid value: "{uid}": field is immutable', "metadata.uid")]
            raise invalid(kind.kind, kind.group, current.name, why)
        for name in ("name", "namespace"):
            if name in old["metadata"]:
                obj["metadata"][name] = old["metadata"][name]
        prepare_update(kind, obj, old, endpoint)
        self._default(kind, obj)
        obj["metadata"]["resourceVersion"] = old["metadata"]["resourceVersion"]
        if not endpoint:
            self.admission.on_update(kind, obj, old)
        validate_update(kind, obj, old, endpoint)
        hook = self.hooks.get(kind.resource)
        if hook is not None:
            hook(kind, obj, old, options)
        if not applied:
            track(kind, obj, old, options, subresource, self.store.clock())
        stored = kind.to_storage(obj) if kind.to_storage else obj
        if options.dry_run:
            return Record(kind.stored, stored, current.revision)
        if is_finished(obj) and old["metadata"].get("deletionTimestamp"):
            return self._last(kind, stored, current)
        return self.store.update(kind.stored, stored)

    def _last(self, kind: Kind, obj: Manifest, current: Record) -> Record:
        """An update that takes the last finalizer of a deleted object away removes it."""
        self.store.update(kind.stored, obj)
        return self.store.delete(kind.stored, current.namespace, current.name)

    # ------------------------------------------------------------------ delete

    def delete(self, kind: Kind, namespace: str, name: str, options: DeleteOptions | None = None) -> Deletion:
        """Delete an object, or begin to: grace and finalizers may keep it for a while."""
        options = options or DeleteOptions()
        current = self.store.get(kind.stored, namespace, name)
        options.check(kind, current)
        self.admission.on_delete(kind, name)
        changed = begin(kind, current.decode(), options, self.store.clock())
        if options.dry_run:
            return Deletion(current if changed is None else Record(kind.stored, changed, current.revision), changed is None)
        if changed is None:
            return Deletion(self.store.delete(kind.stored, namespace, name), True)
        marked = self.store.update(kind.stored, changed)
        if kind.resource == "pods" and is_finished(changed):
            return Deletion(self.store.delete(kind.stored, namespace, name), True)
        return Deletion(marked, False)
