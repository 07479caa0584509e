"""What `konverge up` runs: a simulated cluster with operators, their definitions and samples, and the console.

The operators run in this process by the ordinary Manager; their client has no socket in between.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import secrets
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from pathlib import Path

import msgspec

from konverge.apiserver.certificates import kept
from konverge.apiserver.private_files import write_private
from konverge.cli.cluster_names import DEFAULT
from konverge.cli.endpoints import IN_MEMORY, Endpoints
from konverge.cli.install_objects import create_samples, install_definitions, missing_kinds
from konverge.cli.lifetime import Lifetime
from konverge.cli.live import PlainView, View, on_screen, watching
from konverge.cli.operator_stories import announced
from konverge.cli.progress import Progress
from konverge.cli.terminal import is_terminal
from konverge.cli.up_console import Shown, console_of
from konverge.cli.user_kubeconfig import user_kubeconfigs
from konverge.client import Client
from konverge.objects.kinds import core_v1
from konverge.objects.kinds.apps_v1 import Deployment, StatefulSet
from konverge.operators.catalog import Operator
from konverge.runtime import Manager
from konverge.sim.applications import Simulation
from konverge.sim.cluster import Cluster
from konverge.sim.kubelet.behaviour import Rule
from konverge.sim.outside import with_simulators
from konverge.sim.processes import ProcessRule


class Parts(msgspec.Struct, frozen=True, kw_only=True):
    """What was chosen to run, beside the arguments themselves."""

    operators: list[Operator]
    own: list[str]
    """Operators of the user that run in processes of their own."""
    rules: list[Rule]
    processes: list[ProcessRule]
    simulation: Simulation | None
    folder: Path
    """Where files are put that no argument names a place for."""
    pods_from: str
    ready: Callable[[], None] = lambda: None
    """Called when everything has started."""


async def serve(arguments: argparse.Namespace, parts: Parts, run: Lifetime, stopping: asyncio.Event) -> None:
    """Run until `stopping` is set."""
    cluster = Cluster(
        nodes=arguments.nodes,
        data_dir=arguments.data_dir,
        rules=parts.rules,
        processes=parts.processes,
        simulation=parts.simulation,
        processes_as_root=arguments.processes_as_root,
        hold=("kubelet",) if parts.processes else (),  # processes need to know where the API server listens
        pod_address=arguments.pod_address or "",
        pods_from=parts.pods_from,
        certificates=kept(arguments.data_dir, (arguments.host,)) if arguments.tls else None,
    )
    progress = Progress()
    progress.show("starting the API server, controllers and nodes …")
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(cluster)
        url = await cluster.listen(arguments.host, run.port(), tls=arguments.tls)
        kubeconfig = _write_kubeconfig(cluster, url, arguments.kubeconfig or parts.folder / "kubeconfig")
        if cluster.processes is not None:
            for secret in (kubeconfig, parts.folder, *user_kubeconfigs(os.environ)):
                cluster.processes.hide(secret)
            cluster.release("kubelet")
        progress.show("installing definitions and starting operators …")
        new = await _install(cluster.client, parts.operators)
        manager = await stack.enter_async_context(_at_work(cluster, parts.operators, arguments))
        listed = run.folder.path if run.folder is not None else None
        await stack.enter_async_context(announced(manager, listed, "konverge"))
        shown = Shown(cluster, manager, parts.operators, url, arguments.name or DEFAULT, arguments.seed)
        console = await stack.enter_async_context(console_of(shown, parts.folder, arguments.console))
        endpoints = _endpoints(arguments, url, kubeconfig, parts, manager)
        endpoints = msgspec.structs.replace(
            endpoints, console=console.url, console_link=console.link, console_token=console.token
        )
        endpoints = run.serves(msgspec.structs.replace(endpoints, name=run.name))
        progress.clear()
        text = arguments.output == "text" and not arguments.in_background
        view = await stack.enter_async_context(_shown(endpoints)) if text else PlainView(sys.stderr)
        following = [kind.resource for operator in parts.operators for kind in operator.stored_kinds]
        following += [Deployment.resource, StatefulSet.resource]
        if not text and not arguments.in_background:  # a program reads this one
            following = []
        rows = await stack.enter_async_context(
            watching(cluster.client, following, view, differences=arguments.watch and text)
        )
        if arguments.watch and text:
            rows.follow([core_v1.Service.resource, core_v1.ConfigMap.resource], shown=False)
        if arguments.samples:
            await create_samples(cluster.client, new, arguments.database)
        if text and isinstance(view, PlainView):
            view.begin(endpoints.welcome())
        if arguments.filename or parts.own:
            from konverge.cli.dev_loop import Workbench, at_work  # most clusters have neither

            bench = Workbench(
                client=cluster.client,
                kubeconfig=kubeconfig,
                manifests=arguments.filename,
                stdin=arguments.stdin,
                references=parts.own,
                stories=listed,
                say=view.say,
                follow=rows.follow if following else lambda resources, shown: None,
                show_pages=console.show_pages,
            )
            await stack.enter_async_context(at_work(bench, watch=arguments.watch))
        if not text:
            print(json.dumps(endpoints.facts()), file=arguments.facts, flush=True)
        parts.ready()
        await console.open()
        await cluster.server.serve_until(stopping)


def _write_kubeconfig(cluster: Cluster, url: str, path: Path) -> Path:
    whole = path.resolve()
    whole.parent.mkdir(parents=True, exist_ok=True)
    write_private(whole, json.dumps(cluster.kubeconfig(url), indent=1).encode())
    return whole


async def _install(client: Client, operators: list[Operator]) -> list[Operator]:
    """Install the definitions. Returns the operators that were not there: a sample that a user deleted from a
    kept state does not come back.
    """
    missing = [await missing_kinds(client, operator) for operator in operators]
    new = [operator for operator, kinds in zip(operators, missing, strict=True) if len(kinds) == len(operator.kinds)]
    await install_definitions(client, operators)
    return new


@asynccontextmanager
async def _at_work(
    cluster: Cluster, operators: list[Operator], arguments: argparse.Namespace
) -> AsyncIterator[Manager]:
    metrics = arguments.metrics_bind_address if operators else None
    client = cluster.connect("konverge")  # so that the console can disturb the operators, and nothing else
    manager = Manager(client, name="konverge", health_address=metrics, debug=True)
    manager.debug_token = secrets.token_urlsafe()
    async with with_simulators(cluster, operators, arguments.database, seed=arguments.seed) as controllers:
        for controller in controllers:
            manager.add(controller)
        for operator in operators:
            if operator.manager is not None:
                manager.take_tasks(operator.manager)
            manager.take_webhooks(operator.webhooks())
        manager.webhooks = manager.webhooks and replace(manager.webhooks, place=cluster.webhook_place())
        async with manager.running():
            yield manager


def _endpoints(arguments: argparse.Namespace, url: str, kubeconfig: Path, parts: Parts, manager: Manager) -> Endpoints:
    state = str(arguments.data_dir.resolve()) if arguments.data_dir else IN_MEMORY
    metrics = f"http://{arguments.metrics_bind_address[0]}:{manager.health_port}/metrics" if manager.health_port else ""
    return Endpoints(
        url=url,
        kubeconfig=kubeconfig,
        nodes=arguments.nodes,
        seed=arguments.seed,
        state=state,
        operators=(*(operator.name for operator in parts.operators), *parts.own),
        metrics=metrics,
    )


@asynccontextmanager
async def _shown(endpoints: Endpoints) -> AsyncIterator[View]:
    """A view of what converges, below where everything is.

    Programs wait for the first line and may then ask for the samples: without a terminal it comes when they are there.
    """
    if is_terminal(sys.stdout):
        print(endpoints.welcome(), flush=True)
        async with on_screen(endpoints.welcome().splitlines()) as view:
            yield view
    else:
        yield PlainView(sys.stdout, waits=True)
