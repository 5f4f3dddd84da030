"""aiohttp, imported without the certificates of the system.

aiohttp makes two TLS contexts when it is imported, and both read every certificate that the system trusts: 45 ms of CPU, a tenth of
what `navarch run` costs until its first list. An endpoint brings its own context, so most processes never use them. Here they read the
certificates before their first connection instead. Whatever uses them, a plugin for example, notices no difference.
"""

from __future__ import annotations

import contextlib
import ssl
from collections.abc import Iterator
from typing import Any

__all__ = ("aiohttp",)


class _ReadsLate(ssl.SSLContext):
    """A context whose certificates are read before its first connection."""

    is_read = False

    def wrap_bio(self, *arguments: Any, **options: Any) -> ssl.SSLObject:
        self._read()
        return super().wrap_bio(*arguments, **options)

    def wrap_socket(self, *arguments: Any, **options: Any) -> ssl.SSLSocket:
        self._read()
        return super().wrap_socket(*arguments, **options)

    def _read(self) -> None:
        if not self.is_read:
            self.is_read = True
            self.set_default_verify_paths()


@contextlib.contextmanager
def _reading_late() -> Iterator[None]:
    """Contexts that are made in this block read the certificates of the system late."""
    made: list[ssl.SSLContext] = []
    read = ssl.SSLContext.set_default_verify_paths
    ssl.SSLContext.set_default_verify_paths = lambda self: made.append(self)  # type: ignore[method-assign]
    try:
        yield
    finally:
        ssl.SSLContext.set_default_verify_paths = read  # type: ignore[method-assign]
        for context in made:
            context.__class__ = _ReadsLate


with _reading_late():
    import aiohttp
