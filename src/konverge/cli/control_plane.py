"""The parts of a control plane as commands of their own: `konverge apiserver`, `controllers` and `envtest-assets`."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from konverge.cli.arguments import (
    MAX_NODES,
    add_cluster,
    add_listening,
    check_listening,
    cluster_config,
    command,
    count,
    refuse_unless_writable,
)
from konverge.cli.exit import UsageError

if TYPE_CHECKING:
    import asyncio

    from konverge.kube.csrsigning import Authority

PODS = "10.244.0.1"
"""Where the addresses of simulated pods begin: other API servers refuse endpoints on loopback."""


def add(commands: Any) -> None:
    about = "run the API server, without controllers"
    parser = command(commands, "apiserver", about, "konverge apiserver --port 6443 --kubeconfig admin.kubeconfig")
    add_listening(parser)
    parser.add_argument("--kubeconfig", type=Path, help="write a kubeconfig with an administrator's credential here")
    parser.set_defaults(run=run_server)

    about = "run the built-in controllers on any API server, in place of kube-controller-manager"
    parser = command(commands, "controllers", about, "konverge controllers --kubeconfig admin.kubeconfig --nodes 3")
    add_cluster(parser)
    parser.add_argument(
        "--nodes", type=count(0, MAX_NODES), default=0, help="simulate so many nodes, with scheduler and kubelets"
    )
    parser.add_argument("--root-ca-file", type=Path, help="the CA that pods trust (the kubeconfig's CA by default)")
    parser.add_argument(
        "--cluster-signing-cert-file", type=Path, help="sign approved CertificateSigningRequests with this CA (PEM)"
    )
    parser.add_argument("--cluster-signing-key-file", type=Path, help="the key of that CA (PEM)")
    parser.set_defaults(run=run_controllers)

    about = "put executables named kube-apiserver and etcd into a folder, for KUBEBUILDER_ASSETS"
    parser = command(commands, "envtest-assets", about, 'eval "$(konverge envtest-assets bin)" && go test ./...')
    parser.add_argument("folder", type=Path, metavar="DIR", help="the folder; created if it is missing")
    parser.set_defaults(run=install_assets)


def run_server(arguments: argparse.Namespace) -> int:
    from konverge.apiserver.signals import run_until_signal

    check_listening(arguments)
    refuse_unless_writable("--kubeconfig", arguments.kubeconfig)
    run_until_signal(lambda stopping: _serve(arguments, stopping))
    return 0


async def _serve(arguments: argparse.Namespace, stopping: asyncio.Event) -> None:
    from konverge.apiserver.private_files import write_private
    from konverge.apiserver.server import ApiServer

    async with ApiServer(data_dir=arguments.data_dir) as server:
        certificates = server.certificates(arguments.host) if arguments.tls else None
        tls = certificates.context() if certificates is not None else None
        url = await server.listen(arguments.host, arguments.port, tls=tls)
        if arguments.kubeconfig is not None:
            write_private(arguments.kubeconfig, json.dumps(server.kubeconfig(url, certificates), indent=1).encode())
        print(f"ready {url}", flush=True)
        await server.serve_until(stopping)


def run_controllers(arguments: argparse.Namespace) -> int:
    from konverge.apiserver.signals import run_until_signal

    authority = signing_authority(arguments)
    run_until_signal(lambda stopping: _control(arguments, authority, stopping))
    return 0


async def _control(arguments: argparse.Namespace, authority: Authority | None, stopping: asyncio.Event) -> None:
    from konverge.client import Client
    from konverge.sim.kubelet.agent import Kubelet
    from konverge.sim.network import Addresses
    from konverge.sim.parts import MANAGER, Parts, unheard

    config = cluster_config(arguments)
    trusted = config.tls.ca_data
    if arguments.root_ca_file or config.tls.ca_file:
        trusted = Path(arguments.root_ca_file or config.tls.ca_file).read_text(encoding="utf-8")
    kubelet = Kubelet(addresses=Addresses(PODS)) if arguments.nodes else None
    parts = Parts(kubelet, scheduler=kubelet is not None, root_ca=trusted)
    parts.authority = authority
    client = Client.connect(config, user_agent=MANAGER, on_warning=unheard)
    # Elected by the same Lease as kube-controller-manager: never do both work on one cluster.
    async with client, parts.at_work(client, nodes=arguments.nodes, elected=True):
        print(f"ready {config.server}", flush=True)
        await stopping.wait()


def signing_authority(arguments: argparse.Namespace) -> Authority | None:
    """Who signs certificates: no signer, unless both files are named. They are read when there is something to sign."""
    certificate, key = arguments.cluster_signing_cert_file, arguments.cluster_signing_key_file
    if certificate is None and key is None:
        return None
    if certificate is None or key is None:
        raise UsageError("--cluster-signing-cert-file and --cluster-signing-key-file belong together: name both")
    for file in (certificate, key):
        if not file.is_file():
            raise UsageError(f"the file {file} does not exist")
    return lambda: (certificate.read_bytes(), key.read_bytes())


def install_assets(arguments: argparse.Namespace) -> int:
    from konverge.apiserver.envtest.assets import install

    install(arguments.folder)
    print(f"export KUBEBUILDER_ASSETS={arguments.folder.resolve()}")
    return 0
