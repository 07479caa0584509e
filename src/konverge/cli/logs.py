"""`konverge logs`: the logs of all pods below an object, line by line, each with its pod."""

from __future__ import annotations

import argparse
from typing import Any

from konverge.cli.arguments import command, count
from konverge.cli.exit import UsageError
from konverge.cli.targets import add_target, configured, parse_target
from konverge.cli.targets import where as chosen_namespace


def add(commands: Any) -> None:
    parser = command(
        commands,
        "logs",
        "show the logs of everything below an object: all pods of a Deployment, of a Nacos, of a Service",
        "konverge logs deploy/web -f",
        "konverge logs nacos mq -n shop --previous",
    )
    add_target(parser, optional=False)
    parser.add_argument("-f", "--follow", action="store_true", help="go on with what is still to come")
    parser.add_argument("-p", "--previous", action="store_true", help="of the run before the present one")
    parser.add_argument("-c", "--container", default="", help="of this container only")
    parser.add_argument("--tail", type=count(0, 10_000_000), help="the last so many lines of each container")
    parser.add_argument("--timestamps", action="store_true", help="begin each line with its time")
    parser.add_argument("--raw", action="store_true", help="leave control characters as they are")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    import asyncio
    import sys

    target = parse_target(arguments.target)
    if not target.name:
        raise UsageError(f"of which {target.kind}? Give its name: konverge logs {target.kind}/NAME")
    config = configured(arguments)

    async def show() -> int:
        from konverge.cli.log_stream import stream
        from konverge.client import Client

        async with Client.connect(config, user_agent="konverge/logs") as client:
            return await stream(client, arguments, chosen_namespace(arguments, config), sys.stdout)

    return asyncio.run(show())
