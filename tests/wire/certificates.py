"""Certificates for tests, made on the spot."""

from __future__ import annotations

import datetime
import functools
import ipaddress

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

_EPOCH = datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC)


class Authority:
    """A CA that signs certificates for servers and clients."""

    def __init__(self, name: str = "test CA") -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = _name(name)
        self._certificate = self._sign(self._name, self._key, ca=True, hosts=[])
        self.pem = _pem(self._certificate)

    def issue(self, name: str, hosts: list[str] | None = None, *, days: int = 36500) -> tuple[bytes, bytes]:
        """A certificate, valid for so many days since 2020, and its key, both PEM."""
        key = ec.generate_private_key(ec.SECP256R1())
        certificate = self._sign(_name(name), key, ca=False, hosts=hosts or [], days=days)
        return _pem(certificate), key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )

    def _sign(
        self, name: x509.Name, key: ec.EllipticCurvePrivateKey, *, ca: bool, hosts: list[str], days: int = 36500
    ) -> x509.Certificate:
        builder = (
            x509.CertificateBuilder()
            .subject_name(name)
            .issuer_name(self._name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(_EPOCH)
            .not_valid_after(_EPOCH + datetime.timedelta(days=days))
            .add_extension(x509.BasicConstraints(ca=ca, path_length=None), critical=True)
        )
        if hosts:
            builder = builder.add_extension(x509.SubjectAlternativeName([_alternative(host) for host in hosts]), False)
        return builder.sign(self._key, hashes.SHA256())


@functools.cache
def authority(name: str = "test CA") -> Authority:
    return Authority(name)


def _name(common: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common)])


def _alternative(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)
