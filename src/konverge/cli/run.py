"""`konverge run`: operators against any cluster, as in a pod: leader election, metrics, probes, an orderly end."""

from __future__ import annotations

import argparse
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from konverge.cli.arguments import (
    add_cluster,
    add_logs,
    add_operators,
    add_watched,
    address,
    cluster_config,
    command,
    namespace,
    operators_of,
    refuse_unless_free,
)
from konverge.cli.exit import CommandFailed, UsageError
from konverge.cli.webhook_places import add_webhooks, place_webhooks

if TYPE_CHECKING:
    from konverge.client import Client
    from konverge.operators.catalog import Operator
    from konverge.runtime import Controller, Manager
    from konverge.runtime.config import Configuration
    from konverge.runtime.endpoints import MetricsServer
    from konverge.runtime.manager import LeaderElection
    from konverge.runtime.sharding import Sharding

METRICS = "127.0.0.1:8080"
PROBES = "127.0.0.1:8081"


def add(commands: Any) -> None:
    about = "run operators against a cluster, with leader election, metrics and probes"
    parser = command(
        commands,
        "run",
        about,
        "konverge run webapp --install-crds",
        "konverge run my_operator.py --kubeconfig konverge.kubeconfig --install-crds",
        "konverge run my_package.operator:manager --no-leader-elect",
        "konverge run webapp --kubeconfig konverge.kubeconfig --watch-namespace shop --log-level debug",
    )
    add_operators(parser)
    add_cluster(parser)
    parser.add_argument("--config", type=Path, help="a YAML file with workers, queueConfig, reconcileConfig, cache")
    add_watched(parser, "--namespace")
    parser.add_argument("--install-crds", action="store_true", help="apply the definitions first")
    add_election(parser)
    add_webhooks(parser)
    for option, place in (("--metrics-bind-address", METRICS), ("--health-probe-bind-address", PROBES)):
        parser.add_argument(
            option,
            type=address,
            default=argparse.SUPPRESS,
            metavar="HOST:PORT",
            help=f":PORT for all addresses, 0 for none ({place}; another port where that is in use)",
        )
    _add_serving(parser)
    add_logs(parser)
    parser.set_defaults(run=run)


def _add_serving(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--metrics-secure",
        action="store_true",
        help="serve metrics over TLS, to callers with a token of the cluster and the right to get /metrics",
    )
    parser.add_argument(
        "--metrics-cert-dir", metavar="DIR", help="with --metrics-secure: a folder with tls.crt and tls.key"
    )
    parser.add_argument(
        "--debug-pages", action="store_true", help="serve the story of every reconcile at /debug/reconciles"
    )
    # For `konverge up --watch`: where `konverge why` finds the address, and a token for it.
    parser.add_argument("--debug-folder", type=Path, help=argparse.SUPPRESS)


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
    from konverge.observe import logs
    from konverge.runtime.config import load_configuration
    from konverge.runtime.program import run_until_signal

    operators = operators_of(arguments)
    settings = load_configuration(arguments.config, code=_declared_config(operators))
    if settings.serving.metrics_address and "metrics_bind_address" not in arguments:
        arguments.metrics_bind_address = address(settings.serving.metrics_address)
    arguments.metrics_bind_address = _place(arguments, "metrics_bind_address", METRICS)
    arguments.health_probe_bind_address = _place(
        arguments, "health_probe_bind_address", PROBES, operators[0].manager if len(operators) == 1 else None
    )
    logs.set_up(arguments.log_level or settings.log.level, arguments.log_format or settings.log.form)
    run_until_signal(serve(arguments, operators, settings))
    return 0


def _declared_config(operators: list[Operator]) -> Configuration | None:
    manager = operators[0].manager if len(operators) == 1 else None
    return manager.declared_config if manager else None


def _place(
    arguments: argparse.Namespace, name: str, usual: str, manager: Manager | None = None
) -> tuple[str, int] | None:
    """Where something is served: as the command says, else as the manager declares, else at the usual place or near."""
    option = f"--{name.replace('_', '-')}"
    if name in arguments:
        where: tuple[str, int] | None = getattr(arguments, name)
        refuse_unless_free(option, where)
        return where
    if manager is not None and manager.health_address is not None:
        refuse_unless_free("health_address of the manager", manager.health_address)
        return manager.health_address
    place = address(usual)
    try:
        refuse_unless_free(option, place)
    except CommandFailed:
        return ("127.0.0.1", 0)  # the log says which port it is
    return place


async def serve(arguments: argparse.Namespace, operators: list[Operator], settings: Configuration) -> None:
    from konverge.cli.install_objects import install_definitions
    from konverge.client import Client
    from konverge.operators.catalog import joint_name
    from konverge.runtime.program import serve_until_signal

    config = cluster_config(arguments)
    async with Client.connect(config, user_agent=f"konverge/{joint_name(operators)}") as client:
        if arguments.install_crds:
            await install_definitions(client, operators)
        manager = make_manager(arguments, operators, settings, client, config.namespace)
        place_webhooks(manager, arguments, config.server)
        if "operators" in arguments:
            manager.source = " ".join(arguments.operators)
        elif not sys.argv[0].endswith(".py"):
            manager.program = operators[0].start[0]
        if arguments.debug_folder is None:
            await serve_until_signal(manager)
            return
        async with _announcing(manager, arguments.debug_folder):
            await serve_until_signal(manager)


@asynccontextmanager
async def _announcing(manager: Manager, folder: Path) -> AsyncIterator[None]:
    """`konverge why` finds this process from its start on, by the name of its process."""
    import os
    import secrets

    from konverge.cli.operator_stories import announced

    manager.debug_token = secrets.token_urlsafe()
    async with AsyncExitStack() as stack:

        @manager.on_startup
        async def announce(context: Any) -> None:
            await stack.enter_async_context(announced(manager, folder, f"process-{os.getpid()}"))

        yield


def make_manager(
    arguments: argparse.Namespace, operators: list[Operator], settings: Configuration, client: Client, namespace: str
) -> Manager:
    """One manager for all of them: what several look at is cached once. The Lease is in the namespace, if not said.

    The manager that a user declared is the one that runs, with what the command says in its place; in company its
    controllers keep its name and its settings.
    """
    from dataclasses import replace

    from konverge.cli.installation import in_namespaces
    from konverge.runtime import Manager

    metrics = _metrics(arguments, settings)
    # What the command says holds, also that there are no metrics.
    settings = replace(settings, serving=replace(settings.serving, metrics_address=""))
    watched = tuple(arguments.watch_namespace)
    declared = operators[0].manager if len(operators) == 1 else None
    election = _election(arguments, operators, declared, namespace)
    probes = arguments.health_probe_bind_address
    debug = True if arguments.debug_pages or arguments.debug_folder else None
    if declared is not None:
        return declared.bound_to(
            client,
            controllers=in_namespaces(declared.controllers, watched),
            config=settings,
            leader_election=None if declared.sharding else election,
            sharding=_sharding(arguments, declared),
            health_address=probes,
            metrics=metrics,
            debug=debug,
        )
    manager = Manager(
        client,
        name="konverge",
        config=settings,
        leader_election=election,
        health_address=probes,
        metrics=metrics,
        debug=debug,
    )
    for operator in operators:
        for controller in in_namespaces(operator.controllers(), watched):
            _add(manager, controller, operator)
        if operator.manager is not None:
            manager.take_tasks(operator.manager)
        manager.take_webhooks(operator.webhooks())
    return manager


def _sharding(arguments: argparse.Namespace, declared: Manager) -> Sharding | None:
    """As the manager declares, in the namespace that the command says; a process without an election is alone."""
    from dataclasses import replace

    if not arguments.leader_elect:
        return None
    own, space = declared.sharding, arguments.leader_election_namespace
    return replace(own, namespace=space) if own is not None and space else own


def _add(manager: Manager, controller: Controller[Any], operator: Operator) -> None:
    try:
        manager.add(controller)
    except ValueError as error:
        raise UsageError(f"{operator.name}: {error}, or run the operators in two processes") from error


def _election(
    arguments: argparse.Namespace, operators: list[Operator], declared: Manager | None, namespace: str
) -> LeaderElection | None:
    """As the command says, else as the manager declares, else by the name of the operators."""
    from dataclasses import replace

    from konverge.operators.catalog import joint_name
    from konverge.runtime.manager import LeaderElection

    if not arguments.leader_elect:
        return None
    space = arguments.leader_election_namespace
    if declared is not None and declared.leader_election is not None:
        own = declared.leader_election
        return replace(own, namespace=space) if space else own
    return LeaderElection(name=joint_name(operators), namespace=space or namespace)


def _metrics(arguments: argparse.Namespace, settings: Configuration) -> MetricsServer | None:
    """Where metrics are served; None when it is where the probes are."""
    from konverge.runtime.endpoints import MetricsServer

    place = arguments.metrics_bind_address
    secure = arguments.metrics_secure or settings.serving.metrics_secure
    folder = arguments.metrics_cert_dir or settings.serving.metrics_certificates
    if folder and not secure:
        raise UsageError("--metrics-cert-dir is for metrics over TLS: give --metrics-secure as well")
    if place is None:
        return None
    if place == arguments.health_probe_bind_address and place[1] != 0:
        if secure:
            raise UsageError("--metrics-secure needs an address of its own: probes have no token")
        return None
    return MetricsServer(address=place, tls=Path(folder) if folder else secure, authorize=secure)
