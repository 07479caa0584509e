"""What converges, as it does: a table that is redrawn on a terminal, plain lines elsewhere.

`state_of` is pure: what an object says of itself, in a word and a fraction. `watching` keeps the rows current by the
runtime's own informers and hands every change to a view. A view never waits for its reader: the cluster lives on the
same loop, and a paused terminal or an unread pipe must not stop it.
"""

from __future__ import annotations

import asyncio
import logging
import shutil
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from typing import Any, NamedTuple, Protocol, TextIO

import msgspec

from konverge.cache.informer import CacheSpec, Informer
from konverge.cache.store import Change
from konverge.cli.terminal import Paint, Redrawn, has_room, table
from konverge.client import Client
from konverge.objects.resource import Resource

REDRAW_EVERY = 0.1
MAX_ROWS = 20


class Row(NamedTuple):
    """One object that converges."""

    kind: str
    name: str
    state: str
    ready: str

    def __str__(self) -> str:
        return " ".join(filter(None, (self.kind, self.name, self.state, self.ready)))


class View(Protocol):
    """Where rows are shown."""

    def changed(self, row: Row) -> None: ...

    def gone(self, row: Row) -> None: ...

    async def run(self) -> None: ...


def state_of(obj: dict[str, Any]) -> tuple[str, str]:
    """
    >>> state_of({"spec": {"replicas": 3}, "status": {"phase": "Running", "readyReplicas": 2}})
    ('Running', '2/3')
    >>> state_of({"spec": {"replicas": 1}, "status": {"readyReplicas": 1}})
    ('ready', '1/1')
    """
    spec, status = obj.get("spec") or {}, obj.get("status") or {}
    wanted, ready = spec.get("replicas"), status.get("readyReplicas") or 0
    count = "" if wanted is None else f"{ready}/{wanted}"
    if obj.get("metadata", {}).get("deletionTimestamp"):
        return "deleting", count
    phase = status.get("phase") or ("ready" if wanted is not None and ready >= wanted else "converging")
    return str(phase), count


class PlainView:
    """A line for each row that looks different than before."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._unread = 0

    def changed(self, row: Row) -> None:
        if not has_room(self._stream):
            self._unread += 1
            return
        missed = f"  … {self._unread} changes were not shown\n" if self._unread else ""
        self._unread = 0
        print(f"{missed}  {row}", file=self._stream, flush=True)

    def gone(self, row: Row) -> None:
        self.changed(row._replace(state="gone", ready=""))

    async def run(self) -> None:
        """Nothing is left for later."""


class TableView(logging.Handler):
    """A table at the end of the terminal. As a handler of logs it shows them above itself."""

    def __init__(self, stream: TextIO, paint: Paint) -> None:
        super().__init__(logging.WARNING)
        self._stream = stream
        self._rows: dict[tuple[str, str], Row] = {}
        self._above: list[str] = []
        self._block = Redrawn(stream)
        self._paint = paint
        self._news = asyncio.Event()

    def changed(self, row: Row) -> None:
        self._rows[row.kind, row.name] = row
        self._news.set()

    def gone(self, row: Row) -> None:
        self._rows.pop((row.kind, row.name), None)
        self._news.set()

    def emit(self, record: logging.LogRecord) -> None:
        self._above.append(self.format(record))
        self._news.set()

    async def run(self) -> None:
        """Draw when something changed, but not more often than eyes can see."""
        while True:
            await self._news.wait()
            if has_room(self._stream):
                self._news.clear()
                above, self._above = self._above, []
                self._block.draw(self._lines(), above=above)
            await asyncio.sleep(REDRAW_EVERY)

    def _lines(self) -> list[str]:
        size = shutil.get_terminal_size()
        room = max(1, min(MAX_ROWS, size.lines - 4))
        rows = sorted(self._rows.values())
        lines = [line[: size.columns - 1] for line in table([("KIND", "NAME", "STATE", "READY"), *rows[:room]])]
        colours = ["bold", *("ok" if row.state in ("ready", "Running") else "warn" for row in rows)]
        painted = [self._paint(line, colour) for line, colour in zip(lines, colours, strict=False)]
        more = [f"… and {len(rows) - room} more"] if len(rows) > room else []
        return ["", *painted, *more]


@asynccontextmanager
async def watching(client: Client, resources: Iterable[Resource], view: View) -> AsyncIterator[None]:
    """Inside the block, the view follows these resources."""
    rows: dict[tuple[str, str], Row] = {}

    def informer(resource: Resource) -> Informer:
        made = Informer(client.caller, CacheSpec(resource=resource))
        made.add_handler(lambda change: _note(rows, resource, change, view))
        return made

    one_version = {resource.group_resource: resource for resource in resources}
    informers = [informer(resource) for resource in one_version.values()]
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(informer.run(), name=f"live {informer.spec}") for informer in informers]
        tasks.append(group.create_task(view.run(), name="live view"))
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()


def _note(rows: dict[tuple[str, str], Row], resource: Resource, change: Change, view: View) -> None:
    key = (resource.kind, str(change.key))
    if change.new is None:
        if row := rows.pop(key, None):
            view.gone(row)
        return
    row = Row(*key, *state_of(msgspec.json.decode(change.new.raw)))
    if rows.get(key) != row:
        rows[key] = row
        view.changed(row)
