"""The logs of everything below an object, as one stream of lines.

While following, pods are watched: those that are new, or whose container began again, are followed as well, as stern
does. What cannot be read is said once and left out.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import AsyncIterator
from typing import Any, NamedTuple, NoReturn, TextIO

from konverge.cli.exit import FAILED
from konverge.cli.targets import CouldNotAsk, no_such_object, parse_target, resolve
from konverge.cli.terminal import Paint, is_terminal
from konverge.client import Client, ClientError, ConnectionFailed, NotFound
from konverge.client.subresources import PODS
from konverge.explain import Ref, printable
from konverge.explain.below import Members, containers, pods_below, read_below
from konverge.explain.reading import Obj, items, number, text

PAUSE = 2.0
"""Seconds before a connection that ended is made again; also how long the pods count as those of the beginning."""
COLOURS = (36, 33, 32, 35, 34, 31)
TAIL = 10_000
"""Lines of each container without `--tail`."""


class Source(NamedTuple):
    """One run of one container."""

    pod: str
    namespace: str
    container: str
    run: str


async def stream(client: Client, arguments: argparse.Namespace, space: str, out: TextIO) -> int:
    """Write the lines of all containers to `out`; with `--follow` until it is cancelled. Raises CouldNotAsk."""
    ref = await resolve(client, parse_target(arguments.target), space)
    printer, members = Printer(out, raw=arguments.raw), Members(client, ref)
    try:
        if arguments.follow:
            await members.look()
            await _follow(client, arguments, ref, members, printer)
        return await _all_at_once(client, arguments, ref, printer)
    except NotFound as error:
        raise CouldNotAsk(await no_such_object(client, ref)) from error
    except ClientError as error:
        raise CouldNotAsk(str(error)) from error


async def find_sources(client: Client, ref: Ref, container: str) -> list[Source]:
    """What has a log below an object."""
    world = await read_below(client, ref)
    return [source for pod in pods_below(ref, world) for source in sources_of(world.get(pod) or {}, container)]


def sources_of(pod: Obj, container: str) -> list[Source]:
    """What has a log in a pod."""
    ref = Ref.of(pod)
    return [Source(ref.name, ref.namespace, name, _run_of(pod, name)) for name in containers(pod, container)]


def _run_of(pod: Obj, container: str) -> str:
    """What changes when a container begins again."""
    for part in ("initContainerStatuses", "containerStatuses", "ephemeralContainerStatuses"):
        for status in items(pod, "status", part):
            if text(status, "name") == container:
                return f"{text(pod, 'metadata', 'uid')} {number(status, 'restartCount')}"
    return ""


async def _all_at_once(client: Client, arguments: argparse.Namespace, ref: Ref, printer: Printer) -> int:
    sources = await find_sources(client, ref, arguments.container)
    failed = 0
    for source in sources:
        try:
            async for line in _lines(client, arguments, source, follow=False, tail=arguments.tail):
                printer.line(source, line)
        except ClientError as error:
            failed += 1
            printer.note(f"{source.pod} {source.container}: {error}")
    if not sources:
        which = f" of container {arguments.container}" if arguments.container else ""
        printer.note(f"{ref} has no pod with a log{which}")
    return FAILED if failed == len(sources) else 0


def _lines(
    client: Client,
    arguments: argparse.Namespace,
    source: Source,
    *,
    follow: bool,
    tail: int | None,
    since: int | None = None,
) -> AsyncIterator[str]:
    chosen: dict[str, Any] = {"since_seconds": since} if since is not None else {}
    return client.log_lines(
        source.pod,
        source.namespace,
        follow=follow,
        container=source.container,
        previous=arguments.previous,
        timestamps=arguments.timestamps,
        tail_lines=TAIL if tail is None else tail,
        **chosen,
    )


async def _follow(
    client: Client, arguments: argparse.Namespace, ref: Ref, members: Members, printer: Printer
) -> NoReturn:
    """Follow every container below the object, also those that come later, until this is cancelled."""
    followed = set[Source]()
    began = asyncio.get_running_loop().time()

    async with asyncio.TaskGroup() as group:
        while True:
            try:
                # Without a version, a watch begins with what there is.
                async for event in client.watch(PODS, ref.namespace):
                    if event.type not in ("ADDED", "MODIFIED") or not await members.has(event.object):
                        continue
                    for source in sources_of(event.object, arguments.container):
                        if source not in followed:
                            followed.add(source)
                            first = asyncio.get_running_loop().time() - began < PAUSE
                            tail = arguments.tail if first else None  # of what is new, everything
                            work = _follow_one(client, arguments, source, tail, printer)
                            group.create_task(work, name=f"log {source.pod} {source.container}")
            except ClientError as error:
                printer.note(f"cannot look for new pods: {error}")
            await asyncio.sleep(PAUSE)


async def _follow_one(
    client: Client, arguments: argparse.Namespace, source: Source, tail: int | None, printer: Printer
) -> None:
    """One run of a container, to its end; a connection that breaks is made again."""
    since: int | None = None
    loop = asyncio.get_running_loop()
    while True:
        last = loop.time()
        try:
            async for line in _lines(client, arguments, source, follow=True, tail=tail, since=since):
                last = loop.time()
                printer.line(source, line)
            return
        except ConnectionFailed as error:
            printer.note(f"{source.pod} {source.container}: {error}; trying again")
            await asyncio.sleep(PAUSE)
            tail, since = None, int(loop.time() - last) + 1
        except ClientError as error:
            printer.note(f"{source.pod} {source.container}: {error}")
            return


class Printer:
    """Writes lines with their pod before them, in a colour of its own on a terminal."""

    def __init__(self, out: TextIO, *, raw: bool) -> None:
        self._out = out
        self._terminal = is_terminal(out)
        self._raw = raw
        self._paint = Paint.on(out)
        self._pods: dict[str, int] = {}
        self._noted: set[str] = set()

    def line(self, source: Source, line: str) -> None:
        # A pipe gets what the program wrote; a terminal gets what cannot steer it.
        shown = line if self._raw or not self._terminal else printable(line)
        self._out.write(f"{self._prefix(source)} {shown}\n")
        self._out.flush()

    def note(self, message: str) -> None:
        """Say what is wrong, once."""
        if message not in self._noted:
            self._noted.add(message)
            print(printable(message), file=sys.stderr)

    def _prefix(self, source: Source) -> str:
        position = self._pods.setdefault(source.pod, len(self._pods))
        prefix = printable(f"{source.pod} {source.container}")
        return self._paint.numbered(prefix, COLOURS[position % len(COLOURS)])
