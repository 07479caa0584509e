"""How a worker carries out a task: in this process on virtual time, or as a child on real time."""

from __future__ import annotations

import asyncio
import functools
import time
import traceback

from konverge.check.model import Run, Task, decode_task, encode
from konverge.check.operator import CannotStart, Declaration
from konverge.check.run import cpu_seconds
from konverge.operators.catalog import Operator


def perform_line(line: bytes) -> bytes:
    """A Task as JSON; the result is its Run. Whatever goes wrong is the problem of that run."""
    task = decode_task(line)
    return encode(perform_task(task))


def perform_task(task: Task) -> Run:
    """One run in this process, with all that it costs."""
    began, used = time.perf_counter(), cpu_seconds()
    try:
        run = _performed(task)
    except CannotStart as error:
        run = failed(task, str(error))
    except Exception:  # a worker serves many runs: one that fails says so, and the next begins
        run = failed(task, f"the checker itself failed: {traceback.format_exc(limit=-8)}")
    if not task.branches:  # else it was not this process that performed it
        run.seconds, run.cpu = time.perf_counter() - began, cpu_seconds() - used
    return run


def failed(task: Task, problem: str) -> Run:
    """A run that could not be carried out."""
    return Run(plan=task.plan, seed=task.seed, steps=(), problem=problem)


def _performed(task: Task) -> Run:
    if task.subject.command:
        return _run_of_child(task)
    from konverge.check.in_process import run_in_process

    return run_in_process(task, _declaration(task.subject.target))


def _run_of_child(task: Task) -> Run:
    from konverge.check.child_run import run_child

    runs: list[Run] = []

    async def played() -> None:  # the Run is not its result: asyncio.Runner makes a text of that, which costs
        runs.append(await run_child(task))

    asyncio.run(played())
    return runs[0]


@functools.cache
def _declaration(target: str) -> Declaration | Operator:
    from konverge.operators.loading import LoadError, load

    try:
        operator = load(target)
    except LoadError as error:
        raise CannotStart(str(error)) from error
    return operator.manager or operator
