"""What an exec plugin is run with, what becomes of what it prints, and when it is run again."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from konverge import clock
from konverge.client import Credential, CredentialError, ExecPlugin, ExecSpec
from konverge.client.exec_plugin import MAX_OUTPUT, VERSIONS

PIPE, DEVNULL = asyncio.subprocess.PIPE, asyncio.subprocess.DEVNULL


def answer(**status: Any) -> bytes:
    return json.dumps({"kind": "ExecCredential", "apiVersion": VERSIONS[0], "status": status}).encode()


class Process:
    """A plugin that prints the same each time it is run; one without output never ends by itself."""

    def __init__(self, output: bytes | None, stderr: bytes | None = b"", status: int = 0) -> None:
        self.output, self.stderr, self.status = output, stderr, status
        self.returncode: int | None = None
        self.done: list[str] = []
        self.runs: list[tuple[tuple[str, ...], dict[str, Any]]] = []

    async def start(self, *command: str, **options: Any) -> Process:
        self.runs.append((command, options))
        self.returncode = None
        return self

    async def communicate(self) -> tuple[bytes, bytes | None]:
        if self.output is None:
            await asyncio.Event().wait()
        self.returncode = self.status
        return self.output or b"", self.stderr

    def kill(self) -> None:
        self.done.append("killed")

    async def wait(self) -> None:
        self.returncode = -9
        self.done.append("waited for")

    @property
    def received(self) -> dict[str, Any]:
        """The ExecCredential that the last run received."""
        info: dict[str, Any] = json.loads(self.runs[-1][1]["env"]["KUBERNETES_EXEC_INFO"])
        return info


class Terminal:
    def __init__(self, answer: bool) -> None:
        self.answer = answer

    def isatty(self) -> bool:
        return self.answer


def plugin(process: Process, patch: pytest.MonkeyPatch, **more: Any) -> ExecPlugin:
    patch.setattr(asyncio, "create_subprocess_exec", process.start)
    return ExecPlugin(ExecSpec(command=sys.executable, api_version=VERSIONS[0], **more))


# ------------------------------------------------------------------ what it is run with


async def test_a_plugin_gets_its_arguments_its_environment_and_the_cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("INHERITED", "yes")
    monkeypatch.setenv("REPLACED", "no")
    process = Process(answer(token="t"))
    more = {"args": ("get", "--token"), "env": {"REPLACED": "yes"}, "cluster": {"server": "https://k"}}
    await plugin(process, monkeypatch, interactive_mode="Never", **more).renew()
    ((command, options),) = process.runs
    assert command == (sys.executable, "get", "--token")
    assert (options["env"]["INHERITED"], options["env"]["REPLACED"]) == ("yes", "yes")
    assert process.received == {
        "kind": "ExecCredential",
        "apiVersion": VERSIONS[0],
        "spec": {"interactive": False, "cluster": {"server": "https://k"}},
    }


async def test_a_plugin_hears_nothing_of_the_cluster_unless_it_asks(monkeypatch: pytest.MonkeyPatch) -> None:
    process = Process(answer(token="t"))
    await plugin(process, monkeypatch, interactive_mode="Never").renew()
    assert process.received["spec"] == {"interactive": False}


@pytest.mark.parametrize(
    ("mode", "terminal", "interactive"),
    [
        ("Never", True, False),
        ("IfAvailable", True, True),
        ("IfAvailable", False, False),
        ("Always", True, True),
    ],
)
async def test_a_plugin_may_ask_its_user_only_where_there_is_one(
    monkeypatch: pytest.MonkeyPatch, mode: str, terminal: bool, interactive: bool
) -> None:
    monkeypatch.setattr(sys, "stdin", Terminal(terminal))
    process = Process(answer(token="t"), stderr=None if interactive else b"")
    await plugin(process, monkeypatch, interactive_mode=mode).renew()
    ((_, options),) = process.runs
    shared = (options["stdin"] is None, options["stderr"] is None)
    assert shared == (interactive, interactive)
    if not interactive:
        assert (options["stdin"], options["stderr"]) == (DEVNULL, PIPE)
    assert (options["stdout"], process.received["spec"]["interactive"]) == (PIPE, interactive)


@pytest.mark.parametrize("stdin", [None, Terminal(False)])
async def test_a_plugin_that_needs_a_terminal_is_not_run_without(
    monkeypatch: pytest.MonkeyPatch, stdin: Terminal | None
) -> None:
    monkeypatch.setattr(sys, "stdin", stdin)
    process = Process(answer(token="t"))
    with pytest.raises(CredentialError, match=r"\(user 'u'\) needs a terminal"):
        await plugin(process, monkeypatch, interactive_mode="Always", source="user 'u'").renew()
    assert process.runs == []


async def test_a_plugin_is_looked_for_on_the_path_of_its_own_environment(tmp_path: Path) -> None:
    program = tmp_path / "login"
    program.write_text("#!/bin/sh\necho '" + answer(token="t").decode() + "'\n")
    program.chmod(0o755)
    env = {"PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}"}
    spec = ExecSpec(command="login", api_version=VERSIONS[0], env=env, interactive_mode="Never")
    assert await ExecPlugin(spec).renew() == Credential("Bearer t")


async def test_a_plugin_that_is_no_program(tmp_path: Path) -> None:
    program = tmp_path / "login"
    program.write_bytes(b"\x00\x01")
    program.chmod(0o755)
    with pytest.raises(CredentialError, match="cannot be started: Exec format error"):
        await ExecPlugin(ExecSpec(command=str(program), api_version=VERSIONS[0], interactive_mode="Never")).renew()


# ------------------------------------------------------------------ how it ends


@pytest.mark.virtual
async def test_a_plugin_that_does_not_end_is_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    process = Process(None)
    start = clock.monotonic()
    with pytest.raises(CredentialError, match="did not finish within 7 s"):
        await plugin(process, monkeypatch, interactive_mode="Never", timeout=7).renew()
    assert (process.done, clock.monotonic() - start) == (["killed", "waited for"], pytest.approx(7))


@pytest.mark.virtual
async def test_a_plugin_is_killed_with_the_task_that_waits_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    process = Process(None)
    waiting = asyncio.create_task(plugin(process, monkeypatch, interactive_mode="Never").renew())
    await asyncio.sleep(1)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert process.done == ["killed", "waited for"]


async def test_a_plugin_that_ends_by_itself_is_not_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    process = Process(answer(token="t"))
    await plugin(process, monkeypatch, interactive_mode="Never").renew()
    assert process.done == []


@pytest.mark.parametrize(
    ("stderr", "said"),
    [
        (b" log in first \n", "failed with exit status 3: log in first"),
        (b"x" * 501 + b"the end", "failed with exit status 3: " + "x" * 493 + "the end"),
        (b"", "failed with exit status 3"),
        (None, "failed with exit status 3"),
    ],
)
async def test_a_plugin_that_fails_is_quoted(monkeypatch: pytest.MonkeyPatch, stderr: bytes | None, said: str) -> None:
    process = Process(answer(token="t"), stderr=stderr, status=3)
    with pytest.raises(CredentialError) as error:
        await plugin(process, monkeypatch, interactive_mode="Never").renew()
    assert str(error.value) == f"the credential plugin {sys.executable!r} {said}"


# ------------------------------------------------------------------ what it prints


async def test_a_plugin_may_print_so_much_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    fits = answer(token="t").ljust(MAX_OUTPUT)
    assert await plugin(Process(fits), monkeypatch, interactive_mode="Never").renew() == Credential("Bearer t")
    with pytest.raises(CredentialError, match="printed more than"):
        await plugin(Process(fits + b" "), monkeypatch, interactive_mode="Never").renew()


@pytest.mark.parametrize(
    ("output", "said"),
    [
        (answer(token="one\ntwo"), "no header can hold"),
        (answer(token="t\u00f6ken"), "no header can hold"),
        (answer(token="t", clientCertificateData="C"), "without its key"),
        (answer(), "neither a token nor a certificate"),
        (b'{"kind":"ExecCredential","apiVersion":"%b"}' % VERSIONS[0].encode(), "neither a token nor a certificate"),
        (answer(token="t").replace(b"ExecCredential", b"Secret"), "was asked for"),
        (answer(token="t").replace(b"io/v1", b"io/v1beta1"), "was asked for"),
        (b"\xff", "something other than an ExecCredential"),
    ],
)
async def test_what_no_credential_can_be_made_of(monkeypatch: pytest.MonkeyPatch, output: bytes, said: str) -> None:
    credentials = plugin(Process(output), monkeypatch, interactive_mode="Never")
    with pytest.raises(CredentialError, match=said):
        await credentials.renew()
    assert credentials.current() is None


async def test_a_token_may_come_with_a_certificate(monkeypatch: pytest.MonkeyPatch) -> None:
    output = answer(token="t", clientCertificateData="C", clientKeyData="K")
    assert await plugin(Process(output), monkeypatch, interactive_mode="Never").renew() == ("Bearer t", "C", "K")


@pytest.mark.virtual
async def test_a_credential_is_used_until_ten_seconds_before_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    from datetime import UTC, datetime

    end = datetime.fromtimestamp(clock.now() + 60, UTC).isoformat()
    process = Process(answer(token="t", expirationTimestamp=end))
    credentials = plugin(process, monkeypatch, interactive_mode="Never")
    held = await credentials.renew()
    await asyncio.sleep(49)
    assert credentials.current() is held
    await asyncio.sleep(1)
    assert credentials.current() is None
    process.output = answer(token="for good")
    renewed = await credentials.renew(held)
    await asyncio.sleep(10**6)
    assert credentials.current() is renewed
    assert (renewed.authorization, len(process.runs)) == ("Bearer for good", 2)
