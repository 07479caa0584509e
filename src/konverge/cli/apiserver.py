"""`konverge apiserver`: the API server alone, on a socket."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from konverge.cli.arguments import command

if TYPE_CHECKING:
    import asyncio


def add(commands: Any) -> None:
    about = "run the API server, without controllers"
    parser = command(commands, "apiserver", about, "konverge apiserver --port 6443 --kubeconfig admin.kubeconfig")
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (loopback by default)")
    parser.add_argument("--port", type=int, default=0, help="port to listen on (any free one by default)")
    parser.add_argument("--data-dir", type=Path, help="keep the state in this folder; without it, in memory")
    parser.add_argument("--kubeconfig", type=Path, help="write a kubeconfig with an administrator's credential here")
    # On by default: kubectl and client-go send no credential at all to a server without TLS.
    parser.add_argument("--tls", action=argparse.BooleanOptionalAction, default=True, help="serve https")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    from konverge.apiserver.signals import run_until_signal

    run_until_signal(lambda stopping: serve(arguments, stopping))
    return 0


async def serve(arguments: argparse.Namespace, stopping: asyncio.Event) -> None:
    from konverge.apiserver.certificates import write_private
    from konverge.apiserver.server import ApiServer

    async with ApiServer(data_dir=arguments.data_dir) as server:
        certificates = server.certificates(arguments.host) if arguments.tls else None
        tls = certificates.context() if certificates is not None else None
        url = await server.listen(arguments.host, arguments.port, tls=tls)
        if arguments.kubeconfig is not None:
            write_private(arguments.kubeconfig, json.dumps(server.kubeconfig(url, certificates), indent=1).encode())
        print(f"ready {url}", flush=True)
        await stopping.wait()
