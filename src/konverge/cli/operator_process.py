"""An operator under development in a process of its own, for a fresh interpreter after each change of its code.

New code is loaded once beside the running operator before that is ended: code that cannot be loaded is reported, and
the old operator goes on.
"""

from __future__ import annotations

import asyncio
import importlib.util
import os
import sys
from asyncio.subprocess import PIPE, STDOUT, Process
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from konverge.cli.exit import UsageError
from konverge.cli.manifest_files import files_below
from konverge.console import Page

ENDS_WITHIN = 10.0
OUTPUT_WITHIN = 1.0
"""How long to wait for the last lines of an operator that has ended."""
_LOOK_EVERY = 0.02
LOADED_WITHIN = 60.0
# -P: a file of the user's folder, such as operator.py, must not take the place of a module of the standard library.
# What loads operators puts that folder on the path itself.
_KONVERGE = (sys.executable, "-P", "-m", "konverge.cli.under_parent")
# A cached file is taken for current by the second of its source's time: two saves in one second would load the first.
_ENVIRONMENT = {"PYTHONDONTWRITEBYTECODE": "1", "PYTHONUNBUFFERED": "1"}


class NotLoaded(Exception):
    """The code cannot be used as it is; the text is what Python said."""


class Loaded(NamedTuple):
    """What the code declares."""

    definitions: list[dict[str, Any]]
    pages: list[Page]
    """Its pages in the console."""


class _Printed(msgspec.Struct, rename="camel"):
    items: list[dict[str, Any]] = []
    console_pages: list[Page] = []


class OperatorProcess:
    """Operators by their references (`my_operator.py`, `package.module:manager`) on one cluster."""

    def __init__(
        self, references: Sequence[str], kubeconfig: Path, say: Callable[[str], None], *, stories: Path | None = None
    ) -> None:
        """`stories` is the folder of the cluster, in which the operators say where `konverge why` may ask them."""
        self._stories = stories
        self._references = references
        self._kubeconfig = kubeconfig
        self._say = say
        self._process: Process | None = None
        self._reading: asyncio.Task[None] | None = None

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.returncode is None

    async def loaded(self) -> Loaded:
        """Load the code in a process that ends at once. Returns what it declares. Raises NotLoaded."""
        process = await self._spawn("crd", *self._references, "--console-pages", errors=PIPE)
        try:
            async with asyncio.timeout(LOADED_WITHIN):
                output, errors = await _output(process)
        except TimeoutError:
            raise NotLoaded(f"it was not loaded within {LOADED_WITHIN:g} s") from None
        finally:
            await _end(process)
        if process.returncode:
            raise NotLoaded(errors.decode(errors="replace").strip() or f"exit code {process.returncode}")
        try:
            printed = msgspec.json.decode(output or b"{}", type=_Printed)
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            beginning = output[:80].decode(errors="replace")
            raise NotLoaded(
                f"its definitions cannot be read ({error}): the code must print nothing when it is imported, but the "
                f"output begins with {beginning!r}"
            ) from error
        return Loaded(printed.items, printed.console_pages)

    async def restart(self) -> None:
        """End the operator, if it runs, and start it with the code as it is now."""
        await self.stop()
        run = ["run", *self._references, "--kubeconfig", str(self._kubeconfig), "--no-leader-elect"]
        probes = ["127.0.0.1:0", "--debug-folder", str(self._stories)] if self._stories is not None else ["0"]
        run += ["--metrics-bind-address", "0", "--health-probe-bind-address", *probes]
        self._process = await self._spawn(*run, errors=STDOUT)
        self._reading = asyncio.create_task(self._read(self._process), name="operator output")

    async def stop(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            await _end(process)
        if self._reading is not None:
            reading, self._reading = self._reading, None
            await asyncio.wait([reading], timeout=OUTPUT_WITHIN)
            reading.cancel()  # a process that the operator started, and left, may have its output open for ever
            await asyncio.wait([reading])
            if process is not None:
                process._transport.close()  # type: ignore[attr-defined]  # else its pipe stays open as long as theirs

    async def _read(self, process: Process) -> None:
        """Say what the operator prints, and its end if that was not asked for."""
        assert process.stdout is not None
        while line := await _line(process.stdout):
            self._say(f"| {line.decode(errors='replace').rstrip()}")
        code = await process.wait()
        if self._process is process:
            self._say(f"the operator ended with exit code {code}: save a file of it to start it again")

    async def _spawn(self, *arguments: str, errors: int) -> Process:
        # A session of its own: Ctrl-C in the terminal would reach it too, and the SIGTERM that follows it would be the
        # second signal, which ends an operator at once.
        return await asyncio.create_subprocess_exec(
            *_KONVERGE,
            *arguments,
            stdin=PIPE,
            stdout=PIPE,
            stderr=errors,
            env={**os.environ, **_ENVIRONMENT},
            start_new_session=True,
        )


async def _output(process: Process) -> tuple[bytes, bytes]:
    """All that a process prints. Its standard input stays open until its end: see `under_parent`."""
    assert process.stdout is not None
    assert process.stderr is not None
    output, errors = await asyncio.gather(process.stdout.read(), process.stderr.read())
    await process.wait()
    return output, errors


async def _line(stream: asyncio.StreamReader) -> bytes:
    """The next line; the beginning of one that is too long."""
    try:
        return await stream.readuntil()
    except asyncio.IncompleteReadError as error:
        return error.partial
    except asyncio.LimitOverrunError as error:
        return await stream.read(error.consumed or 1)


async def _end(process: Process) -> None:
    if process.returncode is None:
        with suppress(ProcessLookupError):
            process.terminate()
        try:
            async with asyncio.timeout(ENDS_WITHIN):
                # Not `wait`: it may also wait for the end of the output, which others may keep open (see `stop`).
                while process.returncode is None:  # noqa: ASYNC110
                    await asyncio.sleep(_LOOK_EVERY)
        except TimeoutError:
            with suppress(ProcessLookupError):
                process.kill()
    await process.wait()


def is_own_code(reference: str) -> bool:
    """Whether a reference names code of the user, not an installed operator by its name.

    >>> is_own_code("my_operator.py"), is_own_code("shop.operator:manager"), is_own_code("webapp")
    (True, True, False)
    """
    return any(mark in reference for mark in (".", ":", os.sep)) or Path(f"{reference}.py").is_file()


def files_of_code(reference: str) -> Iterator[Path]:
    """The Python files that belong to a reference: those in and below the folder of its file or package."""
    for file in files_below(_folder(reference)):
        if file.suffix == ".py":
            yield file


def _folder(reference: str) -> Path:
    text = reference.partition(":")[0]
    if text.endswith(".py"):
        return Path(text).absolute().parent
    top = text.partition(".")[0]
    if Path(top).is_dir():
        return Path(top)
    if Path(f"{top}.py").is_file():
        return Path.cwd()
    spec = importlib.util.find_spec(top)
    if spec is None or spec.origin is None:
        raise UsageError(f"--operators {reference}: there is no module {top!r} whose files could be watched")
    return Path(spec.origin).parent
