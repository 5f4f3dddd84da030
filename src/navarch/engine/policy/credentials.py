"""A policy document without credentials: what recordings and the published state of a scheduler may hold.

Addresses lose user name and password (`https://user:password@host`), and the values of fields whose name ends in `password`, `token`
or `secret` are replaced. No decision depends on either.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

REMOVED = "(removed)"
_USERINFO = re.compile(r"//[^/@\s]*@")
_SECRET = re.compile(r"(password|passwd|token|secret|credentials?|api[-_]?key|key[-_]?data)$", re.IGNORECASE)


def without_credentials(document: Mapping[str, Any]) -> dict[str, Any]:
    """A copy of the document, without them.

    >>> without_credentials({"metrics": {"address": "https://me:pw@host:9200", "elasticsearch.password": "pw"}})
    {'metrics': {'address': 'https://host:9200', 'elasticsearch.password': '(removed)'}}
    """
    return {key: REMOVED if _is_secret(key, value) else _without(value) for key, value in document.items()}


def _is_secret(key: object, value: object) -> bool:
    return isinstance(value, str) and bool(value) and _SECRET.search(str(key)) is not None


def _without(value: Any) -> Any:
    match value:
        case str():
            return _USERINFO.sub("//", value)
        case Mapping():
            return without_credentials(value)
        case list() | tuple():
            return [_without(each) for each in value]
    return value
