"""Write a kubeconfig for an embedded server: readable by its owner only, since it holds the token."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import yaml

from navarch.embedded.api.certificates import write_private


def kubeconfig(url: str, ca_pem: bytes, token: str) -> dict[str, Any]:
    """The document: one cluster, one user, one context."""
    name = "navarch"
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [
            {
                "name": name,
                "cluster": {"server": url, "certificate-authority-data": base64.b64encode(ca_pem).decode()},
            }
        ],
        "users": [{"name": name, "user": {"token": token}}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": name, "namespace": "default"}}],
        "current-context": name,
    }


def write_kubeconfig(path: Path, url: str, ca_pem: bytes, token: str) -> Path:
    """Write it with mode 0600; the folder is made if need be."""
    path.parent.mkdir(parents=True, exist_ok=True)
    document = yaml.safe_dump(kubeconfig(url, ca_pem, token), sort_keys=False)
    write_private(path, document.encode())
    return path
