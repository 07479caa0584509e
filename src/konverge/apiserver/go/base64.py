"""Go's encoding/base64: line breaks are skipped, padding is required, stray bits are ignored."""

from __future__ import annotations

from base64 import b64encode
from binascii import a2b_base64

_ALPHABET = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/")


class Base64Error(ValueError):
    def __init__(self, offset: int) -> None:
        super().__init__(f"illegal base64 data at input byte {offset}")


def canonical_base64(value: str | bytes) -> str:
    """The canonical text of a base64 text, or of bytes."""
    return b64encode(value if isinstance(value, bytes) else decode(value)).decode()


def decode(text: str) -> bytes:  # upstream: decodeQuantum
    data = text.encode()
    characters = bytearray()
    for position, byte in enumerate(data):
        if byte in _ALPHABET:
            characters.append(byte)
        elif byte == ord("=") and len(characters) % 4 >= 2:
            _after_padding(data, position + 1, len(characters) % 4)
            break
        elif byte not in b"\r\n":
            raise Base64Error(position)
    else:
        if len(characters) % 4:
            raise Base64Error(len(data) - len(characters) % 4)
    return a2b_base64(characters + b"=" * (-len(characters) % 4))


def _after_padding(data: bytes, position: int, have: int) -> None:
    """After the first `=`: one more where two characters came before it, then nothing."""
    if have == 2:
        position = _skip_breaks(data, position)
        if position == len(data):
            raise Base64Error(len(data))
        if data[position] != ord("="):
            raise Base64Error(position - 1)
        position += 1
    position = _skip_breaks(data, position)
    if position < len(data):
        raise Base64Error(position)


def _skip_breaks(data: bytes, position: int) -> int:
    while position < len(data) and data[position] in b"\r\n":
        position += 1
    return position
