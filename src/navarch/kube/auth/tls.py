"""TLS to an API server: always verified unless the user said in so many words that it must not be, never older than its files.

Certificates are replaced while a process runs: by the kubelet, by cert-manager, by an exec plugin. So whoever opens a connection
asks `context()`, which looks whether the files are still the ones it read; what is kept open is compared with it by identity,
since an API server judges a client certificate at every request and refuses an expired one on an old connection as well. A change
makes a new context: OpenSSL can add an authority to one that exists but not take one away.

A set of files that cannot be used (a certificate whose key is not there yet) leaves the last good one in force.
"""

from __future__ import annotations

import logging
import ssl
import tempfile
from pathlib import Path

from navarch.kube.errors import ConfigError

log = logging.getLogger(__name__)

Source = Path | bytes
"""Where PEM comes from: a file that may be replaced, or what was given once and for all."""


class Tls:
    """The contexts of one API server, one after the other. Without an authority the system's are trusted.

    `insecure` is `insecure-skip-tls-verify: true`: with an authority it is a contradiction and refused, as kubectl does.
    """

    def __init__(
        self,
        *,
        authority: Source | None = None,
        certificate: Source | None = None,
        key: Source | None = None,
        insecure: bool = False,
    ) -> None:
        if insecure and authority is not None:
            raise ConfigError("expected a certificate-authority or insecure-skip-tls-verify: true, found both")
        if (certificate is None) != (key is None):
            raise ConfigError("expected a client certificate and its key together, found one of them")
        if insecure:
            log.warning("TLS verification of the API server is off (insecure-skip-tls-verify: true)")
        self._authority = authority
        self._insecure = insecure
        self._pair = None if certificate is None or key is None else (certificate, key)
        self._stamp = self._look()
        self._context = self._make()
        self._refused: object = None
        self._for_proxy: tuple[ssl.SSLContext, ssl.SSLContext] | None = None

    def context(self) -> ssl.SSLContext:
        """The context for a connection made now. Cost: one `stat` for each file, some 2 us."""
        stamp = self._look()
        if stamp != self._stamp:
            try:
                self._context = self._make()
            except ConfigError as error:
                if stamp != self._refused:
                    log.warning("certificates were replaced by what cannot be used, keeping the last ones: %s", error)
                self._refused = stamp
            else:
                log.info("certificates were replaced; connections from now on use the new ones")
                self._stamp, self._refused = stamp, None
        return self._context

    def proxy_context(self) -> ssl.SSLContext:
        """For TLS to an https:// proxy on the way, which only carries ours. kubectl trusts there whom it trusts as an API
        server; a company's proxy is known to the system: either will do. It is shown no client certificate."""
        ours = self.context()
        if self._for_proxy is None or self._for_proxy[0] is not ours:
            context = _believing() if self._insecure else _verifying(self._authority)
            context.minimum_version = ssl.TLSVersion.TLSv1_2
            if not self._insecure:
                context.load_default_certs()
            self._for_proxy = (ours, context)
        return self._for_proxy[1]

    def show(self, certificate: bytes, key: bytes) -> None:
        """From now on show this client certificate."""
        before = self._pair
        if before == (certificate, key):
            return
        self._pair = (certificate, key)
        try:
            # The stamp first: a file that changes while it is read is then read again.
            stamp, self._context = self._look(), self._make()
        except ConfigError:
            self._pair = before
            raise
        self._stamp = stamp

    def _look(self) -> list[tuple[int, ...] | None]:
        """What tells one state of the files from another; the targets of links count, as in a mounted Secret."""
        stamps: list[tuple[int, ...] | None] = []
        for source in (self._authority, *(self._pair or ())):
            if isinstance(source, Path):
                try:
                    found = source.stat()
                except OSError:
                    stamps.append(None)
                else:
                    stamps.append((found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns))
        return stamps

    def _make(self) -> ssl.SSLContext:
        context = _verifying(self._authority) if not self._insecure else _believing()
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        if self._pair is not None:
            _load_pair(context, *self._pair)
        return context


def _believing() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


def _verifying(authority: Source | None) -> ssl.SSLContext:
    file = str(authority) if isinstance(authority, Path) else None
    try:
        # Certificates are ASCII; what stands between them may be a name in any language.
        data = authority.decode("ascii", "ignore") if isinstance(authority, bytes) else None
        context = ssl.create_default_context(cafile=file, cadata=data)
    except (OSError, ssl.SSLError, ValueError) as error:
        raise ConfigError(f"{file or 'certificate-authority-data'}: expected PEM certificates: {error}") from error
    # As kubectl verifies: what is named as an authority is one, also where it was signed by another; and it need not have every
    # extension of RFC 5280, which Python 3.13 asks for unless told otherwise and authorities of older clusters lack.
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    return context


def _load_pair(context: ssl.SSLContext, certificate: Source, key: Source) -> None:
    """Python's `ssl` loads from files only: what is not in one stands for a moment in a folder that only we can read."""
    names = [str(source) if isinstance(source, Path) else "given as data" for source in (certificate, key)]
    with tempfile.TemporaryDirectory(prefix="navarch-") as folder:
        certificate_file = _in_file(certificate, Path(folder, "client.crt"))
        key_file = _in_file(key, Path(folder, "client.key"))
        try:
            context.load_cert_chain(certificate_file, key_file, password=_no_password)
        except (ssl.SSLError, OSError, ValueError) as error:
            raise ConfigError(
                f"client certificate ({names[0]}) and key ({names[1]}): expected a matching PEM pair: {error}"
            ) from error


def _in_file(source: Source, spare: Path) -> Path:
    if isinstance(source, Path):
        return source
    spare.touch(mode=0o600)
    spare.write_bytes(source)
    return spare


def _no_password() -> str:
    """Asked for a key that is encrypted: OpenSSL would otherwise ask the terminal."""
    raise ValueError("the key is encrypted")
