"""The service account that Kubernetes mounts into every pod."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from navarch.kube.auth.credentials import TokenFileCredentials
from navarch.kube.auth.tls import Tls
from navarch.kube.connect import Endpoint
from navarch.kube.errors import ConfigError

SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")


def in_cluster(folder: Path = SERVICE_ACCOUNT, environ: Mapping[str, str] = os.environ) -> bool:
    """Whether this process runs in a pod with a service account."""
    return bool(environ.get("KUBERNETES_SERVICE_HOST")) and (folder / "token").exists()


def load_in_cluster(folder: Path = SERVICE_ACCOUNT, environ: Mapping[str, str] = os.environ) -> Endpoint:
    """The API server of the cluster that this pod runs in. Token and certificate authority are read again when they are rotated."""
    host, port = environ.get("KUBERNETES_SERVICE_HOST"), environ.get("KUBERNETES_SERVICE_PORT", "443")
    if not host:
        raise ConfigError("KUBERNETES_SERVICE_HOST: expected the API server's address, found nothing: not in a pod")
    if not (folder / "token").exists():
        raise ConfigError(f"{folder / 'token'}: expected a service account token; is automountServiceAccountToken off?")
    namespace_file = folder / "namespace"
    endpoint = Endpoint(
        server=f"https://{f'[{host}]' if ':' in host else host}:{port}",
        tls=Tls(authority=folder / "ca.crt"),
        credentials=TokenFileCredentials(folder / "token"),
        namespace=namespace_file.read_text(encoding="utf-8").strip() if namespace_file.exists() else "default",
    )
    return endpoint.through_proxy(environ)
