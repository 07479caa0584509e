"""WebSocket frames (RFC 6455) without any socket: bytes to messages, messages to bytes. The server's side.

`FrameReader.feed` gives what is complete; what a peer must not send raises `Violation` with the close code to answer
with. Everything is bounded: a message by `limit`, a control frame by the protocol.
"""

from __future__ import annotations

from enum import IntEnum

import msgspec


class Opcode(IntEnum):
    CONTINUATION = 0
    TEXT = 1
    BINARY = 2
    CLOSE = 8
    PING = 9
    PONG = 10


NORMAL, GOING_AWAY, PROTOCOL_ERROR, INVALID_DATA, TOO_BIG, INTERNAL = 1000, 1001, 1002, 1007, 1009, 1011
_CONTROL_LIMIT = 125
_CLOSE_CODES = frozenset((*range(1000, 1004), *range(1007, 1015), *range(3000, 5000)))


class Violation(Exception):
    """The peer does not keep to the protocol; `code` is for the close frame."""

    def __init__(self, code: int, text: str) -> None:
        super().__init__(text)
        self.code = code


class Message(msgspec.Struct, frozen=True):
    """A whole message, or a control frame."""

    opcode: Opcode
    data: bytes


class FrameReader:
    """Feed it what arrives."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._buffer = bytearray()
        self._begun = bytearray()
        self._opcode: Opcode | None = None
        """Of the message whose first frames have come."""

    def feed(self, data: bytes) -> list[Message]:
        self._buffer += data
        messages: list[Message] = []
        while (frame := self._frame()) is not None:
            message = self._take(*frame)
            if message is not None:
                messages.append(message)
        return messages

    def _frame(self) -> tuple[bool, Opcode, bytes] | None:
        """The next whole frame: whether it is final, its opcode, its payload."""
        buffer = self._buffer
        if len(buffer) < 2:
            return None
        opcode, final = self._checked(buffer[0], buffer[1]), bool(buffer[0] & 0x80)
        size = self._length(buffer[1] & 0x7F)
        if size is None:
            return None
        length, start = size
        self._bound(opcode, length)
        if len(buffer) < start + 4 + length:
            return None
        mask, masked = bytes(buffer[start : start + 4]), bytes(buffer[start + 4 : start + 4 + length])
        del buffer[: start + 4 + length]
        return final, opcode, unmasked(masked, mask)

    def _checked(self, first: int, second: int) -> Opcode:
        if first & 0x70:
            raise Violation(PROTOCOL_ERROR, "a frame has reserved bits set, and no extension was agreed on")
        if not second & 0x80:
            raise Violation(PROTOCOL_ERROR, "a client masks its frames")
        try:
            opcode = Opcode(first & 0x0F)
        except ValueError:
            raise Violation(PROTOCOL_ERROR, f"there is no opcode {first & 0x0F}") from None
        if opcode >= Opcode.CLOSE and (not first & 0x80 or (second & 0x7F) > _CONTROL_LIMIT):
            raise Violation(PROTOCOL_ERROR, "a control frame is whole and short")
        return opcode

    def _length(self, short: int) -> tuple[int, int] | None:
        """The payload's length and where the mask begins."""
        if short < 126:
            return short, 2
        width, least = (2, 126) if short == 126 else (8, 0x10000)
        if len(self._buffer) < 2 + width:
            return None
        length = int.from_bytes(self._buffer[2 : 2 + width], "big")
        if length < least or length >> 63:
            raise Violation(PROTOCOL_ERROR, "a length is written in the fewest bytes")
        return length, 2 + width

    def _bound(self, opcode: Opcode, length: int) -> None:
        if opcode < Opcode.CLOSE and len(self._begun) + length > self._limit:
            raise Violation(TOO_BIG, f"a message has at most {self._limit} bytes here")

    def _take(self, final: bool, opcode: Opcode, payload: bytes) -> Message | None:
        if opcode >= Opcode.CLOSE:
            return Message(opcode, _close_payload(payload) if opcode is Opcode.CLOSE else payload)
        if (opcode is Opcode.CONTINUATION) is (self._opcode is None):
            raise Violation(PROTOCOL_ERROR, "a message is continued that was not begun, or begun before the last ended")
        self._opcode = self._opcode or opcode
        if not final:
            self._begun += payload
            return None
        message = Message(self._opcode, bytes(self._begun) + payload if self._begun else payload)
        self._begun.clear()
        self._opcode = None
        if message.opcode is Opcode.TEXT:
            _check_text(message.data)
        return message


def unmasked(data: bytes, mask: bytes) -> bytes:
    """Masking is its own inverse. As one large number, since Python has no faster exclusive or."""
    size = len(data)
    key = (mask * (size // 4 + 1))[:size]
    return (int.from_bytes(data, "big") ^ int.from_bytes(key, "big")).to_bytes(size, "big")


def encode(opcode: Opcode, data: bytes) -> bytes:
    """One frame, as a server sends it: whole and without a mask."""
    size = len(data)
    if size < 126:
        return bytes((0x80 | opcode, size)) + data
    if size < 0x10000:
        return bytes((0x80 | opcode, 126)) + size.to_bytes(2, "big") + data
    return bytes((0x80 | opcode, 127)) + size.to_bytes(8, "big") + data


def close_payload(code: int, reason: str = "") -> bytes:
    return code.to_bytes(2, "big") + reason.encode()[: _CONTROL_LIMIT - 2].decode("utf-8", "ignore").encode()


def _close_payload(payload: bytes) -> bytes:
    if len(payload) == 1 or (payload and int.from_bytes(payload[:2], "big") not in _CLOSE_CODES):
        raise Violation(PROTOCOL_ERROR, "a close frame has no code or a valid one")
    _check_text(payload[2:])
    return payload


def _check_text(data: bytes) -> None:
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        raise Violation(INVALID_DATA, "a text is not UTF-8") from None
