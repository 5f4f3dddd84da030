"""pods/proxy and services/proxy: a request is passed on to a pod, or to an endpoint of a Service.

/api/v1/namespaces/NS/services/[SCHEME:]NAME[:PORT]/proxy/PATH, and the same with `pods`. As in kube-apiserver, the credentials of the
caller are not passed on, and X-Forwarded-For names the caller. Hollow pods run nothing, so only what `navarch up` itself serves
answers.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

import aiohttp
from aiohttp import web
from yarl import URL

from navarch.embedded.api.errors import ApiError, bad_request, not_found
from navarch.embedded.storage.store import Store
from navarch.object_types import Manifest

SLICES: Final = "endpointslices.discovery.k8s.io"
SERVICE_NAME: Final = "kubernetes.io/service-name"
WITHIN_SECONDS: Final = 30.0
_PATH: Final = re.compile(r"/api/v1/namespaces/([^/]+)/(pods|services)/([^/]+)/proxy(/.*)?")
_DROPPED: Final = frozenset(
    {"authorization", "connection", "content-length", "host", "keep-alive", "te", "trailer", "transfer-encoding", "upgrade"}
)


class Backend(NamedTuple):
    scheme: str
    host: str
    port: int
    path: str


def proxied(path: str, store: Store) -> Backend | None:
    """Where a request goes whose path names a proxy; None for other paths."""
    match = _PATH.fullmatch(path) if "/proxy" in path else None
    if match is None:
        return None
    namespace, resource, named, rest = match.groups("")
    scheme, name, port = _parts(named)
    record = store.find(resource, namespace, name)
    if record is None:
        raise not_found(resource, name)
    if resource == "pods":
        host, number = _of_pod(record.obj, port)
    else:
        host, number = _of_service(record.obj, port, store)
    return Backend(scheme or "http", host, number, rest or "/")


async def pass_on(request: web.BaseRequest, backend: Backend) -> web.StreamResponse:
    """The answer of the backend; 503 where it does not answer."""
    host = f"[{backend.host}]" if ":" in backend.host else backend.host
    url = URL(f"{backend.scheme}://{host}:{backend.port}{backend.path}").with_query(request.query)
    headers = [(name, value) for name, value in request.headers.items() if name.lower() not in _DROPPED]
    headers += [("Host", request.host), ("X-Forwarded-For", request.remote or "")]
    body = await request.read() if request.can_read_body else None
    timeout = aiohttp.ClientTimeout(total=WITHIN_SECONDS)
    try:
        async with (
            aiohttp.ClientSession(timeout=timeout, auto_decompress=False) as session,
            session.request(request.method, url, headers=headers, data=body, allow_redirects=False, ssl=False) as reply,
        ):
            kept = [(name, value) for name, value in reply.headers.items() if name.lower() not in _DROPPED]
            return web.Response(body=await reply.read(), status=reply.status, headers=kept)
    except (aiohttp.ClientError, TimeoutError) as error:
        raise _unavailable(f"error trying to reach service: {error or type(error).__name__}") from error


def _parts(named: str) -> tuple[str, str, str]:
    """
    >>> _parts("a"), _parts("a:8080"), _parts("https:a:web")
    (('', 'a', ''), ('', 'a', '8080'), ('https', 'a', 'web'))
    """
    parts = named.split(":")
    if len(parts) == 1:
        return "", named, ""
    if len(parts) == 2:
        return "", parts[0], parts[1]
    if len(parts) == 3 and parts[0] in ("", "http", "https"):
        return parts[0], parts[1], parts[2]
    raise bad_request(f'invalid service request "{named}"')


def _of_pod(pod: Manifest, port: str) -> tuple[str, int]:
    address = str((pod.get("status") or {}).get("podIP") or "")
    if not address:
        raise bad_request("address not allowed")
    if port.isdecimal():
        return address, int(port)
    ports = [each for container in pod["spec"].get("containers") or () for each in container.get("ports") or ()]
    found = [each["containerPort"] for each in ports if not port or each.get("name") == port]
    return address, int(found[0]) if found else 80


def _of_service(service: Manifest, port: str, store: Store) -> tuple[str, int]:
    metadata, ports = service["metadata"], service.get("spec", {}).get("ports") or []
    found = [each for each in ports if port in (str(each.get("port")), each.get("name")) or (not port and len(ports) == 1)]
    if not found:
        raise _unavailable(f'no service port "{port}" found for service "{metadata["name"]}"')
    name = found[0].get("name") or ""
    for record in store.list(SLICES, metadata["namespace"]):
        if (record.obj["metadata"].get("labels") or {}).get(SERVICE_NAME) != metadata["name"]:
            continue
        numbers = [each["port"] for each in record.obj.get("ports") or () if (each.get("name") or "") == name]
        ready = [each for each in record.obj.get("endpoints") or () if (each.get("conditions") or {}).get("ready") is not False]
        for endpoint in ready:
            for address in endpoint.get("addresses") or ():
                if numbers:
                    return str(address), int(numbers[0])
    raise _unavailable(f'no endpoints available for service "{metadata["name"]}"')


def _unavailable(message: str) -> ApiError:
    return ApiError(503, "ServiceUnavailable", message)
