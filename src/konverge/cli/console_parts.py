"""What the console of `konverge up` is made of: the cluster's history, its reconciles, and the service of Nacos."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AsyncExitStack

from konverge.cli.console_load import load_of
from konverge.cli.console_pages import pages_of
from konverge.cli.console_simulation import UpSimulation
from konverge.cli.console_sources import StoreHistory, reconciles_of
from konverge.cli.up_console import Shown
from konverge.console import About, Console, Page
from konverge.console.load.watching import Load
from konverge.console.story.telling import Teller
from konverge.service import Service
from konverge.service.sign_in import SignIn


class ConsoleParts:
    """The console, and what it needs to have begun."""

    def __init__(self, shown: Shown, sign_in: SignIn) -> None:
        server = shown.cluster.server
        self._operators = shown.operators
        self._begun = AsyncExitStack()
        self._service = None
        if any(operator.name == "nacos" for operator in shown.operators):
            self._service = Service(server.transport)
        self._simulation = UpSimulation(shown.cluster, [operator.name for operator in shown.operators], shown.seed)
        self._load = Load(load_of(server, shown.managers, shown.places))
        self.console = Console(
            server.transport,
            about=About(cluster=shown.name, server=shown.url, simulated=True),
            sign_in=sign_in,
            service=self._service.handle if self._service is not None else None,
            teller=Teller(StoreHistory(server.store), reconciles_of(shown.managers, shown.places)),
            simulation=self._simulation,
            load=self._load,
        )

    def show(self, own: Sequence[Page]) -> None:
        """The pages of the operators in this process, and of those in their own."""
        self.console.pages = pages_of(self._operators, own)

    async def begin(self) -> None:
        await self._begun.enter_async_context(self._load.sampling())

    async def close(self) -> None:
        await self._begun.aclose()
        await self._simulation.close()
        if self._service is not None:
            self._service.stop()
