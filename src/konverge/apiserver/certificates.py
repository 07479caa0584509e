"""The certificates of a server that speaks TLS: its own authority, its own name, and the administrator's identity.

They are made once, with `cryptography`, which is imported only for that; a server with a data directory keeps them
there and starts again without it.
"""

from __future__ import annotations

import ipaddress
import os
from dataclasses import dataclass, fields
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from konverge import clock

if TYPE_CHECKING:
    import ssl

_YEARS = timedelta(days=3650)
_NAMES = (
    "localhost",
    "kubernetes",
    "kubernetes.default",
    "kubernetes.default.svc",
    "kubernetes.default.svc.cluster.local",
)


@dataclass(frozen=True, slots=True)
class Certificates:
    """All in PEM."""

    authority: bytes
    authority_key: bytes
    server: bytes
    server_key: bytes
    admin: bytes
    admin_key: bytes

    def context(self) -> ssl.SSLContext:
        """For a server that lets clients show a certificate of this authority."""
        from konverge.wire.tls import server_context

        return server_context(self.server, self.server_key, client_ca=self.authority)


def kept(folder: Path | None, hosts: tuple[str, ...]) -> Certificates:
    """The certificates in a folder, made if there are none; without a folder, made for this time only."""
    if folder is None:
        return make(hosts)
    path = folder / "pki"
    names = [field.name for field in fields(Certificates)]
    if all((path / f"{name}.pem").exists() for name in names):
        return Certificates(*((path / f"{name}.pem").read_bytes() for name in names))
    made = make(hosts)
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    for name in names:
        write_private(path / f"{name}.pem", getattr(made, name))
    return made


def write_private(path: Path, data: bytes) -> None:
    """Write a file that holds a secret: nobody else may read it, not even for a moment."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(data)


def make(hosts: tuple[str, ...]) -> Certificates:
    from cryptography import x509
    from cryptography.x509.oid import ExtendedKeyUsageOID

    authority, authority_key = _issue("konverge-ca", (), None)
    alternatives = x509.SubjectAlternativeName([_alternative(host) for host in dict.fromkeys((*hosts, *_NAMES))])
    server_usage = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH])
    client_usage = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CLIENT_AUTH])
    issuer = (authority, authority_key)
    server, server_key = _issue("kube-apiserver", (), issuer, server_usage, alternatives)
    admin, admin_key = _issue("kubernetes-admin", ("system:masters",), issuer, client_usage)
    pem = [_pem(part) for part in (authority, authority_key, server, server_key, admin, admin_key)]
    return Certificates(*pem)


def _alternative(host: str) -> Any:
    from cryptography import x509

    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _issue(name: str, groups: tuple[str, ...], issuer: tuple[Any, Any] | None, *extensions: Any) -> tuple[Any, Any]:
    """A certificate and its key; without an issuer it is an authority that signs itself."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.x509.oid import NameOID

    key = ec.generate_private_key(ec.SECP256R1())
    attributes = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in groups]
    subject = x509.Name([*attributes, x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = clock.utc_now()
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject if issuer is None else issuer[0].subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + _YEARS)
        .add_extension(x509.BasicConstraints(ca=issuer is None, path_length=None), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(_usage(authority=issuer is None), critical=True)
    )
    if issuer is not None:
        identifier = x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer[1].public_key())
        builder = builder.add_extension(identifier, critical=False)
    for extension in extensions:
        builder = builder.add_extension(extension, critical=False)
    return builder.sign(key if issuer is None else issuer[1], hashes.SHA256()), key


def _usage(*, authority: bool) -> Any:
    from cryptography import x509

    return x509.KeyUsage(
        digital_signature=True,
        content_commitment=False,
        key_encipherment=not authority,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=authority,
        crl_sign=authority,
        encipher_only=False,
        decipher_only=False,
    )


def _pem(part: Any) -> bytes:
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

    if hasattr(part, "private_bytes"):
        key: bytes = part.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        return key
    certificate: bytes = part.public_bytes(Encoding.PEM)
    return certificate
