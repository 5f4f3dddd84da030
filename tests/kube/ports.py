"""Ports for servers that go away and come back."""

from __future__ import annotations

import socket


def hold_port() -> socket.socket:
    """A port of our own, kept between two lives of a server that listens there: nobody else is given it meanwhile, and whoever
    connects to it without a listener is refused."""
    held = socket.socket()
    held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    held.bind(("127.0.0.1", 0))
    return held
