"""Profiles of a running process: pprof's role. Off unless asked for; pages for the health server.

- `/debug/profile?seconds=5`  where the CPU time of the event loop goes (cProfile, by cumulated time)
- `/debug/heap`               what holds memory, by line (tracemalloc, from the first call on)
- `/debug/tasks`              every asyncio task and where it waits
- `/debug/log?level=debug`    changes the log level
"""

from __future__ import annotations

import asyncio
import cProfile
import io
import pstats
import tracemalloc

from konverge.observe.health import Page
from konverge.observe.logs import set_level

MAX_SECONDS = 60.0
TOP = 60

Query = dict[str, list[str]]


def pages() -> dict[str, Page]:
    """All of them, to be added to `Health.pages`."""
    return {"/debug/profile": profile, "/debug/heap": heap, "/debug/tasks": tasks, "/debug/log": log_level}


async def profile(query: Query) -> bytes:
    try:
        seconds = float(query.get("seconds", ["5"])[0])
    except ValueError:
        return b"seconds must be a number\n"
    profiler = cProfile.Profile()
    profiler.enable()
    try:
        await asyncio.sleep(min(max(seconds, 0.1), MAX_SECONDS))
    finally:
        profiler.disable()
    out = io.StringIO()
    pstats.Stats(profiler, stream=out).sort_stats("cumulative").print_stats(TOP)
    return out.getvalue().encode()


async def heap(query: Query) -> bytes:
    if not tracemalloc.is_tracing():
        tracemalloc.start()
        return b"tracing of allocations has started: ask again in a while\n"
    statistics = tracemalloc.take_snapshot().statistics("lineno")[:TOP]
    return "".join(f"{statistic}\n" for statistic in statistics).encode()


async def tasks(query: Query) -> bytes:
    out = io.StringIO()
    for task in sorted(asyncio.all_tasks(), key=lambda task: task.get_name()):
        out.write(f"{task.get_name()}\n")
        for frame in task.get_stack(limit=3):
            out.write(f"    {frame.f_code.co_qualname}:{frame.f_lineno}\n")
    return out.getvalue().encode()


async def log_level(query: Query) -> bytes:
    try:
        set_level(query.get("level", ["info"])[0])
    except ValueError as error:
        return f"{error}\n".encode()
    return b"ok\n"
