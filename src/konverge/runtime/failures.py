"""Failed reconciles in the log: one line each, with the object, the error, where it was raised, and the next attempt.

The traceback of an exception that no author meant follows once for each line that raises it, and again after a while:
one defect in a reconciler fails for every object, again and again, and its traceback would be most of the log. At level
debug every failure has its traceback. It begins at the author's code, without the frames of the runtime below.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Any

from konverge import clock
from konverge.client import ClientError, Conflict, Forbidden
from konverge.workqueue import Item

TRACEBACK_PERIOD = 600.0
"""Seconds until the traceback of the same defect is logged again."""
MAX_DEFECTS = 100
"""Defects whose last traceback is remembered, for each controller."""

_log = logging.getLogger("konverge.controller")

Trace = tuple[type[BaseException], BaseException, TracebackType | None]


class Failures:
    """The lines about failed reconciles of one controller, whose reconciler is in `module`."""

    def __init__(self, controller: str, module: str = "") -> None:
        self._controller = controller
        self._package = module.rpartition(".")[0] or module
        self._traced: dict[tuple[object, ...], float] = {}
        """Defect -> when its traceback may be logged again."""

    def transient(self, item: Item[Any], error: BaseException, attempt: int, delay: float) -> None:
        """An error that will pass."""
        if isinstance(error, Conflict):
            level, text = logging.INFO, "another client wrote at the same time; reading again"
        elif isinstance(error, Forbidden) and error.namespace_terminating:
            level, text = logging.DEBUG, "its namespace is being deleted"
        else:
            level, text = logging.WARNING, message(error)
        self._write(level, item, text, attempt, delay, error if _log.isEnabledFor(logging.DEBUG) else None)

    def failed(self, item: Item[Any], error: BaseException, attempt: int, delay: float) -> None:
        """An error that needs a person: the API server refused, or the reconciler has a defect."""
        raised = _first(error)
        level, text, due = logging.WARNING, message(error), False
        if not isinstance(error, ClientError):
            text = f"{type(raised).__name__}: {raised}" if str(raised) else text
            level, due = logging.ERROR, self._is_due(raised)
        shown = error if due or _log.isEnabledFor(logging.DEBUG) else None
        place = self.place(raised)
        self._write(level, item, f"{text} at {place}" if place else text, attempt, delay, shown)

    def _write(
        self, level: int, item: Item[Any], text: str, attempt: int, delay: float, shown: BaseException | None
    ) -> None:
        if not _log.isEnabledFor(level):
            return
        why = ", ".join(dict.fromkeys(str(reason) for reason in item.reasons[:3]))
        because = f"; reconciled because: {why}" if why else ""
        _log.log(
            level,
            "%s %s: %s (attempt %d, the next in %s%s)",
            self._controller, item.key, text, attempt, _seconds(delay), because,
            exc_info=None if shown is None else _from_author(shown),
        )  # fmt: skip

    def place(self, error: BaseException) -> str:
        """The author's line that raised, or called what raised; empty where none of them did."""
        last = None
        for trace in _steps(_first(error)):
            name = str(trace.tb_frame.f_globals.get("__name__", ""))
            if self._package and (name == self._package or name.startswith(f"{self._package}.")):
                last = trace
        if last is None:
            return ""
        code = last.tb_frame.f_code
        return f"{Path(code.co_filename).name}:{last.tb_lineno} in {code.co_name}"

    def _is_due(self, error: BaseException) -> bool:
        steps = list(_steps(error))
        where = (steps[-1].tb_frame.f_code.co_filename, steps[-1].tb_lineno) if steps else (str(error),)
        defect, now = (type(error), *where), clock.monotonic()
        if now < self._traced.get(defect, float("-inf")):
            return False
        if len(self._traced) >= MAX_DEFECTS:
            self._traced.clear()
        self._traced[defect] = now + TRACEBACK_PERIOD
        return True


def message(error: BaseException) -> str:
    """What an error says; of a group, what its first error says, and the name of an error without a message."""
    error = _first(error)
    return str(error) or type(error).__name__


def _first(error: BaseException) -> BaseException:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


def _seconds(delay: float) -> str:
    return f"{delay * 1000:.0f} ms" if delay < 1 else f"{delay:.3g} s"


def _steps(error: BaseException) -> Iterator[TracebackType]:
    trace = error.__traceback__
    while trace is not None:
        yield trace
        trace = trace.tb_next


def _from_author(error: BaseException) -> Trace:
    """The error with the part of its traceback after the frames of the runtime that called the reconciler."""
    for trace in _steps(error):
        if not str(trace.tb_frame.f_globals.get("__name__", "")).startswith("konverge.runtime"):
            return type(error), error, trace
    return type(error), error, error.__traceback__
