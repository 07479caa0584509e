"""The server's side of SCRAM-SHA-256 (RFC 7677): a client proves that it knows a password, and gets the same proof."""

from __future__ import annotations

import base64
import hashlib
import hmac

ITERATIONS = 4096
"""The least that clients take."""
_SALT = b"stand-in for scram"


class Refused(Exception):
    """The user is not known, or the password is another."""


class Conversation:
    """One authentication. `first` and `last` answer the client's two messages."""

    def __init__(self, passwords: dict[str, str]) -> None:
        self._passwords = passwords
        self._client_first = self._server_first = self._user = ""

    def first(self, message: str) -> str:
        _, _, bare = message.split(",", 2)
        fields = _fields(bare)
        self._client_first, self._user = bare, fields["n"].replace("=2C", ",").replace("=3D", "=")
        salt = base64.b64encode(_SALT).decode()
        self._server_first = f"r={fields['r']}stand-in,s={salt},i={ITERATIONS}"
        return self._server_first

    def last(self, message: str) -> str:
        """Raises Refused."""
        password = self._passwords.get(self._user)
        if password is None:
            raise Refused
        without_proof, _, proof = message.rpartition(",p=")
        salted = hashlib.pbkdf2_hmac("sha256", password.encode(), _SALT, ITERATIONS)
        signed = ",".join((self._client_first, self._server_first, without_proof)).encode()
        client_key = _mac(salted, b"Client Key")
        signature = _mac(hashlib.sha256(client_key).digest(), signed)
        expected = bytes(a ^ b for a, b in zip(client_key, signature, strict=True))
        if not hmac.compare_digest(expected, base64.b64decode(proof)):
            raise Refused
        return "v=" + base64.b64encode(_mac(_mac(salted, b"Server Key"), signed)).decode()


def _fields(text: str) -> dict[str, str]:
    return {name: value for name, _, value in (part.partition("=") for part in text.split(","))}


def _mac(key: bytes, data: bytes) -> bytes:
    return hmac.new(key, data, hashlib.sha256).digest()
