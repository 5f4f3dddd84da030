"""One line for a user whose request to an API server failed: what is wrong, and what helps.

It looks at what expired: the server's certificate, the client certificate or the token of the kubeconfig. A server that is down, an
authority that does not match and a missing right have a line each. The log of `navarch run` has the plain error.
"""

from __future__ import annotations

import base64
import binascii
import json
import os
import ssl
from datetime import UTC, datetime
from typing import Final

import aiohttp
from cryptography import x509

from navarch.kube.connect import Endpoint
from navarch.kube.errors import ApiError, Forbidden, KubeError, TransportError, Unauthorized, Unreachable

HAS_EXPIRED, HOST_MISMATCH = 10, 62
"""Numbers of OpenSSL's results of verification."""
_SECONDS: Final = 3.0


def advice(error: KubeError, endpoint: Endpoint, now: datetime | None = None) -> str:
    """`now`: the moment, for tests."""
    now = now or datetime.now(UTC)
    if isinstance(error, TransportError | Unauthorized) and (expired := _client_expiry(endpoint, now)):
        return expired
    match error:
        case Unauthorized():
            return f"{endpoint.server} does not accept the credentials of this kubeconfig (401): log in again, or get a new one"
        case Forbidden():
            return f"no right (403 Forbidden): {error.message}; an administrator can grant it with a Role; -n names another namespace"
        case TransportError():
            return _unreachable(error, endpoint, now)
        case ApiError():
            return f"{endpoint.server}: {error}"
    return str(error)


def _unreachable(error: TransportError, endpoint: Endpoint, now: datetime) -> str:
    cause = error.__cause__
    if isinstance(cause, aiohttp.ClientConnectorCertificateError):
        problem = cause.certificate_error
        code = getattr(problem, "verify_code", 0)
        if code == HAS_EXPIRED:
            return f"the certificate of {endpoint.server} expired{_server_expiry(endpoint, now)}: an administrator has to renew it"
        if code == HOST_MISMATCH:
            return f"the certificate of {endpoint.server} is for another name: {getattr(problem, 'verify_message', problem)}"
        what = getattr(problem, "verify_message", str(problem))
        return (
            f"the certificate of {endpoint.server} is not trusted: {what}; expected one that the certificate-authority of the "
            "kubeconfig signed"
        )
    if isinstance(error, Unreachable) and isinstance(cause, aiohttp.ClientConnectorError):
        why = _system_text(cause.os_error)
        return f"cannot reach {endpoint.server}: {why}; is the cluster running, and is this its address (`kubectl config view`)?"
    return f"{endpoint.server} does not answer: {error}"


def _system_text(error: OSError) -> str:
    """What the system says of the error number; asyncio puts the address there instead."""
    return os.strerror(error.errno) if error.errno and error.errno > 0 else str(error) or type(error).__name__


def _server_expiry(endpoint: Endpoint, now: datetime) -> str:
    try:
        pem = ssl.get_server_certificate((endpoint.host, endpoint.port), timeout=_SECONDS)
        return _since(x509.load_pem_x509_certificate(pem.encode()).not_valid_after_utc, now)
    except (OSError, ValueError):
        return ""


def _client_expiry(endpoint: Endpoint, now: datetime) -> str:
    """What of the kubeconfig has expired; empty: nothing."""
    pem = endpoint.tls.client_certificate() if endpoint.tls is not None else None
    if pem is not None:
        try:
            until = x509.load_pem_x509_certificate(pem).not_valid_after_utc
        except ValueError:
            return ""
        if until < now:
            return f"the client certificate of this kubeconfig expired{_since(until, now)}: get a new kubeconfig or renew it"
    ends = _token_end(endpoint.credentials.cached() or "")
    if ends is not None and ends < now:
        return f"the token of this kubeconfig expired{_since(ends, now)}: log in again, or make a new token"
    return ""


def _token_end(header: str) -> datetime | None:
    """The end of a bearer token that is a JWT. Its signature is the API server's business."""
    parts = header.removeprefix("Bearer ").split(".")
    if len(parts) != 3:
        return None
    try:
        claims = json.loads(base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4)))
        return datetime.fromtimestamp(float(claims["exp"]), UTC)
    except (ValueError, KeyError, TypeError, binascii.Error, OverflowError, OSError):
        return None


def _since(until: datetime, now: datetime) -> str:
    """
    >>> _since(datetime(2026, 1, 2, 3, 4, tzinfo=UTC), datetime(2026, 1, 5, 12, tzinfo=UTC))
    ' on 2026-01-02 03:04 UTC, 3 days ago'
    """
    days = (now - until).days
    ago = f", {days} day{'s' if days > 1 else ''} ago" if days else ""
    return f" on {until:%Y-%m-%d %H:%M} UTC{ago}"
