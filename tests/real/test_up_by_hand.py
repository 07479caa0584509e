"""`konverge up`, `top`, `status` and `down` as a person uses them: on a terminal, with kubectl, saving files."""

from __future__ import annotations

import codecs
import fcntl
import json
import os
import pty
import re
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

KONVERGE = [sys.executable, "-m", "konverge.cli.main"]
LIMIT = 120.0
OPERATOR = """
from konverge import Condition, Context, Controller, CustomResource, Manager, Model, ObjectMeta, Reconciler
from konverge.objects.kinds.core_v1 import ConfigMap

class Spec(Model):
    text: str

class Note(CustomResource[Spec, Model], group="docs.example.com", version="v1"):
    "A note."

class Notes(Reconciler[Note]):
    async def reconcile(self, ctx):
        data = {"text": ctx.obj.spec.text + "FIRST"}
        await ctx.apply(ConfigMap(metadata=ObjectMeta(name=ctx.request.name), data=data))
        return None

manager = Manager(name="notes").add(Controller(Note, Notes(), owns=[ConfigMap]))
"""
NOTE = "apiVersion: docs.example.com/v1\nkind: Note\nmetadata: {name: note}\nspec: {text: %s}\n"
ENTER, LEAVE = "\x1b[?1049h", "\x1b[?1049l"


def save(path: Path, text: str) -> None:
    """In one piece, as most editors do: half a file may be at rest for long on a busy machine."""
    new = path.with_name(f"{path.name}.new")
    new.write_text(text)
    new.replace(path)


class Terminal:
    """A process on a terminal of 24 rows and 80 columns, and what it draws."""

    def __init__(self, *arguments: str) -> None:
        self.ours, theirs = pty.openpty()
        self.resize(24, 80)
        environment = {key: value for key, value in os.environ.items() if key not in ("LINES", "COLUMNS", "NO_COLOR")}
        self.process = subprocess.Popen(
            [*KONVERGE, *arguments], stdin=theirs, stdout=theirs, stderr=theirs, env={**environment, "TERM": "xterm"}
        )
        os.close(theirs)
        os.set_blocking(self.ours, False)
        self.text = ""
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")  # a read may end within a character

    def resize(self, lines: int, columns: int) -> None:
        fcntl.ioctl(self.ours, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))

    def type(self, text: str) -> None:
        os.write(self.ours, text.encode())

    def frames(self) -> list[list[str]]:
        """What was on the screen after each drawing, without colours. A drawing that is not complete does not count."""
        return [
            re.sub(r"\x1b\[[0-9;]*[mK]", "", frame.partition("\x1b[J")[0]).replace("\r", "").split("\n")
            for frame in self.text.split("\x1b[H")[1:]
            if "\x1b[J" in frame
        ]

    def fits(self, lines: int, columns: int) -> bool:
        """Whether the last drawing does."""
        frame = self.frames()[-1]
        return len(frame) <= lines and max(map(len, frame)) < columns

    def until(self, seen: Callable[[], bool]) -> None:
        deadline = time.monotonic() + LIMIT
        while not seen():
            assert time.monotonic() < deadline, self.text[-3000:]
            self._read()
            time.sleep(0.05)

    def end(self) -> int:
        deadline = time.monotonic() + LIMIT
        while self.process.poll() is None and time.monotonic() < deadline:
            self._read()
            time.sleep(0.05)
        while self._read():
            pass
        return self.process.wait(1)

    def _read(self) -> bool:
        """Whether there was something to read."""
        try:
            data = os.read(self.ours, 1 << 20)
        except (BlockingIOError, OSError):
            return False
        self.text += self._decoder.decode(data)
        return bool(data)


@contextmanager
def terminal(*arguments: str) -> Iterator[Terminal]:
    made = Terminal(*arguments)
    try:
        yield made
    finally:
        made.process.kill()
        made.process.wait()
        os.close(made.ours)


@pytest.mark.spec("O-24")
def test_the_view_of_up_fits_the_terminal_follows_its_size_and_leaves_no_trace() -> None:
    with terminal("up", "--operators", "webapp", "--nodes", "1") as screen:
        screen.until(lambda: any("2 objects, all ready" in line for frame in screen.frames()[-1:] for line in frame))
        before, _ = screen.text.split(ENTER)
        assert "ready https://" in before
        assert "\x1b[" not in before.replace("\r\x1b[K", ""), "text alone, after the line of its start is taken away"
        assert all(len(frame) <= 24 and max(map(len, frame)) < 80 for frame in screen.frames())
        assert any("WebApp" in line and "default/hello" in line for line in screen.frames()[-1])
        assert not screen.fits(10, 40)
        screen.resize(10, 40)
        screen.process.send_signal(signal.SIGWINCH)  # what the terminal of a person does by itself
        screen.until(lambda: screen.fits(10, 40))  # a drawing that had begun may come before
        screen.process.send_signal(signal.SIGTERM)
        assert screen.end() == 0
        after = screen.text.split(LEAVE)[-1]
        assert "\x1b[" not in after


@pytest.mark.spec("O-24")
def test_top_shows_a_cluster_by_name_and_q_ends_it() -> None:
    up = ["up", "--detach", "--name", "dev", "--operators", "webapp", "--nodes", "1"]
    subprocess.run([*KONVERGE, *up], check=True)
    try:
        with terminal("top", "dev") as screen:
            screen.until(lambda: any("default/hello" in line for frame in screen.frames()[-1:] for line in frame))
            screen.until(lambda: any("node-1" in line for frame in screen.frames()[-1:] for line in frame))
            assert all(len(frame) <= 24 and max(map(len, frame)) < 80 for frame in screen.frames())
            screen.type("q")
            assert screen.end() == 0
            assert screen.text.endswith(LEAVE) or "\x1b[" not in screen.text.split(LEAVE)[-1]
        plain = subprocess.Popen([*KONVERGE, "top", "dev", "--kind", "webapps"], stdout=subprocess.PIPE, text=True)
        assert plain.stdout is not None
        assert plain.stdout.readline().startswith("  WebApp default/hello ")
        plain.terminate()
        plain.stdout.close()
        assert plain.wait() == 0
    finally:
        subprocess.run([*KONVERGE, "down", "dev"], check=True)


@pytest.mark.spec("O-23")
def test_saving_a_manifest_or_the_operator_shows_in_the_cluster(tmp_path: Path, kubectl: Path) -> None:
    code, note, kubeconfig = tmp_path / "notes.py", tmp_path / "note.yaml", tmp_path / "kubeconfig"
    code.write_text(OPERATOR)
    note.write_text(NOTE % "hello")
    command = [*KONVERGE, "up", "--operators", str(code), "-f", str(note), "--watch", "--nodes", "0"]
    log = tmp_path / "log"

    def text() -> str:
        get = [str(kubectl), "--kubeconfig", str(kubeconfig), "get", "configmap", "note", "-o", "jsonpath={.data.text}"]
        return subprocess.run(get, capture_output=True, text=True, check=False).stdout

    def until(seen: Callable[[], bool]) -> None:
        deadline = time.monotonic() + LIMIT
        while not seen():
            assert time.monotonic() < deadline, log.read_text()
            time.sleep(0.2)

    with log.open("w") as out:
        process = subprocess.Popen([*command, "--kubeconfig", str(kubeconfig)], stdout=out, stderr=out)
    try:
        until(lambda: text() == "helloFIRST")
        save(note, NOTE % "changed")
        until(lambda: text() == "changedFIRST")
        until(lambda: "note/note spec.text hello → changed" in log.read_text())
        save(code, OPERATOR + "def broken(")
        until(lambda: "was never closed" in log.read_text())
        save(note, NOTE % "old")
        until(lambda: text() == "oldFIRST")  # the operator of before goes on
        save(code, OPERATOR.replace("FIRST", "SECOND"))
        until(lambda: text() == "oldSECOND")
        save(note, "{apiVersion: v1, kind: ConfigMap, metadata: {name: other, namespace: default}}\n")
        until(lambda: text() == "")
    finally:
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0, log.read_text()
    assert "Traceback" not in log.read_text()


@pytest.mark.spec("O-22")
def test_kubectl_uses_the_context_and_can_write_the_file_meanwhile(
    tmp_path: Path, kubectl: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = tmp_path / "config"
    config.write_text("# mine\ncurrent-context: work\ncontexts:\n- {name: work, context: {cluster: a, user: b}}\n")
    monkeypatch.setenv("KUBECONFIG", str(config))
    up = ["up", "--detach", "--name", "dev", "--operators", "none", "--nodes", "1", "--merge-kubeconfig", "-o", "json"]
    places = json.loads(subprocess.run([*KONVERGE, *up], capture_output=True, check=True).stdout)
    try:
        assert "# mine" in config.read_text()
        nodes = [str(kubectl), "--context", places["context"], "get", "nodes", "-o", "name"]
        assert subprocess.run(nodes, capture_output=True, text=True, check=True).stdout.split() == ["node/node-1"]
        subprocess.run([str(kubectl), "config", "set-context", "another", "--cluster=a"], check=True)
        subprocess.run([str(kubectl), "config", "use-context", places["context"]], check=True)
    finally:
        subprocess.run([*KONVERGE, "down", "dev"], check=True)
    view = [str(kubectl), "config", "get-contexts", "-o", "name"]
    assert subprocess.run(view, capture_output=True, text=True, check=True).stdout.split() == ["another", "work"]
