"""Where `navarch up` writes its kubeconfig unless told otherwise, so that who forgot to export it can be reminded."""

from __future__ import annotations

from navarch.kube.connect import home

USUAL_KUBECONFIG = home() / ".cache" / "navarch" / "up" / "kubeconfig"


def reminder() -> str:
    """To be put behind "no cluster is configured"; empty if there is nothing to remind of."""
    return f"\nThat of `navarch up`: export KUBECONFIG={USUAL_KUBECONFIG}" if USUAL_KUBECONFIG.exists() else ""
