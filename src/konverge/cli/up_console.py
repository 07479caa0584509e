"""The console of a cluster of `konverge up`: with its history, its reconciles, and the service of Nacos."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from konverge.apiserver.private_files import write_private
from konverge.cli.console_load import load_of
from konverge.cli.console_pages import pages_of
from konverge.cli.console_simulation import UpSimulation
from konverge.cli.console_sources import StoreHistory, reconciles_of
from konverge.cli.operator_stories import StoryPlace, places_of
from konverge.console import About, Console, Page
from konverge.console.load.watching import Load
from konverge.console.story.telling import Teller
from konverge.operators.catalog import Operator
from konverge.runtime import Manager
from konverge.service import Service
from konverge.service.sign_in import SignIn, link
from konverge.sim.cluster import Cluster


@dataclass(frozen=True, slots=True)
class ConsolePlaces:
    """Where the console is, a link that signs in once, and the file with a token. Empty: there is none."""

    url: str = ""
    link: str = ""
    token: str = ""
    show_pages: Callable[[Sequence[Page]], None] = lambda pages: None
    """Shows these pages of operators that run in a process of their own, in place of their former ones."""


@dataclass(frozen=True, slots=True)
class Shown:
    """What the console shows."""

    cluster: Cluster
    manager: Manager
    operators: Sequence[Operator]
    url: str
    name: str
    seed: int

    def managers(self) -> tuple[Manager, Manager]:
        """Those in this process: of the operators, and of the cluster itself."""
        return self.manager, self.cluster.manager

    def places(self) -> list[StoryPlace]:
        """Where operators in other processes are asked."""
        return places_of(self.url, "konverge")


@asynccontextmanager
async def console_of(shown: Shown, folder: Path, wanted: bool) -> AsyncIterator[ConsolePlaces]:
    """The console on loopback, inside the block.

    Browsers cannot show the certificate that is in the kubeconfig. The file is for programs like `konverge console`,
    which makes the next link.
    """
    if not wanted:
        yield ConsolePlaces()
        return
    server = shown.cluster.server
    file = folder / "console.token"
    sign_in = SignIn()
    service = None
    if any(operator.name == "nacos" for operator in shown.operators):
        service = Service(server.transport)
    simulation = UpSimulation(shown.cluster, [operator.name for operator in shown.operators], shown.seed)
    load = Load(load_of(server, shown.managers, shown.places))
    console = Console(
        server.transport,
        about=About(cluster=shown.name, server=shown.url, simulated=True),
        sign_in=sign_in,
        service=service.handle if service is not None else None,
        pages=pages_of(shown.operators),
        teller=_teller(shown),
        simulation=simulation,
        load=load,
    )
    async with load.sampling(), console.serving() as (host, port):
        write_private(file, server.token.encode())
        place = f"http://{host}:{port}"
        try:
            made = link(place, sign_in.code(server.token, seconds=None))
            yield ConsolePlaces(place, made, str(file.resolve()), partial(_show, console, shown.operators))
        finally:
            await simulation.close()
            if service is not None:
                service.stop()


def _show(console: Console, operators: Sequence[Operator], own: Sequence[Page]) -> None:
    console.pages = pages_of(operators, own)


def _teller(shown: Shown) -> Teller:
    return Teller(StoreHistory(shown.cluster.server.store), reconciles_of(shown.managers, shown.places))
