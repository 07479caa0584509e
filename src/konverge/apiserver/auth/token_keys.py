"""The keys of service-account tokens: signing, verifying, publishing them.

`cryptography` is imported when the first token is issued or seen: a server that only meets its administrator starts
without it. A key that is generated here is an RSA key, which every client can verify; that takes a tenth of a second,
so it happens in a thread, and only when the first token is asked for.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Protocol

import msgspec

from konverge.apiserver.private_files import read_pem, write_private

KEY_FILE = "service-account.key"


class BadSignature(Exception):
    """None of the known keys has signed this."""


class Key(Protocol):
    """A public key, with its private key if this server has it."""

    id: str
    algorithm: str

    def sign(self, data: bytes) -> bytes: ...
    def verify(self, data: bytes, signature: bytes) -> bool: ...
    def published(self) -> dict[str, str]: ...


def b64(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def unb64(text: str) -> bytes:
    """Raises ValueError for every text but the one that `b64` makes: a token has one spelling.

    Python's decoder drops characters that it does not know, and takes padding.
    """
    data = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
    if b64(data) != text:
        raise ValueError("not in the canonical form of base64url")
    return data


def number(value: int, size: int = 0) -> str:
    return b64(value.to_bytes(size or (value.bit_length() + 7) // 8, "big"))


def kept_key(folder: Path) -> bytes:
    """The private key in a data folder; empty if there is none yet. Raises FolderError if it is damaged.

    Asked when a server starts: a damaged key would otherwise fail every token.
    """
    path = folder / KEY_FILE
    return read_pem(path, "a new key is made: tokens of service accounts end") if path.exists() else b""


class Keys:
    """The key that signs, and all keys whose signatures are accepted."""

    def __init__(self, *, folder: Path | None, signing: Path | None, verifying: tuple[Path, ...]) -> None:
        self._folder = folder
        self._signing = signing
        self._verifying = verifying
        self._loaded: list[Key] = []
        self._generating = asyncio.Lock()
        self._generated = b""

    def use(self, key: Key) -> None:
        """Sign with a key of the caller's: one is enough where many servers follow each other."""
        self._loaded = [key]

    async def prepare(self) -> None:
        """Generate the key if there is none yet; to be awaited before it is used for signing or shown."""
        if not self._is_missing():
            return
        from konverge.apiserver.auth import pem_keys

        async with self._generating:
            if self._is_missing():
                self._generated = await asyncio.to_thread(pem_keys.make)
                self._keep(self._generated)

    def _is_missing(self) -> bool:
        if self._loaded or self._generated or self._signing is not None:
            return False
        return self._folder is None or not (self._folder / KEY_FILE).exists()

    def _keep(self, key: bytes) -> None:
        """In the data directory, so that tokens outlive a restart."""
        if self._folder is not None:
            write_private(self._folder / KEY_FILE, key)

    def sign(self, claims: dict[str, Any]) -> str:
        """A compact JWT."""
        key = self.all()[0]
        header = msgspec.json.encode({"alg": key.algorithm, "kid": key.id})
        text = f"{b64(header)}.{b64(msgspec.json.encode(claims))}"
        return f"{text}.{b64(key.sign(text.encode()))}"

    def verify(self, token: str) -> None:
        """Raises BadSignature."""
        text, _, signature = token.rpartition(".")
        if self._is_missing():  # nothing has ever been signed here
            raise BadSignature
        try:
            header = msgspec.json.decode(unb64(text.partition(".")[0]), type=dict[str, Any])
            raw = unb64(signature)
        except ValueError:
            raise BadSignature from None
        for key in self.all():
            matches = header.get("alg") == key.algorithm and header.get("kid", key.id) == key.id
            if matches and key.verify(text.encode(), raw):
                return
        raise BadSignature

    def published(self) -> dict[str, Any]:
        return {"keys": [key.published() for key in self.all()]}

    def algorithms(self) -> list[str]:
        return sorted({key.algorithm for key in self.all()})

    def all(self) -> list[Key]:
        """The signing key first."""
        if not self._loaded:
            seen: dict[str, Key] = {}
            for key in self._load():
                seen.setdefault(key.id, key)
            self._loaded = list(seen.values())
        return self._loaded

    def _load(self) -> Iterator[Key]:
        from konverge.apiserver.auth import pem_keys

        if self._signing is not None:
            yield pem_keys.load(self._signing.read_bytes())
        elif self._generated or self._folder is None:
            yield pem_keys.load(self._generated, made_here=True)
        else:
            yield pem_keys.load(kept_key(self._folder))
        for path in self._verifying:
            yield pem_keys.load(path.read_bytes())


def key_id(der: bytes) -> str:
    """The name of a key: a digest of its public part. Upstream: keyIDFromPublicKey (pkg/serviceaccount/jwt.go)."""
    return b64(hashlib.sha256(der).digest())
