"""The harness itself: its checks must be able to fail."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest_plugins = ["pytester"]

CONFTEST = "from tests.conftest import *  # noqa: F403\n"


def run(pytester: pytest.Pytester, source: str) -> pytest.RunResult:
    pytester.makeconftest(CONFTEST)
    pytester.makepyfile(source)
    pytester._monkeypatch.setenv("PYTHONPATH", str(Path(__file__).resolve().parents[1]))
    return pytester.runpytest_subprocess("-p", "no:cacheprovider", "-p", "no:unraisableexception")


def test_a_task_left_behind_is_an_error(pytester: pytest.Pytester) -> None:
    result = run(
        pytester,
        """
        import asyncio
        keep = []
        async def test_leaks():
            keep.append(asyncio.create_task(asyncio.Event().wait(), name="forgotten"))
        """,
    )
    result.assert_outcomes(passed=1, errors=1)
    result.stdout.fnmatch_lines(["*tasks left behind*forgotten*"])


def test_a_socket_left_open_is_an_error(pytester: pytest.Pytester) -> None:
    result = run(
        pytester,
        """
        import socket
        keep = []
        async def test_leaks():
            keep.append(socket.socket())
        """,
    )
    result.assert_outcomes(passed=1, errors=1)
    result.stdout.fnmatch_lines(["*sockets left open*"])


def test_a_blocking_call_is_an_error(pytester: pytest.Pytester) -> None:
    result = run(
        pytester,
        """
        import time
        async def test_blocks():
            time.sleep(0)
        """,
    )
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*blocks the event loop*"])


def test_a_callback_that_computes_too_long_is_an_error(pytester: pytest.Pytester) -> None:
    result = run(
        pytester,
        """
        from tests.holds import LIMIT, REFERENCE, _reference_work
        async def test_computes():
            for _ in range(int(3 * LIMIT / REFERENCE)):
                _reference_work()
        """,
    )
    result.assert_outcomes(passed=1, errors=1)
    result.stdout.fnmatch_lines(["*the loop was held*"])


def test_async_fixtures_share_the_loop_of_their_test(pytester: pytest.Pytester) -> None:
    result = run(
        pytester,
        """
        import asyncio, pytest
        @pytest.fixture
        async def loop_of_fixture():
            loop = asyncio.get_running_loop()
            yield loop
            assert asyncio.get_running_loop() is loop
        async def test_same(loop_of_fixture):
            assert asyncio.get_running_loop() is loop_of_fixture
        """,
    )
    result.assert_outcomes(passed=1)


def test_async_property_tests_run_every_example(pytester: pytest.Pytester) -> None:
    result = run(
        pytester,
        """
        from hypothesis import given, strategies as st
        @given(st.integers())
        async def test_fails_for_large(n):
            assert n < 1000
        """,
    )
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*n=1000*"])


def test_a_call_from_another_thread_is_an_error(pytester: pytest.Pytester) -> None:
    result = run(
        pytester,
        """
        import asyncio, pytest
        @pytest.mark.parametrize("call", ["call_soon", "call_later"])
        async def test_calls(call):
            loop = asyncio.get_running_loop()
            arguments = (0, int) if call == "call_later" else (int,)
            await asyncio.to_thread(getattr(loop, call), *arguments)
        """,
    )
    result.assert_outcomes(failed=2)
    result.stdout.fnmatch_lines(["*Non-thread-safe operation*"])


def test_a_file_left_in_the_repository_is_an_error(pytester: pytest.Pytester) -> None:
    result = run(
        pytester,
        """
        import tests.conftest
        def test_leaves(tmp_path):
            (tmp_path / "docs").symlink_to(tests.conftest.ROOT / "docs")
            (tmp_path / "derby.log").touch()
            tests.conftest.ROOT = tmp_path
        """,
    )
    result.assert_outcomes(passed=1)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(["*left behind in the repository: derby.log"])
