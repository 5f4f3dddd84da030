"""Credentials, as the value of an `Authorization` header.

A credential can change while the process runs: service account tokens are rotated on disk, and tokens of exec plugins last for
minutes. So each request asks for the header; a cached one costs no I/O. After a 401, `rejected()` drops the cached value, and the next
request fetches a new one.
"""

from __future__ import annotations

import base64
import logging
import time
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from navarch.kube.errors import ConfigError

log = logging.getLogger(__name__)

TOKEN_FILE_MAX_AGE = 60.0
"""The kubelet rotates a projected token long before it expires; client-go re-reads once a minute as well."""


class Credentials(Protocol):
    """A source of the `Authorization` header."""

    def cached(self) -> str | None:
        """The header's value if it is available without I/O or waiting (`""`: no header is needed)."""

    async def authorization(self) -> str:
        """The header's value, fetched if necessary; `""` for none."""

    def rejected(self) -> None:
        """The server did not accept the last one."""


class StaticCredentials:
    """A header that never changes: a token, a password, or none (client certificates, plain loopback)."""

    def __init__(self, value: str = "") -> None:
        self._value = value

    @classmethod
    def token(cls, token: str) -> StaticCredentials:
        return cls(bearer(token, "token"))

    @classmethod
    def password(cls, username: str, password: str) -> StaticCredentials:
        return cls("Basic " + base64.b64encode(f"{username}:{password}".encode()).decode())

    def cached(self) -> str | None:
        return self._value

    async def authorization(self) -> str:
        return self._value

    def rejected(self) -> None:
        return None


class TokenFileCredentials:
    """A bearer token in a file that is rotated; read again each minute and after a 401.

    If reading fails, the last token is kept: the file may be in replacement, and the token may still be valid.
    """

    def __init__(self, path: Path, clock: Callable[[], float] = time.monotonic) -> None:
        self._path = path
        self._clock = clock
        self._value = ""
        self._read_at: float | None = None

    def cached(self) -> str | None:
        if self._read_at is None or self._clock() - self._read_at >= TOKEN_FILE_MAX_AGE:
            return None
        return self._value

    async def authorization(self) -> str:
        value = self.cached()
        return self._read() if value is None else value

    def rejected(self) -> None:
        self._read_at = None

    def _read(self) -> str:
        # A small file on a tmpfs: reading it in the loop is cheaper than in a thread.
        try:
            token = self._path.read_text(encoding="utf-8").strip()
            if not token:
                raise ConfigError("expected a token, found an empty file")
            self._value = bearer(token, "its content")
        except (OSError, UnicodeError, ConfigError) as error:
            if not self._value:
                raise ConfigError(f"token file {self._path}: {error}") from error
            log.warning("token file %s could not be read again, keeping the last token: %s", self._path, error)
        self._read_at = self._clock()
        return self._value


def bearer(token: str, where: str) -> str:
    """The header of a token. A token with characters that no header can hold is refused here; the message names its source, not the
    token.

    >>> bearer("abc\\ndef", "token")
    Traceback (most recent call last):
    ...
    navarch.kube.errors.ConfigError: token: expected a token in one line of plain characters
    """
    token = token.strip()
    if not (token.isascii() and token.isprintable()):
        raise ConfigError(f"{where}: expected a token in one line of plain characters")
    return f"Bearer {token}"
