"""Lists: which records at which revision, in pages, and the bytes of the answer.

The pages of one list all show the moment of the first: a continue token carries that revision and the last key. The
bytes are those of the stored objects, joined; nothing is encoded anew.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import json
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import islice
from typing import Any

from navarch.embedded.api.errors import ApiError, bad_request, cause, expired, invalid, revision_too_large
from navarch.embedded.api.kinds.registry import Kind
from navarch.embedded.api.selectors import match_record
from navarch.embedded.storage.record import Record
from navarch.embedded.storage.store import Store

FUTURE_WAIT = 3.0
"""How long a read waits for a revision that is not there yet, in seconds."""
EXPIRED_TOKEN = (
    "The provided continue parameter is too old to display a consistent list result. You can start a new list without "
    "the continue parameter, or use the continue token in this response to retrieve the remainder of the results. "
    "Continuing with the provided token results in an inconsistent list - objects that were created, modified, or deleted "
    "between the time the first chunk was returned and now may show up in the list."
)


@dataclass(slots=True)
class ListOptions:
    """The query of a list or watch request."""

    label_selector: str = ""
    field_selector: str = ""
    version: str = ""
    version_match: str = ""
    limit: int = 0
    token: str = ""
    watch: bool = False
    bookmarks: bool = False
    initial_events: bool | None = None
    timeout: int | None = None

    @classmethod
    def of(cls, query: dict[str, str]) -> ListOptions:
        initial = query.get("sendInitialEvents")
        return cls(
            query.get("labelSelector", ""),
            query.get("fieldSelector", ""),
            query.get("resourceVersion", ""),
            query.get("resourceVersionMatch", ""),
            _integer(query, "limit") or 0,
            query.get("continue", ""),
            _flag(query, "watch"),
            _flag(query, "allowWatchBookmarks"),
            None if initial is None else _flag(query, "sendInitialEvents"),
            _integer(query, "timeoutSeconds"),
        )

    def matches(self, kind: Kind, name: str = "") -> Callable[[Record], bool] | None:
        fields = f"metadata.name={name}" if name else ""
        text = ",".join(filter(None, (fields, self.field_selector)))
        return match_record(self.label_selector, text, kind.selectable, kind.kind)

    def revision(self) -> int:
        """The resourceVersion asked for; 0 for none or "0"."""
        if not self.version:
            return 0
        if not _REVISION.fullmatch(self.version):
            said = f'strconv.ParseUint: parsing "{self.version}": invalid syntax'
            raise bad_request(f'invalid resource version: resourceVersion: Invalid value: "{self.version}": {said}')
        return int(self.version)

    def check_list(self) -> None:
        """422 for combinations that a list does not allow."""
        match = self.version_match
        if self.initial_events is not None:
            _forbid("sendInitialEvents", "sendInitialEvents is forbidden for list")
        if not match:
            return
        if not self.version:
            _forbid("resourceVersionMatch", "resourceVersionMatch is forbidden unless resourceVersion is provided")
        if self.token:
            _forbid("resourceVersionMatch", "resourceVersionMatch is forbidden when continue is provided")
        if match not in ("Exact", "NotOlderThan"):
            message = f'Unsupported value: "{match}": supported values: "Exact", "NotOlderThan", ""'
            _refuse("FieldValueNotSupported", "resourceVersionMatch", message)
        if match == "Exact" and self.version == "0":
            _forbid("resourceVersionMatch", 'resourceVersionMatch "exact" is forbidden for resourceVersion "0"')

    def check_watch(self) -> None:
        """422 for combinations that a watch does not allow."""
        if self.initial_events is None:
            if self.version_match:
                _forbid("resourceVersionMatch", "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided")
        elif self.version_match != "NotOlderThan":
            _forbid("resourceVersionMatch", "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan")


_REVISION = re.compile(r"[0-9]{1,19}")


def _forbid(field: str, message: str) -> None:
    _refuse("FieldValueForbidden", field, f"Forbidden: {message}")


def _refuse(reason: str, field: str, message: str) -> None:
    raise invalid("ListOptions", "meta.k8s.io", "", [cause(reason, message, field)])


def _flag(query: dict[str, str], name: str) -> bool:
    value = query.get(name)
    if value is None:
        return False
    return value.lower() not in ("", "0", "false", "f")


def _integer(query: dict[str, str], name: str) -> int | None:
    value = query.get(name)
    if value is None or value == "":
        return None
    try:
        number = int(value)
    except ValueError:
        raise bad_request(f'strconv.ParseInt: parsing "{value}": invalid syntax ({name})') from None
    if number < 0 or number >= 2**63:
        raise bad_request(f"{name}: found {value!r}, expected an integer that is not negative")
    return number


@dataclass(slots=True)
class Page:
    """The records of one answer."""

    records: list[Record]
    revision: int
    token: str = ""
    remaining: int | None = None

    def metadata(self) -> dict[str, Any]:
        found: dict[str, Any] = {"resourceVersion": str(self.revision)}
        if self.token:
            found["continue"] = self.token
        if self.remaining is not None:
            found["remainingItemCount"] = self.remaining
        return found


async def wait_for(store: Store, revision: int) -> None:
    """Return when the store has reached a revision; 504 if it does not within a few seconds."""
    if revision <= store.revision:
        return
    deadline = asyncio.get_running_loop().time() + FUTURE_WAIT
    while asyncio.get_running_loop().time() < deadline:
        await asyncio.sleep(0.02)
        if revision <= store.revision:
            return
    raise revision_too_large(revision, store.revision)


async def read_page(store: Store, kind: Kind, namespace: str, options: ListOptions) -> Page:
    """The records that a list request asks for."""
    options.check_list()
    matches = options.matches(kind)
    collection = store.collection(kind.stored)
    after, start = "", 0
    if options.token:
        start, after = _read_token(options.token)
        if options.version and options.version != "0":
            raise bad_request("specifying resource version is not allowed when using continue")
    else:
        asked = options.revision()
        await wait_for(store, asked)
        if asked and (options.version_match == "Exact" or (options.limit and not options.version_match)):
            start = asked
    revision = start if start > 0 else store.revision
    found: Iterable[Record]
    if start > 0 and start != store.revision:
        try:
            found = collection.at(start, namespace, after)
        except ApiError as error:
            raise _stale(error, options, after) from None
    else:
        found = collection.walk(namespace, after)
    chosen = found if matches is None else (record for record in found if matches(record))
    if not options.limit or (options.version == "0" and not options.token):
        return Page(list(chosen), revision)
    iterator = iter(chosen)
    records = list(islice(iterator, options.limit))
    following = next(iterator, None)
    if following is None:
        return Page(records, revision)
    remaining = 1 + sum(1 for _ in iterator) if matches is None else None
    return Page(records, revision, _token(revision, records[-1].key), remaining)


def _stale(error: ApiError, options: ListOptions, after: str) -> ApiError:
    if not options.token:
        return expired(error.message)
    stale = expired(EXPIRED_TOKEN)
    stale.continue_token = _token(-1, after)
    return stale


def _token(revision: int, last: str) -> str:
    content = {"v": "meta.k8s.io/v1", "rv": revision, "start": f"{last}\0"}
    return base64.urlsafe_b64encode(json.dumps(content, separators=(",", ":")).encode()).rstrip(b"=").decode()


def _read_token(token: str) -> tuple[int, str]:
    try:
        content = json.loads(base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)))
        revision, start = content["rv"], content["start"]
    except (binascii.Error, ValueError, KeyError, TypeError):
        raise bad_request("invalid continue token: continue key is not valid: it was not made by this server") from None
    if not isinstance(revision, int) or not isinstance(start, str) or content.get("v") != "meta.k8s.io/v1":
        raise bad_request("invalid continue token: continue key is not valid: it was not made by this server")
    return revision, start.rstrip("\0")
