"""The bytes of a request: what all requests to one API server share is encoded once for each value of the credential."""

from __future__ import annotations

from navarch.kube.connect import Endpoint


class RequestHead:
    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        self._prefix = endpoint.prefix.encode()
        default_port = 443 if endpoint.tls else 80
        name = f"[{endpoint.host}]" if ":" in endpoint.host else endpoint.host
        host = name if endpoint.port == default_port else f"{name}:{endpoint.port}"
        fixed = [
            ("Host", host),
            ("Accept", "application/json"),
            ("Accept-Encoding", "identity"),
            ("User-Agent", endpoint.user_agent),
            *endpoint.headers,
        ]
        self._fixed = "".join(f"{key}: {value}\r\n" for key, value in fixed).encode("latin-1")
        #: The credential that requests are sent with now.
        self.credential: str | None = None
        self._encoded = b""

    def current(self) -> bytes | None:
        """The shared headers; None if the credential must be fetched first."""
        value = self._endpoint.credentials.cached()
        return None if value is None else self._with(value)

    async def fetch(self) -> None:
        """Have the credential of now, from wherever it comes."""
        self._with(await self._endpoint.credentials.authorization())

    def request(self, method: str, path: str, content_type: str, body: bytes | None) -> bytes:
        """A whole request as bytes."""
        line = f"{method} ".encode() + self._prefix + f"{path} HTTP/1.1\r\n".encode("ascii")
        if body is None:
            return line + self._encoded + b"\r\n"
        ending = f"Content-Type: {content_type}\r\nContent-Length: {len(body)}\r\n\r\n".encode("ascii")
        return line + self._encoded + ending + body

    def _with(self, credential: str) -> bytes:
        if credential != self.credential:
            self.credential = credential
            self._encoded = self._fixed
            if credential:
                self._encoded += f"Authorization: {credential}\r\n".encode("latin-1")
        return self._encoded
