"""What an operator in this process logs: kept for the report, and kept off the terminal.

The tasks of an incarnation inherit its context, so a record belongs to the incarnation that logged it; what the parts
of the simulated cluster log is left out.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

MOST = 200
"""Lines of an incarnation, at most: the last."""

Lines = deque[str]
_lines: ContextVar[Lines | None] = ContextVar("log_of_the_incarnation", default=None)


@contextmanager
def belonging(lines: Lines) -> Iterator[None]:
    """Tasks that are created inside log to these lines."""
    token = _lines.set(lines)
    try:
        yield
    finally:
        _lines.reset(token)


class _Kept(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        lines = _lines.get()
        if lines is not None:
            text = self.format(record)
            lines.extend(text.splitlines())


@contextmanager
def kept() -> Iterator[None]:
    """Inside, records of operators are kept, and none is printed by handlers of the root that were there before."""
    root = logging.getLogger()
    before, disabled = root.handlers[:], logging.root.manager.disable
    handler = _Kept()
    handler.setFormatter(logging.Formatter("%(levelname)s %(name)s: %(message)s"))
    root.handlers[:] = [handler]
    logging.disable(logging.NOTSET)
    try:
        yield
    finally:
        root.handlers[:] = before
        logging.disable(disabled)
