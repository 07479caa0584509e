"""Logs: text for people, JSON for machines; every line of a reconcile says which one it belongs to.

The fields are in a context variable, so the author of a reconciler logs with the standard library, and lines of
whatever is called from there have the fields as well. The level can be set for good (configuration,
`KONVERGE_LOG_LEVEL`) and changed at run time (`set_level`, or `/debug/log?level=debug` on the health server, where that
is switched on).
"""

from __future__ import annotations

import json
import logging
import sys
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import Any, TextIO

import msgspec

ROOT = "konverge"


class Scope(msgspec.Struct, frozen=True, gc=False):
    """The reconcile that a line belongs to."""

    controller: str
    subject: object
    """The object's key; turned into text only when a line is written."""
    reconcile_id: int


scope: ContextVar[Scope | None] = ContextVar("log_scope", default=None)


class _Scoped(logging.Filter):
    def filter(self, record: logging.LogRecord) -> bool:
        record.scope = scope.get()
        return True


class TextFormatter(logging.Formatter):
    """`12:30:01.123 INFO  webapp shop/web [3f-12] text`"""

    def format(self, record: logging.LogRecord) -> str:
        when = datetime.fromtimestamp(record.created, UTC).strftime("%H:%M:%S.%f")[:-3]
        scope: Scope | None = getattr(record, "scope", None)
        where, message = "", record.getMessage()
        if scope:
            # Messages of the runtime name the object themselves, for programs whose formatter does not.
            message = message.removeprefix(f"{scope.controller} {scope.subject}: ")
            where = f"{scope.controller} {scope.subject} [{scope.reconcile_id}] "
        text = f"{when} {record.levelname:<7} {where}{message}"
        if record.exc_info:
            text += "\n" + self.formatException(record.exc_info)
        return text


class JsonFormatter(logging.Formatter):
    """One JSON object per line."""

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, Any] = {
            "ts": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "msg": record.getMessage(),
        }
        scope: Scope | None = getattr(record, "scope", None)
        if scope:
            line |= {
                "controller": scope.controller,
                "object": str(scope.subject),
                "reconcileID": str(scope.reconcile_id),
            }
        if record.exc_info:
            line["error"] = self.formatException(record.exc_info)
        return json.dumps(line, ensure_ascii=False, default=str)


def set_up(level: str = "info", form: str = "", stream: TextIO | None = None) -> logging.Handler:
    """Send this process's logs to a stream (standard error): as text or JSON, or as fits the stream."""
    stream = stream or sys.stderr
    handler = logging.StreamHandler(stream)
    form = form or ("text" if stream.isatty() else "json")
    handler.setFormatter(JsonFormatter() if form == "json" else TextFormatter())
    handler.addFilter(_Scoped())
    logging.getLogger().addHandler(handler)
    set_level(level)
    set_level(level, "")  # loggers of the operator's own modules
    return handler


def set_up_unless_done(level: str = "info", form: str = "") -> logging.Handler | None:
    """`set_up` for a program that has not configured its logs itself; whose own set-up is left as it is."""
    if logging.getLogger().handlers or logging.getLogger(ROOT).handlers:
        return None
    return set_up(level, form)


def set_level(level: str, logger: str = ROOT) -> None:
    """Change what is logged from now on.

    >>> set_level("warning")
    """
    number = logging.getLevelName(level.upper())
    if not isinstance(number, int):
        raise ValueError(f"{level!r} is not a log level: use debug, info, warning or error")
    logging.getLogger(logger).setLevel(number)
