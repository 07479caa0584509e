"""Runs of a search, as many at once as its runner has jobs."""

from __future__ import annotations

from collections.abc import Generator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from typing import Protocol

from konverge.check.budget import Budget
from konverge.check.model import Plan, Run, Task
from konverge.check.waiting import Waiting

MOST_AT_ONCE = 1024


class Search(Protocol):
    """Whose runs they are."""

    @property
    def jobs(self) -> int:
        """They may become more."""

    def task(self, plan: Plan | Task) -> Task: ...

    def run(self, task: Task) -> Run: ...

    def cancel(self) -> None:
        """End the runs that are under way; each of them gets a failed one."""


def runs_of(search: Search, waiting: Waiting, budget: Budget) -> Generator[tuple[Task, Run], None, None]:
    """Runs as they end. What waits is begun as long as there is time; what was under way at the end waits again."""
    if search.jobs <= 1:
        while budget.searching and (item := waiting.next()) is not None:
            task = search.task(item)
            yield task, search.run(task)
        return
    pool = ThreadPoolExecutor(MOST_AT_ONCE, "check")  # as many of them as there are runs
    running: dict[Future[Run], Task] = {}
    try:
        while True:
            while budget.searching and len(running) < search.jobs and (item := waiting.next()) is not None:
                task = search.task(item)
                running[pool.submit(search.run, task)] = task
            if not running:
                return
            ended, _ = wait(running, max(budget.left_to_runs, 0.0), FIRST_COMPLETED)
            if not ended:
                return
            for future in ended:
                yield running.pop(future), future.result()
    finally:
        if running:  # after an interrupt, or where a run does not end, or where enough was found
            search.cancel()
        waiting.put(task if task.patience else task.plan for task in running.values())
        pool.shutdown(wait=False, cancel_futures=True)
