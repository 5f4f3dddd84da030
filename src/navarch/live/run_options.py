"""The options of `navarch run`."""

from __future__ import annotations

from pathlib import Path

from msgspec import Struct

from navarch.live.cycle_loop import PERIOD, SETTLE
from navarch.live.surplus import SURPLUS_SETTLE


class RunOptions(Struct, frozen=True):
    """Times are in seconds."""

    policy: str = "navarch"
    """A preset's name or a file; a file is read again when it changes."""
    shard: str = ""
    """KAI's SchedulingShard that is the policy: of the cluster, or of the file if `policy` names one."""
    scheduler_names: tuple[str, ...] = ("navarch",)
    listen: str = "127.0.0.1:8080"
    """Host and port of health and metrics; empty: none."""
    tls_certificate: Path | None = None
    """Serve health and metrics over TLS with this certificate and `tls_key`."""
    tls_key: Path | None = None
    protect_metrics: bool = False
    """/metrics needs a bearer token whose user may get that non-resource URL."""
    reached_as: str = ""
    """`pods/NAME` or `services/NAME`: what the API server's proxy reaches this process by, in the namespace of the lock. Empty: it
    cannot reach it."""
    metrics_names: str = ""
    """`volcano`, `kai` or `kube-scheduler`: serve metrics under the names of that system too."""
    leader_elect: bool = True
    lock_namespace: str = ""
    """Empty: the namespace of the kubeconfig's context, or of our own pod."""
    lock_name: str = "navarch"
    lease_duration: float = 15.0
    renew_deadline: float = 10.0
    retry_period: float = 2.0
    period: float = PERIOD
    settle: float = SETTLE
    surplus_settle: float = SURPLUS_SETTLE
    record: Path | None = None
    history: Path | None = None
    """File that keeps which jobs came and how long they ran."""
    record_annotations: tuple[str, ...] = ()
    """Annotations that recordings keep besides those that rules read."""
    dry_run: bool = False
    report: Path | None = None
    """Where a dry run writes how it compares with the scheduler in charge."""
    ask_extenders: bool = False
    """Whether a dry run asks the HTTP extenders of its policy."""
    namespace_as_queue: bool = False
    node_pool_label_key: str = ""
    partition_label_value: str = ""
    plugin_dirs: tuple[Path, ...] = ()
    write_connections: int = 64
    gang_timeout: float = 120.0
    """A gang that is half bound for this long is released."""
    cycle_timeout: float = 8.0
    """Seconds after which the watchdog ends a cycle; 0: never."""
    crash_dir: Path | None = None
    """Folder in which a process that is ended in the midst of a cycle leaves which job was at hand."""
    volume_timeout: float = 600.0
    eviction_timeout: float = 60.0
    """How long an eviction is retried that a disruption budget refuses."""
    eviction_rate: float = 50.0
    """Evictions a second."""
    shutdown_timeout: float = 20.0
    gpu_sharing: str = ""
    """`annotations`: bind pods that share GPUs directly, and write their GPUs on them."""
    bind_requests: bool = True
    """Let KAI's binder bind the pods of KAI's groups, if BindRequest is served."""
    seed: int | None = None
