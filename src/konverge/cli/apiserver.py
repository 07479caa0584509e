"""`konverge apiserver`: the API server alone, on a socket."""

from __future__ import annotations

import argparse
import asyncio
import os
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
    from konverge.apiserver.server import ApiServer

    stopping = asyncio.Event()
    loop = asyncio.get_running_loop()
    for signum in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(signum, stopping.set)
    async with ApiServer(data_dir=arguments.data_dir) as server:
        url = await server.listen(arguments.host, arguments.port)
        if arguments.kubeconfig is not None:
            write_private(arguments.kubeconfig, server.kubeconfig(url))
        print(f"ready {url}", flush=True)
        await stopping.wait()


def write_private(path: Path, config: dict[str, Any]) -> None:
    """Write a file that holds a credential: nobody else may read it, not even for a moment."""
    import json

    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w") as file:
        json.dump(config, file, indent=1)
