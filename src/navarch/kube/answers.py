"""What the answer to a request means. `answer_of` decides it, and nothing else reads status codes of the API server.

Between a client and the API server there may be proxies, and each of them answers in the server's place when it has lost it: with an
HTML page, with an empty body, with the answer to another request. So an answer counts only as far as its body says what an API server
would say to this very request:

- A binding or an eviction was done if the answer is 201 with a `Status` of success.
- An object was read or written if the answer is that object: its kind, its name, its namespace. A write may also be answered by a
  `Status` of success.
- An object does not exist if the answer is a `Status` whose details name this very object. A kind is not served if the server's own
  404 says so, which names nothing.
- Everything else leaves open what happened: `OutcomeUnknown`, or `ServerFault` for 5xx.

A `429`, a `401` and a `5xx` only say when to ask again, so they need no proof.
"""

from __future__ import annotations

import enum
from typing import Final, NamedTuple
from urllib.parse import unquote

import msgspec

from navarch.kube.errors import (
    ApiError,
    Forbidden,
    KubeError,
    NotFound,
    NotServed,
    OutcomeUnknown,
    error_from_reply,
)
from navarch.kube.watch.decoding import decoded

_PLAIN_404: Final = b"404 page not found"
"""What an API server answers for a group that it does not serve; the same words as other servers written in Go."""
_DONE_BY_STATUS: Final = frozenset({"binding", "eviction"})
_OF_THE_OBJECT: Final = frozenset({"", "status", "ephemeralcontainers", "resize", "finalize"})
"""Subresources whose answer is the object itself."""
_QUOTED: Final = 80
"""Bytes of an answer that an error quotes."""


class Again(enum.Enum):
    """Whether the same request may be sent again."""

    NEVER = enum.auto()
    LATER = enum.auto()
    """The server asked for it."""
    IF_READ = enum.auto()
    """If it changes nothing."""
    WITH_NEW_CREDENTIAL = enum.auto()


class Answer(NamedTuple):
    """`error` None: it was done. `maybe_done`: the answer leaves open whether it was."""

    error: KubeError | None = None
    again: Again = Again.NEVER
    maybe_done: bool = False
    retry_after: float | None = None
    """Seconds to wait at least."""


DONE: Final = Answer()


class Target(NamedTuple):
    """What a path names. Without `plural` it is no resource."""

    group: str = ""
    version: str = ""
    namespace: str = ""
    plural: str = ""
    name: str = ""
    subresource: str = ""


class _Metadata(msgspec.Struct, gc=False):
    name: str = ""
    namespace: str = ""


class _Details(msgspec.Struct, gc=False):
    name: str = ""
    kind: str = ""


class _Said(msgspec.Struct):
    """The part of any object that says what it is."""

    kind: str = ""
    metadata: _Metadata | None = None
    status: msgspec.Raw = msgspec.Raw(b"")
    details: _Details | None = None


_SAID: Final = msgspec.json.Decoder(_Said)
_SUCCESS: Final = b'"Success"'


def answer_of(method: str, path: str, status: int, body: bytes, *, retry_after: float | None = None) -> Answer:
    """`status`, `body` and `retry_after` are those of the reply."""
    target = target_of(path)
    if 200 <= status < 300:
        return _success(method, target, path, status, body)
    error = _refusal(method, target, path, status, body, retry_after)
    wait = error.retry_after if isinstance(error, ApiError) else retry_after
    if status == 401:
        return Answer(error, Again.WITH_NEW_CREDENTIAL)
    if status == 429:
        return Answer(error, Again.LATER, retry_after=wait)
    if status >= 500:
        # A store that timed out answers 5xx, and may still have stored the object.
        again = Again.LATER if wait is not None else Again.IF_READ if status == 503 else Again.NEVER
        return Answer(error, again, maybe_done=True, retry_after=wait)
    if isinstance(error, OutcomeUnknown):
        return _unknown(error)
    return Answer(error, maybe_done=status < 400)  # no API server sends a redirect


def opens_stream(status: int) -> bool:
    """Whether a watch begins with this status; otherwise the body is the answer."""
    return 200 <= status < 300


def target_of(path: str) -> Target:
    """
    >>> target_of("/api/v1/namespaces/ns/pods/p/binding")
    Target(group='', version='v1', namespace='ns', plural='pods', name='p', subresource='binding')
    >>> target_of("/apis/apps/v1/deployments").plural, target_of("/version").plural
    ('deployments', '')
    """
    parts = path.partition("?")[0].split("/")
    if parts[1:2] == ["api"]:
        group, rest = "", parts[2:]
    elif parts[1:2] == ["apis"]:
        group, rest = "".join(parts[2:3]), parts[3:]
    else:
        return Target()
    version, rest = "".join(rest[:1]), rest[1:]
    namespace = ""
    if len(rest) > 2 and rest[0] == "namespaces" and rest[2] not in _OF_THE_OBJECT:
        namespace, rest = rest[1], rest[2:]
    plural, name = "".join(rest[:1]), "".join(rest[1:2])
    return Target(group, version, unquote(namespace), plural, unquote(name), "/".join(rest[2:]))


def _success(method: str, target: Target, path: str, status: int, body: bytes) -> Answer:
    """Lists are checked where they are read (`list_pages`)."""
    if _is_opaque(target) or not (target.name or method == "POST"):
        return DONE
    try:
        said: _Said = decoded(_SAID, body, method, path, whole=False)
    except OutcomeUnknown as error:
        return _unknown(error)
    wrong = _not_done(method, target, status, said)
    return _unknown(_strange(method, path, wrong, status, body)) if wrong else DONE


def _unknown(error: OutcomeUnknown) -> Answer:
    return Answer(error, Again.IF_READ, maybe_done=True)


def _is_opaque(target: Target) -> bool:
    """Whether the answer may have any form: logs, what the server passes on, paths that are no resource."""
    return target.subresource not in _OF_THE_OBJECT | _DONE_BY_STATUS or not target.version


def _not_done(method: str, target: Target, status: int, said: _Said) -> str:
    """What was expected of the answer and is not there; empty: nothing."""
    if target.subresource in _DONE_BY_STATUS:
        return "" if status == 201 and _is_success(said) else "201 and a Status of success"
    found = said.metadata or _Metadata()
    if method != "GET" and _is_success(said):
        found = _Metadata(said.details.name if said.details else "")
    elif said.kind and not is_plural_of(target.plural, said.kind):
        return f"one of {target.plural}"
    if target.namespace and found.namespace not in ("", target.namespace):
        return f"the namespace {target.namespace}"
    if target.name and found.name != target.name and (found.name or method == "GET"):
        return f"{target.plural} {target.name}"
    return ""


def _is_success(said: _Said) -> bool:
    return said.kind == "Status" and bytes(said.status) == _SUCCESS


def is_plural_of(plural: str, kind: str) -> bool:
    """Whether objects of this kind are served under this plural.

    >>> is_plural_of("pods", "Pod"), is_plural_of("priorityclasses", "PriorityClass"), is_plural_of("topologies", "Topology")
    (True, True, True)
    >>> is_plural_of("pods", "PodGroup"), is_plural_of("podgroups", "Pod"), is_plural_of("pods", "Status"), is_plural_of("pods", "")
    (False, False, False, False)
    """
    one = kind.lower()
    return bool(one) and plural in (one, f"{one}s", f"{one}es", f"{one.removesuffix('y')}ies")


def _refusal(method: str, target: Target, path: str, status: int, body: bytes, retry_after: float | None) -> KubeError:
    error = error_from_reply(status, body, method=method, path=path, retry_after=retry_after)
    discovery = not target.plural and path.startswith("/api")
    if _is_opaque(target) and not discovery:
        return error
    if isinstance(error, NotFound):
        return _absence(error, target, body) or _strange(method, path, "a Status that is about this object", status, body)
    if isinstance(error, Forbidden) and not error.status.is_failure:
        return _strange(method, path, "a Status", status, body)
    return error


def _absence(error: NotFound, target: Target, body: bytes) -> ApiError | None:
    """What a 404 proves: the object is not there, or what the path names is not served; None: nothing."""
    details = error.details
    if error.status.is_failure and details.name:
        named = (details.group, details.kind, details.name)
        if named == (target.group, target.plural, target.name):
            return error
        # An object cannot be made in a namespace that does not exist.
        return error if not target.subresource and named == ("", "namespaces", target.namespace) else None
    if not error.status.is_failure and body.strip() != _PLAIN_404:
        return None
    if not target.name:
        return error
    return NotServed(error.status, method=error.method, path=error.path)


def _strange(method: str, path: str, expected: str, status: int, body: bytes) -> OutcomeUnknown:
    return OutcomeUnknown(f"expected {expected}, found {status} {body[:_QUOTED]!r}", method=method, path=path)
