"""A certificate authority for one run: the server's certificate, users' certificates, the service account key."""

from __future__ import annotations

import datetime
import ipaddress
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

VALID_FOR = datetime.timedelta(days=2)


def _private_key(path: Path) -> ec.EllipticCurvePrivateKey:
    key = ec.generate_private_key(ec.SECP256R1())
    pem = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    path.touch(mode=0o600)
    path.write_bytes(pem)
    return key


_SIGNS_CERTIFICATES = x509.KeyUsage(
    digital_signature=True,
    content_commitment=False,
    key_encipherment=False,
    data_encipherment=False,
    key_agreement=False,
    key_cert_sign=True,
    crl_sign=True,
    encipher_only=False,
    decipher_only=False,
)


class Authority:
    """Files NAME.crt and NAME.key under `folder`; `ca.crt` is what clients trust."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.certificate_file = folder / "ca.crt"
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "navarch envtest")])
        self._key = _private_key(folder / "ca.key")
        builder = self._builder(self._name, self._key).add_extension(x509.BasicConstraints(True, 0), critical=True)
        # Python 3.13 verifies as RFC 5280 asks, and so refuses an authority that does not say that its key signs certificates.
        builder = builder.add_extension(_SIGNS_CERTIFICATES, critical=True)
        self._sign(builder, self.certificate_file)

    def server(self, valid_for: datetime.timedelta = VALID_FOR) -> tuple[Path, Path]:
        """Certificate and key of an API server on the loopback interface."""
        names: list[x509.GeneralName] = [x509.DNSName("localhost"), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]
        return self._issue("server", "kube-apiserver", [], ExtendedKeyUsageOID.SERVER_AUTH, names, valid_for)

    def user(self, name: str, groups: list[str], valid_for: datetime.timedelta = VALID_FOR) -> tuple[Path, Path]:
        """Client certificate and key; the API server reads the user from CN and the groups from O."""
        return self._issue(f"user-{name}", name, groups, ExtendedKeyUsageOID.CLIENT_AUTH, [], valid_for)

    def service_account_key(self) -> tuple[Path, Path]:
        """Public and private key that sign service account tokens."""
        public, private = self.folder / "service-account.pub", self.folder / "service-account.key"
        key = _private_key(private)
        public.write_bytes(key.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo))
        return public, private

    def _issue(
        self,
        file: str,
        name: str,
        groups: list[str],
        usage: x509.ObjectIdentifier,
        names: list[x509.GeneralName],
        valid_for: datetime.timedelta = VALID_FOR,
    ) -> tuple[Path, Path]:
        certificate, key_file = self.folder / f"{file}.crt", self.folder / f"{file}.key"
        subject = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in groups]
        subject.append(x509.NameAttribute(NameOID.COMMON_NAME, name))
        builder = self._builder(x509.Name(subject), _private_key(key_file), valid_for)
        builder = builder.add_extension(x509.ExtendedKeyUsage([usage]), critical=False)
        if names:
            builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
        self._sign(builder, certificate)
        return certificate, key_file

    def _builder(
        self, subject: x509.Name, key: ec.EllipticCurvePrivateKey, valid_for: datetime.timedelta = VALID_FOR
    ) -> x509.CertificateBuilder:
        now = datetime.datetime.now(datetime.UTC)
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(min(now, now + valid_for) - datetime.timedelta(minutes=5))
            .not_valid_after(now + valid_for)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key()), critical=False)
        )

    def _sign(self, builder: x509.CertificateBuilder, path: Path) -> None:
        certificate = builder.sign(self._key, hashes.SHA256())
        path.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
