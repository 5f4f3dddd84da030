"""One HTTP request, from its URL to its answer.

A request is resolved to a kind and a verb, its body decoded, the work done by `Operations` in one step without interruption, and
the answer sent when what it tells of is on disk.
"""

from __future__ import annotations

import hmac
import logging
from typing import Any

import msgspec
from aiohttp import web

from navarch.embedded.api.deletion import DeleteOptions
from navarch.embedded.api.errors import (
    ApiError,
    bad_request,
    cause,
    internal,
    invalid,
    method_not_allowed,
    no_such_path,
    not_found,
    unauthorized,
    unsupported_media_type,
)  # fmt: skip
from navarch.embedded.api.faults import Faults
from navarch.embedded.api.input.bodies import Accepted, accepted, decode, decode_json, decode_yaml, media_type, read_bytes
from navarch.embedded.api.kinds.discovery import VERSION, Discovery
from navarch.embedded.api.kinds.openapi import OPENAPI_V2, OpenApi
from navarch.embedded.api.kinds.registry import Kind
from navarch.embedded.api.operations import Operations
from navarch.embedded.api.output.lists import ListOptions, Page, read_page, wait_for
from navarch.embedded.api.output.tables import Form, form_of
from navarch.embedded.api.output.watch_stream import WatchStream, served_bytes
from navarch.embedded.api.patches.apply import apply_patch
from navarch.embedded.api.patches.json_patch import apply_json_patch, merge
from navarch.embedded.api.patches.strategic_merge import strategic_merge
from navarch.embedded.api.strategies import RETURNS_DELETED
from navarch.embedded.api.subresources.binding import bind
from navarch.embedded.api.subresources.eviction import evict
from navarch.embedded.api.subresources.pod_logs import pod_log
from navarch.embedded.api.subresources.proxy import pass_on, proxied
from navarch.embedded.api.subresources.reviews import REVIEWS, review
from navarch.embedded.api.subresources.scale import from_scale, to_scale
from navarch.embedded.api.targets import Target, resolve
from navarch.embedded.api.writing import WriteOptions
from navarch.embedded.storage.record import Record
from navarch.object_types import Manifest

log = logging.getLogger(__name__)
_encode = msgspec.json.encode
PATCH_TYPES = (
    "application/json-patch+json",
    "application/merge-patch+json",
    "application/strategic-merge-patch+json",
    "application/apply-patch+yaml",
)
OPTIONS_KIND = {"POST": "CreateOptions", "PUT": "UpdateOptions", "PATCH": "PatchOptions"}
OPEN_PATHS = frozenset({"/healthz", "/livez", "/readyz", "/version"})
STREAMED_FROM = 1000
"""Lists longer than this are sent in pieces, so that one large list does not block other requests."""


class Rest:
    """Handles requests for one server."""

    def __init__(self, operations: Operations, discovery: Discovery, openapi: OpenApi, faults: Faults, token: str) -> None:
        self.operations = operations
        self.store = operations.store
        self.discovery = discovery
        self.openapi = openapi
        self.faults = faults
        self.token = token
        self._bearer = f"Bearer {token}".encode()

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        """Answer any request. A refusal becomes a Status."""
        try:
            await self.faults.before(request)
            self._authenticate(request)
            return await self._dispatch(request)
        except ApiError as error:
            return error_response(error)
        except (ConnectionResetError, ConnectionAbortedError) as error:
            log.debug("client left during %s %s: %s", request.method, request.path, error)
            raise
        except RecursionError:
            return error_response(bad_request("the object is nested too deeply"))
        except Exception:
            # Every request is answered, as by kube-apiserver: a fault of ours is a Status 500, and the connection stays.
            log.exception("%s %s failed", request.method, request.path)
            return error_response(internal(f"{request.method} {request.path} failed; the server's log says why"))

    def _authenticate(self, request: web.BaseRequest) -> None:
        given = request.headers.get("Authorization", "").encode(errors="surrogateescape")
        if not hmac.compare_digest(given, self._bearer) and request.path not in OPEN_PATHS:
            raise unauthorized()

    async def _dispatch(self, request: web.BaseRequest) -> web.StreamResponse:
        path = request.path
        if path.startswith(("/api/", "/apis/")) and path.strip("/").count("/") >= (2 if path.startswith("/api/") else 3):
            return await self._resource(request)
        if request.method not in ("GET", "HEAD"):
            raise method_not_allowed()
        if path.rstrip("/") in ("/api", "/apis") or path.startswith(("/api/", "/apis/")):
            return self._discover(request)
        if path in ("/healthz", "/livez", "/readyz", "/ping") or path.startswith(("/livez/", "/readyz/", "/healthz/")):
            failure = None if path.startswith("/livez") else self.store.failure
            return web.Response(text="ok") if failure is None else web.Response(text=f"{failure.message}\n", status=500)
        if path == "/version":
            return json_response(_encode(VERSION))
        if path in ("/openapi/v3", "/openapi/v3/"):
            return json_response(self.openapi.index())
        if path.startswith("/openapi/v3/"):
            document = self.openapi.document(path.removeprefix("/openapi/v3/").strip("/"))
            if document is not None:
                return json_response(document)
        if path == "/openapi/v2":
            return web.Response(body=b"", content_type=OPENAPI_V2)
        if path == "/metrics":
            return web.Response(text=self._metrics())
        return web.Response(text="404 page not found\n", status=404)

    def _metrics(self) -> str:
        store = self.store
        watchers = sum(watch.is_remote for watch in store.watches())
        lines = ["# TYPE apiserver_storage_objects gauge"]
        lines += [f'apiserver_storage_objects{{resource="{each}"}} {store.count(each)}' for each in store.resources()]
        lines += ["# TYPE apiserver_registered_watchers gauge", f"apiserver_registered_watchers {watchers}"]
        lines += ["# TYPE apiserver_current_revision counter", f"apiserver_current_revision {store.revision}"]
        return "\n".join(lines) + "\n"

    def _discover(self, request: web.BaseRequest) -> web.Response:
        form = accepted(request.headers.get("Accept", ""))
        aggregated = form.version if form.shape == "APIGroupDiscoveryList" else ""
        path = request.path.rstrip("/")
        found = self.discovery.document(path, aggregated if path in ("/api", "/apis") else "")
        if found is None:
            raise no_such_path()
        body, tag = found
        headers = {"ETag": tag, "Vary": "Accept"}
        if request.headers.get("If-None-Match") == tag:
            return web.Response(status=304, headers=headers)
        headers["Content-Type"] = form.media if aggregated and path in ("/api", "/apis") else "application/json"
        return web.Response(body=body, headers=headers)

    # ------------------------------------------------------------------ resources

    async def _resource(self, request: web.BaseRequest) -> web.StreamResponse:
        if (backend := proxied(request.path, self.store)) is not None:
            return await pass_on(request, backend)
        target = resolve(request.path, self.operations.registry)
        method = request.method
        if method in ("GET", "HEAD"):
            return await self._read(request, target)
        if method == "POST":
            response = await self._post(request, target)
        elif method == "PUT":
            response = await self._put(request, target)
        elif method == "PATCH":
            response = await self._patch(request, target)
        elif method == "DELETE":
            response = await self._delete(request, target)
        else:
            raise method_not_allowed()
        if not self.store.is_settled:
            await self.store.settled()
        return response

    async def _read(self, request: web.BaseRequest, target: Target) -> web.StreamResponse:
        kind = target.kind
        query = dict(request.query)
        options = ListOptions.of(query)
        form = form_of(accepted(request.headers.get("Accept", "")), kind, query.get("includeObject", ""))
        if target.subresource:
            return await self._read_subresource(target, query, form)
        if "list" not in kind.verbs:
            raise method_not_allowed()
        if options.watch or target.watch:
            matches = options.matches(kind, target.name)
            render = form.watched if form is not None else None
            stream = WatchStream(self.store, kind, target.namespace, options, matches, render)
            return await stream.serve(request)
        if not self.store.is_settled:
            await self.store.settled()
        if target.name:
            await wait_for(self.store, options.revision())
            record = self._get(kind, target.namespace, target.name)
            return json_response(form.one(record) if form is not None else served_bytes(kind, record))
        page = await read_page(self.store, kind, target.namespace, options)
        if form is not None:
            return json_response(form.many(page.records, page.metadata()))
        return await self._list_response(request, kind, page)

    def _get(self, kind: Kind, namespace: str, name: str) -> Record:
        record = self.store.find(kind.stored, namespace, name)
        if record is None:
            raise not_found(kind.resource, name)
        return record

    async def _read_subresource(self, target: Target, query: dict[str, str], form: Form | None) -> web.StreamResponse:
        kind, name = target.kind, target.subresource
        record = self._get(kind, target.namespace, target.name)
        if name == "scale":
            return json_response(_encode(to_scale(kind, self.operations.served(kind, record))))
        if name == "log":
            return web.Response(text=pod_log(record.obj, query))
        if name in ("status", "resize", "ephemeralcontainers"):
            return json_response(form.one(record) if form is not None else served_bytes(kind, record))
        raise method_not_allowed()

    async def _list_response(self, request: web.BaseRequest, kind: Kind, page: Page) -> web.StreamResponse:
        head = b'{"kind":"%s","apiVersion":"%s","metadata":%s,"items":[' % (
            kind.list_kind.encode(),
            kind.api_version.encode(),
            _encode(page.metadata()),
        )
        records = page.records
        if len(records) <= STREAMED_FROM:
            return json_response(head + b",".join([served_bytes(kind, record) for record in records]) + b"]}\n")
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        response.enable_chunked_encoding()
        await response.prepare(request)
        await response.write(head)
        for start in range(0, len(records), STREAMED_FROM):
            part = b",".join([served_bytes(kind, record) for record in records[start : start + STREAMED_FROM]])
            await response.write(b"," + part if start else part)
        await response.write(b"]}\n")
        await response.write_eof()
        return response

    # ------------------------------------------------------------------ writes

    async def _body(self, request: web.BaseRequest) -> Any:
        return decode(await read_bytes(request), request.headers.get("Content-Type", ""))

    def _written(self, request: web.BaseRequest, kind: Kind, record: Record, options: WriteOptions, status: int) -> web.Response:
        form = form_of(_answer_form(request), kind, "")
        body = form.one(record) if form is not None else served_bytes(kind, record)
        response = json_response(body, status)
        for warning in options.warnings:
            response.headers.add("Warning", f'299 - "{_quoted(warning)}"')
        return response

    async def _post(self, request: web.BaseRequest, target: Target) -> web.StreamResponse:
        kind = target.kind
        options = write_options(request)
        body = await self._body(request)
        if target.subresource:
            return self._post_subresource(target, body, options)
        if target.name or "create" not in kind.verbs:
            raise method_not_allowed()
        if kind.resource == "bindings":
            bind(self.store, target.namespace, "", body, options.dry_run)
            return json_response(_encode(success(201)), 201)
        if kind.resource in REVIEWS:
            return json_response(_encode(review(kind, body, self.token)), 201)
        record = self.operations.create(kind, target.namespace, body, options)
        return self._written(request, kind, record, options, 201)

    def _post_subresource(self, target: Target, body: Any, options: WriteOptions) -> web.Response:
        name = target.subresource
        if name == "binding":
            bind(self.store, target.namespace, target.name, body, options.dry_run)
            return json_response(_encode(success(201)), 201)
        if name == "eviction":
            evict(self.operations, target.namespace, target.name, body, options.dry_run)
            return json_response(_encode(success(201)), 201)
        if name == "token":
            self._get(target.kind, target.namespace, target.name)
            status = {"token": self.token, "expirationTimestamp": "2099-01-01T00:00:00Z"}
            spec = body.get("spec") if isinstance(body, dict) else {}
            metadata = {"name": target.name, "namespace": target.namespace}
            answer = {"kind": "TokenRequest", "apiVersion": "authentication.k8s.io/v1", "metadata": metadata}
            return json_response(_encode({**answer, "spec": spec or {}, "status": status}), 201)
        raise method_not_allowed()

    async def _put(self, request: web.BaseRequest, target: Target) -> web.StreamResponse:
        kind, options = target.kind, write_options(request)
        body = await self._body(request)
        if not target.name or "update" not in kind.verbs:
            raise method_not_allowed()
        if target.subresource == "scale":
            return self._scale(target, body, options)
        subresource = _written_subresource(target.subresource)
        record, created = self.operations.update(kind, target.namespace, target.name, body, options, subresource)
        return self._written(request, kind, record, options, 201 if created else 200)

    def _scale(self, target: Target, scale: Any, options: WriteOptions) -> web.Response:
        kind = target.kind
        record = self.operations.modify(
            kind, target.namespace, target.name, lambda obj: from_scale(kind, obj, scale), options, "scale"
        )
        return json_response(_encode(to_scale(kind, self.operations.served(kind, record))))

    async def _patch(self, request: web.BaseRequest, target: Target) -> web.StreamResponse:
        kind, options = target.kind, write_options(request)
        content_type = media_type(request.headers.get("Content-Type", ""))
        offered = [each for each in PATCH_TYPES if not kind.is_custom or each != PATCH_TYPES[2]]
        if content_type not in offered:
            raise unsupported_media_type(offered)
        if not target.name or "patch" not in kind.verbs:
            raise method_not_allowed()
        raw = await read_bytes(request)
        if content_type == PATCH_TYPES[3]:
            patch = decode_yaml(raw)
            if target.subresource == "scale":
                return self._scale(target, patch, options)
            subresource = _written_subresource(target.subresource)
            record, created = apply_patch(self.operations, kind, target.namespace, target.name, patch, options, subresource)
            return self._written(request, kind, record, options, 201 if created else 200)
        patch = decode_json(raw)
        if content_type != PATCH_TYPES[0] and not isinstance(patch, dict):
            raise bad_request("error decoding patch: expected a JSON object")
        if options.force:
            why = [cause("FieldValueForbidden", "Forbidden: may not be specified for non-apply patch", "force")]
            raise invalid("PatchOptions", "meta.k8s.io", "", why)

        def change(obj: Manifest) -> Manifest:
            if content_type == PATCH_TYPES[0]:
                return apply_json_patch(obj, patch)
            if content_type == PATCH_TYPES[1]:
                merged: Manifest = merge(obj, patch)
                return merged
            return strategic_merge(obj, patch, kind.shape)

        if target.subresource == "scale":
            record = self._get(kind, target.namespace, target.name)
            return self._scale(target, change(to_scale(kind, self.operations.served(kind, record))), options)
        subresource = _written_subresource(target.subresource)
        self._get(kind, target.namespace, target.name)

        def changed(obj: Manifest) -> Manifest:
            new = change(obj)
            if isinstance(new.get("metadata"), dict) and new["metadata"].get("name") != target.name:
                found = new["metadata"].get("name")
                raise bad_request(f"the name of the object ({found}) does not match the name on the URL ({target.name})")
            return new

        record = self.operations.modify(kind, target.namespace, target.name, changed, options, subresource)
        return self._written(request, kind, record, options, 200)

    async def _delete(self, request: web.BaseRequest, target: Target) -> web.StreamResponse:
        kind = target.kind
        if target.subresource:
            raise method_not_allowed()
        raw = await read_bytes(request)
        body = decode(raw, request.headers.get("Content-Type", "")) if raw.strip() else None
        query = dict(request.query)
        options = DeleteOptions.of(body, query)
        if target.name:
            if "delete" not in kind.verbs:
                raise method_not_allowed()
            self._get(kind, target.namespace, target.name)
            done = self.operations.delete(kind, target.namespace, target.name, options)
            if not done.finished or kind.resource in RETURNS_DELETED:
                return json_response(served_bytes(kind, done.record))
            details = {"name": target.name, "kind": kind.plural, "uid": done.record.uid}
            if kind.group:
                details["group"] = kind.group
            return json_response(_encode({**success(0), "details": details}))
        if "deletecollection" not in kind.verbs:
            raise method_not_allowed()
        page = await read_page(self.store, kind, target.namespace, ListOptions.of(query))
        for record in page.records:
            if self.store.find(kind.stored, record.namespace, record.name) is not None:
                self.operations.delete(kind, record.namespace, record.name, options)
        return await self._list_response(request, kind, page)


def _written_subresource(name: str) -> str:
    if name in ("", "status", "resize", "ephemeralcontainers", "finalize"):
        return name
    raise method_not_allowed()


def _answer_form(request: web.BaseRequest) -> Accepted:
    return accepted(request.headers.get("Accept", ""))


def _quoted(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", " ").replace("\r", " ")


def success(code: int) -> Manifest:
    status: Manifest = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"}
    if code:
        status["code"] = code
    return status


def json_response(body: bytes, status: int = 200) -> web.Response:
    return web.Response(body=body, status=status, headers={"Content-Type": "application/json"})


def error_response(error: ApiError) -> web.Response:
    response = json_response(_encode(error.status()), error.code)
    if error.retry_after:
        response.headers["Retry-After"] = str(error.retry_after)
    return response


def write_options(request: web.BaseRequest) -> WriteOptions:
    """dryRun, fieldManager, fieldValidation and force of a write; 422 for values that do not exist."""
    query = request.query
    causes: list[Manifest] = []
    dry_run = query.getall("dryRun", [])
    if any(each != "All" for each in dry_run if each):
        message = f'Unsupported value: ["{dry_run[0]}"]: supported values: "All"'
        causes.append(cause("FieldValueNotSupported", message, "dryRun"))
    validation = query.get("fieldValidation", "") or "Warn"
    if validation not in ("Ignore", "Warn", "Strict"):
        message = f'Unsupported value: "{validation}": supported values: "", "Ignore", "Strict", "Warn"'
        causes.append(cause("FieldValueNotSupported", message, "fieldValidation"))
    manager = query.get("fieldManager", "")
    if len(manager) > 128:
        causes.append(cause("FieldValueTooLong", "Too long: may not be more than 128 bytes", "fieldManager"))
    if causes:
        raise invalid(OPTIONS_KIND.get(request.method, "CreateOptions"), "meta.k8s.io", "", causes)
    stated = manager
    if not manager:
        manager = request.headers.get("User-Agent", "").partition("/")[0][:128] or "unknown"
    return WriteOptions(
        dry_run=any(dry_run),
        manager=manager,
        stated_manager=stated,
        field_validation=validation,
        force=query.get("force") == "true",
    )
