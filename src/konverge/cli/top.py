"""`konverge top`: the objects of a cluster as they change, the sickest first."""

from __future__ import annotations

import argparse
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import TYPE_CHECKING, Any

from konverge.cli.arguments import command
from konverge.cli.cluster_choice import add_cluster_choice, chosen_cluster

if TYPE_CHECKING:
    import asyncio

    from konverge.cli.live import View
    from konverge.client import Client, Config
    from konverge.objects.resource import Resource

QUIT = (b"q", b"Q", b"\x03", b"\x04")


def add(commands: Any) -> None:
    about = "show the objects of a cluster as they change, the sickest first"
    parser = command(commands, "top", about, "konverge top", "konverge top dev --kind pods --kind webapps")
    add_cluster_choice(parser)
    parser.add_argument(
        "--kind",
        action="append",
        default=[],
        metavar="KIND",
        help="look at this kind only, named as for kubectl; may be given several times (pods, nodes, workloads, claims "
        "and all custom resources)",
    )
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    from konverge.apiserver.signals import run_until_signal

    config = chosen_cluster(arguments)
    run_until_signal(lambda stopping: show(config, arguments.kind, stopping))
    return 0


async def show(config: Config, kinds: list[str], stopping: asyncio.Event) -> None:
    """Until `stopping` is set, or q is typed."""
    from konverge.cli.live import watching
    from konverge.client import Client

    async with Client.connect(config, user_agent="konverge/top") as client:
        resources = await resources_of(client, kinds)
        async with _view(config, stopping) as view, watching(client, resources, view):
            await stopping.wait()


async def resources_of(client: Client, kinds: list[str]) -> list[Resource]:
    """The resources to look at: those named, else the usual ones and every custom kind that is served."""
    from konverge.cli.live import has_health

    if kinds:
        return [await client.mapper.find(kind) for kind in kinds]
    served = await client.mapper.all()
    return [
        entry.resource
        for entry in served
        if entry.preferred and {"list", "watch"} <= {*entry.verbs} and has_health(entry.resource)
    ]


@asynccontextmanager
async def _view(config: Config, stopping: asyncio.Event) -> AsyncIterator[View]:
    import sys

    from konverge.cli.live import PlainView, on_screen
    from konverge.cli.terminal import is_terminal

    if not is_terminal(sys.stdout):
        yield PlainView(sys.stdout, reasons=True)
        return
    with _keys(stopping):
        async with on_screen([f"{config.server}   {config.source}"], "q ends it") as view:
            yield view


@contextmanager
def _keys(stopping: asyncio.Event) -> Iterator[None]:
    """Inside the block, a typed q ends it, without a line end and without being shown."""
    import asyncio
    import os
    import sys
    import termios
    import tty

    from konverge.cli.terminal import is_terminal

    if not is_terminal(sys.stdin):
        yield
        return
    keyboard = sys.stdin.fileno()
    before = termios.tcgetattr(keyboard)

    def read() -> None:
        typed = os.read(keyboard, 64)
        if not typed or any(key in typed for key in QUIT):
            stopping.set()

    tty.setcbreak(keyboard)
    loop = asyncio.get_running_loop()
    loop.add_reader(keyboard, read)
    try:
        yield
    finally:
        loop.remove_reader(keyboard)
        termios.tcsetattr(keyboard, termios.TCSADRAIN, before)
