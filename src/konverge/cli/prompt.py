"""A Python prompt beside an event loop.

The loop has a thread of its own, so that tasks go on while a person types, and Ctrl-C at the prompt is what it always
is. Code with `await` runs on the loop; Ctrl-C cancels it. Code without runs here.
"""

from __future__ import annotations

import ast
import asyncio
import code
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import Future, wait
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from types import CodeType, FunctionType, TracebackType
from typing import Any, Self

from konverge.cli.cluster_folders import state_root
from konverge.client import Client, Config
from konverge.objects.kinds import known, lookup
from konverge.runtime.program import fast_loop

LOOKS_EVERY = 0.1
"""Seconds. A signal that another thread takes is seen by the main one when that runs: not while it waits."""
CONNECTED_WITHIN = 10.0
MAX_HISTORY = 1000


class Prompt(code.InteractiveConsole):
    """A prompt with a client of one cluster. Inside the `with` block it is connected."""

    def __init__(self, config: Config) -> None:
        super().__init__({}, filename="<konverge>")
        self.compile.compiler.flags |= ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
        self._config = config
        self._loop = fast_loop()
        self._thread = threading.Thread(target=self._run_loop, name="konverge shell loop", daemon=True)
        self._failed = False

    def __enter__(self) -> Self:
        self._thread.start()
        try:
            self.locals.update(self._wait(self._connect()))
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        client = self.locals.get("client")
        if isinstance(client, Client):
            self._wait(client.aclose())
        self._wait(_cancel_all())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def execute(self, source: str) -> int:
        """Run a program; the result is its exit code. What it raises is shown as Python shows it."""
        try:
            compiled = compile(source, "<konverge>", "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
        except (SyntaxError, ValueError):
            self.showsyntaxerror()
            return 1
        self.runcode(compiled)
        return int(self._failed)

    def interact(self, banner: str | None = None, exitmsg: str | None = "") -> None:
        names = (
            "client, resource(…), every built-in kind (Pod, Deployment, …), all of konverge.client and konverge.objects"
        )
        server = f"{self._config.server} ({self._config.source})"
        with _history(self.locals):
            super().interact(banner or f"{server}\n{names}\nawait works: await client.list(Pod)", exitmsg)

    def runcode(self, compiled: CodeType) -> None:
        """Called for each statement (see `code.InteractiveInterpreter`)."""
        self._failed = True
        try:
            result = FunctionType(compiled, self.locals)()
            if asyncio.iscoroutine(result):
                self._wait(result)
            self._failed = False
        except SystemExit:
            raise
        except asyncio.CancelledError:
            self.write("cancelled\n")
        except KeyboardInterrupt:
            self.write("\nKeyboardInterrupt\n")
        except BaseException:
            self.showtraceback()

    def showtraceback(self) -> None:
        """Without the frames of this module: they are not the user's."""
        kind, error, trace = sys.exc_info()
        while trace is not None and trace.tb_frame.f_code.co_filename != self.filename:
            trace = trace.tb_next
        self.write("".join(traceback.format_exception(kind, error, trace)))

    def _wait(self, work: Coroutine[Any, Any, Any]) -> Any:
        """The result of work on the loop. Ctrl-C cancels it, and waits until it has ended."""
        tasks: list[asyncio.Task[Any]] = []
        ended: Future[None] = Future()

        def start() -> None:
            task = self._loop.create_task(work)
            task.add_done_callback(lambda _: ended.set_result(None))
            tasks.append(task)
            if interrupts:  # before there was anything to cancel
                task.cancel()

        def cancel() -> None:
            for task in tasks:
                task.cancel()

        with _interrupted(lambda: self._loop.call_soon_threadsafe(cancel)) as interrupts:
            self._loop.call_soon_threadsafe(start)
            while not ended.done():
                wait([ended], LOOKS_EVERY)
        if tasks[0].cancelled() and interrupts:
            raise KeyboardInterrupt
        return tasks[0].result()

    async def _connect(self) -> dict[str, Any]:
        """What there is at the prompt. Raises ClientError if the server does not answer."""
        client = Client.connect(self._config, user_agent="konverge/shell")
        try:
            async with asyncio.timeout(CONNECTED_WITHIN):
                await client.version()
        except BaseException:
            await client.aclose()
            raise
        return {**names(), "client": client, "resource": client.mapper.find}

    def _run_loop(self) -> None:
        asyncio.set_event_loop(self._loop)
        while True:
            try:
                self._loop.run_forever()
            except (SystemExit, KeyboardInterrupt):  # of a task, which has it as its result; the others go on
                continue
            return


@contextmanager
def _interrupted(cancel: Callable[[], object]) -> Iterator[list[int]]:
    """Inside the block, Ctrl-C calls `cancel`, and is counted: an exception inside of a lock could leave it shut."""
    interrupts: list[int] = []

    def on_signal(number: int, frame: object) -> None:
        interrupts.append(number)
        cancel()

    if threading.current_thread() is not threading.main_thread():
        yield interrupts
        return
    before = signal.signal(signal.SIGINT, on_signal)
    try:
        yield interrupts
    finally:
        signal.signal(signal.SIGINT, before)


def names() -> dict[str, Any]:
    """What can be used without an import: built-in kinds (of the core group, where several have a name) and exports."""
    import konverge.client
    import konverge.objects

    kinds: dict[str, Any] = {}
    for api_version, kind in sorted(known(), key=lambda entry: (entry[0] != "v1", entry[0])):
        kinds.setdefault(kind, lookup(api_version, kind))
    modules = (konverge.client, konverge.objects)
    exported = {name: getattr(module, name) for module in modules for name in module.__all__}
    return {**kinds, **exported, "asyncio": asyncio, "__name__": "__konverge__"}


async def _cancel_all() -> None:
    """End what the user started and left running."""
    tasks = asyncio.all_tasks() - {asyncio.current_task()}
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def _history(namespace: dict[str, Any]) -> ExitStack:
    """Lines can be edited, completed, and are there again the next time; not so where there is no readline."""
    stack = ExitStack()
    try:
        import readline
        import rlcompleter
    except ImportError:
        return stack
    file = state_root() / "shell-history"
    readline.set_completer(rlcompleter.Completer(namespace).complete)
    readline.parse_and_bind("tab: complete")
    readline.set_history_length(MAX_HISTORY)
    with suppress(OSError):
        readline.read_history_file(file)
    stack.callback(_write_history, file)
    return stack


def _write_history(file: Path) -> None:
    import readline

    with suppress(OSError):
        file.parent.mkdir(parents=True, exist_ok=True)
        readline.write_history_file(file)
        file.chmod(0o600)
