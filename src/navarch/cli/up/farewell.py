"""The last lines of `navarch up`: what is left behind, and how to come back."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from pathlib import Path

from navarch.cli.up.cluster import UpOptions


def farewell(options: UpOptions, kubeconfig: Path) -> Iterator[str]:
    again = "navarch up (in a checkout: make up)"
    if options.data_dir is None:
        yield f"stopped. The cluster was in memory and is gone; {kubeconfig} is left and leads nowhere."
        yield f"To come back: {again} starts a new one; with --data-dir DIR it can be stopped and goes on later."
    else:
        yield f"stopped. The state of the cluster is in {options.data_dir.absolute()}."
        yield f"To come back: navarch up --data-dir {shlex.quote(str(options.data_dir))}"
