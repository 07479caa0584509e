"""How tests run here.

- `async def` tests and async-generator fixtures run on one asyncio loop per test: below the runtime in asyncio's debug
  mode, from there on with the checks of debug mode (see tests/loops.py).
- After a test no task, no socket and no exception that was never retrieved may be left behind, and no single callback
  may have used the loop's thread for longer than a second of CPU time (tests/guards.py); a call that blocks the
  loop (sleep, name lookup, a blocking connect) is an error at the place where it happens.
- `@pytest.mark.virtual` (with a seed, if wanted) runs it in virtual time: hours pass in microseconds.
- A run that leaves files in the repository fails.
- Every test has a time limit, and a whole run may have one: after the time of KONVERGE_UNTIL (seconds since 1970) no
  test begins any more, and the summary says how many were skipped for it.
- `@pytest.mark.spec("R-07")` names what a test proves; the run ends with the lines of the specification that no passing
  test names.
"""

from __future__ import annotations

import asyncio
import functools
import gc
import inspect
import itertools
import logging
import os
import re
import signal
import socket
import sys
import time
from collections.abc import AsyncGenerator, Callable, Coroutine, Generator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck
from hypothesis import settings as hypothesis_settings
from hypothesis.internal.conjecture import providers as hypothesis_providers
from hypothesis.internal.entropy import deterministic_PRNG

from tests.guards import Guard
from tests.loops import RealTimeLoop, VirtualTimeLoop, in_debug_mode

if TYPE_CHECKING:
    from konverge.apiserver import ApiServer
    from konverge.client import Client

# Hundreds of tests start a program of ours. Where the environment forbids cached bytecode, each of them would compile
# everything that it imports, which takes longer than all else it does; so would every worker of the suite.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

ROOT = Path(__file__).resolve().parents[1]
LIMIT = 240.0  # of a test that hangs: far beyond what a test takes on a busy machine
REAL_LIMIT = 600.0
UNTIL = float(os.environ.get("KONVERGE_UNTIL", "inf"))

# Two runs of the suite have the same result, which does not depend on the speed of the machine. The long suite takes
# `many` examples; to look for new ones: HYPOTHESIS_PROFILE=explore make test
_QUIET = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}
hypothesis_settings.register_profile("fast", derandomize=True, max_examples=30, **_QUIET)
hypothesis_settings.register_profile("many", derandomize=True, max_examples=100, **_QUIET)
hypothesis_settings.register_profile("explore", max_examples=100, **_QUIET)
# Hypothesis also draws constants that it finds in whatever modules happen to be loaded: examples would depend on which
# tests a worker has run before.
hypothesis_providers._get_local_constants = lambda: hypothesis_providers._local_constants  # type: ignore[attr-defined]
hypothesis_settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "fast"))
# Hypothesis registers its generator of random numbers at the first use, and warns when it cannot see who refers to it:
# that is so for objects that are set aside (gc.freeze, see tests/guards.py).
with deterministic_PRNG():
    pass


# Tests create more objects than they leave, and each async test ends with a collection: more collections cost time.
gc.set_threshold(50_000, 20, 50)


class TimedOut(BaseException):
    """A test hangs. It is not an Exception: no handler may catch it, and Hypothesis must not try the example again."""


class Blocked(AssertionError):
    """A call that waits blocked the event loop."""


# Where they are called in Python. (An audit hook would see them as well, and be called for each `id()` and import too.)
_sleep, _lookup, _connect, _connect_ex = time.sleep, socket.getaddrinfo, socket.socket.connect, socket.socket.connect_ex


def _refuse_sleep(seconds: float) -> None:
    if asyncio._get_running_loop() is not None:
        raise Blocked("time.sleep blocks the event loop: await asyncio.sleep")
    _sleep(seconds)


def _refuse_lookup(host: Any, *args: Any, **kwargs: Any) -> Any:
    if asyncio._get_running_loop() is not None and not _numeric(host):
        raise Blocked(f"socket.getaddrinfo of {host!r} blocks the event loop: await the loop's own getaddrinfo")
    return _lookup(host, *args, **kwargs)


def _numeric(host: Any) -> bool:
    return host is None or bool(re.fullmatch(r"[0-9a-fA-F:.]+", host if isinstance(host, str) else ""))


def _refusing(connect: Callable[[socket.socket, Any], Any]) -> Callable[[socket.socket, Any], Any]:
    def refuse_connect(self: socket.socket, address: Any) -> Any:
        if asyncio._get_running_loop() is not None and self.gettimeout() != 0:
            raise Blocked(f"socket.connect to {address} blocks the event loop: await the loop's own sock_connect")
        return connect(self, address)

    return refuse_connect


time.sleep, socket.getaddrinfo = _refuse_sleep, _refuse_lookup
socket.socket.connect = _refusing(_connect)  # type: ignore[method-assign]
socket.socket.connect_ex = _refusing(_connect_ex)  # type: ignore[method-assign]


def _guard(item: pytest.Item) -> Guard:
    virtual = item.get_closest_marker("virtual")
    factory = functools.partial(VirtualTimeLoop, *virtual.args) if virtual else RealTimeLoop
    return Guard(factory, in_debug_mode(item.nodeid), patient=item.get_closest_marker("blocking") is not None)


@pytest.fixture(scope="session", autouse=True)
def _clusters_of_this_run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """`konverge up` has a list of the user's clusters: those of tests are in no list that a user sees."""
    folder = tmp_path_factory.mktemp("state")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(folder))
        yield folder


_numbers = itertools.count()


@pytest.fixture(autouse=True)
def _clusters_of_this_test(_clusters_of_this_run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two tests that start a cluster at the same time are not in each other's way."""
    monkeypatch.setenv("XDG_STATE_HOME", str(_clusters_of_this_run / str(next(_numbers))))


@pytest.fixture(autouse=True)
def logs_as_before() -> Iterator[None]:
    """A program that runs in the process of a test sets up its logs: the next test finds them as they were."""
    loggers = [(logger, logger.level, list(logger.handlers)) for logger in map(logging.getLogger, ("", "konverge"))]
    yield
    for logger, level, handlers in loggers:
        logger.setLevel(level)
        for handler in logger.handlers[:]:
            if handler not in handlers:
                logger.removeHandler(handler)


@pytest.fixture
def runner(request: pytest.FixtureRequest) -> Iterator[asyncio.Runner]:
    """The loop of this test; async fixtures and the test itself run on it."""
    with _guard(request.node).watching() as guard, guard.loop() as runner:
        yield runner


_of_examples: list[Guard] = []


@pytest.fixture
def loops_of_examples(request: pytest.FixtureRequest) -> Iterator[None]:
    """An async property test: each example has a loop of its own."""
    with _guard(request.node).watching() as guard:
        _of_examples[:] = [guard]
        yield


def _inner(function: Any) -> Any:
    return function.hypothesis.inner_test if hasattr(function, "hypothesis") else function


def _each_on_its_own_loop(function: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    @functools.wraps(function)
    def example(*args: Any, **kwargs: Any) -> None:
        with _of_examples[0].loop() as runner:
            runner.run(function(*args, **kwargs))

    return example


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    # Those with a limit of their own take long: they begin first, so that all workers end at about the same time.
    items.sort(key=lambda item: item.get_closest_marker("limit") is None)
    for item in items:
        if not isinstance(item, pytest.Function):
            continue
        asynchronous = inspect.iscoroutinefunction(inspect.unwrap(_inner(item.obj)))
        if hasattr(item.obj, "hypothesis") and asynchronous:
            if inspect.iscoroutinefunction(_inner(item.obj)):  # once, however many parameters it has
                item.obj.hypothesis.inner_test = _each_on_its_own_loop(_inner(item.obj))
            item.fixturenames.insert(0, "loops_of_examples")
        elif inspect.iscoroutinefunction(item.obj):
            item.fixturenames.insert(0, "runner")


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    names = pyfuncitem._fixtureinfo.argnames
    arguments = {name: pyfuncitem.funcargs[name] for name in names}
    runner: asyncio.Runner = pyfuncitem.funcargs["runner"]
    runner.run(pyfuncitem.obj(**arguments))
    return True


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(fixturedef: Any, request: pytest.FixtureRequest) -> Generator[None, Any, Any]:
    function = fixturedef.func
    if inspect.isasyncgenfunction(function):
        runner: asyncio.Runner = request.getfixturevalue("runner")
        fixturedef.func = _driven(function, runner)
        try:
            return (yield)
        finally:
            fixturedef.func = function
    return (yield)


def _driven(function: Callable[..., AsyncGenerator[Any, None]], runner: asyncio.Runner) -> Callable[..., Iterator[Any]]:
    @functools.wraps(function)
    def fixture(*args: Any, **kwargs: Any) -> Iterator[Any]:
        generator = function(*args, **kwargs)
        yield runner.run(_first(generator))
        runner.run(_finish(generator))

    return fixture


async def _first(generator: AsyncGenerator[Any, None]) -> Any:
    return await anext(generator)


async def _finish(generator: AsyncGenerator[Any, None]) -> None:
    async for _ in generator:
        raise AssertionError("an async fixture yields once")


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    takes = item.get_closest_marker("takes")
    if time.time() + (takes.args[0] if takes else 0.0) >= UNTIL:
        pytest.skip("the time of this run is used up (KONVERGE_UNTIL)")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, None, None]:
    mark = item.get_closest_marker("limit")
    seconds = mark.args[0] if mark else REAL_LIMIT if item.get_closest_marker("real") else LIMIT

    def expired(number: int, frame: Any) -> None:
        raise TimedOut(f"not finished within its limit of {seconds:.0f} s")

    previous = signal.signal(signal.SIGALRM, expired)
    signal.setitimer(signal.ITIMER_REAL, seconds, 1.0)  # again and again: the first may come where it is lost
    try:
        return (yield)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous)


# ------------------------------------------------------------------ an embedded API server


@pytest.fixture
async def server() -> AsyncGenerator[ApiServer, None]:
    from konverge.apiserver import ApiServer

    async with ApiServer() as server:
        yield server


@pytest.fixture
async def client(server: ApiServer) -> AsyncGenerator[Client, None]:
    """A client of that server, with the rights of its administrator."""
    from konverge.client import Client, Static

    async with Client(server.transport, credentials=Static.bearer(server.token)) as client:
        yield client


# ------------------------------------------------------------------ the repository

_AT_START = pytest.StashKey[set[str]]()


def _entries() -> set[str]:
    """What is at the top of the repository, where a program that writes to its working directory leaves its files."""
    return {entry.name for entry in ROOT.iterdir() if not entry.name.startswith(".")} - {"__pycache__", "build"}


def pytest_sessionstart(session: pytest.Session) -> None:
    session.config.stash[_AT_START] = _entries()


def pytest_sessionfinish(session: pytest.Session) -> None:
    if hasattr(session.config, "workerinput"):
        return  # the process that started the workers looks for all of them
    left = _entries() - session.config.stash[_AT_START]
    if left:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
        terminal = session.config.get_terminal_writer()
        terminal.line(f"\ntests left behind in the repository: {', '.join(sorted(left))}", red=True)


# ------------------------------------------------------------------ the specification


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: Any) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if report.when == "call":
        # As user_properties, because these also travel from xdist's workers to the reporting process.
        report.user_properties.extend(("spec", name) for mark in item.iter_markers("spec") for name in mark.args)
    return report


def _specified() -> list[str]:
    text = (ROOT / "docs" / "spec.md").read_text(encoding="utf-8")
    return re.findall(r"^\| ([A-Z]-\d{2,3}) ", text, re.MULTILINE)


def pytest_terminal_summary(terminalreporter: Any) -> None:
    passed = terminalreporter.stats.get("passed", [])
    proven = {value for report in passed for name, value in report.user_properties if name == "spec"}
    known = _specified()
    for name in sorted(proven - set(known)):
        terminalreporter.write_line(f"a test names {name}, which docs/spec.md does not have", red=True)
    open_lines = [name for name in known if name not in proven]
    if len(passed) > 50 and open_lines:
        terminalreporter.section("specification")
        terminalreporter.write_line(f"{len(known) - len(open_lines)} of {len(known)} lines are named by a passing test")
        terminalreporter.write_line("not named: " + " ".join(open_lines))
