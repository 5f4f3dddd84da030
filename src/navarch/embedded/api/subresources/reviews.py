"""Access and token reviews: kinds that are answered and not stored. The holder of the token may do everything."""

from __future__ import annotations

import hmac
from typing import Any

from navarch.embedded.api.kinds.registry import Kind, type_name
from navarch.embedded.api.writing import read_typed
from navarch.object_types import Manifest

USER = {"username": "navarch-admin", "groups": ["system:masters", "system:authenticated"]}
REVIEWS = frozenset(
    {
        "selfsubjectaccessreviews.authorization.k8s.io",
        "subjectaccessreviews.authorization.k8s.io",
        "localsubjectaccessreviews.authorization.k8s.io",
        "selfsubjectrulesreviews.authorization.k8s.io",
        "selfsubjectreviews.authentication.k8s.io",
        "tokenreviews.authentication.k8s.io",
    }
)


def review(kind: Kind, body: Any, token: str) -> Manifest:
    """The review with its answer."""
    body = read_typed(type_name(kind.group, kind.version, kind.kind), body)
    spec: Manifest = body.get("spec") or {}
    status: Manifest
    if kind.kind == "TokenReview":
        given = str(spec.get("token") or "")
        known = hmac.compare_digest(given.encode(), token.encode())
        status = {"authenticated": True, "user": USER} if known else {"user": {}, "error": "invalid bearer token"}
    elif kind.kind == "SelfSubjectReview":
        status = {"userInfo": USER}
    elif kind.kind == "SelfSubjectRulesReview":
        status = {
            "resourceRules": [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}],
            "nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["*"]}],
            "incomplete": False,
        }
    else:
        status = {"allowed": True}
    metadata = {key: value for key, value in (body.get("metadata") or {}).items() if key in ("name", "namespace")}
    answer: Manifest = {"kind": kind.kind, "apiVersion": kind.api_version, "metadata": metadata, "status": status}
    if kind.kind != "SelfSubjectReview":
        answer["spec"] = spec
    return answer
