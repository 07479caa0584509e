"""How deeply an object may be nested.

Recursive functions walk through stored objects, on stacks of any height, so the limit is far below the interpreter's.
The real server stops at 10,000 levels; no kind comes near either limit.
"""

from __future__ import annotations

MOST = 128
MOST_STORED = MOST + 32
"""What is stored may be a little deeper than what was sent: managedFields repeat it inside of metadata."""
TOO_DEEP = "exceeded max depth"


_OTHERS = bytes(set(range(256)) - set(b'{}[]"'))
_ONE_KIND = bytes.maketrans(b"{}", b"[]")


def is_too_deep(text: bytes, most: int = MOST) -> bool:
    """Whether a JSON text has too many levels. Counting its brackets rules this out for nearly all.

    Texts are large, so this is done by operations on the whole text: strings are cut out, brackets are left, and the
    innermost pairs are removed as often as there may be levels.
    """
    if text.count(b"{") + text.count(b"[") <= most:
        return False
    if b"\\" in text:
        text = text.replace(b"\\\\", b"").replace(b'\\"', b"")
    text = text.translate(None, _OTHERS).replace(b'""', b"")
    if b'"' in text:  # strings with brackets in them
        text = b"".join(text.split(b'"')[::2])
    text = text.translate(_ONE_KIND)
    for _ in range(most):
        text = text.replace(b"[]", b"")
        if not text:
            return False
    return True
