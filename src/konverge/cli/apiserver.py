"""`konverge apiserver`: the API server alone, on a socket."""

from __future__ import annotations

import argparse
import asyncio
import json
import signal
from pathlib import Path
from typing import Any


def add(commands: Any) -> None:
    parser = commands.add_parser("apiserver", help="run the API server, without controllers")
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (loopback by default)")
    parser.add_argument("--port", type=int, default=0, help="port to listen on (any free one by default)")
    parser.add_argument("--data-dir", type=Path, help="keep the state in this folder; without it, in memory")
    parser.add_argument("--kubeconfig", type=Path, help="write a kubeconfig with an administrator's credential here")
    parser.add_argument("--tls", action=argparse.BooleanOptionalAction, default=False, help="serve https")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    try:
        import uvloop
    except ImportError:
        asyncio.run(serve(arguments))
    else:
        uvloop.run(serve(arguments))
    return 0


async def serve(arguments: argparse.Namespace) -> None:
    """Serve until SIGTERM or SIGINT."""
    from konverge.apiserver.certificates import write_private
    from konverge.apiserver.server import ApiServer

    stopping = asyncio.Event()
    loop = asyncio.get_running_loop()
    for signum in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(signum, stopping.set)
    async with ApiServer(data_dir=arguments.data_dir) as server:
        certificates = server.certificates(arguments.host) if arguments.tls else None
        tls = certificates.context() if certificates is not None else None
        url = await server.listen(arguments.host, arguments.port, tls=tls)
        if arguments.kubeconfig is not None:
            write_private(arguments.kubeconfig, json.dumps(server.kubeconfig(url, certificates), indent=1).encode())
        print(f"ready {url}", flush=True)
        await stopping.wait()
