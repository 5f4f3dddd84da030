"""The certificate authority, server certificate and bearer token of an embedded API server.

Made at first start; kept in the data directory where there is one, so that a kubeconfig stays good over restarts. Elliptic
keys: making them takes a millisecond.
"""

from __future__ import annotations

import ipaddress
import secrets
import ssl
import tempfile
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

LIFETIME = timedelta(days=3650)
HOSTS = ("localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc")


@dataclass(frozen=True, slots=True)
class Identity:
    """The certificate and token of a server."""

    ca_pem: bytes
    certificate_pem: bytes
    key_pem: bytes
    token: str

    def ssl_context(self) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.set_alpn_protocols(["http/1.1"])
        with tempfile.TemporaryDirectory(prefix="navarch-tls-") as folder:  # ssl reads keys from files only
            certificate, key = Path(folder, "tls.crt"), Path(folder, "tls.key")
            certificate.write_bytes(self.certificate_pem)
            write_private(key, self.key_pem)
            context.load_cert_chain(certificate, key)
        return context


def write_private(path: Path, content: bytes) -> None:
    """Write a file that only its owner may read, from its first moment on."""
    path.unlink(missing_ok=True)
    path.touch(mode=0o600)
    path.write_bytes(content)


def load_or_make(folder: Path | None, address: str) -> Identity:
    """The identity kept in a folder, or a new one (kept there if a folder is given)."""
    names = ("ca.crt", "tls.crt", "tls.key", "token")
    if folder is not None and all((folder / name).is_file() for name in names):
        ca, certificate, key, token = ((folder / name).read_bytes() for name in names)
        return Identity(ca, certificate, key, token.decode())
    identity = make(address)
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        parts = (identity.ca_pem, identity.certificate_pem, identity.key_pem, identity.token.encode())
        for name, content in zip(names, parts):
            write_private(folder / name, content)
    return identity


def make(address: str) -> Identity:
    """A new authority, a server certificate for loopback and `address`, and a token."""
    now = datetime.now(UTC) - timedelta(minutes=5)
    ca_key = ec.generate_private_key(ec.SECP256R1())
    ca_name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "navarch-ca")])
    ca = (
        x509.CertificateBuilder()
        .subject_name(ca_name)
        .issuer_name(ca_name)
        .public_key(ca_key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now)
        .not_valid_after(now + LIFETIME)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage(signs=True), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(ca_key.public_key()), critical=False)
        .sign(ca_key, hashes.SHA256())
    )
    key = ec.generate_private_key(ec.SECP256R1())
    addresses = sorted({ipaddress.ip_address(each) for each in ("127.0.0.1", "::1", address)}, key=str)
    names: list[x509.GeneralName] = [x509.DNSName(host) for host in HOSTS]
    names += [x509.IPAddress(each) for each in addresses]
    certificate = (
        x509.CertificateBuilder()
        .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "kube-apiserver")]))
        .issuer_name(ca_name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now)
        .not_valid_after(now + LIFETIME)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(signs=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(ca_key.public_key()), critical=False)
        .sign(ca_key, hashes.SHA256())
    )
    return Identity(
        ca.public_bytes(serialization.Encoding.PEM),
        certificate.public_bytes(serialization.Encoding.PEM),
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()),
        secrets.token_urlsafe(32),
    )


def _usage(signs: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=signs,
        crl_sign=signs,
        encipher_only=False,
        decipher_only=False,
    )
