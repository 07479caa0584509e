"""A reconcile that has ended, as observers get it: `manager.on_reconciled.append(…)`."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from konverge.runtime.result import Request, Result
from konverge.runtime.story.entry import Entry


class Reconciled(msgspec.Struct, frozen=True):
    """What was reconciled, why, for how long, and how it ended."""

    controller: str
    key: Request
    reasons: tuple[object, ...]
    """As in `Context.reasons`: turned into text when it is asked for."""
    began: float
    """By the loop's clock."""
    seconds: float
    result: Result
    error: BaseException | None = None
    entry: Entry | None = None
    """What it read and wrote, as `manager.story` keeps it."""

    def __str__(self) -> str:
        end = "done"
        if self.error is not None:
            end = f"{type(self.error).__name__}: {self.error}"
        elif self.result.requeue_after:
            end = f"comes back after {self.result.requeue_after:g} s"
        elif self.result.requeue:
            end = "comes back"
        reasons = "; ".join(str(reason) for reason in self.reasons) or "no reason"
        return f"{self.controller} {self.key}: {end} (because: {reasons})"


Observer = Callable[[Reconciled], None]
