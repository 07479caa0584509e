"""What the shared Secret holds, and when it has to change. Pure but for the keys that are drawn.

There is one signing authority and one server certificate. A certificate is renewed when a third of its life is left.
An authority is replaced in steps, so that at every moment clients trust what any replica shows:

1. the next authority is made and added to the bundle; certificates are still of the old one;
2. when every client has the new bundle, and some time has passed, the next authority signs;
3. the old authority signs nothing more (its key is dropped) and stays in the bundle until it expires: a replica that
   is cut off may still show its last certificate of the old authority.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from konverge.objects.times import format_time, parse_time
from konverge.wire import x509

if TYPE_CHECKING:
    from cryptography.x509 import Certificate

CA, CA_KEY, CERTIFICATE, KEY = "ca.crt", "ca.key", "tls.crt", "tls.key"
NEXT, NEXT_KEY, NEXT_SINCE = "next-ca.crt", "next-ca.key", "next-since"
MOST_TRUSTED = 8
"""Authorities in a bundle. Replicas whose clocks differ by years would replace each other's without an end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lifetimes:
    """How long certificates are good for. They are renewed when a third of that is left."""

    authority: timedelta = timedelta(days=730)
    certificate: timedelta = timedelta(days=90)
    settling: timedelta = timedelta(minutes=5)
    """Between the publication of a new authority and its first signature: API servers learn of it with a delay."""
    look_every: float = 60.0
    """Seconds between two looks of a replica at the Secret."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Material:
    """Certificates and keys, each in PEM. Keys are never printed."""

    trusted: tuple[bytes, ...]
    """Authorities; the first one signs."""
    key: bytes = field(repr=False)
    certificate: bytes = b""
    certificate_key: bytes = field(default=b"", repr=False)
    next_authority: bytes = b""
    next_key: bytes = field(default=b"", repr=False)
    next_since: datetime | None = None

    @property
    def bundle(self) -> bytes:
        """What clients have to trust."""
        return b"".join((*self.trusted, self.next_authority))

    def data(self) -> dict[str, bytes]:
        """For the Secret."""
        since = format_time(self.next_since).encode() if self.next_since else b""
        every = {
            CA: b"".join(self.trusted),
            CA_KEY: self.key,
            CERTIFICATE: self.certificate,
            KEY: self.certificate_key,
            NEXT: self.next_authority,
            NEXT_KEY: self.next_key,
            NEXT_SINCE: since,
        }
        return {name: value for name, value in every.items() if value}

    @classmethod
    def read(cls, data: Mapping[str, bytes]) -> Material:
        """From a Secret. Raises ValueError when something in it is missing or broken."""
        trusted = split(data.get(CA, b""))
        if not trusted:
            raise ValueError(f"{CA} has no certificate")
        x509.load(trusted[0], data.get(CA_KEY, b""))
        since = data.get(NEXT_SINCE, b"").decode() if data.get(NEXT) else ""
        material = cls(
            trusted=trusted,
            key=data[CA_KEY],
            certificate=data.get(CERTIFICATE, b""),
            certificate_key=data.get(KEY, b""),
            next_authority=data.get(NEXT, b""),
            next_key=data.get(NEXT_KEY, b""),
            next_since=parse_time(since) if since else None,
        )
        if material.next_authority:
            x509.load(material.next_authority, material.next_key)
        return material


# ------------------------------------------------------------------ changes


def brought_up_to_date(
    material: Material | None, hosts: tuple[str, ...], lifetimes: Lifetimes, now: datetime
) -> Material:
    """The same, or with what is due now: an authority, the next one, a certificate."""
    if material is None or not is_valid(material.trusted[0], now):
        material = _fresh(material, hosts, lifetimes, now)
    kept = tuple(pem for pem in material.trusted if _end(pem) > now)[:MOST_TRUSTED]
    if kept != material.trusted:
        material = replace(material, trusted=kept)
    if material.next_authority and not is_valid(material.next_authority, now):
        material = replace(material, next_authority=b"", next_key=b"", next_since=None)
    if not material.next_authority and _end(material.trusted[0]) - now <= lifetimes.authority / 3:
        certificate, key = x509.authority(_name(hosts), valid=lifetimes.authority).pem
        material = replace(material, next_authority=certificate, next_key=key, next_since=now)
    return _issued(material, hosts, lifetimes, now) if _is_due(material, hosts, lifetimes, now) else material


def also_trusting(material: Material, pem: bytes, now: datetime) -> Material:
    """With the authorities that clients trust already, of which replicas may still show certificates."""
    try:
        known = [authority for authority in split(pem) if authority not in material.trusted and _end(authority) > now]
    except ValueError:
        return material  # what is there is no bundle, and no client can use it
    return replace(material, trusted=(*material.trusted, *known)) if known else material


def is_trusted(material: Material, pem: bytes) -> bool:
    """Whether clients that have this bundle trust the authority that signs."""
    try:
        return material.trusted[0] in split(pem)
    except ValueError:
        return False


def promoted(material: Material, hosts: tuple[str, ...], lifetimes: Lifetimes, now: datetime) -> Material:
    """With the next authority signing. Only when clients trust it: `may_promote`."""
    material = replace(
        material,
        trusted=(material.next_authority, *material.trusted),
        key=material.next_key,
        next_authority=b"",
        next_key=b"",
        next_since=None,
    )
    return _issued(material, hosts, lifetimes, now)


def may_promote(material: Material, lifetimes: Lifetimes, now: datetime) -> bool:
    """Whether the next authority has been known for long enough; the bundle must be published as well."""
    if material.next_since is None or not is_valid(material.next_authority, now):
        return False
    return now - material.next_since >= lifetimes.settling or _end(material.trusted[0]) - now <= lifetimes.settling


def is_valid(pem: bytes, now: datetime) -> bool:
    """Whether a certificate is good now: neither at its end, nor made by a clock that was ahead."""
    certificate = _load(pem)
    return certificate.not_valid_before_utc <= now < certificate.not_valid_after_utc


def _fresh(before: Material | None, hosts: tuple[str, ...], lifetimes: Lifetimes, now: datetime) -> Material:
    """A new authority. Where the next one was made already, clients may know it: that one."""
    if before is not None and before.next_authority and is_valid(before.next_authority, now):
        return Material(trusted=(before.next_authority, *before.trusted), key=before.next_key)
    certificate, key = x509.authority(_name(hosts), valid=lifetimes.authority).pem
    return Material(trusted=(certificate, *(before.trusted if before else ())), key=key)


def _is_due(material: Material, hosts: tuple[str, ...], lifetimes: Lifetimes, now: datetime) -> bool:
    try:
        certificate = _load(material.certificate)
        x509.load(material.certificate, material.certificate_key)
    except ValueError:
        return True
    signer = _load(material.trusted[0])
    if (
        certificate.not_valid_before_utc > now
        or not _is_signed_by(certificate, signer)
        or not _covers(certificate, hosts)
    ):
        return True
    end = certificate.not_valid_after_utc
    gained = min(now + lifetimes.certificate, signer.not_valid_after_utc) - end
    return end - now <= lifetimes.certificate / 3 and gained > lifetimes.certificate / 10


def _issued(material: Material, hosts: tuple[str, ...], lifetimes: Lifetimes, now: datetime) -> Material:
    authority = x509.load(material.trusted[0], material.key)
    valid = min(lifetimes.certificate, _end(material.trusted[0]) - now)
    certificate, key = x509.issue(authority, hosts[0], x509.FOR_SERVERS, hosts=hosts, valid=valid).pem
    return replace(material, certificate=certificate, certificate_key=key)


def _name(hosts: tuple[str, ...]) -> str:
    return f"webhooks of {hosts[0]}"


# ------------------------------------------------------------------ reading certificates


def split(pem: bytes) -> tuple[bytes, ...]:
    """The certificates of a bundle, each once. Raises ValueError."""
    from cryptography.hazmat.primitives.serialization import Encoding
    from cryptography.x509 import load_pem_x509_certificates

    if not pem.strip():
        return ()
    return tuple(
        dict.fromkeys(certificate.public_bytes(Encoding.PEM) for certificate in load_pem_x509_certificates(pem))
    )


def _load(pem: bytes) -> Certificate:
    from cryptography.x509 import load_pem_x509_certificate

    return load_pem_x509_certificate(pem)


def _end(pem: bytes) -> datetime:
    return _load(pem).not_valid_after_utc


def _is_signed_by(certificate: Certificate, authority: Certificate) -> bool:
    from cryptography.exceptions import InvalidSignature

    try:
        certificate.verify_directly_issued_by(authority)
    except (ValueError, TypeError, InvalidSignature):
        return False
    return True


def _covers(certificate: Certificate, hosts: tuple[str, ...]) -> bool:
    from cryptography.x509 import DNSName, ExtensionNotFound, SubjectAlternativeName

    try:
        names = certificate.extensions.get_extension_for_class(SubjectAlternativeName).value
    except ExtensionNotFound:
        return False
    return set(hosts) <= set(names.get_values_for_type(DNSName))
