"""`konverge console`: a cluster in a browser: one of `konverge up` by a link, any other by a server on this machine."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from konverge.cli.arguments import add_cluster, command, port, refuse_unless_free
from konverge.cli.cluster_names import DEFAULT, cluster_name
from konverge.cli.exit import CommandFailed, UsageError

if TYPE_CHECKING:
    import asyncio

    from konverge.cli.cluster_folders import ClusterFolder
    from konverge.client import Config

HOST = "127.0.0.1"


def add(commands: Any) -> None:
    about = "show a cluster in a browser: of `konverge up` by its name, or any by its kubeconfig context"
    parser = command(
        commands, "console", about, "konverge console", "konverge console dev --open", "konverge console --context prod"
    )
    parser.add_argument("name", nargs="?", type=cluster_name, help=f"name of a cluster of `konverge up` ({DEFAULT})")
    add_cluster(parser)
    parser.add_argument("--port", type=port, default=0, help="port on loopback for --context (any free one)")
    parser.add_argument("--open", action="store_true", help="open it in the browser of this machine")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    import asyncio

    from konverge.cli.cluster_folders import ClusterFolder

    if arguments.context is not None or arguments.kubeconfig is not None:
        return _run_here(arguments)
    made = asyncio.run(_link(ClusterFolder(arguments.name or DEFAULT)))
    print(f"{made}\nIt signs you in once, within ten minutes.")
    if arguments.open:
        _open(made)
    return 0


def _open(link: str) -> None:
    import webbrowser

    if not webbrowser.open(link):
        raise CommandFailed("there is no browser that could be opened here: open the link above yourself")


async def _link(folder: ClusterFolder) -> str:
    import json

    from konverge.service.sign_in import CODES, link
    from konverge.wire.errors import WireError
    from konverge.wire.message import Headers, Request
    from konverge.wire.pool import ConnectionPool

    record = folder.record()
    if record is None or not folder.running:
        raise CommandFailed(
            f"no cluster {folder.name} runs; `konverge up --detach --name {folder.name}` starts it, and "
            "`konverge console --context NAME` shows one of your kubeconfig"
        )
    if not record.console:
        raise CommandFailed(f"the cluster {folder.name} has no console: it was started with --no-console")
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


# ------------------------------------------------------------------ a server on this machine


def _run_here(arguments: argparse.Namespace) -> int:
    from konverge.apiserver.signals import run_until_signal
    from konverge.cli.arguments import cluster_config

    if arguments.name is not None:
        raise UsageError(f"{arguments.name} is a cluster of `konverge up`: leave out --context and --kubeconfig")
    config = cluster_config(arguments)
    refuse_unless_free("--port", (HOST, arguments.port))
    run_until_signal(lambda stopping: serve(config, arguments, stopping))
    return 0


async def serve(config: Config, arguments: argparse.Namespace, stopping: asyncio.Event) -> None:
    """A console on loopback that acts as the kubeconfig says, for whoever has the link."""
    from contextlib import aclosing

    from konverge.cli.console_pages import installed_pages
    from konverge.client.connection import Reconnecting
    from konverge.console import About, Console, Identity, Owner
    from konverge.service.access import own_nothing
    from konverge.service.sign_in import SignIn, link

    about = About(cluster=arguments.context or config.source, context=arguments.context or "", server=config.server)
    sign_in = SignIn()
    async with aclosing(Reconnecting(config)) as own, aclosing(Reconnecting(own_nothing(config))) as bare:
        owner = Owner(Identity(own, config.credentials, config.impersonate))
        console = Console(bare, about=about, owner=owner, sign_in=sign_in, pages=installed_pages())
        async with console.serving(HOST, arguments.port) as (host, number):
            made = link(f"http://{host}:{number}", sign_in.code(owner.key, seconds=None))
            print(f"{made}\nIt signs you in once, as your kubeconfig says. Ctrl-C ends it.", flush=True)
            if arguments.open:
                _open(made)
            await stopping.wait()
