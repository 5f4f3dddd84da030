"""The grammars of names, labels and annotations, with the words a server uses to refuse them."""

from __future__ import annotations

import re
from collections.abc import Iterator

from navarch.embedded.api.errors import cause
from navarch.embedded.api.selectors import is_label_key, is_label_value
from navarch.model.label_syntax import key_complaints
from navarch.object_types import Manifest

_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_SERVICE = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")

SUBDOMAIN_RULE = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'example.com', regex used for validation is "
    r"'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)
LABEL_RULE = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with "
    "an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is "
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
)
SERVICE_RULE = (
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and "
    "end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is "
    "'[a-z]([-a-z0-9]*[a-z0-9])?')"
)
NAME_RULE = (
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric "
    "character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
    "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)
VALUE_RULE = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is "
    "'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
)
STANDARD_FINALIZERS = ("kubernetes", "orphan", "foregroundDeletion")
PATH_NAMED = frozenset(
    {
        "roles.rbac.authorization.k8s.io",
        "rolebindings.rbac.authorization.k8s.io",
        "clusterroles.rbac.authorization.k8s.io",
        "clusterrolebindings.rbac.authorization.k8s.io",
    }
)
"""Kinds whose names only have to fit into a URL."""


def is_subdomain(name: str) -> bool:
    return len(name) <= 253 and bool(_SUBDOMAIN.fullmatch(name))


def is_dns_label(name: str) -> bool:
    return len(name) <= 63 and bool(_LABEL.fullmatch(name))


def name_faults(resource: str, name: str) -> Iterator[str]:
    """Why a name is not one for objects of a resource."""
    if resource in PATH_NAMED:
        if name in (".", "..") or "/" in name or "%" in name:
            yield "may not be '.' or '..' nor contain '/' or '%'"
        return
    if resource in ("namespaces",):
        longest, pattern, rule = 63, _LABEL, LABEL_RULE
    elif resource == "services":
        longest, pattern, rule = 63, _SERVICE, SERVICE_RULE
    else:
        longest, pattern, rule = 253, _SUBDOMAIN, SUBDOMAIN_RULE
    if len(name) > longest:
        yield f"must be no more than {longest} characters"
    if not pattern.fullmatch(name):
        yield rule


def metadata_faults(resource: str, metadata: Manifest) -> Iterator[Manifest]:
    """Causes for everything in `metadata` that no object may have."""
    name = metadata.get("name") or ""
    for rule in name_faults(resource, name):
        yield cause("FieldValueInvalid", f'Invalid value: "{name}": {rule}', "metadata.name")
    labels = metadata.get("labels")
    if labels:
        yield from label_faults(labels, "metadata.labels")
    annotations = metadata.get("annotations")
    if annotations:
        yield from annotation_faults(annotations)
    for owner in metadata.get("ownerReferences") or ():
        for field in ("apiVersion", "kind", "name", "uid"):
            if not owner.get(field):
                lead = "version " if field == "apiVersion" else ""
                said = f'Invalid value: "": {lead}must not be empty'
                yield cause("FieldValueInvalid", said, f"metadata.ownerReferences.{field}")
    owners = [owner for owner in metadata.get("ownerReferences") or () if owner.get("controller")]
    if len(owners) > 1:
        said = f'Only one reference can have Controller set to true. Found "true" in references for {owners[0].get("kind")}'
        message = f"Invalid value: null: {said}/{owners[0].get('name')} and {owners[1].get('kind')}/{owners[1].get('name')}"
        yield cause("FieldValueInvalid", message, "metadata.ownerReferences")
    for index, finalizer in enumerate(metadata.get("finalizers") or ()):
        lead = f'Invalid value: "{finalizer}": '
        for complaint in key_complaints(finalizer):
            yield cause("FieldValueInvalid", f"{lead}{complaint}", "metadata.finalizers")
        if "/" not in finalizer and finalizer not in STANDARD_FINALIZERS:
            rule = "name is neither a standard finalizer name nor is it fully qualified"
            yield cause("FieldValueInvalid", f"{lead}{rule}", f"metadata.finalizers[{index}]")


def label_faults(labels: Manifest, path: str) -> Iterator[Manifest]:
    for key, value in labels.items():
        if not is_label_key(key):
            yield cause("FieldValueInvalid", f'Invalid value: "{key}": {NAME_RULE}', path)
        if not is_label_value(value):
            if len(value) > 63:
                yield cause("FieldValueInvalid", f'Invalid value: "{value}": must be no more than 63 bytes', path)
            else:
                yield cause("FieldValueInvalid", f'Invalid value: "{value}": {VALUE_RULE}', path)


def annotation_faults(annotations: Manifest) -> Iterator[Manifest]:
    for key in annotations:
        if not is_label_key(key.lower()):
            yield cause("FieldValueInvalid", f'Invalid value: "{key}": {NAME_RULE}', "metadata.annotations")
    size = sum(len(key) + len(value) for key, value in annotations.items())
    if size > 256 * 1024:
        yield cause("FieldValueTooLong", "Too long: may not be more than 262144 bytes", "metadata.annotations")
