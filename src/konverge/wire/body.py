"""A body as it comes in pieces.

A piece of two bytes is an object of forty, so a peer that cuts a body into tiny chunks would make us hold it twenty
times over. Small pieces are therefore joined now and then: what is held stays near to what was sent.
"""

from __future__ import annotations

_PIECES_JOINED = 1024
"""Pieces that are joined at a time."""


class Body:
    """Collects pieces; `take` gives the whole and forgets it."""

    __slots__ = ("_joined", "_pieces", "size")

    def __init__(self) -> None:
        self._joined: list[bytes] = []
        self._pieces: list[bytes] = []
        self.size = 0

    def add(self, data: bytes) -> None:
        self.size += len(data)
        pieces = self._pieces
        pieces.append(data)
        if len(pieces) == _PIECES_JOINED:
            self._joined.append(b"".join(pieces))
            pieces.clear()

    def take(self) -> bytes:
        if not self.size:
            return b""
        pieces = self._joined + self._pieces if self._joined else self._pieces
        self._joined, self._pieces, self.size = [], [], 0
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)
