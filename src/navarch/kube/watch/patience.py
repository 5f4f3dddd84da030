"""How long an informer waits: for bytes of a stream, for initial objects, and between attempts."""

from __future__ import annotations

from msgspec import Struct


class Patience(Struct, frozen=True):
    """Time-outs and waits of an informer, in seconds."""

    idle: float = 90.0
    """A watch without a byte for this long counts as broken. API servers send a bookmark about each minute."""
    initial_idle: float = 20.0
    initial_total: float = 120.0
    """If the initial events bring no byte for `initial_idle`, or take `initial_total` in all, a list is requested instead."""
    gather: float = 0.0
    """Events of a live watch are gathered for this long and read together: less CPU, later news."""
    watch_shortest: float = 300.0
    watch_longest: float = 600.0
    """The server ends a watch after a random time between these two, so that connections spread over its replicas."""
    retry_first: float = 0.1
    retry_longest: float = 10.0
    """Waits after failures grow from the first to the longest."""
    asked_longest: float = 60.0
    """A Retry-After of the server is followed up to this: waiting for an hour would be useless."""
    absent_longest: float = 10.0
    """The longest wait before trying again a kind that is not served."""
