"""JSON patch (RFC 6902) and JSON merge patch (RFC 7386)."""

from __future__ import annotations

import json
import re
from typing import Any

from navarch.embedded.api.errors import ApiError, bad_request, generic
from navarch.object_types import Manifest

MOST_OPERATIONS = 10_000
MOST_COPIED = 3 * 1024 * 1024
"""Bytes that the copies of one patch may add up to, as in kube-apiserver. Copies of copies double an object at each step."""


_INDEX = re.compile(r"[0-9]{1,9}")


class Unfit(Exception):
    """A patch that is well-formed but does not fit the object."""


def merge(target: Any, patch: Any) -> Any:
    """Apply a merge patch; null deletes, objects merge, all else replaces.

    >>> merge({"a": {"b": 1, "c": 2}}, {"a": {"b": None}})
    {'a': {'c': 2}}
    """
    if not isinstance(patch, dict):
        return patch
    out = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            out.pop(key, None)
        elif isinstance(value, dict):
            out[key] = merge(out.get(key), value)
        else:
            out[key] = value
    return out


def apply_json_patch(target: Manifest, operations: Any) -> Manifest:
    """Apply a list of operations; 400 if they are malformed, 422 if they do not fit. Changes `target`.

    >>> apply_json_patch({"a": [1]}, [{"op": "add", "path": "/a/-", "value": 2}])
    {'a': [1, 2]}
    """
    if not isinstance(operations, list) or not all(isinstance(each, dict) for each in operations):
        raise bad_request("error decoding patch: expected a list of JSON patch operations")
    if len(operations) > MOST_OPERATIONS:
        message = f"The allowed maximum operations in a JSON patch is {MOST_OPERATIONS}, got {len(operations)}"
        raise ApiError(413, "RequestEntityTooLarge", message)
    document: Any = target
    copied = 0
    try:
        for operation in operations:
            if operation.get("op") == "copy":
                copied += len(json.dumps(_find(document, _pointer(operation.get("from")))))
                if copied > MOST_COPIED:
                    message = f"the copies of the patch add up to {copied} bytes, more than the limit of {MOST_COPIED}"
                    raise ApiError(413, "RequestEntityTooLarge", message)
            document = _apply(document, operation)
    except Unfit as error:
        message = f"the server rejected our request due to an error in our request: {error}"
        raise generic(422, "Invalid", message) from None
    if not isinstance(document, dict):
        raise ApiError(422, "Invalid", "the patch left something that is not an object")
    return document


def _pointer(text: Any) -> list[str]:
    if not isinstance(text, str) or (text and not text.startswith("/")):
        raise Unfit(f"path {text!r} is not a JSON pointer")
    return [step.replace("~1", "/").replace("~0", "~") for step in text.split("/")[1:]]


def _apply(document: Any, operation: Manifest) -> Any:
    name, path = operation.get("op"), operation.get("path")
    steps = _pointer(path)
    if name == "test":
        if _find(document, steps) != operation.get("value"):
            raise Unfit(f"testing path {path} failed")
        return document
    if name == "remove":
        return _remove(document, steps)
    if name in ("move", "copy"):
        origin = _pointer(operation.get("from"))
        value = json.loads(json.dumps(_find(document, origin)))
        if name == "move":
            document = _remove(document, origin)
        return _put(document, steps, value, insert=True)
    if name in ("add", "replace"):
        if "value" not in operation:
            raise Unfit(f"operation {name} of {path} has no value")
        if name == "replace":
            _find(document, steps)
        return _put(document, steps, operation["value"], insert=name == "add")
    raise Unfit(f"found op {name!r}, expected add, remove, replace, move, copy or test")


def _index(step: str, length: int) -> int:
    if not _INDEX.fullmatch(step) or int(step) >= length:
        raise Unfit(f"index {step[:20]!r} is not a number below {length}")
    return int(step)


def _find(document: Any, steps: list[str]) -> Any:
    for step in steps:
        if isinstance(document, dict):
            if step not in document:
                raise Unfit(f"path element {step!r} is missing")
            document = document[step]
        elif isinstance(document, list):
            document = document[_index(step, len(document))]
        else:
            raise Unfit(f"path element {step!r} leads into a plain value")
    return document


def _remove(document: Any, steps: list[str]) -> Any:
    if not steps:
        raise Unfit("the whole object cannot be removed")
    _find(document, steps)
    parent = _find(document, steps[:-1])
    if isinstance(parent, dict):
        del parent[steps[-1]]
    else:
        del parent[_index(steps[-1], len(parent))]
    return document


def _put(document: Any, steps: list[str], value: Any, insert: bool) -> Any:
    if not steps:
        return value
    parent = _find(document, steps[:-1])
    last = steps[-1]
    if isinstance(parent, dict):
        parent[last] = value
    elif isinstance(parent, list):
        if insert:
            parent.insert(len(parent) if last == "-" else _index(last, len(parent) + 1), value)
        else:
            parent[_index(last, len(parent))] = value
    else:
        raise Unfit(f"path element {last!r} leads into a plain value")
    return document
