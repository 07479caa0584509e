"""`konverge up`: a whole Kubernetes on this machine, with the operators at work: API server, controllers, scheduler,
simulated nodes, definitions and samples.

The operators run in this process by the ordinary Manager; their client has no socket in between.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import AsyncIterator, Sequence
from contextlib import ExitStack, asynccontextmanager, nullcontext
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from konverge.cli.arguments import (
    MAX_NODES,
    add_listening,
    address,
    check_listening,
    chosen_operators,
    command,
    count,
    ip_address,
    refuse_unless_free,
    refuse_unless_writable,
)
from konverge.cli.databases import FORM, database
from konverge.cli.exit import UsageError

if TYPE_CHECKING:
    import asyncio

    from konverge.client import Client
    from konverge.operators.catalog import Operator
    from konverge.runtime import Manager
    from konverge.sim.cluster import Cluster
    from konverge.sim.kubelet.behaviour import Rule
    from konverge.sim.processes import ProcessRule

NODES = 3
METRICS = "127.0.0.1:0"


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoints:
    """Where everything is, for people and for machines, and what to try next. Empty: there is no such thing."""

    url: str
    kubeconfig: Path
    nodes: int
    state: str
    operators: tuple[str, ...] = ()
    metrics: str = ""
    console: str = ""
    console_token: str = ""
    """The file with a token to sign in with."""

    def facts(self) -> dict[str, Any]:
        """One JSON object."""
        return {"ready": True, **asdict(self), "kubeconfig": str(self.kubeconfig)}

    def welcome(self) -> str:
        """The first line is `ready URL`: tools wait for it."""
        rows = {
            "kubeconfig": str(self.kubeconfig),
            "nodes": f"{self.nodes}, simulated",
            "state": self.state,
            "operators": ", ".join(self.operators),
            "metrics": self.metrics,
            "console": f"{self.console} (token: {self.console_token})" if self.console else "",
        }
        lines = [f"  {name:<11} {value}" for name, value in rows.items() if value]
        tries = [f"  {line}" for line in self._next()]
        return "\n".join([f"ready {self.url}", *lines, "", "In another terminal:", *tries, "", "Ctrl-C ends it."])

    def _next(self) -> Sequence[str]:
        begin = f"export KUBECONFIG={self.kubeconfig}"
        if "webapp" in self.operators:
            return (
                begin,
                "kubectl get webapps --watch",
                "kubectl scale webapp hello --replicas=5",
                "kubectl delete deployment hello && kubectl describe webapp hello",
            )
        return (
            begin,
            "kubectl get nodes",
            "kubectl create deployment web --image=nginx --replicas=3",
            "kubectl get pods --watch",
        )


def add(commands: Any) -> None:
    about = "run a simulated Kubernetes with the operators: API server, controllers, scheduler, nodes"
    parser = command(
        commands,
        "up",
        about,
        "konverge up --kubeconfig konverge.kubeconfig",
        "konverge up --data-dir state --operators webapp --no-samples --output json",
        "konverge up --operators nacos --database mysql://nacos:secret@db.example.com:3306/nacos",
    )
    add_listening(parser)
    parser.add_argument(
        "--nodes", type=count(0, MAX_NODES), default=NODES, help=f"how many simulated nodes ({NODES} by default)"
    )
    parser.add_argument("--kubeconfig", type=Path, help="write the administrator's kubeconfig here")
    parser.add_argument("--rules", type=Path, help="a YAML file that scripts pods by image, name or labels")
    parser.add_argument(
        "--pod-address",
        type=ip_address,
        help="give all pods this address (127.0.0.1 where there is no other)",
    )
    parser.add_argument(
        "--processes", type=Path, metavar="RULES", help="run images as local commands, by a YAML file (process-pods.md)"
    )
    parser.add_argument("--operators", default="all", metavar="NAMES", help="all, none, or some: webapp,… (all)")
    parser.add_argument(
        "--samples", action=argparse.BooleanOptionalAction, default=True, help="create the operators' sample objects"
    )
    parser.add_argument(
        "--database",
        type=database,
        action="append",
        default=[],
        metavar="URL",
        help=f"simulate the database of Nacos here, and name it in the samples: {FORM}; may be given several times "
        "(mysql.default.svc and postgres.default.svc)",
    )
    parser.add_argument(
        "--console",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="serve the management console and its API on loopback, if the operators include Nacos",
    )
    parser.add_argument(
        "--metrics-bind-address",
        type=address,
        default=METRICS,
        help="address of the operators' metrics (any free port)",
    )
    parser.add_argument("-o", "--output", choices=("text", "json"), default="text", help="json: one line, when ready")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    from konverge.apiserver.signals import run_until_signal
    from konverge.sim.kubelet.behaviour import BehaviourError
    from konverge.sim.network import claimed_block

    operators = wanted_operators(arguments.operators)
    check_listening(arguments)
    refuse_unless_free("--metrics-bind-address", arguments.metrics_bind_address)
    refuse_unless_writable("--kubeconfig", arguments.kubeconfig)
    try:
        rules = _rules(arguments.rules)
    except (BehaviourError, OSError) as error:
        raise UsageError(f"{arguments.rules}: {error}") from error
    arguments.processes = _process_rules(arguments.processes)
    with ExitStack() as stack:
        folder = arguments.data_dir or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="konverge-")))
        pods_from = stack.enter_context(claimed_block())
        run_until_signal(lambda stopping: serve(arguments, rules, operators, folder, pods_from, stopping))
    return 0


def wanted_operators(text: str) -> list[Operator]:
    """The operators of `--operators`."""
    from konverge.operators.catalog import SUMMARIES

    if text == "none":
        return []
    return chosen_operators([*SUMMARIES] if text == "all" else [name for name in text.split(",") if name])


def _rules(path: Path | None) -> list[Rule]:
    from konverge.sim.kubelet.behaviour import BehaviourError, read_rules

    if path is None:
        return []
    import yaml

    try:
        return read_rules(yaml.safe_load(path.read_text(encoding="utf-8")) or [])
    except yaml.YAMLError as error:
        raise BehaviourError(f"is not YAML: {error}") from error


def _process_rules(path: Path | None) -> list[ProcessRule]:
    if path is None:
        return []
    from konverge.sim.processes.rules import RuleError, load

    try:
        return load(path)
    except (RuleError, OSError) as error:
        raise UsageError(f"{path}: {error}") from error


async def serve(
    arguments: argparse.Namespace,
    rules: list[Rule],
    operators: list[Operator],
    folder: Path,
    pods_from: str,
    stopping: asyncio.Event,
) -> None:
    from konverge.apiserver.certificates import kept
    from konverge.cli.install_objects import create_samples
    from konverge.sim.cluster import Cluster

    cluster = Cluster(
        nodes=arguments.nodes,
        data_dir=arguments.data_dir,
        rules=rules,
        processes=arguments.processes,
        hold=("kubelet",) if arguments.processes else (),  # processes need to know where the API server listens
        pod_address=arguments.pod_address or "",
        pods_from=pods_from,
        certificates=kept(arguments.data_dir, (arguments.host,)) if arguments.tls else None,
    )
    async with cluster:
        url = await cluster.listen(arguments.host, arguments.port, tls=arguments.tls)
        if arguments.processes:
            cluster.release("kubelet")
        kubeconfig = _write_kubeconfig(cluster, url, arguments.kubeconfig or folder / "kubeconfig")
        new = await _install(cluster.client, operators)
        async with (
            _at_work(cluster, operators, arguments) as manager,
            _console(cluster, operators, folder / "console.token", arguments.console) as (console, token),
        ):
            endpoints = _endpoints(arguments, url, kubeconfig, operators, manager)
            endpoints = replace(endpoints, console=console, console_token=token)
            text = arguments.output == "text"
            async with _shown(cluster.client, endpoints, operators) if text else nullcontext():
                if arguments.samples:
                    await create_samples(cluster.client, new, arguments.database)
                if not text:
                    print(json.dumps(endpoints.facts()), flush=True)
                await cluster.server.serve_until(stopping)


def _write_kubeconfig(cluster: Cluster, url: str, path: Path) -> Path:
    from konverge.apiserver.private_files import write_private

    whole = path.resolve()
    whole.parent.mkdir(parents=True, exist_ok=True)
    write_private(whole, json.dumps(cluster.kubeconfig(url), indent=1).encode())
    return whole


async def _install(client: Client, operators: list[Operator]) -> list[Operator]:
    """Install the definitions. Returns the operators that were not there: a sample that a user deleted from a
    kept state does not come back.
    """
    from konverge.cli.install_objects import install_definitions, missing_kinds

    new = [operator for operator in operators if await missing_kinds(client, operator)]
    await install_definitions(client, operators)
    return new


@asynccontextmanager
async def _at_work(
    cluster: Cluster, operators: list[Operator], arguments: argparse.Namespace
) -> AsyncIterator[Manager]:
    from konverge.cli.simulators import with_simulators
    from konverge.runtime import Manager

    metrics = arguments.metrics_bind_address if operators else None
    manager = Manager(cluster.client, name="konverge", health_address=metrics)
    async with with_simulators(cluster, operators, arguments.database) as controllers:
        for controller in controllers:
            manager.add(controller)
        async with manager.running():
            yield manager


@asynccontextmanager
async def _console(
    cluster: Cluster, operators: list[Operator], token: Path, wanted: bool
) -> AsyncIterator[tuple[str, str]]:
    """The management service, where there is something to manage: its URL, and the file with a token for it.

    Browsers cannot show the certificate that is in the kubeconfig, so the administrator's token is put into a file.
    """
    if not wanted or not any(operator.name == "nacos" for operator in operators):
        yield "", ""
        return
    from konverge.apiserver.private_files import write_private
    from konverge.service import Service

    async with Service(cluster.server.transport).serving() as (host, port):
        write_private(token, cluster.server.token.encode())
        yield f"http://{host}:{port}", str(token.resolve())


def _endpoints(
    arguments: argparse.Namespace, url: str, kubeconfig: Path, operators: list[Operator], manager: Manager
) -> Endpoints:
    state = str(arguments.data_dir.resolve()) if arguments.data_dir else "in memory, gone when this ends"
    metrics = f"http://{arguments.metrics_bind_address[0]}:{manager.health_port}/metrics" if manager.health_port else ""
    return Endpoints(
        url=url,
        kubeconfig=kubeconfig,
        nodes=arguments.nodes,
        state=state,
        operators=tuple(operator.name for operator in operators),
        metrics=metrics,
    )


@asynccontextmanager
async def _shown(client: Client, endpoints: Endpoints, operators: list[Operator]) -> AsyncIterator[None]:
    """Say where everything is; then show what converges."""
    import logging

    from konverge.cli.live import PlainView, TableView, watching
    from konverge.cli.terminal import Paint, is_terminal
    from konverge.objects.kinds.apps_v1 import Deployment, StatefulSet

    print(endpoints.welcome(), flush=True)
    resources = [kind.resource for operator in operators for kind in operator.kinds]
    resources += [Deployment.resource, StatefulSet.resource]
    if not is_terminal(sys.stdout):
        async with watching(client, resources, PlainView(sys.stdout)):
            yield
        return
    view = TableView(sys.stdout, Paint.on())
    logging.getLogger().addHandler(view)
    try:
        async with watching(client, resources, view):
            yield
    finally:
        logging.getLogger().removeHandler(view)
