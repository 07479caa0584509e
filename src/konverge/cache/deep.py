"""JSON that is nested too deeply for a decoder is cut here, without recursion.

A decoder descends with the stack: msgspec reads about as many levels as Python allows calls, a thousand. In a custom
resource whose schema preserves unknown fields the API server accepts ten times as many, of anybody who may write one.
Such an object cannot be read, but it can be named, and what stands beside it in a page can be read.
"""

from __future__ import annotations

import re

_tokens = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"|[{}\[\]]').finditer
_OPENING, _CLOSING = b"{[", b"}]"


def cut_below(data: bytes, levels: int) -> tuple[bytes, list[bytes]]:
    """The JSON with what is nested more than so many levels deep cut out, and the pieces: each left its number there.

    >>> cut_below(b'{"a":{"b":[1]},"c":[2]}', 1)
    (b'{"a":0,"c":1}', [b'{"b":[1]}', b'[2]'])
    """
    kept: list[bytes] = []
    pieces: list[bytes] = []
    level = start = end = 0
    for token in _tokens(data):
        first = data[token.start()]
        if first in _OPENING:
            if level == levels:
                start = token.start()
                kept.append(data[end:start])
            level += 1
        elif first in _CLOSING:
            level -= 1
            if level == levels:
                end = token.end()
                kept.append(b"%d" % len(pieces))
                pieces.append(data[start:end])
    kept.append(data[end:])
    return b"".join(kept), pieces
