"""How deeply an object may be nested.

Recursive functions walk through stored objects, on stacks of any height, so the limit is far below the interpreter's.
The real server stops at 10,000 levels; no kind comes near either limit.
"""

from __future__ import annotations

from typing import Any

MOST = 128
MOST_STORED = MOST + 32
"""What is stored may be a little deeper than what was sent: managedFields repeat it inside of metadata."""
TOO_DEEP = "exceeded max depth"


def is_too_deep(value: Any, text: bytes, most: int = MOST) -> bool:
    """Whether an object has too many levels. Counting brackets in its text rules this out for nearly all."""
    if text.count(b"{") + text.count(b"[") <= most:
        return False
    level = [value]
    for _ in range(most):
        level = [
            member
            for container in level
            for member in (container.values() if type(container) is dict else container)
            if type(member) is dict or type(member) is list
        ]
        if not level:
            return False
    return True
