"""Kubeconfig files for tests."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml


def write(folder: Path, cluster: Any, user: dict[str, Any], *, name: str = "config", **extra: Any) -> Path:
    context = {"cluster": "c", "user": "u", **extra}
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "here",
        "clusters": [{"name": "c", "cluster": cluster}],
        "users": [{"name": "u", "user": user}],
        "contexts": [{"name": "here", "context": context}],
    }
    path = folder / name
    path.write_text(yaml.safe_dump(document), encoding="utf-8")
    return path
