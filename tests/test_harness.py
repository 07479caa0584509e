"""The harness itself: its checks must be able to fail."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from textwrap import dedent
from xml.etree import ElementTree

import pytest

from tests.blocking import LIMIT, BlockingTime

ROOT = Path(__file__).resolve().parents[1]
CASES = """
    import asyncio, logging, pytest, socket, time
    from hypothesis import given, strategies as st
    from konverge.observe import logs
    from tests import blocking
    from tests.blocking import LIMIT, REFERENCE, _reference_work

    blocking.slowness = lambda: 1.0  # however uneven this machine is just now
    keep = []

    async def test_leaves_a_task():
        keep.append(asyncio.create_task(asyncio.Event().wait(), name="forgotten"))

    async def test_leaves_a_socket():
        keep.append(socket.socket())

    async def test_blocks():
        time.sleep(0)

    async def test_looks_up():
        socket.getaddrinfo("localhost", 80)

    @pytest.mark.parametrize("connect", ["connect", "connect_ex"])
    async def test_connects(connect):
        with socket.socket() as other:
            getattr(other, connect)(("127.0.0.1", 1))

    async def test_connects_without_waiting():
        with socket.socket() as other:
            other.setblocking(False)
            assert socket.getaddrinfo("127.0.0.1", 80)
            assert other.connect_ex(("127.0.0.1", 1))

    async def test_computes():
        for _ in range(int(3 * LIMIT / REFERENCE)):
            _reference_work()

    @pytest.mark.parametrize("call", ["call_soon", "call_later"])
    async def test_calls_from_a_thread(call):
        loop = asyncio.get_running_loop()
        arguments = (0, int) if call == "call_later" else (int,)
        getattr(loop, call)(*arguments)  # which is looked at once, and the thread each time
        await asyncio.to_thread(getattr(loop, call), *arguments)

    async def fails():
        raise LookupError("never retrieved")

    async def test_leaves_an_exception():
        asyncio.create_task(fails())
        await asyncio.sleep(0.01)

    async def test_has_a_callback_that_fails():
        asyncio.get_running_loop().call_soon(int, "not a number")
        await asyncio.sleep(0)

    @given(st.just(1))
    async def test_example_leaves_a_task(_):
        keep.append(asyncio.create_task(asyncio.Event().wait(), name="of an example"))

    @given(st.just(1))
    async def test_example_leaves_a_socket(_):
        keep.append(socket.socket())

    @given(st.just(1))
    async def test_example_leaves_an_exception(_):
        await test_leaves_an_exception()

    @pytest.fixture
    async def loop_of_fixture():
        loop = asyncio.get_running_loop()
        yield loop
        assert asyncio.get_running_loop() is loop

    async def test_shares_its_loop(loop_of_fixture):
        assert asyncio.get_running_loop() is loop_of_fixture

    @given(st.integers())
    async def test_fails_for_large(n):
        assert n < 1000

    def test_sets_up_logs():
        logs.set_up("error", "text")

    def test_finds_its_logs(caplog):
        assert logging.getLogger("konverge").level == logging.NOTSET
        assert not [one for one in logging.getLogger().handlers if isinstance(one.formatter, logs.TextFormatter)]

    @pytest.mark.limit(0.2)
    @given(st.integers())
    async def test_hangs(n):
        await asyncio.Event().wait()
"""
LEAVES_A_FILE = """
    import tests.conftest

    def test_leaves_a_file(tmp_path):
        (tmp_path / "docs").symlink_to(tests.conftest.ROOT / "docs")
        (tmp_path / "derby.log").touch()
        tests.conftest.ROOT = tmp_path
"""


TWO_OF_WHICH_THE_FIRST_TAKES_ALL_THE_TIME = """
    import time
    import tests.conftest

    def test_first():
        tests.conftest.UNTIL = time.time()

    def test_second():
        raise AssertionError("it has begun")
"""
IN_DEBUG_MODE = """
    import asyncio
    from hypothesis import given, strategies as st

    async def test_loop():
        assert asyncio.get_running_loop().get_debug()

    @given(st.none())
    async def test_loops_of_examples(_):
        assert asyncio.get_running_loop().get_debug()
"""


def run(folder: Path, source: str, place: str = ".") -> tuple[int, str]:
    """Run tests under our conftest, in a process of their own: the status and the output. Leaves `report.xml`."""
    (folder / "conftest.py").write_text("from tests.conftest import *\n")
    (folder / place).mkdir(parents=True, exist_ok=True)
    (folder / place / "test_cases.py").write_text(dedent(source))
    options = [
        "-rs",
        "-p",
        "no:cacheprovider",
        "-p",
        "no:unraisableexception",
        "--junitxml",
        "report.xml",
        "--rootdir",
        ".",
    ]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *options],
        cwd=folder, env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True,
    )  # fmt: skip
    return done.returncode, done.stdout + done.stderr


@pytest.fixture(scope="module")
def error_of(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], str]:
    """The error of one of the cases by its name; empty when it passes."""
    folder = tmp_path_factory.mktemp("harness")
    _, output = run(folder, CASES)
    errors: dict[str, str] = {}
    for case in ElementTree.parse(folder / "report.xml").iter("testcase"):
        results = [result for result in case if result.tag in ("failure", "error")]
        text = "".join(f"{result.get('message')}\n{result.text}" for result in results)
        errors[case.get("name", "")] = errors.get(case.get("name", ""), "") + text
    assert errors, output
    return errors.__getitem__


def test_a_task_left_behind_is_an_error(error_of: Callable[[str], str]) -> None:
    error = error_of("test_leaves_a_task")
    assert "tasks left behind" in error
    assert "forgotten" in error


def test_a_socket_left_open_is_an_error(error_of: Callable[[str], str]) -> None:
    assert "1 sockets left open" in error_of("test_leaves_a_socket")


def test_logs_that_a_test_set_up_do_not_reach_the_next(error_of: Callable[[str], str]) -> None:
    assert not error_of("test_sets_up_logs")
    assert not error_of("test_finds_its_logs")


def test_a_blocking_call_is_an_error(error_of: Callable[[str], str]) -> None:
    assert "time.sleep blocks the event loop" in error_of("test_blocks")
    assert "getaddrinfo of 'localhost' blocks the event loop" in error_of("test_looks_up")
    assert "connect to ('127.0.0.1', 1) blocks the event loop" in error_of("test_connects[connect]")
    assert "connect to ('127.0.0.1', 1) blocks the event loop" in error_of("test_connects[connect_ex]")
    assert error_of("test_connects_without_waiting") == ""


def test_a_callback_that_computes_too_long_is_an_error(error_of: Callable[[str], str]) -> None:
    assert "the loop was blocked" in error_of("test_computes")


@pytest.mark.parametrize(
    ("seconds", "slowness", "is_error"), [(0.9, 1.0, False), (0.9, 0.5, False), (1.0, 1.0, True), (1.9, 2.0, False)]
)
def test_a_slower_machine_has_more_time(seconds: float, slowness: float, is_error: bool) -> None:
    blocking = BlockingTime()
    blocking.worst, blocking.slowness, blocking.what = seconds * LIMIT, slowness, "a callback"
    assert bool(blocking.error()) == is_error


def test_an_exception_that_is_never_retrieved_is_an_error(error_of: Callable[[str], str]) -> None:
    assert "LookupError('never retrieved')" in error_of("test_leaves_an_exception")
    assert "not a number" in error_of("test_has_a_callback_that_fails")


def test_examples_of_property_tests_are_watched_too(error_of: Callable[[str], str]) -> None:
    assert "of an example" in error_of("test_example_leaves_a_task")
    assert "1 sockets left open" in error_of("test_example_leaves_a_socket")
    assert "LookupError('never retrieved')" in error_of("test_example_leaves_an_exception")


@pytest.mark.parametrize("call", ["call_soon", "call_later"])
def test_a_call_from_another_thread_is_an_error(error_of: Callable[[str], str], call: str) -> None:
    assert "Non-thread-safe operation" in error_of(f"test_calls_from_a_thread[{call}]")


@pytest.mark.parametrize(("place", "outcome"), [("tests/wire", "2 passed"), ("tests/kube", "2 failed")])
def test_the_lower_layers_run_in_debug_mode(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str, outcome: str
) -> None:
    monkeypatch.delenv("PYTHONASYNCIODEBUG", raising=False)
    _, output = run(tmp_path, IN_DEBUG_MODE, place)
    assert outcome in output


def test_async_fixtures_share_the_loop_of_their_test(error_of: Callable[[str], str]) -> None:
    assert error_of("test_shares_its_loop") == ""


def test_async_property_tests_run_every_example(error_of: Callable[[str], str]) -> None:
    assert "n=1000" in error_of("test_fails_for_large")


def test_a_property_test_that_hangs_is_ended(error_of: Callable[[str], str]) -> None:
    assert "not finished within its limit" in error_of("test_hangs")


def test_a_file_left_in_the_repository_is_an_error(tmp_path: Path) -> None:
    status, output = run(tmp_path, LEAVES_A_FILE)
    assert status == pytest.ExitCode.TESTS_FAILED
    assert "1 passed" in output
    assert "left behind in the repository: derby.log" in output


def test_no_test_begins_after_the_time_of_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KONVERGE_UNTIL", str(time.time() + 3600))
    status, output = run(tmp_path, TWO_OF_WHICH_THE_FIRST_TAKES_ALL_THE_TIME)
    assert (status, "1 passed, 1 skipped" in output) == (0, True)
    assert "the time of this run is used up" in output
    monkeypatch.setenv("KONVERGE_UNTIL", str(time.time()))
    _, output = run(tmp_path, TWO_OF_WHICH_THE_FIRST_TAKES_ALL_THE_TIME)
    assert "2 skipped" in output


ONE_THAT_TAKES_LONG_AND_ONE_THAT_DOES_NOT = """
import pytest


@pytest.mark.takes(600)
def test_takes_long() -> None:
    pass


@pytest.mark.takes(60)
def test_is_short() -> None:
    pass
"""


def test_no_test_begins_that_takes_longer_than_what_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KONVERGE_UNTIL", str(time.time() + 500))
    _, output = run(tmp_path, ONE_THAT_TAKES_LONG_AND_ONE_THAT_DOES_NOT)
    assert "1 passed, 1 skipped" in output
    monkeypatch.delenv("KONVERGE_UNTIL")
    _, output = run(tmp_path, ONE_THAT_TAKES_LONG_AND_ONE_THAT_DOES_NOT)
    assert "2 passed" in output
