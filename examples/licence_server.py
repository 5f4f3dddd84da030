"""A licence server to try examples/plugins/licences.py with.

    python examples/licence_server.py --port 8090 solver=2 viewer=10

PUT /licences/NAME/leases/ID reserves a licence for an id (409: none is free), DELETE gives it back, GET /licences lists them.
"""

from __future__ import annotations

import argparse
import json
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Lock
from typing import Any


class Licences:
    """Name -> how many there are, and the ids that hold one."""

    def __init__(self, counts: dict[str, int]) -> None:
        self.counts = counts
        self.leases: dict[str, list[str]] = {name: [] for name in counts}
        self._lock = Lock()

    def reserve(self, name: str, holder: str) -> bool:
        with self._lock:
            held = self.leases.get(name, [])
            if holder not in held and len(held) < self.counts.get(name, 0):
                held.append(holder)
            return holder in held

    def give_back(self, name: str, holder: str) -> None:
        with self._lock:
            if holder in self.leases.get(name, ()):
                self.leases[name].remove(holder)


def server(licences: Licences, port: int = 0) -> ThreadingHTTPServer:
    """A server that is not started yet. Port 0: any free one."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_PUT(self) -> None:
            _, _, name, _, holder = self.path.split("/")
            self.reply(200 if licences.reserve(name, holder) else 409)

        def do_DELETE(self) -> None:
            _, _, name, _, holder = self.path.split("/")
            licences.give_back(name, holder)
            self.reply(200)

        def do_GET(self) -> None:
            self.reply(200, json.dumps({"leases": licences.leases, "counts": licences.counts}).encode())

        def reply(self, status: int, body: bytes = b"{}") -> None:
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:
            """Nothing is logged."""

    return ThreadingHTTPServer(("127.0.0.1", port), Handler)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="A licence server for examples/plugins/licences.py")
    parser.add_argument("--port", type=int, default=8090)
    parser.add_argument("licences", nargs="+", metavar="NAME=COUNT")
    given = parser.parse_args()
    counts = {name: int(count) for name, _, count in (each.partition("=") for each in given.licences)}
    server(Licences(counts), given.port).serve_forever()
