"""Keys in PEM by `cryptography`: RS256 for RSA keys, ES256 for elliptic ones. Imported when a key is needed."""

from __future__ import annotations

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ec import (
    ECDSA,
    SECP256R1,
    EllipticCurvePrivateKey,
    EllipticCurvePublicKey,
)
from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey, RSAPublicKey, generate_private_key
from cryptography.hazmat.primitives.asymmetric.types import CertificatePublicKeyTypes, PublicKeyTypes
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature, encode_dss_signature
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_pem_private_key,
    load_pem_public_key,
)

from konverge.apiserver.auth.token_keys import Key, key_id, number

_P256_BYTES = 32


def make() -> bytes:
    """A new private key."""
    key = generate_private_key(public_exponent=65537, key_size=2048)
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


def load(pem: bytes, *, made_here: bool = False) -> Key:
    """A private or public key: RSA or P-256. To see that the numbers of an RSA key are primes takes as long as to make
    one, and one that was `made_here` needs no such proof."""
    private = b"PRIVATE KEY" in pem
    key = load_pem_private_key(pem, None, unsafe_skip_rsa_key_validation=made_here) if private else _public(pem)
    if isinstance(key, RSAPrivateKey | RSAPublicKey):
        return _Rsa(key)
    if isinstance(key, EllipticCurvePrivateKey | EllipticCurvePublicKey) and isinstance(key.curve, SECP256R1):
        return _Elliptic(key)
    raise ValueError("a key of service-account tokens must be RSA or P-256")


def _public(pem: bytes) -> PublicKeyTypes | CertificatePublicKeyTypes:
    """Of a public key or, as the real server takes them too, of a certificate."""
    if b"BEGIN CERTIFICATE" not in pem:
        return load_pem_public_key(pem)
    from cryptography.x509 import load_pem_x509_certificate

    return load_pem_x509_certificate(pem).public_key()


def _id(public: RSAPublicKey | EllipticCurvePublicKey) -> str:
    return key_id(public.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo))


class _Rsa:
    algorithm = "RS256"

    def __init__(self, key: RSAPrivateKey | RSAPublicKey) -> None:
        self._key, self._public = key, key.public_key() if isinstance(key, RSAPrivateKey) else key
        self.id = _id(self._public)

    def sign(self, data: bytes) -> bytes:
        assert isinstance(self._key, RSAPrivateKey)
        return self._key.sign(data, PKCS1v15(), SHA256())

    def verify(self, data: bytes, signature: bytes) -> bool:
        try:
            self._public.verify(signature, data, PKCS1v15(), SHA256())
        except InvalidSignature:
            return False
        return True

    def published(self) -> dict[str, str]:
        numbers = self._public.public_numbers()
        head = {"use": "sig", "kty": "RSA", "kid": self.id, "alg": self.algorithm}
        return {**head, "n": number(numbers.n), "e": number(numbers.e)}


class _Elliptic:
    algorithm = "ES256"

    def __init__(self, key: EllipticCurvePrivateKey | EllipticCurvePublicKey) -> None:
        self._key, self._public = key, key.public_key() if isinstance(key, EllipticCurvePrivateKey) else key
        self.id = _id(self._public)

    def sign(self, data: bytes) -> bytes:
        """JWTs have the two numbers side by side, not in DER."""
        assert isinstance(self._key, EllipticCurvePrivateKey)
        pair = decode_dss_signature(self._key.sign(data, ECDSA(SHA256())))
        return b"".join(part.to_bytes(_P256_BYTES, "big") for part in pair)

    def verify(self, data: bytes, signature: bytes) -> bool:
        if len(signature) != 2 * _P256_BYTES:
            return False
        pair = (int.from_bytes(part, "big") for part in (signature[:_P256_BYTES], signature[_P256_BYTES:]))
        try:
            self._public.verify(encode_dss_signature(*pair), data, ECDSA(SHA256()))
        except InvalidSignature:
            return False
        return True

    def published(self) -> dict[str, str]:
        numbers = self._public.public_numbers()
        head = {"use": "sig", "kty": "EC", "kid": self.id, "crv": "P-256", "alg": self.algorithm}
        return {**head, "x": number(numbers.x, _P256_BYTES), "y": number(numbers.y, _P256_BYTES)}
