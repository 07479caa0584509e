"""Users by client certificate: the common name is the user, the organizations are the groups.

The TLS layer has verified the certificate. All that is read here is its subject, so a few lines of DER do; certificates
are few and come with every request of a connection, so what was read is remembered.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from functools import lru_cache

from konverge.apiserver.auth.well_known import AUTHENTICATED
from konverge.apiserver.request.user import User

_COMMON_NAME = bytes.fromhex("550403")
_ORGANIZATION = bytes.fromhex("55040a")
_USER_UID = bytes.fromhex("2b0601040183c25302")  # 1.3.6.1.4.1.57683.2
_VERSION = 0xA0
_WIDE_TEXTS = {0x1E: "utf-16-be", 0x1C: "utf-32-be"}
_SUBJECT = 4
"""Its place in a certificate after the version: serial, algorithm, issuer, validity, subject."""


@lru_cache(maxsize=1024)
def user_of(certificate: bytes) -> User | None:
    """The user of a certificate (DER); None if it names nobody or cannot be read."""
    try:
        names = list(_subject(certificate))
    except (IndexError, ValueError):
        return None
    name = next((text for oid, text in reversed(names) if oid == _COMMON_NAME), "")
    if not name:
        return None
    groups = tuple(text for oid, text in names if oid == _ORGANIZATION)
    uid = next((text for oid, text in names if oid == _USER_UID), "")
    digest = hashlib.sha256(certificate).hexdigest()
    extra = {"authentication.kubernetes.io/credential-id": [f"X509SHA256={digest}"]}
    return User(name, uid, groups if AUTHENTICATED in groups else (*groups, AUTHENTICATED), extra)


def _subject(certificate: bytes) -> Iterator[tuple[bytes, str]]:
    """The (object identifier, text) pairs of the subject."""
    to_be_signed = _first(_first(certificate))
    fields = [content for tag, content in _elements(to_be_signed) if tag != _VERSION]
    for _, names in _elements(fields[_SUBJECT]):
        for _, pair in _elements(names):
            (_, oid), (tag, text) = _elements(pair)
            yield oid, text.decode(_WIDE_TEXTS.get(tag, "utf-8"))


def _first(data: bytes) -> bytes:
    for _, content in _elements(data):
        return content
    raise ValueError("there is no element")


def _elements(data: bytes) -> Iterator[tuple[int, bytes]]:
    """(tag, content) of the DER elements that stand one after the other."""
    position = 0
    while position < len(data):
        tag, size = data[position], data[position + 1]
        position += 2
        if size & 0x80:
            digits = size & 0x7F
            size = int.from_bytes(data[position : position + digits], "big")
            position += digits
        if position + size > len(data):
            raise ValueError("an element is longer than what holds it")
        yield tag, data[position : position + size]
        position += size
