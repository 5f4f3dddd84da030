"""What `navarch up` says when it ends."""

from __future__ import annotations

from pathlib import Path

from navarch.cli.up.cluster import UpOptions
from navarch.cli.up.farewell import farewell


def test_a_cluster_in_memory_leaves_a_kubeconfig_and_one_in_files_goes_on() -> None:
    gone = "\n".join(farewell(UpOptions(), Path("/home/you/kubeconfig")))
    assert "/home/you/kubeconfig is left and leads nowhere" in gone and "navarch up (in a checkout: make up) starts a new one" in gone
    kept = list(farewell(UpOptions(data_dir=Path("/my clusters/a")), Path("/k")))
    assert kept == ["stopped. The state of the cluster is in /my clusters/a.", "To come back: navarch up --data-dir '/my clusters/a'"]
