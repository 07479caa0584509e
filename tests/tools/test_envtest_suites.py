"""Suites that start envtest: built once, run without leaving anything behind, and what their output says."""

from __future__ import annotations

import json
import os
import select
import signal
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tools import real_binaries
from tools.suites import __main__ as command
from tools.suites import envtest, modules, servers
from tools.suites.envtest import Suite
from tools.suites.envtest_suites import CONTROLLER_RUNTIME, OPERATORS

SUITE = Suite("demo", "example.com/demo", "v1.2.3", ("a/b",), known={"is slow": "a short limit"})
PASSED = "\x1b[1mRan 3 of 4 Specs in 1.2 seconds\x1b[0m\nSUCCESS! -- 3 Passed | 0 Failed | 1 Pending | 0 Skipped\nok\n"
SUMMARY = "FAIL! -- \x1b[32m2 Passed\x1b[0m | \x1b[91m1 Failed\x1b[0m | 0 Pending | 0 Skipped\n"
FAILED = f"""[FAIL] Client Create [It] should fail
{SUMMARY}Summarizing 1 Failure:
  [FAIL] Client Create [It] should fail
"""


@pytest.fixture(autouse=True)
def cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setattr(real_binaries, "cache", lambda: tmp_path / "cache" / "kubernetes")
    return tmp_path / "cache"


@pytest.fixture
def go(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A stand-in for Go that notes its calls; `test -c` makes a program that answers what `answer` says."""
    module, tools, calls = tmp_path / "module", tmp_path / "bin", tmp_path / "calls"
    (module / "a/b").mkdir(parents=True)
    (module / "go.mod").write_text("module example.com/demo\n")
    tools.mkdir()
    (tools / "go").write_text(
        f"#!/bin/sh\necho $GOFLAGS $PWD $* >> {calls}\n"
        f'[ "$1" = test ] && cp {tmp_path}/answer $5 && chmod +x $5\ntest ! -e {tmp_path}/broken\n'
    )
    (tools / "go").chmod(0o755)
    (tmp_path / "answer").write_text("#!/bin/sh\necho built\n")
    monkeypatch.setenv("PATH", f"{tools}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("GOFLAGS", "-p=1")
    monkeypatch.setattr(modules, "sources", lambda name, version: module)
    calls.touch()
    return calls


def answer(go: Path, script: str) -> None:
    """What the tests do, once they are built."""
    (go.parent / "answer").write_text(f"#!/bin/sh\n{script}\n")


# ------------------------------------------------------------------ building


def test_the_tests_of_a_package_are_built_once(go: Path, cache: Path) -> None:
    for _ in range(2):
        program = envtest.build(SUITE, "a/b")
        assert program == cache / "programs/suites/built/demo-v1.2.3-a-b"
    copy = cache / "programs/suites/demo-v1.2.3"
    assert (copy / "go.mod").exists()
    assert [line.split()[:4] for line in go.read_text().splitlines()] == [
        ["-p=1", "-mod=mod", str(copy), "list"],
        ["-p=1", "-mod=mod", str(copy), "test"],
    ]
    assert [path.name for path in program.parent.iterdir()] == [program.name], "nothing unfinished is left"


def test_what_cannot_be_built_says_so(go: Path) -> None:
    (go.parent / "broken").touch()
    with pytest.raises(modules.Unavailable, match=r"example\.com/demo: what it imports cannot be downloaded"):
        envtest.build(SUITE, "a/b")


def test_what_cannot_be_built_in_time_says_so(go: Path) -> None:
    with pytest.raises(modules.Unavailable, match=r"building the tests of example\.com/demo took longer than 0 s"):
        envtest.build(SUITE, "a/b", limit=0)
    assert not SUITE.program("a/b").exists()


# ------------------------------------------------------------------ running


def test_the_tests_run_in_their_folder_with_the_programs(go: Path, tmp_path: Path) -> None:
    answer(go, 'echo "$PWD|$*|$KUBEBUILDER_ASSETS|$TMPDIR|$KUBEBUILDER_CONTROLPLANE_START_TIMEOUT"')
    result = envtest.run(SUITE, "a/b", Path("/assets"), tmp_path / "run", options=["-x"], limit=7)
    folder = SUITE.folder / "a/b"
    assert result.output == f"{folder}|-test.timeout=7s -x|/assets|{tmp_path}/run/tmp|120s\n"
    assert (tmp_path / "run/demo-v1.2.3-a-b.log").read_text() == result.output


@pytest.mark.parametrize("end", ["exit 3", "exec sleep 1000"])
def test_servers_that_the_tests_leave_running_end_with_them(
    go: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, end: str
) -> None:
    """Each in a process group of its own, as envtest starts them. Tests that hang are at their limit at once."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader, wait = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK), select.select
    if "sleep" in end:
        monkeypatch.setattr(select, "select", lambda *_: wait([reader], [], []))
    answer(go, f"set -m\nsleep 1000 > {pipe} &\necho started > {pipe}\n{end}")
    result = envtest.run(SUITE, "a/b", Path("/assets"), tmp_path / "run")
    assert result.failed == (envtest.WHOLE,)
    assert (os.read(reader, 9), os.read(reader, 9)) == (b"started\n", b""), "nobody has the pipe open any more"
    os.close(reader)


def test_servers_end_too_when_the_run_is_ended(go: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """While the tests run, this process is told to end, as a time limit does it."""
    pipe, usual, wait = tmp_path / "pipe", signal.getsignal(signal.SIGTERM), select.select
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)

    def ended(*_: Any) -> None:
        wait([reader], [], [])
        os.kill(os.getpid(), signal.SIGTERM)

    monkeypatch.setattr(select, "select", ended)
    answer(go, f"set -m\nsleep 1000 > {pipe} &\necho started > {pipe}\nexec sleep 1000")
    command.end_in_order()
    try:
        with pytest.raises(SystemExit, match="143"):
            envtest.run(SUITE, "a/b", Path("/assets"), tmp_path / "run")
    finally:
        signal.signal(signal.SIGTERM, usual)
    assert (os.read(reader, 9), os.read(reader, 9)) == (b"started\n", b"")
    os.close(reader)


@pytest.fixture
def taken() -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


@pytest.mark.usefixtures("go")
def test_a_port_that_is_taken_is_named(taken: int, tmp_path: Path) -> None:
    suite = Suite("demo", "example.com/demo", "v1.2.3", ("a/b",), ports=(taken,))
    with pytest.raises(modules.Unavailable, match=f"the tests of demo listen on port {taken}, which is taken"):
        envtest.run(suite, "a/b", Path("/assets"), tmp_path / "run")


# ------------------------------------------------------------------ reading


def test_specs_are_counted() -> None:
    result = envtest.read(SUITE, "client", 0, PASSED + PASSED)
    assert (result.package, result.passed, result.failed) == ("client", 6, ())


@pytest.mark.parametrize("verdict", ["FAIL", "TIMEDOUT", "PANICKED!"])
def test_a_failed_spec_is_named_once(verdict: str) -> None:
    result = envtest.read(SUITE, "client", 1, FAILED.replace("[FAIL]", f"[{verdict}]"))
    assert (result.passed, result.failed, result.known) == (2, ("Client Create [It] should fail",), ())


def test_a_spec_that_is_known_to_fail_is_no_failure() -> None:
    result = envtest.read(SUITE, "client", 1, f"  [FAIL] Client [It] is slow\n{SUMMARY}")
    assert (result.passed, result.failed, result.known) == (2, (), ("Client [It] is slow",))
    assert SUITE.reason("Client [It] is slow") == "a short limit"


@pytest.mark.parametrize("output", ["undefined: x", "[FAIL] Client [It] is slow\npanic: out of memory"])
def test_tests_that_do_not_get_to_their_end_have_failed(output: str) -> None:
    assert envtest.read(SUITE, "client", 1, output).failed == (envtest.WHOLE,)


# ------------------------------------------------------------------ the command


@pytest.fixture
def ran(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[str]:
    """What was run, without running it. JobSet's suite cannot be had; the last package of LWS fails."""
    calls: list[str] = []

    def run(suite: Suite, package: str, assets: Path, scratch: Path) -> envtest.Result:
        if suite.name == "jobset":
            raise modules.Unavailable("port 8080 is taken")
        calls.append(json.dumps([suite.name, package, assets.name]))
        failed = ("x",) if package.endswith("webhooks") else ()
        return envtest.Result(package, 2, failed, "", known=())

    monkeypatch.setattr(command, "WORK", tmp_path / "work")
    monkeypatch.setattr(servers, "drop_in", lambda folder: folder)
    monkeypatch.setattr(envtest, "run", run)
    return calls


def test_operators_are_run_one_by_one(ran: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["operators"]) == 1
    packages = [(suite.name, package) for suite in OPERATORS for package in suite.packages if suite.name != "jobset"]
    assert ran == [json.dumps([name, package, "assets"]) for name, package in packages]
    output = capsys.readouterr().out
    assert "jobset is left out: port 8080 is taken" in output
    assert "| rabbitmq v2.20.0 | 6 of 6 specs | nothing |" in output
    assert output.splitlines()[-1] == "| lws v0.9.0 | 4 of 5 specs | test/integration/webhooks: x |"


def test_one_operator_is_run(ran: list[str]) -> None:
    assert command.main(["operators", "--only", "trust-manager"]) == 0
    assert len(ran) == 2
    with pytest.raises(ValueError, match="no operator redis; there are rabbitmq, trust-manager, jobset, lws"):
        command.main(["operators", "--only", "redis"])


def test_packages_of_controller_runtime_are_chosen_by_their_folder(ran: list[str]) -> None:
    assert command.main(["controller-runtime", "--only", "pkg/client"]) == 0
    assert ran == [json.dumps(["controller-runtime", "pkg/client", "assets"])]


def test_every_known_failure_has_a_reason() -> None:
    for suite in (CONTROLLER_RUNTIME, *OPERATORS):
        assert all(text and reason for text, reason in suite.known.items()), suite.name
