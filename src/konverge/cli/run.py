"""`konverge run`: operators against any cluster, as in a pod: leader election, metrics, probes, an orderly end."""

from __future__ import annotations

import argparse
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from konverge.cli.arguments import (
    add_cluster,
    add_logs,
    add_operators,
    add_watched,
    address,
    chosen_operators,
    cluster_config,
    command,
    joint_name,
    namespace,
    refuse_unless_free,
)

if TYPE_CHECKING:
    from konverge.client import Client
    from konverge.operators.catalog import Operator
    from konverge.runtime import Manager
    from konverge.runtime.config import Configuration

METRICS = "127.0.0.1:8080"
PROBES = "127.0.0.1:8081"


def add(commands: Any) -> None:
    about = "run operators against a cluster, with leader election, metrics and probes"
    parser = command(
        commands,
        "run",
        about,
        "konverge run webapp --install-crds",
        "konverge run webapp --kubeconfig konverge.kubeconfig --watch-namespace shop --log-level debug",
    )
    add_operators(parser)
    add_cluster(parser)
    parser.add_argument("--config", type=Path, help="a YAML file with workers, queueConfig, reconcileConfig, cache")
    add_watched(parser, "--namespace")
    parser.add_argument("--install-crds", action="store_true", help="apply the definitions first")
    add_election(parser)
    where = "host:port, :port for all addresses, 0 for none"
    parser.add_argument("--metrics-bind-address", type=address, default=METRICS, help=f"{where} ({METRICS})")
    parser.add_argument("--health-probe-bind-address", type=address, default=PROBES, help=f"{where} ({PROBES})")
    add_logs(parser)
    parser.set_defaults(run=run)


def add_election(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--leader-elect",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="work only while holding the Lease; others stand by (on)",
    )
    parser.add_argument(
        "--leader-election-namespace",
        type=namespace,
        help="namespace of the Lease (the context's by default)",
    )


def run(arguments: argparse.Namespace) -> int:
    import asyncio

    from konverge.observe import logs
    from konverge.runtime.config import load_configuration
    from konverge.runtime.program import fast_loop

    operators = chosen_operators(arguments.operators)
    refuse_unless_free("--metrics-bind-address", arguments.metrics_bind_address)
    refuse_unless_free("--health-probe-bind-address", arguments.health_probe_bind_address)
    settings = load_configuration(arguments.config)
    logs.set_up(arguments.log_level, arguments.log_format)
    with asyncio.Runner(loop_factory=fast_loop) as runner:
        runner.run(serve(arguments, operators, settings))
    return 0


async def serve(arguments: argparse.Namespace, operators: list[Operator], settings: Configuration) -> None:
    from konverge.cli.install_objects import check_definitions, install_definitions
    from konverge.client import Client
    from konverge.runtime.program import serve_until_signal

    config = cluster_config(arguments)
    async with Client.connect(config, user_agent=f"konverge/{joint_name(operators)}") as client:
        if arguments.install_crds:
            await install_definitions(client, operators)
        else:
            await check_definitions(client, operators)
        manager = make_manager(arguments, operators, settings, client, config.namespace)
        async with metrics(manager, arguments.metrics_bind_address, arguments.health_probe_bind_address):
            await serve_until_signal(manager)


def make_manager(
    arguments: argparse.Namespace, operators: list[Operator], settings: Configuration, client: Client, namespace: str
) -> Manager:
    """One manager for all of them: what several look at is cached once. The Lease is in the namespace, if not said."""
    from konverge.cli.installation import in_namespaces
    from konverge.runtime import Manager
    from konverge.runtime.manager import LeaderElection

    election = None
    if arguments.leader_elect:
        space = arguments.leader_election_namespace or namespace
        election = LeaderElection(name=joint_name(operators), namespace=space)
    manager = Manager(
        client,
        name="konverge",
        config=settings,
        leader_election=election,
        health_address=arguments.health_probe_bind_address,
    )
    declared = [controller for operator in operators for controller in operator.controllers()]
    for controller in in_namespaces(declared, tuple(arguments.watch_namespace)):
        manager.add(controller)
    return manager


@asynccontextmanager
async def metrics(
    manager: Manager, where: tuple[str, int] | None, probes: tuple[str, int] | None
) -> AsyncIterator[None]:
    """Serve the metrics, unless they are to be where the probes are: there they are anyway."""
    import logging

    from konverge.wire.server import Server

    if where is None or (where == probes and where[1] != 0):
        yield
        return
    async with Server(manager.health.handle) as server:
        await server.start(*where)
        logging.getLogger("konverge.run").info("metrics are served at %s:%d", *server.addresses[0])
        yield
