"""Certificates: the few shapes of X.509 that a server needs for itself, in DER and PEM.

`cryptography` can write them too, but importing its builders takes as long as a quarter of the server's start. So the
encoding is done here, and `cryptography` does what must not be written by hand: it makes the keys and the signatures.
"""

from __future__ import annotations

import base64
import hashlib
import ipaddress
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

import msgspec

from konverge import clock

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey

_BOOLEAN, _INTEGER, _BITS, _OCTETS, _OID, _UTF8, _SEQUENCE, _SET = 0x01, 0x02, 0x03, 0x04, 0x06, 0x0C, 0x30, 0x31
_UTC_TIME, _TIME = 0x17, 0x18
_TAGGED, _IN_CONTEXT = 0xA0, 0x80
_DNS_NAME, _IP_ADDRESS = _IN_CONTEXT | 2, _IN_CONTEXT | 7
_VALID = timedelta(days=3650)
_AUTHORITY_USES, _OWN_USES = b"\x01\x86", b"\x05\xa0"
"""Bit strings, the number of unused bits first: sign and issue; sign and encipher keys."""


def _oid(text: str) -> bytes:
    first, second, *others = map(int, text.split("."))
    out = bytearray([40 * first + second])
    for number in others:
        digits = [number & 0x7F]
        while number := number >> 7:
            digits.append(number & 0x7F | 0x80)
        out += bytes(reversed(digits))
    return _tlv(_OID, bytes(out))


def _tlv(tag: int, *parts: bytes) -> bytes:
    """Tag, length, value."""
    value = b"".join(parts)
    size = len(value)
    if size < 0x80:
        return bytes((tag, size)) + value
    length = size.to_bytes((size.bit_length() + 7) // 8, "big")
    return bytes((tag, 0x80 | len(length))) + length + value


def _integer(value: int) -> bytes:
    return _tlv(_INTEGER, value.to_bytes(value.bit_length() // 8 + 1, "big"))


def _time(moment: datetime) -> bytes:
    short = moment.year < 2050
    text = moment.strftime("%y%m%d%H%M%SZ" if short else "%Y%m%d%H%M%SZ")
    return _tlv(_UTC_TIME if short else _TIME, text.encode())


_ECDSA = _tlv(_SEQUENCE, _oid("1.2.840.10045.4.3.2"))
_CURVE = _oid("1.2.840.10045.3.1.7")
_P256 = _tlv(_SEQUENCE, _oid("1.2.840.10045.2.1"), _CURVE)
_COMMON_NAME, _ORGANIZATION = _oid("2.5.4.3"), _oid("2.5.4.10")
_KEY_ID, _KEY_USAGE, _ALTERNATIVES, _CONSTRAINTS, _ISSUER_ID, _PURPOSES = (
    _oid(f"2.5.29.{number}") for number in (14, 15, 17, 19, 35, 37)
)
FOR_SERVERS, FOR_CLIENTS = _oid("1.3.6.1.5.5.7.3.1"), _oid("1.3.6.1.5.5.7.3.2")


class Identity(msgspec.Struct, frozen=True):
    """A certificate and its key."""

    name: bytes
    """The subject, in DER."""
    key: EllipticCurvePrivateKey
    point: bytes
    """The public key."""
    certificate: bytes

    @property
    def key_id(self) -> bytes:
        return hashlib.sha1(self.point, usedforsecurity=False).digest()

    @property
    def pem(self) -> tuple[bytes, bytes]:
        """The certificate and the key (PKCS #8)."""
        key = _tlv(_SEQUENCE, _integer(0), _P256, _tlv(_OCTETS, self._key()))
        return _pem("CERTIFICATE", self.certificate), _pem("PRIVATE KEY", key)

    @property
    def client_pem(self) -> tuple[bytes, bytes]:
        """The same with the key in the form of RFC 5915, whose first line names the algorithm: fabric8's Java client
        takes any other for a key of RSA."""
        return _pem("CERTIFICATE", self.certificate), _pem("EC PRIVATE KEY", self._key(_tlv(_TAGGED, _CURVE)))

    def _key(self, *curve: bytes) -> bytes:
        secret = self.key.private_numbers().private_value.to_bytes(32, "big")
        return _tlv(_SEQUENCE, _integer(1), _tlv(_OCTETS, secret), *curve, _tlv(_TAGGED | 1, _bits(self.point)))


def authority(name: str, *, valid: timedelta = _VALID) -> Identity:
    """An authority that signs itself."""
    return _issued(name, (), None, (), valid)


def load(certificate: bytes, key: bytes) -> Identity:
    """An authority that was made by `authority`, from PEM.

    Raises ValueError when the two do not belong together, or are nothing that `authority` makes.
    """
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.hazmat.primitives.serialization import Encoding, load_pem_private_key
    from cryptography.x509 import load_pem_x509_certificate

    try:
        loaded, secret = load_pem_x509_certificate(certificate), load_pem_private_key(key, None)
        public = loaded.public_key()
    except (TypeError, UnsupportedAlgorithm) as error:  # a key with a password, a curve that is not known
        raise ValueError(str(error)) from None
    if not isinstance(secret, ec.EllipticCurvePrivateKey) or secret.public_key() != public:
        raise ValueError("the key does not belong to the certificate")
    return Identity(loaded.subject.public_bytes(), secret, _point(secret), loaded.public_bytes(Encoding.DER))


def issue(
    issuer: Identity,
    name: str,
    purpose: bytes,
    *,
    groups: tuple[str, ...] = (),
    hosts: tuple[str, ...] = (),
    valid: timedelta = _VALID,
    key: EllipticCurvePrivateKey | None = None,
) -> Identity:
    """A certificate of an authority; `groups` are its organizations, `hosts` the names and addresses it is good for. It
    has a new key unless it is given one."""
    extensions = [_extension(_PURPOSES, _tlv(_SEQUENCE, purpose))]
    if hosts:
        extensions.append(_extension(_ALTERNATIVES, _tlv(_SEQUENCE, *map(_alternative, hosts))))
    return _issued(name, groups, issuer, tuple(extensions), valid, key)


def is_good_for(certificate: bytes, hosts: tuple[str, ...]) -> bool:
    """Whether a certificate of `issue`, in PEM, has all of these names and addresses."""
    der = base64.b64decode(b"".join(certificate.strip().splitlines()[1:-1]))
    return all(_alternative(host) in der for host in hosts)


def _issued(
    name: str,
    groups: tuple[str, ...],
    issuer: Identity | None,
    more: tuple[bytes, ...],
    valid: timedelta,
    key: EllipticCurvePrivateKey | None = None,
) -> Identity:
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.hazmat.primitives.hashes import SHA256

    key = key or ec.generate_private_key(ec.SECP256R1())
    point = _point(key)
    subject = _subject(name, groups)
    unsigned = Identity(subject, key, point, b"")
    signer = issuer or unsigned
    now = clock.utc_now()
    content = _tlv(
        _SEQUENCE,
        _tlv(_TAGGED, _integer(2)),
        _integer(clock.rng().getrandbits(126) | 1 << 126),
        _ECDSA,
        signer.name,
        _tlv(_SEQUENCE, _time(now - timedelta(days=1)), _time(now + valid)),
        subject,
        _tlv(_SEQUENCE, _P256, _bits(point)),
        _tlv(_TAGGED | 3, _tlv(_SEQUENCE, *_extensions(unsigned, issuer), *more)),
    )
    signature = signer.key.sign(content, ec.ECDSA(SHA256()))
    return Identity(subject, key, point, _tlv(_SEQUENCE, content, _ECDSA, _bits(signature)))


def _point(key: EllipticCurvePrivateKey) -> bytes:
    numbers = key.public_key().public_numbers()
    return b"\x04" + numbers.x.to_bytes(32, "big") + numbers.y.to_bytes(32, "big")


def _extensions(own: Identity, issuer: Identity | None) -> list[bytes]:
    """What every certificate says: whether it issues others, for what its key is good, and which key that is."""
    is_authority = issuer is None
    constraints = _tlv(_SEQUENCE, _tlv(_BOOLEAN, b"\xff")) if is_authority else _tlv(_SEQUENCE)
    extensions = [
        _extension(_CONSTRAINTS, constraints, critical=True),
        _extension(_KEY_ID, _tlv(_OCTETS, own.key_id)),
        _extension(_KEY_USAGE, _tlv(_BITS, _AUTHORITY_USES if is_authority else _OWN_USES), critical=True),
    ]
    if issuer is not None:
        extensions.append(_extension(_ISSUER_ID, _tlv(_SEQUENCE, _tlv(_IN_CONTEXT, issuer.key_id))))
    return extensions


def _extension(kind: bytes, value: bytes, *, critical: bool = False) -> bytes:
    return _tlv(_SEQUENCE, kind, _tlv(_BOOLEAN, b"\xff") if critical else b"", _tlv(_OCTETS, value))


def _subject(name: str, groups: tuple[str, ...]) -> bytes:
    parts = [*((_ORGANIZATION, group) for group in groups), (_COMMON_NAME, name)]
    return _tlv(_SEQUENCE, *(_tlv(_SET, _tlv(_SEQUENCE, kind, _tlv(_UTF8, text.encode()))) for kind, text in parts))


def _alternative(host: str) -> bytes:
    try:
        return _tlv(_IP_ADDRESS, ipaddress.ip_address(host).packed)
    except ValueError:
        return _tlv(_DNS_NAME, host.encode())


def _bits(value: bytes) -> bytes:
    return _tlv(_BITS, b"\0", value)


def _pem(label: str, der: bytes) -> bytes:
    text = base64.b64encode(der).decode()
    lines = [text[start : start + 64] for start in range(0, len(text), 64)]
    return "\n".join((f"-----BEGIN {label}-----", *lines, f"-----END {label}-----", "")).encode()
