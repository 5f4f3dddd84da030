"""KAI's BindRequest: a bind that a separate binder carries out."""

from __future__ import annotations

from msgspec import field

from navarch.model.spec import Labels, Requests, Spec, TaskSpec, nothing


class BindRequestSpec(Spec, frozen=True):
    """A decision that a separate binder carries out: this pod goes to this node, on these shared GPUs."""

    namespace: str
    pod: str
    node: str
    gpu_groups: tuple[str, ...] = ()
    resource_type: str = ""
    gpu_count: int = 0
    gpu_portion: str = ""
    numa_placement: tuple[tuple[str, Requests], ...] = ()
    claims: tuple[tuple[str, object], ...] = ()
    """(claim, its allocation as the API has it)"""
    phase: str = ""
    failed_attempts: int = 0
    backoff_limit: int | None = None
    labels: Labels = field(default_factory=nothing)
    pod_uid: str = ""
    """Of the pod that it was made for, where it says so: another may have the name by now."""

    @property
    def is_given_up(self) -> bool:
        """It failed, and its binder will not try again."""
        return self.phase == "Failed" and (self.backoff_limit is None or self.failed_attempts >= self.backoff_limit)

    @property
    def is_under_way(self) -> bool:
        """Neither done nor given up."""
        return self.phase != "Succeeded" and not self.is_given_up

    def is_for(self, task: TaskSpec) -> bool:
        """Whether this is the pod that it was made for; a pod that says no UID (in a file) is."""
        return self.pod_uid in ("", task.uid) or task.uid == task.key
