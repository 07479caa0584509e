"""The console of a cluster of `konverge up`: it listens at once, and is made when the cluster is ready, or is asked.

What it is made of (`console_parts`) is a tenth of a start, and nobody can have opened it before its address is printed.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from konverge.apiserver.private_files import write_private
from konverge.cli.operator_stories import StoryPlace, places_of
from konverge.console.listening import listening
from konverge.operators.catalog import Operator
from konverge.runtime import Manager
from konverge.service.sign_in import SignIn, link
from konverge.sim.cluster import Cluster
from konverge.wire.message import Request, Response

if TYPE_CHECKING:
    from konverge.cli.console_parts import ConsoleParts
    from konverge.console import Page


async def _nothing() -> None:
    """There is no console."""


class ConsolePlaces(msgspec.Struct, frozen=True):
    """Where the console is, a link that signs in once, and the file with a token. Empty: there is none."""

    url: str = ""
    link: str = ""
    token: str = ""
    show_pages: Callable[[Sequence[Page]], None] = lambda pages: None
    """Shows these pages of operators that run in a process of their own, in place of their former ones."""
    open: Callable[[], Awaitable[None]] = _nothing
    """Makes the console, if no request has done so."""


class Shown(msgspec.Struct, frozen=True):
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
    token = shown.cluster.server.token
    file = folder / "console.token"
    sign_in = SignIn()
    opening = Opening(shown, sign_in)
    async with listening(opening.handle) as (host, port):
        write_private(file, token.encode())
        place = f"http://{host}:{port}"
        try:
            made = link(place, sign_in.code(token, seconds=None))
            yield ConsolePlaces(place, made, str(file.resolve()), opening.show_pages, opening.open)
        finally:
            await opening.close()


class Opening:
    """A console that is made once."""

    def __init__(self, shown: Shown, sign_in: SignIn) -> None:
        self._shown, self._sign_in = shown, sign_in
        self._own: Sequence[Page] = ()
        """Pages that came before it was made."""
        self._parts: ConsoleParts | None = None
        self._making = asyncio.Lock()

    async def handle(self, request: Request) -> Response:
        return await (await self._made()).console.handle(request)

    async def open(self) -> None:
        await self._made()

    def show_pages(self, own: Sequence[Page]) -> None:
        self._own = own
        if self._parts is not None:
            self._parts.show(own)

    async def close(self) -> None:
        async with self._making:
            if self._parts is not None:
                await self._parts.close()

    async def _made(self) -> ConsoleParts:
        async with self._making:
            if self._parts is None:
                from konverge.cli.console_parts import ConsoleParts

                self._parts = ConsoleParts(self._shown, self._sign_in)
                self._parts.show(self._own)
                await self._parts.begin()
            return self._parts
