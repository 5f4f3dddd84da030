"""TLS contexts for an API server: always verified, unless the user said in so many words that it must not be."""

from __future__ import annotations

import logging
import os
import ssl
import tempfile
from pathlib import Path

from navarch.kube.errors import ConfigError

log = logging.getLogger(__name__)


def make_context(
    *, ca_file: Path | None = None, ca_data: bytes | None = None, insecure: bool = False
) -> ssl.SSLContext:
    """A client context that trusts the given CA (or the system's, where none is given).

    `insecure` is `insecure-skip-tls-verify: true`: with a CA it is a contradiction and refused, as kubectl does.
    """
    has_authority = ca_file is not None or ca_data is not None
    if insecure and has_authority:
        raise ConfigError("expected a certificate-authority or insecure-skip-tls-verify: true, found both")
    if insecure:
        log.warning("TLS verification of the API server is off (insecure-skip-tls-verify: true)")
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        return context
    try:
        context = ssl.create_default_context(
            cafile=str(ca_file) if ca_file else None, cadata=ca_data.decode("ascii") if ca_data else None
        )
    except (OSError, ssl.SSLError, UnicodeDecodeError, ValueError) as error:
        where = str(ca_file) if ca_file else "certificate-authority-data"
        raise ConfigError(f"{where}: expected PEM certificates: {error}") from error
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    return context


def load_client_certificate(context: ssl.SSLContext, certificate: bytes, key: bytes) -> None:
    """Use this certificate and key for connections made from now on.

    Python's `ssl` loads them from files only: they stand for a moment in a folder that only we can read.
    """
    with tempfile.TemporaryDirectory(prefix="navarch-") as folder:
        certificate_file, key_file = Path(folder, "client.crt"), Path(folder, "client.key")
        certificate_file.write_bytes(certificate)
        key_file.touch(mode=0o600)
        key_file.write_bytes(key)
        try:
            context.load_cert_chain(certificate_file, key_file)
        except (ssl.SSLError, OSError) as error:
            raise ConfigError(f"client certificate and key: expected a matching PEM pair: {error}") from error


def load_client_certificate_files(context: ssl.SSLContext, certificate: Path, key: Path) -> None:
    """The same from files that stay where they are."""
    for file in (certificate, key):
        if not os.access(file, os.R_OK):
            raise ConfigError(f"client certificate {file}: expected a readable file")
    try:
        context.load_cert_chain(certificate, key)
    except (ssl.SSLError, OSError) as error:
        raise ConfigError(f"client certificate {certificate}, key {key}: expected a PEM pair: {error}") from error
