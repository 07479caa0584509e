"""Files that are looked at a few times per second: which of them were saved.

Asking for the times of some hundred files costs a millisecond; a library for notifications would be a dependency for
each system. A change is reported when the files have been at rest for one look: editors write in several steps.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Self

from konverge.cli.exit import CommandFailed

LOOK_EVERY = 0.3

Snapshot = dict[Path, tuple[int, int, int]]


class WatchedFiles:
    """The files that `files` names; it is asked at every look, because files come and go.

    It is asked in a thread: a large folder, or a slow disk, must not hold up the server.
    """

    def __init__(self, files: Callable[[], Iterable[Path]], seen: Snapshot) -> None:
        self._files = files
        self._seen = seen

    @classmethod
    async def of(cls, files: Callable[[], Iterable[Path]]) -> Self:
        """These files; what changes from now on counts."""
        return cls(files, await asyncio.to_thread(_look, files))

    async def saved(self) -> set[Path]:
        """Wait until files have changed, come or gone, and are at rest. Returns which."""
        while True:
            now = await self._later()
            if now == self._seen:
                continue
            while (later := await self._later()) != now:
                now = later
            changed = {path for path in {*now, *self._seen} if now.get(path) != self._seen.get(path)}
            self._seen = now
            if changed:
                return changed

    async def _later(self) -> Snapshot:
        await asyncio.sleep(LOOK_EVERY)
        return await asyncio.to_thread(_look, self._files)


def _look(files: Callable[[], Iterable[Path]]) -> Snapshot:
    snapshot: Snapshot = {}
    try:
        for path in files():
            status = path.stat()
            snapshot[path] = (status.st_mtime_ns, status.st_size, status.st_ino)
    except (
        OSError,
        CommandFailed,
    ):  # a file, folder or module is gone at the moment: the next look sees what is there
        return {**snapshot, Path(): (0, 0, 0)}
    return snapshot
