"""The address of an API server and the credentials for it: the value that every other module of this package starts from.

`connect()` looks for them in the usual order: the kubeconfig that the user names, `$KUBECONFIG`, the service account of the pod,
`~/.kube/config`.
"""

from __future__ import annotations

import os
import ssl
from collections.abc import Mapping, Sequence
from pathlib import Path
from urllib.parse import urlsplit

from msgspec import Struct, field
from msgspec.structs import replace

from navarch.kube.auth.credentials import Credentials, StaticCredentials
from navarch.kube.auth.tls import Tls
from navarch.kube.errors import ConfigError
from navarch.kube.proxy import Proxy, choose_proxy


class Endpoint(Struct, frozen=True):
    """The address of an API server, with credentials, TLS settings and proxy.

    >>> Endpoint("http://127.0.0.1:8080/").base
    'http://127.0.0.1:8080'
    """

    server: str
    tls: Tls | None = None
    credentials: Credentials = field(default_factory=StaticCredentials)
    namespace: str = "default"
    headers: Sequence[tuple[str, str]] = ()
    """Sent with every request; mostly for impersonation."""
    tls_server_name: str | None = None
    """The name in the server's certificate, if it is not the host of the URL."""
    user_agent: str = "navarch"
    proxy: Proxy | None = None
    """The proxy for all connections."""

    def __post_init__(self) -> None:
        try:
            parts = urlsplit(self.server)
            usable = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
        except ValueError:  # a port that is not a number, an open bracket
            usable = False
        if not usable:
            raise ConfigError(f"server: expected an http:// or https:// URL, found {self.server!r}")
        if (parts.scheme == "https") != (self.tls is not None):
            raise ConfigError(f"server {self.server}: expected TLS for https and for nothing else")

    @property
    def ssl_context(self) -> ssl.SSLContext | None:
        """The TLS context for a new connection. Ask for each connection: certificates are replaced while the process runs."""
        return self.tls.context() if self.tls is not None else None

    @property
    def proxy_ssl_context(self) -> ssl.SSLContext | None:
        """The TLS context for the connection to an https:// proxy."""
        if self.proxy is None or self.proxy.scheme != "https":
            return None
        return self.tls.proxy_context() if self.tls is not None else ssl.create_default_context()

    def through_proxy(self, environ: Mapping[str, str], configured: str = "", where: str = "") -> Endpoint:
        """The same server through the proxy-url of the kubeconfig, or the proxy of the environment."""
        return replace(self, proxy=choose_proxy(self.server, environ, configured, where))

    @property
    def base(self) -> str:
        """The URL that paths are appended to."""
        return self.server.rstrip("/")

    @property
    def host(self) -> str:
        return urlsplit(self.server).hostname or ""

    @property
    def port(self) -> int:
        parts = urlsplit(self.server)
        return parts.port or (443 if parts.scheme == "https" else 80)

    @property
    def prefix(self) -> str:
        """The path before /api; empty unless the server is behind a proxy such as Rancher's."""
        return urlsplit(self.base).path


def connect(kubeconfig: str | Path | None = None, context: str | None = None) -> Endpoint:
    """Find the API server. `kubeconfig` and `context` are options of the command line."""
    # Both modules import this one.
    from navarch.kube.auth.incluster import in_cluster, load_in_cluster
    from navarch.kube.auth.kubeconfig import load_kubeconfig

    if kubeconfig is not None:
        return load_kubeconfig([Path(kubeconfig)], context=context)
    listed = [Path(part) for part in os.environ.get("KUBECONFIG", "").split(os.pathsep) if part]
    if listed:
        return load_kubeconfig(listed, context=context)
    if context is None and in_cluster():
        return load_in_cluster()
    usual = home() / ".kube" / "config"
    if usual.exists():
        return load_kubeconfig([usual], context=context)
    raise ConfigError(f"no API server is configured: expected --kubeconfig, $KUBECONFIG, a service account of a pod, or {usual}")


def home() -> Path:
    """The home directory of the user; / for a user id without an account and without $HOME, as container runtimes set it."""
    try:
        return Path.home()
    except RuntimeError:
        return Path("/")
