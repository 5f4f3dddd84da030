"""What comes in and what goes out: media types of bodies, and which form of answer a client accepts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import msgspec
import yaml
from aiohttp import http_exceptions, web

from navarch.embedded.api.errors import bad_request, not_acceptable, too_large, unsupported_media_type
from navarch.embedded.api.input.protobuf import PROTOBUF, decode_object
from navarch.yaml_loading import Loader

LARGEST_BODY = 3 * 1024 * 1024
OFFERED = ("application/json", "application/yaml", "application/vnd.kubernetes.protobuf")
JSON_TYPES = frozenset({"", "application/json", "text/plain", "application/octet-stream", "*/*"})
"""Content types that are read as JSON. Clients that name no type mean JSON too."""


def media_type(text: str) -> str:
    return text.partition(";")[0].strip().lower()


async def read_bytes(request: web.BaseRequest) -> bytes:
    """The body; 413 if it is too large."""
    if request.content_length is not None and request.content_length > LARGEST_BODY:
        raise too_large(request.content_length, LARGEST_BODY)
    if not request.can_read_body:
        return b""
    try:
        body = await request.content.read(LARGEST_BODY + 1)
        while len(body) <= LARGEST_BODY and not request.content.at_eof():
            more = await request.content.read(LARGEST_BODY + 1 - len(body))
            if not more:
                break
            body += more
    except (http_exceptions.BadHttpMessage, http_exceptions.PayloadEncodingError, web.RequestPayloadError) as error:
        raise bad_request(f"the body cannot be read: {error}") from None
    if len(body) > LARGEST_BODY:
        raise too_large(len(body), LARGEST_BODY)
    return body


def decode_json(body: bytes) -> Any:
    try:
        return msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise bad_request(f"the object provided is unrecognized (must be of type JSON): {error}") from None


def decode_yaml(body: bytes) -> Any:
    try:
        return yaml.load(body.decode(), Loader=Loader)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise bad_request(f"error parsing YAML: {error}") from None


def decode(body: bytes, content_type: str) -> Any:
    """The object in a body of a create or update."""
    kind = media_type(content_type)
    if kind in JSON_TYPES:
        return decode_json(body)
    if kind in ("application/yaml", "application/x-yaml", "text/yaml"):
        return decode_yaml(body)
    if kind == PROTOBUF:
        return decode_object(body)
    raise unsupported_media_type(OFFERED)


@dataclass(frozen=True, slots=True)
class Accepted:
    """The form of answer a client wants: plain, a Table, or metadata only."""

    shape: str = ""
    """"", "Table", "PartialObjectMetadata", "PartialObjectMetadataList" or "APIGroupDiscoveryList"."""
    version: str = ""
    media: str = "application/json"


def accepted(header: str) -> Accepted:
    """The first form in an Accept header that this server has; 406 if there is none.

    >>> accepted("application/json;as=Table;v=v1;g=meta.k8s.io,application/json").shape
    'Table'
    """
    if not header or header == "*/*":
        return Accepted()
    for part in header.split(","):
        name, *parameters = [each.strip() for each in part.split(";")]
        name = name.lower()
        given = dict(each.split("=", 1) for each in parameters if "=" in each)
        shape, group, version = given.get("as", ""), given.get("g", ""), given.get("v", "")
        if name in ("application/json", "*/*", "application/*"):
            if not shape:
                return Accepted()
            if shape == "APIGroupDiscoveryList" and group == "apidiscovery.k8s.io" and version in ("v2", "v2beta1"):
                if given.get("profile"):
                    continue
                return Accepted(shape, version, f"application/json;g={group};v={version};as={shape}")
            if group == "meta.k8s.io" and version in ("v1", "v1beta1") and shape != "APIGroupDiscoveryList":
                return Accepted(shape, version)
    raise not_acceptable(OFFERED[:1])
