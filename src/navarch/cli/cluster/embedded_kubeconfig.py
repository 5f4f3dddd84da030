"""The default path of the kubeconfig of `navarch up`, and a hint to export it."""

from __future__ import annotations

from navarch.kube.connect import home

USUAL_KUBECONFIG = home() / ".cache" / "navarch" / "up" / "kubeconfig"


def reminder() -> str:
    """The hint for the message "no cluster is configured"; empty if the file does not exist."""
    return f"\nThat of `navarch up`: export KUBECONFIG={USUAL_KUBECONFIG}" if USUAL_KUBECONFIG.exists() else ""
