"""Ports for servers that go away and come back."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager


def hold_port() -> socket.socket:
    """A port of our own, kept between two lives of a server that listens there: no other process gets it meanwhile, and a client that
    connects to it without a listener is refused."""
    held = socket.socket()
    held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    held.bind(("127.0.0.1", 0))
    return held


@contextmanager
def held_port() -> Iterator[int]:
    """The number of one, while the block lasts."""
    with hold_port() as held:
        yield int(held.getsockname()[1])
