"""`konverge console`: a link that signs a browser in to the console of a cluster that runs on this machine."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from konverge.cli.arguments import command
from konverge.cli.cluster_names import DEFAULT, cluster_name
from konverge.cli.exit import CommandFailed

if TYPE_CHECKING:
    from konverge.cli.cluster_folders import ClusterFolder


def add(commands: Any) -> None:
    about = "print a link that signs you in to the console of a cluster of `konverge up`"
    parser = command(commands, "console", about, "konverge console", "konverge console dev --open")
    parser.add_argument("name", nargs="?", type=cluster_name, default=DEFAULT, help=f"name of the cluster ({DEFAULT})")
    parser.add_argument("--open", action="store_true", help="open it in the browser of this machine")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    import asyncio

    from konverge.cli.cluster_folders import ClusterFolder

    made = asyncio.run(_link(ClusterFolder(arguments.name)))
    print(f"{made}\nIt signs you in once, within ten minutes.")
    if arguments.open:
        import webbrowser

        if not webbrowser.open(made):
            raise CommandFailed("there is no browser that could be opened here: open the link above yourself")
    return 0


async def _link(folder: ClusterFolder) -> str:
    import json

    from konverge.service.sign_in import CODES, link
    from konverge.wire.errors import WireError
    from konverge.wire.message import Headers, Request
    from konverge.wire.pool import ConnectionPool

    record = folder.record()
    if record is None or not folder.running:
        raise CommandFailed(f"no cluster {folder.name} runs; `konverge up --detach --name {folder.name}` starts it")
    if not record.console:
        raise CommandFailed(
            f"the cluster {folder.name} has no console: it was started with --no-console, or without the operator nacos"
        )
    try:
        token = (folder.path / "console.token").read_text()
        async with ConnectionPool(record.console) as pool:
            request = Request("POST", CODES, Headers.of({"authorization": f"Bearer {token}"}), timeout=5.0)
            answer = await pool.send(request)
    except (OSError, WireError) as error:
        raise CommandFailed(f"the console at {record.console} does not answer: {error}") from error
    if answer.status != 201:
        raise CommandFailed(f"the console at {record.console} answered {answer.status}")
    return link(record.console, json.loads(answer.body)["code"])
