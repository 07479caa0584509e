"""Who keeps a cluster from coming to rest: controllers with their keys, tasks with their timers, writers.

What `Unsettled` says. All of it is read when the wait has failed; nothing is recorded before.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Collection, Iterable
from typing import Any

from konverge.apiserver.storage import Event, Store
from konverge.runtime.engine import running_engines
from konverge.workqueue import WorkQueue
from konverge.workqueue.queue import Pending

SHOWN = 5
"""Entries of each sort."""


def busy_queues(more: dict[str, WorkQueue[Any]]) -> dict[str, WorkQueue[Any]]:
    """The queues of all controllers on this loop, and `more`, that have work to do."""
    queues = {engine.controller.name: engine.queue for engine in running_engines()} | more
    return {name: queue for name, queue in queues.items() if queue.unfinished and not queue.paused}


def describe(
    store: Store, more: dict[str, WorkQueue[Any]], *, since: int, quiet: float, ignored: Collection[str]
) -> str:
    """Who is at work, who comes back within `quiet` seconds, and what was written after revision `since`."""
    queues = {engine.controller.name: engine.queue for engine in running_engines()} | more
    open_queues = {name: queue for name, queue in queues.items() if not queue.paused}
    pending = [(name, item) for name, queue in open_queues.items() for item in queue.pending()]
    at_work = [f"{name} {_key(item)}" for name, item in pending if item.state != "delayed"]
    soon = [f"{name} {_key(item)}" for name, item in pending if item.state == "delayed" and item.seconds <= quiet]
    lines = [
        _line("at work", at_work),
        _line(f"back within {quiet:g} s", soon),
        _line("written meanwhile", _writes(store, since, ignored)),
        _line(f"tasks that wake within {quiet:g} s", _sleepers(quiet)),
    ]
    return "; ".join(line for line in lines if line) or "no controller, no writer and no timer of asyncio is to be seen"


def _line(title: str, entries: Iterable[str]) -> str:
    entries = list(entries)
    rest = f" and {len(entries) - SHOWN} more" if len(entries) > SHOWN else ""
    return f"{title}: {', '.join(entries[:SHOWN])}{rest}" if entries else ""


def _key(item: Pending[Any]) -> str:
    why = f", {item.reasons[-1]}" if item.reasons else ""
    when = "in work" if item.state == "in work" else f"in {item.seconds:.3g} s" if item.state == "delayed" else "waits"
    return f"{item.key} ({when}{why})"


# ------------------------------------------------------------------ writers


def _writes(store: Store, since: int, ignored: Collection[str]) -> list[str]:
    counted = Counter(
        f"{table.name.lstrip('/')} {event.key}{_writer(event)}"
        for table, event in store.changes(since)
        if table.name not in ignored
    )
    return [f"{what} ({count} times)" if count > 1 else what for what, count in counted.most_common()]


def _writer(event: Event) -> str:
    """The field manager that wrote last, by managedFields."""
    record = event.record
    if record is None:
        return " (deleted)"
    entries = record.decode()["metadata"].get("managedFields") or []
    latest = max(entries, key=lambda entry: str(entry.get("time", "")), default=None)
    return f" by {latest['manager']}" if latest else ""


# ------------------------------------------------------------------ timers


def _sleepers(quiet: float) -> list[str]:
    """Tasks that wait for a timer which is due soon. Only where the loop shows its timers, as asyncio's own do."""
    loop = asyncio.get_running_loop()
    limit = loop.time() + quiet
    timers = [timer for timer in getattr(loop, "_scheduled", ()) if not timer.cancelled() and timer.when() <= limit]
    futures = {id(argument) for timer in timers for argument in getattr(timer, "_args", None) or ()}
    tasks = asyncio.all_tasks(loop) - {asyncio.current_task(loop)}
    return sorted(task.get_name() for task in tasks if id(getattr(task, "_fut_waiter", None)) in futures)
