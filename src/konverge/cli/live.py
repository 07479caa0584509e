"""What converges, as it does: a screen that is redrawn on a terminal, plain lines elsewhere.

`Rows` keeps the objects of a cluster current by the runtime's own informers and hands every change to a view. A view
never waits for its reader: the cluster may live on the same loop, and a paused terminal or an unread pipe must not stop
it.
"""

from __future__ import annotations

import asyncio
import logging
import signal
import sys
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from typing import Any, NamedTuple, Protocol, TextIO

import msgspec

from konverge.cache.informer import Informer
from konverge.cache.record import Key
from konverge.cache.spec import CacheSpec
from konverge.cache.store import Change, ChangeType
from konverge.cli.applied_manifests import INVENTORY
from konverge.cli.object_changes import changes, short_name
from konverge.cli.object_health import Health, Sickness, health_of
from konverge.cli.terminal import Line, Paint, Screen, columns_of, has_room, printable, screen_size
from konverge.client import Client
from konverge.objects.resource import Resource

REDRAW_EVERY = 0.1
MAX_NEWS = 5
"""Lines of news below the table."""
MAX_NAME = 40
WORKLOADS = (
    "pods",
    "nodes",
    "persistentvolumeclaims",
    "deployments.apps",
    "statefulsets.apps",
    "daemonsets.apps",
    "jobs.batch",
)
"""What people look at, beside custom resources."""
_UNSAID = frozenset((Key(*INVENTORY),))


class Row(NamedTuple):
    """One object that converges."""

    kind: str
    name: str
    health: Health

    def __str__(self) -> str:
        return " ".join(filter(None, (self.kind, self.name, self.health.state, self.health.ready)))

    @property
    def order(self) -> tuple[Any, ...]:
        """The sickest first; among equals those with most restarts."""
        return self.health.sickness, -self.health.restarts, self.kind, self.name


class View(Protocol):
    """Where rows are shown."""

    def changed(self, row: Row) -> None: ...

    def gone(self, row: Row) -> None: ...

    def say(self, text: str) -> None: ...

    async def run(self) -> None: ...


class PlainView:
    """A line for each row that looks different than before."""

    def __init__(self, stream: TextIO, *, reasons: bool = False, waits: bool = False) -> None:
        """With `waits`, what is said comes after the text of `begin`."""
        self._stream = stream
        self._reasons = reasons
        self._unread = 0
        self._lines: dict[tuple[str, str], str] = {}
        self._waiting: list[str] | None = [] if waits else None

    def begin(self, heading: str) -> None:
        """Say the heading, and then what has waited for it."""
        print(heading, file=self._stream, flush=True)
        waiting, self._waiting = self._waiting or [], None
        for text in waiting:
            self.say(text)

    def changed(self, row: Row) -> None:
        line = f"{row}: {row.health.reason}" if self._reasons and row.health.reason else str(row)
        if self._lines.get(row[:2]) != line:
            self._lines[row[:2]] = line
            self.say(line)

    def gone(self, row: Row) -> None:
        self._lines.pop(row[:2], None)
        self.say(f"{row.kind} {row.name} gone")

    def say(self, text: str) -> None:
        if self._waiting is not None:
            self._waiting.append(text)
            return
        if not has_room(self._stream):
            self._unread += 1
            return
        missed = f"  … {self._unread} changes were not shown\n" if self._unread else ""
        self._unread = 0
        lines = "".join(f"  {printable(line)}\n" for line in text.splitlines() or [""])
        print(f"{missed}{lines}", end="", file=self._stream, flush=True)

    async def run(self) -> None:
        """Nothing is left for later."""


class TableView(logging.Handler):
    """The sickest objects on a screen of their own, under a heading. As a handler of logs it shows them below."""

    def __init__(self, screen: Screen, heading: Iterable[str] = (), footer: str = "") -> None:
        super().__init__(logging.WARNING)
        self._screen = screen
        self._heading = list(heading)
        self._footer = footer
        self._rows: dict[tuple[str, str], Row] = {}
        self._said: list[str] = []
        self._news = asyncio.Event()
        self._news.set()

    def changed(self, row: Row) -> None:
        self._rows[row[:2]] = row
        self._news.set()

    def gone(self, row: Row) -> None:
        self._rows.pop(row[:2], None)
        self._news.set()

    def say(self, text: str) -> None:
        self._said = [*self._said, *text.splitlines()][-MAX_NEWS:]
        self._news.set()

    def emit(self, record: logging.LogRecord) -> None:
        self.say(self.format(record))

    def redraw(self) -> None:
        """The terminal has another size."""
        self._news.set()

    async def run(self) -> None:
        """Draw when something changed, but not more often than eyes can see."""
        while True:
            await self._news.wait()
            if self._screen.has_room():
                self._news.clear()
                self._screen.draw(self.lines(*screen_size()))
            await asyncio.sleep(REDRAW_EVERY)

    def lines(self, columns: int, height: int) -> list[Line]:
        """What is drawn on a screen of this size: heading, as many rows as fit, news, footer."""
        said = [Line(text, "dim") for text in self._said]
        heading = [Line(text, "") for text in self._heading[: max(height - 12, 1)]]
        footer = [Line(self._counts(), "dim")]
        room = max(height - len(heading) - len(said) - len(footer) - 2, 1)
        rows = sorted(self._rows.values(), key=lambda row: row.order)
        table = _table(rows[:room], columns)
        fill = [Line("", "")] * (room + 1 - len(table))
        lines = [*heading, Line("", ""), *table, *fill, *said, *footer]
        return lines[:height]

    def _counts(self) -> str:
        sick = sum(row.health.sickness < Sickness.RESTARTED for row in self._rows.values())
        counted = f"{len(self._rows)} objects, {f'{sick} not ready' if sick else 'all ready'}" if self._rows else ""
        return f"{counted}   {self._footer}".strip()


_COLOURS = {Sickness.FAILED: "fail", Sickness.WAITING: "warn", Sickness.DELETING: "warn", Sickness.RESTARTED: "warn"}


def _table(rows: list[Row], columns: int) -> list[Line]:
    cells = [("KIND", "NAME", "STATE", "READY", "RESTARTS", "REASON")]
    for row in rows:
        health = row.health
        restarts = str(health.restarts) if health.restarts else ""
        cells.append((row.kind, _shortened(row.name), health.state, health.ready, restarts, health.reason))
    meanings = ["bold", *(_COLOURS.get(row.health.sickness, "ok") for row in rows)]
    return [Line(text, meaning) for text, meaning in zip(columns_of(cells, columns), meanings, strict=True)]


def _shortened(name: str) -> str:
    """The end of a name says more than its middle: `shop/web-…-x7x2p`."""
    half = (MAX_NAME - 1) // 2
    return name if len(name) <= MAX_NAME else f"{name[:half]}…{name[-half:]}"


def has_health(resource: Resource) -> bool:
    """Whether objects of this resource converge to something: workloads and custom kinds, not settings."""
    return resource.group_resource in WORKLOADS or ("." in resource.group and not resource.group.endswith(".k8s.io"))


class Rows:
    """The objects of some resources, followed. More resources may be added while it runs."""

    def __init__(self, client: Client, view: View, group: asyncio.TaskGroup, *, differences: bool = False) -> None:
        self._client = client
        self._view = view
        self._group = group
        self._differences = differences
        self._rows: dict[tuple[str, str], Row] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}

    def follow(self, resources: Iterable[Resource], shown: bool = True) -> None:
        """Follow resources, each once. Those that are not `shown` have no row; their differences are said."""
        for resource in resources:
            if resource.group_resource not in self._tasks:
                informer = Informer(self._client.caller, CacheSpec(resource=resource))
                informer.add_handler(self._handler(resource, shown))
                task = self._group.create_task(informer.run(), name=f"live {informer.spec}")
                self._tasks[resource.group_resource] = task

    def end(self) -> None:
        for task in self._tasks.values():
            task.cancel()

    def _handler(self, resource: Resource, shown: bool) -> Callable[[Change], None]:
        def handle(change: Change) -> None:
            if self._differences and not change.initial and change.key not in _UNSAID:
                self._say(resource, change)
            if shown:
                self._note(resource, change)

        return handle

    def _note(self, resource: Resource, change: Change) -> None:
        key = (resource.kind, str(change.key))
        if change.new is None:
            if row := self._rows.pop(key, None):
                self._view.gone(row)
            return
        row = Row(*key, health_of({**msgspec.json.decode(change.new.raw), "kind": resource.kind}))
        if self._rows.get(key) != row:
            self._rows[key] = row
            self._view.changed(row)

    def _say(self, resource: Resource, change: Change) -> None:
        name = short_name(resource.kind, change.key.namespace, change.key.name)
        if change.type is ChangeType.ADDED:
            self._view.say(f"+ {name}")
        elif change.type is ChangeType.DELETED:
            self._view.say(f"- {name}")
        elif change.old is not None and change.new is not None:
            old, new = msgspec.json.decode(change.old.raw), msgspec.json.decode(change.new.raw)
            if found := changes({**old, "kind": resource.kind}, {**new, "kind": resource.kind}):
                self._view.say(f"{name} {'; '.join(found)}")


@asynccontextmanager
async def on_screen(heading: Iterable[str], footer: str = "") -> AsyncIterator[TableView]:
    """A view on the terminal's own screen: it follows the size of the terminal, and shows logs as well."""
    loop = asyncio.get_running_loop()
    with Screen(sys.stdout, Paint.on()) as screen:
        view = TableView(screen, heading, footer)
        logging.getLogger().addHandler(view)
        loop.add_signal_handler(signal.SIGWINCH, view.redraw)
        try:
            yield view
        finally:
            loop.remove_signal_handler(signal.SIGWINCH)
            logging.getLogger().removeHandler(view)


@asynccontextmanager
async def watching(
    client: Client, resources: Iterable[Resource], view: View, *, differences: bool = False
) -> AsyncIterator[Rows]:
    """Inside the block, the view follows these resources; with `differences` it also says what changes in them."""
    async with asyncio.TaskGroup() as group:
        rows = Rows(client, view, group, differences=differences)
        drawing = group.create_task(view.run(), name="live view")
        rows.follow(resources)
        try:
            yield rows
        finally:
            rows.end()
            drawing.cancel()
