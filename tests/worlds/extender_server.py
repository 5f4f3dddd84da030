"""A real extender: an HTTP server in a thread that answers as a recorded case, or a test, says.

`answers`: verb -> list of answers. The first whose `match` (dotted path in the request -> text) fits is sent: `status` (200) and
`body`, or `raw` text, after `delayMs`. `echoEvictees`: the named evictees of the request are sent back as victims, with `voteStatus`.
Without a match the answer is `{}`.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Answers = Mapping[str, Sequence[Mapping[str, Any]]]


class Seen:
    """Where the server listens, and what it was asked: (verb, body) in the order of arrival."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.requests: list[tuple[str, Any]] = []
        self.paths: list[str] = []

    def verbs(self) -> list[str]:
        return [verb for verb, _ in self.requests]

    def count(self, verb: str) -> int:
        return self.verbs().count(verb)


@contextmanager
def extender(answers: Answers) -> Iterator[Seen]:
    quit_ = threading.Event()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])) or b"null")
            verb = self.path.rpartition("/")[2]
            seen.requests.append((verb, body))
            seen.paths.append(self.path)
            found = next((each for each in answers.get(verb, ()) if fits(each.get("match", {}), body)), {})
            if found.get("delayMs"):
                quit_.wait(found["delayMs"] / 1000)
            self.reply(int(found.get("status", 200)), text_of(found, body).encode())

        def reply(self, status: int, raw: bytes) -> None:
            try:
                self.send_response(status)
                self.send_header("Content-Length", str(len(raw)))
                self.end_headers()
                self.wfile.write(raw)
            except OSError:
                self.close_connection = True  # the client has gone

        def log_message(self, format: str, *args: Any) -> None:
            """Nothing is logged."""

    class Server(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, request: Any, client_address: Any) -> None:
            """A client that gives up is no error."""

    server = Server(("127.0.0.1", 0), Handler)
    seen = Seen(f"http://127.0.0.1:{server.server_address[1]}")
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield seen
    finally:
        quit_.set()
        server.shutdown()
        server.server_close()
        thread.join(30)


def fits(match: Mapping[str, str], body: Any) -> bool:
    return all(str(_at(body, path)) == text for path, text in match.items())


def _at(body: Any, path: str) -> Any:
    for part in path.split("."):
        body = body.get(part) if isinstance(body, dict) else None
    return body


def text_of(found: Mapping[str, Any], body: Any) -> str:
    if "raw" in found:
        return str(found["raw"])
    if "echoEvictees" in found:
        victims = [each for each in body["evictees"] if each["Name"] in found["echoEvictees"]]
        return json.dumps({"status": found.get("voteStatus", 1), "victims": victims})
    return json.dumps(found.get("body", {}))
