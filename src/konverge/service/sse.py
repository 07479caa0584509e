"""Server-sent events, as bytes."""

from __future__ import annotations

import re

MEDIA_TYPE = "text/event-stream"
HEARTBEAT = b": still here\n\n"
_ID = re.compile(r"[0-9]{1,20}")


def event(name: str, data: bytes, id: str = "") -> bytes:
    """One event. The data is JSON on one line, so it needs no splitting.

    >>> event("deleted", b"{}", "12")
    b'id: 12\\nevent: deleted\\ndata: {}\\n\\n'
    """
    head = f"id: {id}\n" if id else ""
    return b"%bevent: %b\ndata: %b\n\n" % (head.encode(), name.encode(), data)


def mark(id: str) -> bytes:
    """A block without data: readers remember the id and see nothing."""
    return f"id: {id}\n\n".encode()


def retry(milliseconds: int) -> bytes:
    """How long a reader waits before it comes back."""
    return f"retry: {milliseconds}\n\n".encode()


def is_id(text: str) -> bool:
    """Whether it may be one of our ids: a resourceVersion."""
    return _ID.fullmatch(text) is not None
