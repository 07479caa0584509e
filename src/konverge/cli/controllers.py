"""`konverge controllers`: the built-in controllers, and simulated nodes if wanted, on an API server elsewhere."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import asyncio

PODS = "10.244.0.1"
"""Where the addresses of simulated pods begin: other API servers refuse endpoints on loopback."""


def add(commands: Any) -> None:
    about = "run the built-in controllers on any API server, in place of kube-controller-manager"
    parser = commands.add_parser(
        "controllers",
        help=about,
        description=about,
        epilog="example: konverge controllers --kubeconfig admin.kubeconfig --nodes 3",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--kubeconfig", type=Path, help="the API server (found as kubectl finds it by default)")
    parser.add_argument("--context", help="the context of the kubeconfig")
    parser.add_argument("--nodes", type=int, default=0, help="simulate so many nodes, with scheduler and kubelets")
    parser.add_argument("--root-ca-file", type=Path, help="the CA that pods trust (the kubeconfig's CA by default)")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    from konverge.apiserver.signals import run_until_signal
    from konverge.client import ClientError

    try:
        run_until_signal(lambda stopping: serve(arguments, stopping))
    except ClientError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


async def serve(arguments: argparse.Namespace, stopping: asyncio.Event) -> None:
    from konverge.client import Client, load_config
    from konverge.sim.kubelet.agent import Kubelet
    from konverge.sim.network import Addresses
    from konverge.sim.parts import Parts, unheard
    from konverge.sim.supervisor import MANAGER

    config = load_config(kubeconfig=arguments.kubeconfig, context=arguments.context)
    trusted = config.tls.ca_data
    if arguments.root_ca_file or config.tls.ca_file:
        trusted = Path(arguments.root_ca_file or config.tls.ca_file).read_text(encoding="utf-8")
    kubelet = Kubelet(addresses=Addresses(PODS)) if arguments.nodes else None
    parts = Parts(kubelet, scheduler=kubelet is not None, root_ca=trusted)
    client = Client.connect(config, user_agent=MANAGER, on_warning=unheard)
    # Elected by the same Lease as kube-controller-manager: never do both work on one cluster.
    async with client, parts.at_work(client, nodes=arguments.nodes, elected=True):
        print(f"ready {config.server}", flush=True)
        await stopping.wait()
