"""Errors of requests to an API server, as types that callers distinguish.

There are three families, because each needs another reaction:

- `ApiError`: the server refused; the error has the `metav1.Status` fields. Subclasses name the refusals that callers handle.
- `Unreachable`: the server did not process the request (no connection, or it was never sent). Safe to repeat.
- `OutcomeUnknown`: the request was sent and no answer came back. The server may have processed it. The caller must read the object
  before it tries again, unless repeating is harmless.
"""

from __future__ import annotations

from typing import Any

import msgspec


class StatusCause(msgspec.Struct, frozen=True, gc=False):
    """One entry of `Status.details.causes`."""

    reason: str = ""
    message: str = ""
    field: str = ""


class StatusDetails(msgspec.Struct, frozen=True, rename="camel"):
    """`Status.details`: which object, and why in machine-readable form."""

    name: str = ""
    group: str = ""
    kind: str = ""
    uid: str = ""
    causes: list[StatusCause] = []
    retry_after_seconds: float = 0


class StatusListMeta(msgspec.Struct, frozen=True, gc=False, rename={"continue_token": "continue"}):
    """The list metadata of a Status: an expired page may have a token to continue."""

    continue_token: str = ""


class Status(msgspec.Struct, frozen=True, rename="camel"):
    """`metav1.Status`, the body of every refusal."""

    kind: str = ""
    status: str = ""
    code: int = 0
    reason: str = ""
    message: str = ""
    details: StatusDetails | None = None
    metadata: StatusListMeta = StatusListMeta()

    @property
    def is_failure(self) -> bool:
        """Whether an API server said this. False: it was made from an answer of another form."""
        return self.kind == "Status" and self.status == "Failure"


class KubeError(Exception):
    """The base of all errors of this package."""


class ConfigError(KubeError):
    """A kubeconfig, service account or exec plugin that is not valid; the message names file and field."""


class TransportError(KubeError):
    """No usable answer came back."""

    def __init__(self, message: str, *, method: str = "", path: str = "") -> None:
        super().__init__(f"{method} {path}: {message}" if method else message)
        self.method = method
        self.path = path


class Unreachable(TransportError):
    """The server did not process the request."""


class OutcomeUnknown(TransportError):
    """The request was sent and no answer came back: the server may have processed it."""


class ApiError(KubeError):
    """The API server refused. `code`, `reason`, `message` and `details` are those of `metav1.Status`."""

    def __init__(self, status: Status, *, method: str = "", path: str = "", retry_after: float | None = None) -> None:
        self.status = status
        self.code = status.code
        self.reason = status.reason
        self.message = status.message
        self.details = status.details or StatusDetails()
        self.retry_after = retry_after if retry_after is not None else (self.details.retry_after_seconds or None)
        self.method = method
        self.path = path
        where = f"{method} {path}: " if method else ""
        super().__init__(f"{where}{self.code} {self.reason}: {self.message}")

    @property
    def is_passing(self) -> bool:
        """Whether it concerns this moment or this account, and not what was asked for: no rights, too many requests, no server."""
        return self.code in (401, 403, 429, 502, 503, 504)

    def has_cause(self, reason: str) -> bool:
        """Whether `details.causes` names this reason, e.g. `DisruptionBudget` or `ResourceVersionTooLarge`."""
        return any(cause.reason == reason for cause in self.details.causes)


class BadRequest(ApiError):
    """400 BadRequest or 422 Invalid: the request itself is wrong."""


class Unauthorized(ApiError):
    """401: the credentials are missing or not valid."""


class Forbidden(ApiError):
    """403: the account lacks the right."""


class NotFound(ApiError):
    """404: the server says that what the path names is not there: this very object, or the kind of a list."""


class NotServed(ApiError):
    """404 to a request for an object that says nothing of the object: its kind may not be served."""


class AlreadyExists(ApiError):
    """409 AlreadyExists, on create."""


class Conflict(ApiError):
    """409 Conflict: a stale resourceVersion, a wrong uid, a pod already bound."""


class Gone(ApiError):
    """410 Gone or Expired: the server no longer has the requested history."""


class TooManyRequests(ApiError):
    """429: too many requests (`retry_after`), or a disruption budget that allows no eviction now."""


class ServerFault(ApiError):
    """5xx: the server failed or is not ready."""


_BY_CODE: dict[int, type[ApiError]] = {
    400: BadRequest,
    401: Unauthorized,
    403: Forbidden,
    404: NotFound,
    409: Conflict,
    410: Gone,
    422: BadRequest,
    429: TooManyRequests,
}
_DEFAULT_REASON = {
    400: "BadRequest",
    401: "Unauthorized",
    403: "Forbidden",
    404: "NotFound",
    405: "MethodNotAllowed",
    406: "NotAcceptable",
    409: "Conflict",
    410: "Gone",
    413: "RequestEntityTooLarge",
    415: "UnsupportedMediaType",
    422: "Invalid",
    429: "TooManyRequests",
    500: "InternalError",
    503: "ServiceUnavailable",
    504: "Timeout",
}
_STATUS = msgspec.json.Decoder(Status)


def status_from_body(code: int, body: bytes) -> Status:
    """The Status in a reply's body. If the body is none (proxies answer in HTML), a Status is made from its text."""
    try:
        status = _STATUS.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        status = Status()
    if status.code != code:
        status = msgspec.structs.replace(status, kind="")  # it is about something else
    reason = status.reason or _DEFAULT_REASON.get(code, "Unknown")
    message = status.message or body[:300].decode("utf-8", "replace").strip() or reason
    return msgspec.structs.replace(status, code=code or status.code, reason=reason, message=message)


def error_from_status(status: Status, **context: Any) -> ApiError:
    """The most specific subclass of `ApiError` for this Status."""
    kind: type[ApiError]
    if status.reason == "AlreadyExists":
        kind = AlreadyExists
    elif status.code >= 500:
        kind = ServerFault
    elif status.reason in ("Expired", "Gone"):
        kind = Gone
    else:
        kind = _BY_CODE.get(status.code, ApiError)
    return kind(status, **context)


def error_from_reply(code: int, body: bytes, *, method: str = "", path: str = "", retry_after: float | None = None) -> ApiError:
    """The error for a reply of 400 and above."""
    return error_from_status(status_from_body(code, body), method=method, path=path, retry_after=retry_after)


def parse_retry_after(value: str | None) -> float | None:
    """Seconds of a `Retry-After` header. API servers send whole seconds; a date is ignored."""
    if not value:
        return None
    try:
        seconds = float(value)
    except ValueError:
        return None
    return max(0.0, seconds)
