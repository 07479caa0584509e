"""`konverge events`: the events of an object and of everything below it, merged in time, repeated ones counted."""

from __future__ import annotations

import argparse
from typing import Any

from konverge.cli.arguments import add_output, command
from konverge.cli.exit import UsageError
from konverge.cli.targets import add_target, configured, parse_target
from konverge.cli.targets import where as chosen_namespace


def add(commands: Any) -> None:
    parser = command(
        commands,
        "events",
        "show the events of an object and of everything below it, in the order of time",
        "konverge events deploy/web -f",
        "konverge events -n shop",
    )
    add_target(parser, optional=True)
    parser.add_argument("-f", "--follow", action="store_true", help="go on with what is still to come")
    parser.add_argument("--warnings", action="store_true", help="only warnings")
    add_output(parser, "text", "json")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    import asyncio
    import sys

    target = parse_target(arguments.target)
    if target.kind and not target.name:
        raise UsageError(f"of which {target.kind}? Give its name: konverge events {target.kind}/NAME")
    config = configured(arguments)

    async def show() -> int:
        from konverge.cli.event_stream import stream
        from konverge.client import Client

        async with Client.connect(config, user_agent="konverge/events") as client:
            return await stream(client, arguments, chosen_namespace(arguments, config), sys.stdout)

    return asyncio.run(show())
