"""The error of a command whose request to the API server failed: one line that helps (`kube/failure_advice.py`)."""

from __future__ import annotations

from pathlib import Path

import click

from navarch.kube.connect import connect
from navarch.kube.errors import ConfigError, KubeError


def cluster_failure(error: KubeError, kubeconfig: Path | None, context: str | None) -> click.ClickException:
    """To raise instead of the error."""
    from navarch.kube.failure_advice import advice  # it reads certificates; loading what that takes costs each command 25 ms

    try:
        return click.ClickException(advice(error, connect(kubeconfig, context)))
    except ConfigError:
        return click.ClickException(str(error))
