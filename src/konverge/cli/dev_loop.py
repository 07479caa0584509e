"""The loop of `konverge up -f … --watch`: saving a manifest applies it, saving code of an operator restarts it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from konverge.cli.applied_manifests import Applied, Outcome
from konverge.cli.exit import CommandFailed, explain
from konverge.cli.install_objects import apply_definition, established
from konverge.cli.live import has_health
from konverge.cli.manifest_files import files_of, read_manifests
from konverge.cli.operator_process import NotLoaded, OperatorProcess, files_of_code
from konverge.cli.watched_files import WatchedFiles
from konverge.client import Client
from konverge.console import Page
from konverge.objects.resource import Resource


@dataclass(frozen=True, slots=True, kw_only=True)
class Workbench:
    """What is worked on."""

    client: Client
    kubeconfig: Path
    manifests: Sequence[str]
    """What `-f` was given."""
    stdin: str
    references: Sequence[str]
    """Operators of the user, each to run in a process of its own."""
    stories: Path | None = None
    """The folder of the cluster, where the operators say how to ask them what they did."""
    say: Callable[[str], None]
    follow: Callable[[Sequence[Resource], bool], None]
    """Follow these resources as well, and show them if they have a health."""
    show_pages: Callable[[Sequence[Page]], None] = lambda pages: None
    """Show these pages of the operators in the console, in place of those of before."""


class DevLoop:
    """Applies, restarts, and shows what came of it."""

    def __init__(self, bench: Workbench, *, watch: bool) -> None:
        self._bench = bench
        self._watch = watch
        self._applied = Applied(bench.client, bench.manifests)
        self._operators = OperatorProcess(bench.references, bench.kubeconfig, bench.say, stories=bench.stories)

    async def apply(self) -> Outcome:
        """Apply the manifests as they are now. Raises ManifestError for those that cannot be read."""
        manifests = await read_manifests(self._bench.manifests, self._bench.stdin)
        outcome = await self._applied.apply(manifests, remove=self._watch)
        self._bench.say(outcome.summary() if manifests else "there is no object in the files: nothing was removed")
        for error in outcome.errors:
            self._bench.say(f"error: {' '.join(error.split())}")
        self._follow(outcome.resources)
        return outcome

    async def load(self) -> bool:
        """Put the code of the operators to work. Returns whether it could be loaded; if not, the old one goes on."""
        try:
            definitions, pages = await self._operators.loaded()
        except NotLoaded as error:
            still = "; the operator goes on with the code of before" if self._operators.running else ""
            self._bench.say(f"{error}\nthe code was not loaded{still}")
            return False
        for definition in definitions:
            await apply_definition(self._bench.client, definition)
        for definition in definitions:
            await established(self._bench.client, definition["metadata"]["name"])
        self._follow([await self._resource(definition) for definition in definitions])
        again = self._operators.running
        await self._operators.restart()
        self._bench.show_pages(pages)
        self._bench.say(f"{', '.join(self._bench.references)} {'runs with the new code' if again else 'runs'}")
        return True

    def _follow(self, resources: Sequence[Resource]) -> None:
        for resource in resources:
            self._bench.follow([resource], has_health(resource))

    async def _resource(self, definition: dict[str, Any]) -> Resource:
        spec = definition["spec"]
        return await self._bench.client.mapper.find(f"{spec['names']['plural']}.{spec['group']}")

    async def follow_manifests(self) -> None:
        files = await WatchedFiles.of(lambda: files_of(self._bench.manifests))
        while True:
            self._bench.say(_saved(await files.saved()))
            await self.attempt(self.apply)

    async def follow_code(self) -> None:
        references = self._bench.references
        files = await WatchedFiles.of(lambda: [file for reference in references for file in files_of_code(reference)])
        while True:
            self._bench.say(_saved(await files.saved()))
            await self.attempt(self.load)

    async def attempt(self, action: Callable[[], Awaitable[Any]]) -> None:
        """What goes wrong with what a user just saved is shown; the next save is another chance.

        Whatever it is: an exception that went on from here would end the cluster with all that is in its memory.
        """
        try:
            await action()
        except Exception as error:
            self._bench.say(f"error: {explain(error)[0]}")

    async def stop(self) -> None:
        await self._operators.stop()


def _saved(paths: set[Path]) -> str:
    names = sorted({path.name for path in paths if path.name})
    return f"saved {', '.join(names[:3])}{' …' if len(names) > 3 else ''}"


@asynccontextmanager
async def at_work(bench: Workbench, *, watch: bool) -> AsyncIterator[None]:
    """Apply manifests and run operators; inside the block, with `watch`, again whenever they are saved.

    Without `watch`, manifests that cannot be applied raise CommandFailed; with it, they are shown.
    """
    loop = DevLoop(bench, watch=watch)
    try:
        if bench.references:
            await loop.attempt(loop.load)
        if bench.manifests and not watch:
            outcome = await loop.apply()
            if outcome.errors:
                raise CommandFailed(outcome.errors[0])
        elif bench.manifests:
            await loop.attempt(loop.apply)
        async with asyncio.TaskGroup() as group:
            following = [loop.follow_manifests()] if watch and bench.manifests else []
            following += [loop.follow_code()] if watch and bench.references else []
            tasks = [group.create_task(work, name="dev loop") for work in following]
            try:
                yield
            finally:
                for task in tasks:
                    task.cancel()
    finally:
        await loop.stop()
