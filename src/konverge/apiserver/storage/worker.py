"""A thread that does one job after the other and reports each on the loop. A simulated loop does them itself.

worker = Worker("journal")
worker.submit(lambda: connection.execute("COMMIT"), lambda result, error: ...)
await worker.close(within=5.0)
"""

from __future__ import annotations

import asyncio
import contextlib
import queue
import threading
from collections.abc import Callable
from typing import Any

from konverge import clock

Job = Callable[[], Any]
Done = Callable[[Any, Exception | None], None]


class Worker:
    """Belongs to the running loop. The thread ends with the process, so that a disk that hangs cannot hold it."""

    def __init__(self, name: str) -> None:
        self._loop = asyncio.get_running_loop()
        self._jobs: queue.SimpleQueue[tuple[Job, Done] | None] = queue.SimpleQueue()
        self._ended: asyncio.Future[None] = self._loop.create_future()
        self._is_inline = clock.is_simulated()
        if not self._is_inline:
            threading.Thread(target=self._work, name=name, daemon=True).start()

    def submit(self, job: Job, done: Done) -> None:
        """Do a job after those before it, then call `done(result, error)` on the loop."""
        if self._is_inline:
            self._loop.call_soon(done, *_outcome(job))
        else:
            self._jobs.put((job, done))

    async def close(self, *, within: float) -> bool:
        """End after the jobs that are submitted; False if they take longer than so many seconds."""
        if self._is_inline:
            return True
        self._jobs.put(None)
        await asyncio.wait([self._ended], timeout=within)
        return self._ended.done()

    # --- in the thread

    def _work(self) -> None:
        while (work := self._jobs.get()) is not None:
            job, done = work
            self._call(done, *_outcome(job))
        self._call(self._end)

    def _call(self, callback: Callable[..., None], *arguments: Any) -> None:
        with contextlib.suppress(RuntimeError):  # the loop is closed; what is done is done
            self._loop.call_soon_threadsafe(callback, *arguments)

    def _end(self) -> None:
        if not self._ended.done():
            self._ended.set_result(None)


def _outcome(job: Job) -> tuple[Any, Exception | None]:
    try:
        return job(), None
    except Exception as error:  # the one who submitted the job decides about it
        return None, error
