"""TLS to an API server: verified unless the user disables it, and always with the current certificate files.

Certificates are replaced while a process runs: by the kubelet, by cert-manager, by an exec plugin. Each new connection calls
`context()`, which checks whether the files have changed. Open connections compare their context with it by identity, because an API
server checks the client certificate for each request and refuses an expired one on an old connection too. A change makes a new
context: OpenSSL can add an authority to an existing context but not remove one.

If the files are not valid (a certificate without its key yet), the last valid context stays in use.
"""

from __future__ import annotations

import logging
import ssl
import tempfile
from pathlib import Path

from navarch.kube.errors import ConfigError

log = logging.getLogger(__name__)

Source = Path | bytes
"""The source of PEM data: a file that may be replaced, or constant data."""


class Tls:
    """The TLS contexts of one API server over time. Without an authority those of the system are trusted.

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
        """The context for a new connection. Cost: one `stat` for each file, about 2 us."""
        stamp = self._look()
        if stamp != self._stamp:
            try:
                self._context = self._make()
            except ConfigError as error:
                if stamp != self._refused:
                    log.warning("the new certificates are not valid, keeping the last ones: %s", error)
                self._refused = stamp
            else:
                log.info("certificates were replaced; new connections use the new ones")
                self._stamp, self._refused = stamp, None
        return self._context

    def proxy_context(self) -> ssl.SSLContext:
        """The context for TLS to an https:// proxy. It trusts the authorities of the API server, as kubectl does, and those of the
        system. It has no client certificate."""
        ours = self.context()
        if self._for_proxy is None or self._for_proxy[0] is not ours:
            context = _believing() if self._insecure else _verifying(self._authority)
            context.minimum_version = ssl.TLSVersion.TLSv1_2
            if not self._insecure:
                context.load_default_certs()
            self._for_proxy = (ours, context)
        return self._for_proxy[1]

    def show(self, certificate: bytes, key: bytes) -> None:
        """Use this client certificate from now on."""
        before = self._pair
        if before == (certificate, key):
            return
        self._pair = (certificate, key)
        try:
            # The stamp is taken first: a file that changes while it is read is read again.
            stamp, self._context = self._look(), self._make()
        except ConfigError:
            self._pair = before
            raise
        self._stamp = stamp

    def client_certificate(self) -> bytes | None:
        """The client certificate in use, as PEM; None: there is none, or it cannot be read."""
        if self._pair is None:
            return None
        certificate = self._pair[0]
        try:
            return certificate.read_bytes() if isinstance(certificate, Path) else certificate
        except OSError:
            return None

    def _look(self) -> list[tuple[int, ...] | None]:
        """Identifies the state of the files; link targets count, as in a mounted Secret."""
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
        # Certificates are ASCII; text between them may be in any language.
        data = authority.decode("ascii", "ignore") if isinstance(authority, bytes) else None
        context = ssl.create_default_context(cafile=file, cadata=data)
    except (OSError, ssl.SSLError, ValueError) as error:
        raise ConfigError(f"{file or 'certificate-authority-data'}: expected PEM certificates: {error}") from error
    # As kubectl: a named authority is trusted even if another authority signed it. It need not have every extension of RFC 5280, which
    # Python 3.13 requires by default and authorities of older clusters lack.
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    return context


def _load_pair(context: ssl.SSLContext, certificate: Source, key: Source) -> None:
    """The paths of PEM files. Python's `ssl` loads only from files, so data is written to a private temporary directory for a
    moment."""
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
    """Called for an encrypted key, which is refused. OpenSSL would otherwise prompt on the terminal."""
    raise ValueError("the key is encrypted")
