"""What an answer means: believed is only what an API server says to this very request."""

from __future__ import annotations

import ast
import json
from pathlib import Path
from typing import Any

import pytest

import navarch
from navarch.kube.answers import Again, answer_of
from navarch.kube.errors import (
    ApiError,
    Conflict,
    Forbidden,
    Gone,
    KubeError,
    NotFound,
    NotServed,
    OutcomeUnknown,
    ServerFault,
    TooManyRequests,
    Unauthorized,
)

POD = "/api/v1/namespaces/team/pods/p"
GROUP = "/apis/scheduling.volcano.sh/v1beta1/namespaces/team/podgroups/g"
HTML = "<html><body>Sign in</body></html>"


def failure(code: int, reason: str, **details: Any) -> dict[str, Any]:
    said = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "reason": reason, "code": code}
    return {**said, "message": "said", **({"details": details} if details else {})}


def meant(method: str, path: str, status: int, body: object) -> KubeError | None:
    raw = body if isinstance(body, str) else json.dumps(body, separators=(",", ":"))
    return answer_of(method, path, status, raw.encode()).error


SUCCESS = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}
NOT_FOUND = failure(404, "NotFound", name="p", kind="pods")


@pytest.mark.parametrize("path", [f"{POD}/binding", f"{POD}/eviction"])
@pytest.mark.parametrize(
    ("status", "body", "kind"),
    [
        (201, SUCCESS, None),
        (404, NOT_FOUND, NotFound),
        (409, failure(409, "Conflict", name="p", kind="pods/binding"), Conflict),
        # A success that is none.
        (200, SUCCESS, OutcomeUnknown),
        (200, HTML, OutcomeUnknown),
        (201, "", OutcomeUnknown),
        (201, "{}", OutcomeUnknown),
        (201, json.dumps(SUCCESS)[:40], OutcomeUnknown),
        (200, failure(404, "NotFound", name="p", kind="pods"), OutcomeUnknown),
        (201, failure(409, "Conflict"), OutcomeUnknown),
        (201, {"kind": "Pod", "metadata": {"name": "p"}}, OutcomeUnknown),
        (204, "", OutcomeUnknown),
        # A 404 about something else.
        (404, HTML, OutcomeUnknown),
        (404, "", OutcomeUnknown),
        (404, "404 page not found\n", NotServed),
        (404, failure(404, "NotFound"), NotServed),
        (404, failure(404, "NotFound", name="other", kind="pods"), OutcomeUnknown),
        (404, failure(404, "NotFound", name="p", kind="nodes"), OutcomeUnknown),
        (404, failure(404, "NotFound", name="p", kind="pods", group="metrics.k8s.io"), OutcomeUnknown),
        (404, failure(404, "NotFound", name="team", kind="namespaces"), OutcomeUnknown),
        (404, {**NOT_FOUND, "code": 410}, OutcomeUnknown),
        (404, {**NOT_FOUND, "kind": "Error"}, OutcomeUnknown),
        (404, {**NOT_FOUND, "status": "Success"}, OutcomeUnknown),
        # The rest never says that the write was not done.
        (409, HTML, Conflict),
        (410, HTML, Gone),
        (403, HTML, OutcomeUnknown),
        (403, failure(403, "Forbidden", name="p", kind="pods"), Forbidden),
        (302, "", ApiError),
        (500, HTML, ServerFault),
        (502, HTML, ServerFault),
        (504, "", ServerFault),
    ],
)
def test_a_write_of_a_pod(path: str, status: int, body: object, kind: type[KubeError] | None) -> None:
    error = meant("POST", path, status, body)
    assert (None if error is None else type(error)) is kind


@pytest.mark.parametrize(
    ("method", "path", "status", "body", "kind"),
    [
        ("GET", POD, 200, {"kind": "Pod", "metadata": {"name": "p", "namespace": "team"}}, None),
        ("GET", POD, 200, {"kind": "Pod", "metadata": {"name": "q", "namespace": "team"}}, OutcomeUnknown),
        ("GET", POD, 200, {"kind": "Pod", "metadata": {"name": "p", "namespace": "other"}}, OutcomeUnknown),
        ("GET", POD, 200, {"kind": "Node", "metadata": {"name": "p"}}, OutcomeUnknown),
        ("GET", POD, 200, {"kind": "PodList", "metadata": {}, "items": []}, OutcomeUnknown),
        ("GET", POD, 200, failure(404, "NotFound", name="p", kind="pods"), OutcomeUnknown),
        ("GET", POD, 200, "{}", OutcomeUnknown),
        ("GET", POD, 200, HTML, OutcomeUnknown),
        ("GET", GROUP, 404, failure(404, "NotFound", name="g", kind="podgroups", group="scheduling.volcano.sh"), NotFound),
        ("GET", GROUP, 404, failure(404, "NotFound", name="g", kind="podgroups", group="scheduling.run.ai"), OutcomeUnknown),
        ("GET", GROUP, 404, "404 page not found\n", NotServed),
        ("PATCH", f"{GROUP}/status", 200, {"kind": "PodGroup", "metadata": {"name": "g", "namespace": "team"}}, None),
        ("PATCH", f"{GROUP}/status", 200, {"kind": "PodGroup", "metadata": {"name": "other"}}, OutcomeUnknown),
        ("PUT", "/apis/coordination.k8s.io/v1/namespaces/team/leases/l", 200, "", OutcomeUnknown),
        ("DELETE", POD, 200, {"kind": "Pod", "metadata": {"name": "p"}}, None),
        ("DELETE", POD, 200, {"kind": "Status", "status": "Success", "details": {"name": "p"}}, None),
        ("DELETE", POD, 200, {"kind": "Status", "status": "Success", "details": {"name": "q"}}, OutcomeUnknown),
        ("DELETE", POD, 200, failure(404, "NotFound"), OutcomeUnknown),
        # A list or a group that is not served; one whose 404 a proxy wrote.
        ("GET", "/apis/x.io/v1/things", 404, "404 page not found\n", NotFound),
        ("GET", "/api/v1/things", 404, failure(404, "NotFound"), NotFound),
        ("GET", "/apis/x.io/v1/things", 404, HTML, OutcomeUnknown),
        ("GET", "/apis/x.io/v1", 404, HTML, OutcomeUnknown),
        ("GET", "/apis/x.io/v1", 404, "404 page not found\n", NotFound),
        ("GET", "/api/v1/pods", 404, failure(404, "NotFound", name="p", kind="pods"), OutcomeUnknown),
        ("POST", "/api/v1/namespaces/gone/pods", 404, failure(404, "NotFound", name="gone", kind="namespaces"), NotFound),
        # What a proxy of the API server passes on has any form, and so have logs.
        ("GET", f"{POD}/proxy/state", 503, "no cycle yet", ServerFault),
        ("GET", f"{POD}/proxy/state", 200, "a page", None),
        ("GET", f"{POD}/log", 200, "a line", None),
        ("GET", "/version", 200, "{}", None),
    ],
)
def test_a_read_and_other_writes(method: str, path: str, status: int, body: object, kind: type[KubeError] | None) -> None:
    error = meant(method, path, status, body)
    assert (None if error is None else type(error)) is kind


@pytest.mark.parametrize(
    ("status", "retry_after", "again", "maybe_done", "kind"),
    [
        (401, None, Again.WITH_NEW_CREDENTIAL, False, Unauthorized),
        (429, 3.0, Again.LATER, False, TooManyRequests),
        (503, None, Again.IF_READ, True, ServerFault),
        (503, 1.0, Again.LATER, True, ServerFault),
        (500, None, Again.NEVER, True, ServerFault),
        (307, None, Again.NEVER, True, ApiError),
        (404, None, Again.IF_READ, True, OutcomeUnknown),
    ],
)
def test_when_it_may_be_asked_again(
    status: int, retry_after: float | None, again: Again, maybe_done: bool, kind: type[KubeError]
) -> None:
    answer = answer_of("POST", f"{POD}/binding", status, HTML.encode(), retry_after=retry_after)
    assert (answer.again, answer.maybe_done, answer.retry_after, type(answer.error)) == (again, maybe_done, retry_after, kind)


READS_CODES = {
    "kube/answers.py": "decides",
    "kube/errors.py": "names the class of a refusal",
    "kube/tunnel.py": "the proxy's answer to CONNECT",
    "kube/json_http.py": "other servers than the API server",
    "kube/write/http1.py": "the framing of a reply",
}


def test_nothing_else_reads_status_codes() -> None:
    """A comparison of `.status` or `.code` with a number of three digits, or one in a set of them."""
    root = Path(navarch.__file__).parent
    found = set()
    for room in ("kube", "live", "cli", "views", "web", "explanation", "offline"):
        for path in (root / room).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.Compare) and _is_of_a_code(node):
                    found.add(path.relative_to(root).as_posix())
    assert found <= READS_CODES.keys()


def _is_of_a_code(comparison: ast.Compare) -> bool:
    sides = [comparison.left, *comparison.comparators]
    numbers = [each.value for side in sides for each in ast.walk(side) if isinstance(each, ast.Constant)]
    asked = any(isinstance(side, ast.Attribute) and side.attr in ("status", "code") for side in sides)
    return asked and any(isinstance(number, int) and 100 <= number < 600 for number in numbers)
