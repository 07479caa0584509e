"""Go's encoding/base64: line breaks are skipped, padding is required, stray bits are ignored."""

from __future__ import annotations

from base64 import b64encode

_ALPHABET = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/")
_VALUES = {
    byte: index for index, byte in enumerate(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/")
}


class Base64Error(ValueError):
    def __init__(self, offset: int) -> None:
        super().__init__(f"illegal base64 data at input byte {offset}")


def canonical_base64(value: str | bytes) -> str:
    """The canonical text of a base64 text, or of bytes."""
    return b64encode(value if isinstance(value, bytes) else decode(value)).decode()


def decode(text: str) -> bytes:
    data = text.encode()
    out = bytearray()
    position = 0
    while True:
        quantum, position, ended = _quantum(data, position)
        bits = 0
        for value in quantum:
            bits = bits << 6 | value
        missing = 4 - len(quantum)
        out += (bits << 6 * missing).to_bytes(3, "big")[: max(0, 3 - missing)]
        if ended:
            return bytes(out)


def _quantum(data: bytes, position: int) -> tuple[list[int], int, bool]:
    """Up to four values, the position after them, and whether the data ends there. Upstream: decodeQuantum."""
    values: list[int] = []
    while len(values) < 4:
        if position == len(data):
            if values:
                raise Base64Error(position - len(values))
            return values, position, True
        byte = data[position]
        position += 1
        if byte in b"\r\n":
            continue
        if byte in _ALPHABET:
            values.append(_VALUES[byte])
        elif byte == ord("=") and len(values) >= 2:
            _after_padding(data, position, len(values))
            return values, len(data), True
        else:
            raise Base64Error(position - 1)
    return values, position, False


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
