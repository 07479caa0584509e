"""The events of an object and of everything below it, as one stream of lines in the order of time."""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from collections import deque
from datetime import UTC, datetime
from typing import TextIO

from konverge.cli.targets import CouldNotAsk, no_such_object, parse_target, resolve
from konverge.cli.terminal import Paint
from konverge.client import Client, ClientError, Expired, NotFound
from konverge.explain import Ref, printable
from konverge.explain.below import Members
from konverge.explain.needs import EVENTS
from konverge.explain.reading import Obj, mapping, text
from konverge.explain.world import count_of, last_seen, message_of
from konverge.objects.times import format_time

LOOK_EVERY = 5.0
"""Seconds between looks for new children while following, if there are events that may be theirs."""
MOST_UNKNOWN = 1000
"""Events that are kept until the next look."""
PAUSE = 1.0
"""Seconds before a watch that ended is begun again."""


async def stream(client: Client, arguments: argparse.Namespace, space: str, out: TextIO) -> int:
    """Write the events to `out`; with `--follow` until it is cancelled. Raises CouldNotAsk."""
    target = parse_target(arguments.target)
    ref = await resolve(client, target, space) if target.name else None
    view = View(client, ref, space, arguments, out)
    try:
        await view.show_past()
    except NotFound as error:
        if ref is None:
            raise CouldNotAsk(str(error)) from error
        raise CouldNotAsk(await no_such_object(client, ref)) from error
    except ClientError as error:
        raise CouldNotAsk(str(error)) from error
    if arguments.follow:
        await view.follow()
    return 0


def _order(event: Obj) -> tuple[float, int]:
    """Times have no fractions of seconds in most events: of two at the same second, the server stored one first."""
    version = text(mapping(event, "metadata"), "resourceVersion")
    return last_seen(event), int(version) if version.isdecimal() else 0


class View:
    """The events of an object and its children (or of a whole namespace), each shown once per count."""

    def __init__(self, client: Client, ref: Ref | None, space: str, arguments: argparse.Namespace, out: TextIO) -> None:
        self._client = client
        self._members = Members(client, ref) if ref is not None else None
        # The events about a cluster-wide object are in the namespace `default`, and so may be what it owns elsewhere.
        self._space = space if ref is None or ref.namespace else ""
        self._arguments = arguments
        self._out = out
        self._paint = Paint.on(out)
        self._unknown: deque[Obj] = deque(maxlen=MOST_UNKNOWN)
        self._shown: dict[str, int] = {}
        self._version = ""

    async def show_past(self) -> None:
        """What has happened, the earliest first."""
        if self._members is not None:
            await self._members.look()
        listing = await self._client.list(EVENTS, self._space)
        self._version = listing.metadata.resource_version or ""
        for event in sorted(listing.items, key=_order):
            if self._is_ours(event):
                self._show(event)

    async def follow(self) -> None:
        """What happens, until this is cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._watch(), name="events watch")
            if self._members is not None:
                group.create_task(self._look_again(), name="events of new children")

    async def _watch(self) -> None:

        while True:
            try:
                async for event in self._client.watch(EVENTS, self._space, resource_version=self._version):
                    self._version = event.object["metadata"].get("resourceVersion", self._version)
                    if event.type not in ("ADDED", "MODIFIED"):
                        continue
                    if self._is_ours(event.object):
                        self._show(event.object)
                    else:
                        self._unknown.append(event.object)
            except Expired:
                await self.show_past()
            except ClientError as error:
                print(f"konverge events: {error}; trying again", file=sys.stderr)
            await asyncio.sleep(PAUSE)

    async def _look_again(self) -> None:
        """Events of other objects may be those of new children."""
        while True:
            await asyncio.sleep(LOOK_EVERY)
            waiting = list(self._unknown)
            if not waiting or self._members is None:
                continue
            try:
                await self._members.look()
            except ClientError:
                continue  # the watch says why
            self._unknown.clear()
            for event in waiting:
                if self._is_ours(event):
                    self._show(event)

    def _is_ours(self, event: Obj) -> bool:

        if self._members is None:
            return True
        about = mapping(event, "involvedObject")
        return (text(about, "kind"), text(about, "namespace"), text(about, "name")) in self._members.names

    def _show(self, event: Obj) -> None:

        if self._arguments.warnings and text(event, "type") == "Normal":
            return
        uid, count = text(event, "metadata", "uid"), count_of(event)
        if self._shown.get(uid) == count:
            return
        self._shown[uid] = count
        self._out.write(f"{self._line(event, count)}\n")
        self._out.flush()

    def _line(self, event: Obj, count: int) -> str:

        if self._arguments.output == "json":
            return json.dumps(event)
        about = mapping(event, "involvedObject")
        name = str(Ref(text(about, "kind"), text(about, "name")))
        place = f"{text(about, 'namespace')}: " if not self._space and text(about, "namespace") else ""
        times = f" (x{count})" if count > 1 else ""
        message = " ".join(message_of(event).split())
        moment = format_time(datetime.fromtimestamp(last_seen(event), UTC))
        meaning = "dim" if text(event, "type") == "Normal" else "warn"
        reason = self._paint(printable(text(event, "reason")), meaning)
        return f"{moment}  {printable(place + name)}  {reason}{times}  {printable(message)}"
