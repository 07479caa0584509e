"""The prompt: code with and without await, on a cluster that listens."""

from __future__ import annotations

import inspect
import io
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from konverge.cli import cluster_choice
from konverge.cli.cluster_folders import ClusterFolder
from konverge.cli.main import main
from konverge.client import Kubeconfig

KONVERGE = [sys.executable, "-m", "konverge.cli.main"]


@pytest.fixture(scope="module")
def kubeconfig(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    path = tmp_path_factory.mktemp("shell") / "kubeconfig"
    command = [*KONVERGE, "apiserver", "--no-tls", "--kubeconfig", str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        yield path
        process.send_signal(signal.SIGTERM)


@pytest.mark.parametrize(
    ("code", "printed"),
    [
        ("print(1 + 1)", "2"),
        ("print([s.metadata.name for s in await client.list(Namespace)][0])", "default"),
        ("print((await resource('deploy')).kind, Pod.__name__, NotFound.__name__, ObjectMeta.__name__)", "Deployment"),
        ("try:\n    await client.get(ConfigMap, 'x', 'default')\nexcept NotFound:\n    print('none')", "none"),
        ("async def two():\n    return 2\nprint(await two())", "2"),
        ("t = asyncio.get_running_loop; await asyncio.sleep(0); print(t().is_running())", "True"),
    ],
)
@pytest.mark.spec("O-25")
def test_one_liners(kubeconfig: Path, code: str, printed: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["shell", "--kubeconfig", str(kubeconfig), "-c", code]) == 0
    assert capsys.readouterr().out.startswith(printed)


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("1 +", "SyntaxError"),
        ("await client.get(ConfigMap, 'x', 'default')", "NotFound"),
        ("1 / 0", "ZeroDivisionError"),
        ("raise asyncio.CancelledError", "cancelled"),
    ],
)
@pytest.mark.spec("O-25")
def test_an_error_is_shown_and_is_the_exit_code(
    kubeconfig: Path, code: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["shell", "--kubeconfig", str(kubeconfig), "-c", code]) == 1
    shown = capsys.readouterr().err
    assert message in shown
    assert "prompt.py" not in shown.partition("Traceback")[2].partition("\n")[2].partition("\n")[0]


@pytest.mark.parametrize(
    ("code", "status", "shown"),
    [
        ("import sys; await asyncio.sleep(0); sys.exit(3)", 3, ""),
        ("await asyncio.sleep(0); raise KeyboardInterrupt", 1, "KeyboardInterrupt"),
        (
            "async def leave():\n    raise SystemExit(3)\n"
            "task = asyncio.create_task(leave())\nawait asyncio.wait([task])\n"
            "print(repr(task.exception()), len(await client.list(Namespace)) > 0)",
            0,
            "SystemExit(3) True",
        ),
    ],
)
@pytest.mark.spec("O-25")
def test_code_with_await_may_end_the_program(kubeconfig: Path, code: str, status: int, shown: str) -> None:
    command = [*KONVERGE, "shell", "--kubeconfig", str(kubeconfig), "-c", code]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert ended.returncode == status
    assert (ended.stdout + ended.stderr).strip() == shown


@pytest.mark.spec("O-25")
def test_a_program_on_standard_input(
    kubeconfig: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    program = "async for event in client.watch(Namespace):\n    print(event.type)\n    break"
    monkeypatch.setattr(sys, "stdin", io.StringIO(program))
    assert main(["shell", "--kubeconfig", str(kubeconfig)]) == 0
    assert capsys.readouterr().out == "ADDED\n"


@pytest.mark.spec("O-25")
def test_tasks_that_are_left_running_end_with_it(kubeconfig: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code = (
        "async def forever():\n"
        "    try:\n        await asyncio.sleep(1e9)\n"
        "    finally:\n        print('ended')\n"
        "task = asyncio.create_task(forever())\nawait asyncio.sleep(0)"
    )
    assert main(["shell", "--kubeconfig", str(kubeconfig), "-c", code]) == 0
    assert capsys.readouterr().out == "ended\n"
    assert not [thread for thread in threading.enumerate() if "konverge shell" in thread.name]


@pytest.mark.spec("O-25")
def test_a_server_that_does_not_answer_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "config"
    path.write_text(
        "clusters: [{name: a, cluster: {server: 'http://127.0.0.1:1'}}]\n"
        "contexts: [{name: a, context: {cluster: a}}]\ncurrent-context: a\n"
    )
    assert main(["shell", "--kubeconfig", str(path), "-c", "1"]) == 1
    assert len(capsys.readouterr().err.splitlines()) == 1


@pytest.mark.spec("O-25")
def test_which_cluster_is_meant(kubeconfig: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import argparse
    import os

    from tests.cli.test_named_clusters import record

    def chosen(name: str | None = None, given: Path | None = None) -> str:
        arguments = argparse.Namespace(name=name, kubeconfig=given, context=None)
        return cluster_choice.chosen_cluster(arguments).server

    server = Kubeconfig.read(kubeconfig).config().server
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "none"))
    monkeypatch.setenv("HOME", str(tmp_path))
    folder = ClusterFolder("konverge")
    folder.make()
    folder.write(record(os.getpid(), "konverge", url=server, kubeconfig=str(kubeconfig)))
    assert chosen() == server, "no kubeconfig: the one of `konverge up`"
    assert chosen("konverge") == server
    other = tmp_path / "other"
    other.write_text(kubeconfig.read_text().replace(server, "http://other.example.com"))
    assert chosen(given=other) == "http://other.example.com"
    monkeypatch.setenv("KUBECONFIG", str(other))
    assert chosen() == "http://other.example.com", "what kubectl would use comes first"
    assert main(["shell", "typo", "-c", "1"]) == 2
    assert main(["shell", "konverge", "--kubeconfig", str(other), "-c", "1"]) == 2


@pytest.mark.spec("O-25")
def test_ctrl_c_cancels_what_runs_and_the_prompt_goes_on(
    kubeconfig: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from konverge.cli.prompt import Prompt

    lines = iter(
        [
            "import os, signal",
            "loop = None",
            "async def wait():\n    try:\n        os.kill(os.getpid(), signal.SIGINT); await asyncio.sleep(1e9)\n"
            "    finally:\n        print('cancelled inside')\n",
            "await wait()",
            "print('still here')",
        ]
    )

    def typed(prompt: str) -> str:
        try:
            return next(lines)
        except StopIteration:
            raise EOFError from None

    monkeypatch.setattr("builtins.input", typed)
    with Prompt(Kubeconfig.read(kubeconfig).config()) as prompt:
        prompt.interact()
    printed = capsys.readouterr()
    assert "cancelled inside" in printed.out
    assert "still here" in printed.out
    assert "KeyboardInterrupt" in printed.err
    assert inspect.iscoroutinefunction(prompt.locals["wait"])
