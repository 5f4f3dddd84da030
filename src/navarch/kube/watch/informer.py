"""An informer: keeps all objects of one kind up to date by list and watch, through any failure of the connection.

    informer = Informer(client, PODS, Pod, handler, field_selector="status.phase!=Succeeded")
    task = asyncio.create_task(informer.run())      # until cancelled
    await informer.wait_for_sync()                  # the handler has received all objects

`Pod` is a msgspec Struct of the fields you read, with `metadata.name`, `.namespace`, `.uid` and `.resource_version`
(`rename="camel"`); `handler` has `added(new)`, `updated(old, new)`, `deleted(old)`, called synchronously in the loop;
`on_bad(metadata, error)` is called for objects that are not a `Pod`, unless `salvage(json, error)` makes one of them. `object_store`
lists what the handler may rely on.

The informer starts with WatchList: one stream of all objects, then a bookmark, then changes. On servers without WatchList, and with
`paged=True`, it reads a paged list and then watches. A stream that ends or breaks is resumed from the last version. These start over
with a new list, and the handler receives only the difference: 410, as a reply or as an event; a version from the future (a server
restored from a backup); a version that the server refuses repeatedly without such a reason; bytes that are not JSON in UTF-8, and
events that contradict what is known (`BrokenStream`), such as a version that is not newer than the one before. Each start reads the
latest state, not an older one from a cache. A list that shows no object any more, or an older state than is known, is believed when
the next list says the same: a proxy or a replica that lags may have answered.

A kind that is not served (404) is waited for. With `optional=True` it counts as synced meanwhile; `retry_now()` makes the informer
try again at once (see `informer_group`). When a kind disappears, its objects are deleted. A 404 counts as that only if discovery
confirms it, because proxies that have lost their server also answer 404, and never for a kind that is not optional. `versions` lists
the versions of a kind, the best first: if the current one is not served, the others are tried in turn. `on_version` is called with
the new version, and the handler receives all objects again in that version. `on_served` is called when a kind is absent, appears or
disappears; by default that is logged.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Sequence
from contextlib import aclosing
from typing import Generic, TypeVar

from msgspec import Struct

from navarch.kube.backoff import Backoff
from navarch.kube.client import PAGE_SIZE, Client
from navarch.kube.errors import (
    ApiError,
    BadRequest,
    Forbidden,
    Gone,
    KubeError,
    NotFound,
    OutcomeUnknown,
    Unauthorized,
    error_from_status,
)
from navarch.kube.list_pages import list_metadata
from navarch.kube.resources import Resource
from navarch.kube.watch.decoding import (
    BadObject,
    Bookmark,
    BrokenStream,
    Change,
    Event,
    Failure,
    HasMetadata,
    Metadata,
    ObjectDecoder,
    Salvage,
    key_of,
)
from navarch.kube.watch.object_store import Handler, ObjectStore, OnBad, log_bad
from navarch.kube.watch.patience import Patience
from navarch.object_types import ObjectKey

log = logging.getLogger(__name__)

T = TypeVar("T", bound=HasMetadata)
LONG_ENOUGH = 1.0
"""After a stream of this many seconds, the next failure starts with the shortest wait."""
REFUSALS = 3
"""How often in a row a version may be refused without a clear reason."""


class InformerCounters(Struct):
    """What happened so far, for metrics."""

    events: int = 0
    bad_objects: int = 0
    lists: int = 0
    streams: int = 0
    failures: int = 0
    last_contact: float | None = None
    """`loop.time()` of the last bytes from the server."""


class _StartOver(Exception):
    """The next attempt must start with all objects."""


def log_served(resource: Resource, served: bool) -> None:
    """The default for `on_served`."""
    log.info("%s is served now" if served else "%s is not served; waiting for it", resource)


def log_forbidden(resource: Resource, error: Forbidden) -> None:
    """The default for `on_forbidden`."""
    log.warning("%s: %s; retrying until it is allowed", resource, error)


class Informer(Generic[T]):
    """See the module. `store` maps (namespace, name) to the objects that the handler has received."""

    def __init__(
        self,
        client: Client,
        resource: Resource,
        type: type[T],
        handler: Handler[T],
        *,
        on_bad: OnBad = log_bad,
        salvage: Salvage[T] | None = None,
        namespace: str | None = None,
        label_selector: str = "",
        field_selector: str = "",
        optional: bool = False,
        absent: bool = False,
        versions: Sequence[Resource] = (),
        on_version: Callable[[Resource], None] = lambda resource: None,
        on_served: Callable[[Resource, bool], None] = log_served,
        on_forbidden: Callable[[Resource, Forbidden], None] = log_forbidden,
        patience: Patience | None = None,
        rng: random.Random | None = None,
        paged: bool = False,
        objects: dict[ObjectKey, T] | None = None,
        contradiction: Callable[[T], str] | None = None,
    ) -> None:
        """`objects`: the dict to keep the store in, if another part shares it. `contradiction`: that of `ObjectStore`.

        `absent`: the server has just said that it serves no version of the kind. If the kind is optional, the first attempt is made as
        late as a retry, or when a CRD makes the kind available (`InformerGroup`).

        `paged`: start with a paged list, for kinds with many objects. A server encodes it at a third of the cost of a WatchList (30
        against 90 us of CPU a pod, kube-apiserver 1.36). The handler receives each page of the first list as it comes, while the
        server encodes the next one. Then at most two pages of whole objects are in memory. If the list breaks off, the next one is
        compared with what came."""
        self._paged = paged
        self.resource = resource
        self.versions = tuple(versions) or (resource,)
        self._on_version = on_version
        self._on_served = on_served
        self._on_forbidden = on_forbidden
        self._served: bool | None = None  # not known yet
        self.optional = optional
        self._known_absent = absent and optional
        self.counters = InformerCounters()
        self._client = client
        self._namespace = namespace
        self._selectors = {"labelSelector": label_selector, "fieldSelector": field_selector}
        self._patience = patience or Patience()
        self._rng = rng or random.Random()
        self._decoder = ObjectDecoder(type, salvage)
        self._on_bad = on_bad
        self._objects = ObjectStore(handler, self._count_bad, objects, contradiction)
        self._backoff = Backoff(first=self._patience.retry_first, cap=self._patience.retry_longest, rng=self._rng)
        self._version = ""  # empty: all objects are needed first
        self._newest = ""
        """The last version that was known, also while all objects are needed."""
        self._doubted = False
        """The last list was not believed."""
        self._anew = False
        """Every object of the next list is passed on."""
        self._watch_list = not paged
        self._broken_starts = 0
        self._missing = 0
        self._refusals = 0
        self._read_in: Resource | None = None  # the version of the objects that the handler has
        self.last_failure = ""
        """Why an attempt failed last; empty: none has failed."""
        self._synced = asyncio.Event()
        self._retry = asyncio.Event()

    @property
    def store(self) -> dict[ObjectKey, T]:
        return self._objects.objects

    @property
    def synced(self) -> bool:
        """Whether the handler has received all objects once (or the kind is optional and not served)."""
        return self._synced.is_set()

    @property
    def absent(self) -> bool:
        """Whether the server does not serve this kind now."""
        return self._missing > 0

    @property
    def watch_list(self) -> bool:
        """Whether the initial objects are requested as a stream; False: they are listed, because of `paged` or because the server
        refused that."""
        return self._watch_list

    @property
    def resource_version(self) -> str:
        """The resourceVersion up to which all changes are known; empty before the first list."""
        return self._version

    async def wait_for_sync(self) -> None:
        await self._synced.wait()

    def retry_now(self) -> None:
        """Try again now: something changed that a failing or absent kind may wait for."""
        self._retry.set()

    def is_bad(self, key: ObjectKey) -> bool:
        """Whether the newest version of the object could not be read."""
        return key in self._objects.bad

    async def pages(self) -> AsyncGenerator[tuple[bytes, Iterable[T | BadObject]], None]:
        """What the server lists now: each page as it came, and its items."""
        path = self.resource.path(self._namespace)
        selectors = self._selectors["labelSelector"], self._selectors["fieldSelector"]
        bodies = self._client.page_bodies(
            self.resource, namespace=self._namespace, label_selector=selectors[0], field_selector=selectors[1]
        )
        async with aclosing(bodies):
            async for body in bodies:
                yield body, self._decoder.page(body, path)

    def read_anew(self) -> None:
        """List again at the next event, and pass on every object: what is known may be wrong though its version is right."""
        self._anew = True

    async def run(self) -> None:
        """List and watch until cancelled. If it raised and is run again, it starts with a list."""
        self._version = ""
        if self._known_absent:
            self._known_absent, self._missing = False, len(self.versions)
            self._forget_kind()
            await self._pause(self._patience.absent_longest * self._rng.uniform(0.5, 1.0))
        while True:
            # A retry requested from here on makes `_pause` return at once.
            self._retry.clear()
            wait = await self._attempt()
            if wait > 0:
                await self._pause(wait)

    async def _attempt(self) -> float:
        """One list or one stream; returns the seconds to wait before the next."""
        clock = asyncio.get_running_loop().time
        started = clock()
        initial = not self._version
        try:
            if initial and not self._watch_list:
                await self._list()
            else:
                await self._stream(initial, clock)
        except _StartOver as reason:
            log.info("%s: %s: listing again", self.resource, reason)
            self._version = ""
        except NotFound as error:
            return await self._not_served(error)
        except BadRequest as error:
            if not (initial and self._watch_list):
                return self._failed(error)
            log.info("%s: no WatchList here, listing instead: %s", self.resource, error.message)
            self._watch_list = False
            return 0.0
        except KubeError as error:
            # Missing credentials are among these: their source may be back in a moment.
            if initial and self._watch_list and _is_no_start(error):
                self._count_broken_start()
            if isinstance(error, BrokenStream):
                # Resumed from the last version, the stream may break at the same line again. The waits grow: a client can write
                # such an object each second.
                self._version = ""
            elif clock() - started >= LONG_ENOUGH:
                self._backoff.reset()
            return self._failed(error)
        if clock() - started >= LONG_ENOUGH:
            self._backoff.reset()
            return 0.0
        # The watch follows a list at once. Streams that end at once must not make a busy loop.
        return 0.0 if initial and not self._watch_list and self._version else self._backoff.next()

    async def _list(self) -> None:
        items: list[T | BadObject] = []
        version = ""
        path = self.resource.path(self._namespace)
        for page_size in (PAGE_SIZE, 0):
            items.clear()
            at_once = self._may_pass_on()
            bodies = self._client.page_bodies(
                self.resource,
                namespace=self._namespace,
                label_selector=self._selectors["labelSelector"],
                field_selector=self._selectors["fieldSelector"],
                page_size=page_size,
                ahead=True,
            )
            try:
                async with aclosing(bodies):
                    async for body in bodies:
                        page = self._decoder.page(body, path)
                        if at_once:
                            self._read_in = self.resource
                            self._objects.add(page)
                        elif self._is_anew:
                            items.extend(page)
                        else:
                            items.extend(self._objects.with_known(page))
                        version = list_metadata(body, path).resource_version
                break
            except Gone:
                if page_size == 0:
                    raise
                log.info("%s: pages expired, listing in one reply", self.resource)
        if not at_once:
            self._check_whole(version, empty=not items)
        self._whole_state(None if at_once else items, version)

    @property
    def _is_anew(self) -> bool:
        """Whether what is known was read in another version of the API, so that objects of the same version may look different."""
        return self._anew or self._read_in not in (None, self.resource)

    def _may_pass_on(self) -> bool:
        """Whether nothing is known yet, so that each object of a list is a new one."""
        return self._paged and not self._synced.is_set() and not self._objects.objects and not self._objects.bad

    async def _stream(self, initial: bool, clock: Callable[[], float]) -> None:
        params: dict[str, str | int] = {name: value for name, value in self._selectors.items() if value}
        lifetime = self._rng.uniform(self._patience.watch_shortest, self._patience.watch_longest)
        params.update(watch="true", allowWatchBookmarks="true", timeoutSeconds=int(lifetime))
        if initial:
            params.update(sendInitialEvents="true", resourceVersionMatch="NotOlderThan")
        else:
            params["resourceVersion"] = self._version
        patience = self._patience
        initial_idle = min(patience.idle, patience.initial_idle)
        deadline = clock() + patience.initial_total
        beginning: dict[ObjectKey, T | BadObject] | None = {} if initial else None
        self._decoder.restart()
        self.counters.streams += 1
        chunks = self._client.transport.stream(
            self.resource.path(self._namespace),
            params,
            idle_timeout=lambda: patience.idle if beginning is None else initial_idle,
            gather=lambda: patience.gather if beginning is None else 0.0,
        )
        async with aclosing(chunks):
            async for chunk in chunks:
                now = self.counters.last_contact = clock()
                self._missing = 0
                events = self._decoder.feed(chunk)
                if beginning is None:
                    self._live(events)
                    continue
                rest = _collect(events, beginning)
                if rest is not None:
                    end, live = rest
                    self._check_whole(end.resource_version, empty=not beginning)
                    self._whole_state(_emptied(beginning), end.resource_version)
                    beginning = None
                    self._live(live)
                elif now > deadline:
                    break
        if beginning is not None:
            self._count_broken_start()

    def _live(self, events: Sequence[Event[T]]) -> None:
        """The hot path: one call for each chunk, no task and no await for each event."""
        if self._anew:
            raise _StartOver("what is known differs from the server")
        apply = self._objects.apply
        version = self._version
        for event in events:
            if isinstance(event, Change):
                newer = event.object.metadata.resource_version or ""
                if not _follows(newer, version):
                    raise BrokenStream(f"watch: an event of version {newer!r} after {version}")
                apply(event)
                version = newer
            elif isinstance(event, Bookmark):
                if _went_back(event.resource_version, version):
                    raise _StartOver(f"bookmark {event.resource_version} is older than {version}")
                version = event.resource_version or version
            elif isinstance(event, BadObject):
                self._objects.apply_bad(event)
                version = event.metadata.resource_version or version
            else:
                self._version = version
                raise _ended(event)
        self._version = self._newest = version
        self._refusals = 0
        self.counters.events += len(events)

    def _check_whole(self, version: str, *, empty: bool) -> None:
        """Raises `_StartOver` for a list that another one has to confirm."""
        older = _went_back(version, self._newest)
        if self._doubted or not (older or (empty and self._objects.objects)):
            self._doubted = False
            return
        self._doubted = True
        raise _StartOver(f"the list is of {version}, and {self._newest} is known" if older else "the list has no object any more")

    def _whole_state(self, items: Iterable[T | BadObject] | None, version: str) -> None:
        """All objects are known. `items` None: the handler has received them."""
        self.counters.lists += 1
        self.counters.last_contact = asyncio.get_running_loop().time()
        self._missing = 0
        self._refusals = 0
        self._broken_starts = 0
        if self._served is False:
            self._on_served(self.resource, True)
        self._served = True
        if items is not None:
            self._objects.replace(items, anew=self._is_anew)
        self._read_in, self._anew = self.resource, False
        self._version = self._newest = version
        self._synced.set()

    async def _not_served(self, error: NotFound) -> float:
        self._version = ""
        self._missing += 1
        if self._missing == 1:
            self._backoff.reset()
        # Twice, because a starting API server may answer 404 before it has loaded its CRDs.
        rounds = 2 if self._served else 1
        if self._served is not False and self._missing >= rounds * len(self.versions) and await self._is_gone(error):
            self._forget_kind()
        if len(self.versions) > 1:
            at = self.versions.index(self.resource) + 1
            self.resource = self.versions[at % len(self.versions)]
            self._on_version(self.resource)
        return min(self._backoff.next(), self._patience.absent_longest)

    def _forget_kind(self) -> None:
        """The kind is not served."""
        self._objects.replace([])
        self._served = False
        self._on_served(self.versions[0], False)
        if self.optional:
            self._synced.set()

    async def _is_gone(self, error: NotFound) -> bool:
        """Whether a 404 means that the kind is not served."""
        if not self.optional:
            if self._served and self._missing == 2 * len(self.versions):
                log.warning("%s: %s; keeping the known objects, because the kind is required", self.resource, error)
            return not self._served
        try:
            return await self._client.discovery.lacks(self.versions)
        except Forbidden:
            return True  # discovery does not answer
        except KubeError as doubt:
            log.info("%s: %s; ignored: %s", self.resource, error, doubt)
            return False

    def _failed(self, error: KubeError) -> float:
        self.counters.failures += 1
        wait = self._backoff.next()
        refused = False
        if isinstance(error, ApiError):
            refused = isinstance(error, BadRequest | Unauthorized | Forbidden)
            wait = max(wait, min(error.retry_after or 0.0, self._patience.asked_longest))
            if self._version and not error.is_passing:
                self._refusals += 1
            if isinstance(error, (Gone, BadRequest)) or _is_from_the_future(error) or self._refusals >= REFUSALS:
                self._version, self._refusals = "", 0
        # The same refusal is reported once, not for each attempt.
        known = str(error) == self.last_failure
        self.last_failure = str(error)
        if isinstance(error, Forbidden) and not known:
            self._on_forbidden(self.resource, error)
            return wait
        level = logging.DEBUG if known else logging.WARNING if refused else logging.INFO
        log.log(level, "%s: %s; again in %.1f s", self.resource, error, wait)
        return wait

    def _count_broken_start(self) -> None:
        """After two streams without the end of the initial events, use lists: the server or a proxy does not support WatchList."""
        self._broken_starts += 1
        if self._broken_starts >= 2:
            log.info("%s: the initial events did not end, listing instead", self.resource)
            self._watch_list = False

    def _count_bad(self, metadata: Metadata, error: Exception) -> None:
        self.counters.bad_objects += 1
        self._on_bad(metadata, error)

    async def _pause(self, wait: float) -> None:
        try:
            async with asyncio.timeout(wait):
                await self._retry.wait()
        except TimeoutError:
            return
        self._backoff.reset()


def _emptied(collected: dict[ObjectKey, T | BadObject]) -> Iterator[T | BadObject]:
    """Yield the objects in order and drop each reference, so that the consumer holds the only one."""
    for key in list(collected):
        yield collected.pop(key)


def _collect(events: Sequence[Event[T]], into: dict[ObjectKey, T | BadObject]) -> tuple[Bookmark, Sequence[Event[T]]] | None:
    """Initial events, of any type because live changes may come between them; at their end, the bookmark and what follows."""
    for position, event in enumerate(events):
        if isinstance(event, Change):
            key = key_of(event.object.metadata)
            if event.type == "DELETED":
                into.pop(key, None)
            else:
                into[key] = event.object
        elif isinstance(event, BadObject):
            key = key_of(event.metadata)
            if event.type == "DELETED":
                into.pop(key, None)
            else:
                into[key] = event
        elif isinstance(event, Failure):
            raise _ended(event)
        elif event.initial_end:
            return event, events[position + 1 :]
    return None


def _ended(failure: Failure) -> Exception:
    """The error of an ERROR event."""
    error = error_from_status(failure.status, method="WATCH")
    return _StartOver(error.message or "410 Gone") if isinstance(error, Gone) else error


def _is_no_start(error: KubeError) -> bool:
    """Whether the initial events failed for a reason that does not concern a list."""
    return isinstance(error, (OutcomeUnknown, BrokenStream)) or (isinstance(error, ApiError) and not error.is_passing)


def _is_from_the_future(error: ApiError) -> bool:
    return error.has_cause("ResourceVersionTooLarge") or "Too large resource version" in error.message


def _follows(version: str, known: str) -> bool:
    """Whether a change may come after what is known: versions grow."""
    try:
        return int(version) > int(known)
    except ValueError:
        return version != known


def _went_back(version: str, known: str) -> bool:
    try:
        return int(version) < int(known)
    except ValueError:
        return False
