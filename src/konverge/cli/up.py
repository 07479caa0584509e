"""`konverge up`: a whole Kubernetes on this machine: API server, controllers, scheduler, simulated nodes."""

from __future__ import annotations

import argparse
import json
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import asyncio

    from konverge.sim.kubelet.behaviour import Rule

NODES = 3


def add(commands: Any) -> None:
    about = "run a simulated Kubernetes: API server, controllers, scheduler, nodes"
    parser = commands.add_parser("up", help=about, description=about)
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (loopback by default)")
    parser.add_argument("--port", type=int, default=0, help="port to listen on (any free one by default)")
    parser.add_argument("--nodes", type=_count, default=NODES, help=f"how many simulated nodes ({NODES} by default)")
    parser.add_argument("--data-dir", type=Path, help="keep the state in this folder; without it, in memory")
    parser.add_argument("--kubeconfig", type=Path, help="write the administrator's kubeconfig here")
    parser.add_argument("--rules", type=Path, help="a YAML file that scripts pods by image, name or labels")
    parser.add_argument(
        "--pod-address", default="", help="give all pods this address (127.0.0.1 where there is no other)"
    )
    # On by default: kubectl and client-go send no credential at all to a server without TLS.
    parser.add_argument("--tls", action=argparse.BooleanOptionalAction, default=True, help="serve https")
    parser.set_defaults(run=run)


def _count(text: str) -> int:
    number = int(text)
    if not 0 <= number <= 5000:
        raise argparse.ArgumentTypeError("must be between 0 and 5000")
    return number


def run(arguments: argparse.Namespace) -> int:
    from konverge.apiserver.lifetime import run as run_until_told
    from konverge.sim.kubelet.behaviour import BehaviourError

    try:
        rules = _rules(arguments.rules)
    except (BehaviourError, OSError) as error:
        print(f"{arguments.rules}: {error}")
        return 2
    with ExitStack() as stack:
        folder = arguments.data_dir or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="konverge-")))
        run_until_told(lambda stopping: serve(arguments, rules, folder, stopping))
    return 0


def _rules(path: Path | None) -> list[Rule]:
    from konverge.sim.kubelet.behaviour import BehaviourError, read_rules

    if path is None:
        return []
    import yaml

    try:
        return read_rules(yaml.safe_load(path.read_text(encoding="utf-8")) or [])
    except yaml.YAMLError as error:
        raise BehaviourError(f"is not YAML: {error}") from error


async def serve(arguments: argparse.Namespace, rules: list[Rule], folder: Path, stopping: asyncio.Event) -> None:
    from konverge.apiserver.certificates import kept, write_private
    from konverge.sim.cluster import Cluster

    cluster = Cluster(
        nodes=arguments.nodes,
        data_dir=arguments.data_dir,
        rules=rules,
        pod_address=arguments.pod_address,
        certificates=kept(arguments.data_dir, (arguments.host,)) if arguments.tls else None,
    )
    async with cluster:
        url = await cluster.listen(arguments.host, arguments.port, tls=arguments.tls)
        kubeconfig = (arguments.kubeconfig or folder / "kubeconfig").resolve()
        kubeconfig.parent.mkdir(parents=True, exist_ok=True)
        write_private(kubeconfig, json.dumps(cluster.kubeconfig(url), indent=1).encode())
        _welcome(url, kubeconfig, arguments)
        await stopping.wait()


def _welcome(url: str, kubeconfig: Path, arguments: argparse.Namespace) -> None:
    where = arguments.data_dir.resolve() if arguments.data_dir else "in memory, gone when this ends"
    print(
        f"ready {url}\n"
        f"  kubeconfig  {kubeconfig}\n"
        f"  nodes       {arguments.nodes}, simulated\n"
        f"  state       {where}\n"
        "\n"
        "In another terminal:\n"
        f"  export KUBECONFIG={kubeconfig}\n"
        "  kubectl get nodes\n"
        "  kubectl create deployment web --image=nginx --replicas=3\n"
        "  kubectl get pods --watch\n"
        "\n"
        "Ctrl-C ends it.",
        flush=True,
    )
