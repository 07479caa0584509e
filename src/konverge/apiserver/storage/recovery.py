"""From an error of the disk until the journal writes again.

1. Reopen. The connection is closed, the write-ahead log is written again (`Disk.rewrite` says why) and the database is
   opened from its files. What it holds now is the truth: a commit that reported an error may have reached the disk all
   the same. Its seal must be the one that was acknowledged last or that of the group that was on its way; anything
   else is `Lost`.
2. Make room. The log is brought into the database and gets its full size again, as at start. This is what fails as long
   as the disk is full: a small write alone might still find room, and the next one not.
3. Try. A group without changes is committed. It takes a revision of its own: those of groups that were taken back are
   never given again.

Each step is a job of the journal's thread. After an error the next attempt begins a second later: at step 2 where the
disk is only full, else at step 1.
"""

from __future__ import annotations

import asyncio
from typing import Protocol

from konverge.apiserver.storage.checksums import Seal
from konverge.apiserver.storage.failures import Lost, is_damage, is_full
from konverge.apiserver.storage.worker import Worker

INTERVAL = 1.0
"""Seconds between two attempts."""


class Journal(Protocol):
    """What the recovery asks of its journal: three jobs for the thread, and reports on the loop."""

    def reopen(self) -> Seal:
        """Open the database from its files; returns what it says of itself."""

    def make_room(self) -> None: ...
    def try_commit(self) -> None: ...
    def on_reopened(self, seal: Seal) -> None:
        """The database holds exactly this. Raises Lost if it should not."""

    def on_attempt_failed(self, error: Exception) -> None: ...
    def on_recovered(self) -> None: ...
    def on_lost(self, error: Lost) -> None: ...
    def lost(self, error: Exception) -> Lost:
        """Why an error cannot be repaired."""


class Recovery:
    """Runs from `begin` until the journal is told that it writes again, or that it never will."""

    def __init__(self, journal: Journal, worker: Worker) -> None:
        self._journal = journal
        self._worker = worker
        self._is_open = False
        """Whether the connection can be trusted: it was opened after the last error of the disk."""
        self._timer: asyncio.TimerHandle | None = None
        self._is_cancelled = False

    def begin(self, error: Exception) -> None:
        if self._ends(error):
            return
        self._is_open = False
        self._attempt()

    def cancel(self) -> None:
        """No further attempt."""
        self._is_cancelled = True
        if self._timer is not None:
            self._timer.cancel()

    def _attempt(self) -> None:
        if self._is_open:
            self._worker.submit(self._journal.make_room, self._room_made)
        else:
            self._worker.submit(self._journal.reopen, self._reopened)

    def _reopened(self, seal: Seal, error: Exception | None) -> None:
        if error is None:
            try:
                self._journal.on_reopened(seal)
            except Lost as lost:
                error = lost
        if error is not None:
            self._failed(error)
            return
        self._is_open = True
        if not self._is_cancelled:
            self._worker.submit(self._journal.make_room, self._room_made)

    def _room_made(self, _: None, error: Exception | None) -> None:
        if self._is_cancelled:
            return
        if error is None:
            self._worker.submit(self._journal.try_commit, self._committed)
            return
        self._is_open = is_full(error)
        self._failed(error)

    def _committed(self, _: None, error: Exception | None) -> None:
        if error is None:
            self._journal.on_recovered()
            return
        self._is_open = False  # it may be in a transaction, and whether that is on disk is seen by opening it again
        self._failed(error)

    def _failed(self, error: Exception) -> None:
        if self._ends(error):
            return
        if not self._is_cancelled:
            self._timer = asyncio.get_running_loop().call_later(INTERVAL, self._attempt)
        self._journal.on_attempt_failed(error)

    def _ends(self, error: Exception) -> bool:
        """Whether an error cannot be repaired; then it is reported."""
        if is_damage(error):
            error = self._journal.lost(error)
        if isinstance(error, Lost):
            self._journal.on_lost(error)
        return isinstance(error, Lost)
