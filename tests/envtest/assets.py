"""Where the real servers are, or why there are none.

KUBEBUILDER_ASSETS (the folder that controller-runtime's envtest uses, with kube-apiserver and etcd in it) comes first,
then what `make envtest` built.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from tests.envtest import build


@dataclass(frozen=True)
class Assets:
    """Paths of the binaries. Without `etcd`, `apiserver` is ours and has etcd inside."""

    apiserver: Path
    etcd: Path | None
    scheduler: Path | None


class Unavailable(Exception):
    """No real API server can be had here; the message says what to do about it."""


def find() -> Assets:
    """The binaries to run, or Unavailable."""
    named = os.environ.get("KUBEBUILDER_ASSETS")
    built = build.cache_folder()
    built_scheduler = built / "kube-scheduler" if (built / "kube-scheduler").is_file() else None
    if named:
        folder = Path(named)
        missing = [name for name in ("kube-apiserver", "etcd") if not (folder / name).is_file()]
        if missing:
            raise Unavailable(f"KUBEBUILDER_ASSETS={named} has no {' and no '.join(missing)}")
        scheduler = folder / "kube-scheduler"
        return Assets(folder / "kube-apiserver", folder / "etcd", scheduler if scheduler.is_file() else built_scheduler)
    if build.is_built():
        return Assets(built / "kube-apiserver-etcd", None, built_scheduler)
    raise Unavailable("no real kube-apiserver: run `make envtest` (needs Go) or set KUBEBUILDER_ASSETS")
