"""Hooks around a binding, for plugins that deal with the outside world: reserve a licence, attach a disk, tell a billing system.

A cycle is a pure function, so a plugin cannot do such things while it decides. It names a second class instead, its live side:

    class Licences(Plugin):
        name = "licences"
        live = LicenceHooks

    class LicenceHooks(BindHooks):
        async def pre_bind(self, placement):
            if not await reserve(placement.uid):
                raise Refused("no licence is free")

        async def undo(self, placement):
            await give_back(placement.uid)

`navarch run` makes one object of it for each policy, and calls it in the event loop: a hook that blocks stops the whole scheduler.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from msgspec import Struct, field

from navarch.engine.arguments import Arguments


class Refused(Exception):
    """Raised by `pre_bind`: the pod must not be bound there now. The message is told to the owner of the pod."""


class Placement(Struct, frozen=True):
    """One pod that is about to be bound, or was bound."""

    namespace: str
    name: str
    uid: str
    node: str
    job: str
    """`namespace/name` of its group, or of what it belongs to."""
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    requests: Mapping[str, int] = field(default_factory=dict)
    """Millicores, bytes, thousandths of devices."""
    gang: Mapping[str, str] = field(default_factory=dict)
    """Pod (`namespace/name`) -> node of all pods of the job that the same cycle binds, this one included."""

    @property
    def pod(self) -> str:
        return f"{self.namespace}/{self.name}"


class BindHooks:
    """Subclass it and override what is needed. All methods may be called for many pods at the same time."""

    timeout: ClassVar[float] = 30.0
    """Seconds that one call may take. Afterwards it is cancelled and counts as failed."""
    at_once: ClassVar[int] = 64
    """Calls of `pre_bind` that run at the same time. Further ones wait."""

    def __init__(self, arguments: Arguments, client: Any) -> None:
        """`arguments`: those of the plugin. `client`: the connection to the API server (`navarch.kube.client.Client`); it writes only
        while this scheduler leads."""
        self.arguments = arguments
        self.client = client

    def wants(self, placement: Placement) -> bool:
        """Whether the hooks are called for this pod. Must not wait."""
        return True

    async def pre_bind(self, placement: Placement) -> None:
        """Called before the binding is sent; the binding waits. Raise `Refused` to prevent it. Any other error, and a call that takes
        too long, prevent it too. The pods of a gang that starts are bound when `pre_bind` has succeeded for all of them, or none is.

        It may be called again for the same pod, also by another scheduler after a crash: use `placement.uid` as the key."""

    async def undo(self, placement: Placement) -> None:
        """Called when a pod is not bound after all, if its `pre_bind` had begun, be it without success."""

    async def post_bind(self, placement: Placement) -> None:
        """Called after the API server has accepted the binding. An error is logged. A scheduler that ends right after the binding does
        not call it."""

    async def close(self) -> None:
        """Called when the scheduler ends, or loads another policy."""
