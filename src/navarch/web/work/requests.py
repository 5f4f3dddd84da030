"""What a working process is asked and answers: JSON on its standard input and output."""

from __future__ import annotations

from typing import Any

from msgspec import Struct, field


class OfCluster(Struct, frozen=True, kw_only=True):
    """The cluster, and how its objects are read and decided."""

    policy: dict[str, Any]
    """The document of the policy."""
    scheduler_names: list[str]
    seconds: float
    kubeconfig: str = ""
    context: str = ""
    namespace_as_queue: bool = False
    node_pool_label_key: str = ""
    partition_label_value: str = ""
    plugin_dirs: list[str] = field(default_factory=list)


class Explain(OfCluster, frozen=True, kw_only=True, tag="explain"):
    """The trials of `navarch explain` for a job of a cluster."""

    job: str
    trials: int


class Forecast(OfCluster, frozen=True, kw_only=True, tag="forecast"):
    """When the waiting jobs of a cluster start."""

    history: str = ""
    """The file of past run times; empty: none."""


class OpenRecording(Struct, frozen=True, tag="recording"):
    """A recorded cycle, and what another policy decides for it."""

    file: str
    policy: str = ""
    """A preset; empty: compare with none."""
    plugin_dirs: list[str] = field(default_factory=list)


Work = Explain | Forecast | OpenRecording


class Task(Struct, frozen=True):
    """`cpu_seconds`, `memory`: limits of the process; memory in bytes."""

    work: Work
    cpu_seconds: int
    memory: int


class Answer(Struct, frozen=True):
    """`error`: why there is no result, in a sentence; `status` is that of the HTTP answer."""

    result: dict[str, Any] | None = None
    error: str = ""
    status: int = 200
