"""`konverge up --detach`: the same command in a session of its own, which outlives the terminal.

The child writes its endpoints as one line of JSON into a pipe when it is ready; an end of the pipe without that line is
its end. All else that it prints, and what operators print, goes to its log.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import select
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any, TextIO

from konverge import clock
from konverge.cli.cluster_folders import ClusterFolder
from konverge.cli.cluster_names import DEFAULT
from konverge.cli.endpoints import Endpoints
from konverge.cli.exit import CommandFailed
from konverge.cli.progress import Progress

LAST_LINES = 15
_ENDS_WITHIN = 10.0
_LOOK_EVERY = 0.2


def start(arguments: argparse.Namespace) -> Endpoints:
    """Start a cluster in the background and wait until it is ready. Raises CommandFailed, after the end of its log."""
    folder = ClusterFolder(arguments.name or DEFAULT)
    folder.refuse_if_running()
    folder.make()
    child = _spawn(folder.name, [*arguments.argv, "--in-background"], folder.log)
    deadline = clock.monotonic() + arguments.wait
    try:
        facts = _facts(child, deadline)
    except BaseException:
        _end(child)
        raise
    if facts is not None:
        child.returncode = 0  # it lives on, and the object must not warn of that
        return Endpoints.of(facts)
    in_time = child.poll() is not None or clock.monotonic() < deadline
    code = _end(child)
    print(_last_lines(folder.log), file=sys.stderr)
    ended = f"ended with exit code {code}" if in_time else f"was not ready after {arguments.wait} s and was ended"
    raise CommandFailed(f"the cluster {folder.name!r} {ended}; its log: {folder.log}")


def facts_apart() -> TextIO:
    """In the child: where the facts go. From now on its standard output is the log, also for what it starts: the pipe
    is read for one line only, and then closed.
    """
    facts = os.fdopen(os.dup(1), "w", encoding="utf-8")
    sys.stdout.flush()
    os.dup2(2, 1)
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(line_buffering=True)
    return facts


def _spawn(name: str, argv: list[str], log: Path) -> subprocess.Popen[bytes]:
    if log.exists():
        log.replace(log.with_name("log.1"))
    # -P: not the files of this folder
    command = [sys.executable, "-P", "-m", "konverge.cli.background_child", name]
    log.touch(0o600)
    with log.open("wb") as file:
        child = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=file, start_new_session=True
        )
    assert child.stdin is not None
    with suppress(BrokenPipeError), child.stdin as pipe:  # a child that has ended says why in its log
        pipe.write(json.dumps(argv).encode())
    return child


def _facts(child: subprocess.Popen[bytes], deadline: float) -> dict[str, Any] | None:
    """What the child wrote; None if it ended, or if the time is over."""
    assert child.stdout is not None
    text = b""
    with child.stdout as pipe, Progress() as progress:
        while clock.monotonic() < deadline:
            progress.show("starting the API server, controllers, nodes and operators …")
            if not select.select([pipe], [], [], _LOOK_EVERY)[0]:
                continue
            piece = os.read(pipe.fileno(), 1 << 16)
            if not piece:
                with suppress(subprocess.TimeoutExpired):
                    child.wait(_ENDS_WITHIN)
                return None
            *lines, text = (text + piece).split(b"\n")
            for facts in map(_ready, lines):
                if facts is not None:
                    return facts
    return None


def _ready(line: bytes) -> dict[str, Any] | None:
    """The facts in a line, unless it is something else: code may run, and print, before standard output is the log."""
    try:
        facts = json.loads(line)
    except ValueError:
        return None
    return facts if isinstance(facts, dict) and "ready" in facts else None


def _end(child: subprocess.Popen[bytes]) -> int:
    if child.poll() is None:
        child.send_signal(signal.SIGTERM)
        try:
            child.wait(_ENDS_WITHIN)
        except subprocess.TimeoutExpired:
            child.kill()
    return child.wait()


def _last_lines(log: Path) -> str:
    lines = log.read_text(errors="replace").splitlines()
    return "\n".join(lines[-LAST_LINES:])
