"""What the API server says when it refuses: metav1.Status with the codes and reasons that clients branch on.

client-go, kubectl and the Python client all decide what to do next (retry, relist, give up) by the HTTP code and the
`reason`, and show `message`; so every refusal in this room is one `ApiError` made by one of the functions below.
"""

from __future__ import annotations

from collections.abc import Sequence

from navarch.object_types import Manifest


class ApiError(Exception):
    """A refusal that becomes a metav1.Status body.

    >>> not_found("pods", "a").status()["message"]
    'pods "a" not found'
    """

    def __init__(
        self,
        code: int,
        reason: str,
        message: str,
        *,
        resource: str = "",
        name: str = "",
        causes: Sequence[Manifest] = (),
        retry_after: int = 0,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason
        self.message = message
        self.resource = resource
        self.name = name
        self.causes = list(causes)
        self.retry_after = retry_after
        self.continue_token = ""
        self.empty_details = False
        """Whether the body carries `details: {}`: kube-apiserver's generic refusals do."""

    def status(self) -> Manifest:
        """The metav1.Status body of this refusal."""
        details: Manifest = {}
        plural, _, group = self.resource.partition(".")
        if self.name:
            details["name"] = self.name
        if group:
            details["group"] = group
        if plural:
            details["kind"] = plural
        if self.causes:
            details["causes"] = self.causes
        if self.retry_after:
            details["retryAfterSeconds"] = self.retry_after
        status: Manifest = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {"continue": self.continue_token} if self.continue_token else {},
            "status": "Failure",
            "message": self.message,
        }
        if self.reason:
            status["reason"] = self.reason
        if details or self.empty_details:
            status["details"] = details
        status["code"] = self.code
        return status


def cause(reason: str, message: str, field: str) -> Manifest:
    """One entry of `details.causes`."""
    return {"reason": reason, "message": message, "field": field}


def bad_request(message: str) -> ApiError:
    return ApiError(400, "BadRequest", message)


def unauthorized() -> ApiError:
    return ApiError(401, "Unauthorized", "Unauthorized")


def forbidden(resource: str, name: str, message: str, causes: Sequence[Manifest] = ()) -> ApiError:
    said = f'{resource} "{name}" is forbidden: {message}' if name else f"{resource} is forbidden: {message}"
    return ApiError(403, "Forbidden", said, resource=resource, name=name, causes=causes)


def not_found(resource: str, name: str) -> ApiError:
    return ApiError(404, "NotFound", f'{resource} "{name}" not found', resource=resource, name=name)


def generic(code: int, reason: str, message: str) -> ApiError:
    """A refusal that is about the request and no object."""
    error = ApiError(code, reason, message)
    error.empty_details = True
    return error


def no_such_path() -> ApiError:
    return generic(404, "NotFound", "the server could not find the requested resource")


def method_not_allowed() -> ApiError:
    return generic(405, "MethodNotAllowed", "the server does not allow this method on the requested resource")


def not_acceptable(offered: Sequence[str]) -> ApiError:
    return generic(406, "NotAcceptable", f"only the following media types are accepted: {', '.join(offered)}")


def already_exists(resource: str, name: str) -> ApiError:
    return ApiError(409, "AlreadyExists", f'{resource} "{name}" already exists', resource=resource, name=name)


def conflict(resource: str, name: str, message: str) -> ApiError:
    said = f'Operation cannot be fulfilled on {resource} "{name}": {message}'
    return ApiError(409, "Conflict", said, resource=resource, name=name)


def stale(resource: str, name: str) -> ApiError:
    """An update that names an older resourceVersion than the stored one."""
    return conflict(resource, name, "the object has been modified; please apply your changes to the latest version and try again")


def expired(message: str) -> ApiError:
    return ApiError(410, "Expired", message)


def too_old(requested: int, oldest: int) -> ApiError:
    return expired(f"too old resource version: {requested} ({oldest})")


def too_large(size: int, limit: int) -> ApiError:
    return ApiError(413, "RequestEntityTooLarge", f"the request body has {size} bytes, the limit is {limit}")


def unsupported_media_type(offered: Sequence[str]) -> ApiError:
    message = f"the body of the request was in an unknown format - accepted media types include: {', '.join(offered)}"
    return ApiError(415, "UnsupportedMediaType", message)


def invalid(kind: str, group: str, name: str, causes: Sequence[Manifest]) -> ApiError:
    """422 with one cause a field; the message lists them the way field.ErrorList does."""
    said = [f"{each['field']}: {each['message']}" for each in causes]
    listed = said[0] if len(said) == 1 else f"[{', '.join(said)}]"
    full = f"{kind}.{group}" if group else kind
    error = ApiError(422, "Invalid", f'{full} "{name}" is invalid: {listed}', resource=full, name=name, causes=causes)
    return error


def too_many_requests(message: str, causes: Sequence[Manifest] = (), retry_after: int = 0) -> ApiError:
    return ApiError(429, "TooManyRequests", message, causes=causes, retry_after=retry_after)


def internal(message: str) -> ApiError:
    return ApiError(500, "InternalError", f"Internal error occurred: {message}", causes=[{"message": message}])


def unavailable(message: str) -> ApiError:
    return ApiError(503, "ServiceUnavailable", message)


def revision_too_large(requested: int, current: int) -> ApiError:
    return ApiError(
        504,
        "Timeout",
        f"Timeout: Too large resource version: {requested}, current: {current}",
        causes=[{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}],
        retry_after=1,
    )
