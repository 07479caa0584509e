"""A real server on a real file system that is full: refused writes, health, room again, a restart."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.real  # several processes, on a file system of their own
SIZE = 48 * 1024 * 1024
CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
DEADLINE = 60.0


class Host:
    """A process in a mount namespace of its own, which alone sees a small file system at `folder`."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        script = f"mount -t tmpfs -o size={SIZE} tmpfs {folder} && echo mounted && exec sleep infinity"
        command = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", script]
        if shutil.which("unshare") is None:
            pytest.skip("there is no unshare here, which makes a file system of its own")
        self._keeper = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        assert self._keeper.stdout is not None
        if self._keeper.stdout.readline() != "mounted\n":
            problem = self._keeper.communicate()[1]
            pytest.skip(f"no small file system can be mounted here: {problem}")
        self.folder = folder
        self.outside = Path(f"/proc/{self._keeper.pid}/root{folder}")
        """The folder as the test sees it."""

    def command(self, *arguments: str) -> list[str]:
        enter = ["nsenter", "--preserve-credentials", "--user", "--mount", f"--target={self._keeper.pid}"]
        return [*enter, sys.executable, "-m", "konverge.cli.main", *arguments]

    def fill(self) -> None:
        with contextlib.suppress(OSError), (self.outside / "filler").open("ab", buffering=0) as file:
            while True:
                file.write(bytes(4096))

    def make_room(self) -> None:
        (self.outside / "filler").unlink()

    def close(self) -> None:
        self._keeper.kill()
        self._keeper.communicate()


APISERVER = ("apiserver", "--no-tls")
UP = ("up", "--no-tls", "--nodes", "1", "--operators", "none", "-o", "json")


class Server:
    """`konverge apiserver` or `konverge up` in there."""

    def __init__(self, host: Host, *command: str) -> None:
        data = host.folder / "data"
        whole = host.command(*command, "--data-dir", str(data))
        environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
        self.process = subprocess.Popen(
            whole, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
        )
        assert self.process.stdout is not None
        ready = self.process.stdout.readline()
        self.errors = ""
        if "http://" not in ready:
            self.errors = self.process.communicate(timeout=DEADLINE)[1]
            return
        self._address = re.findall(r"http://([\d.:]+)", ready)[0]
        self._token = (host.outside / "data" / "token").read_text()

    def send(self, method: str, path: str, body: Any = None) -> tuple[int, str, bytes]:
        """Status, Retry-After and body."""
        connection = HTTPConnection(self._address, timeout=DEADLINE)
        with contextlib.closing(connection):
            headers = {"authorization": f"Bearer {self._token}", "content-type": "application/json"}
            connection.request(method, path, None if body is None else json.dumps(body), headers)
            answer = connection.getresponse()
            return answer.status, answer.headers.get("retry-after", ""), answer.read()

    def create(self, name: str, size: int) -> tuple[int, str, bytes]:
        return self.send("POST", CONFIG_MAPS, {"metadata": {"name": name}, "data": {"x": "x" * size}})

    def names(self) -> set[str]:
        return {item["metadata"]["name"] for item in json.loads(self.send("GET", CONFIG_MAPS)[2])["items"]}

    def stop(self) -> int:
        """By SIGTERM; the exit code."""
        self.process.send_signal(signal.SIGTERM)
        self.errors = self.process.communicate(timeout=DEADLINE)[1]
        return self.process.returncode


@pytest.fixture
def host(tmp_path: Path) -> Iterator[Host]:
    made = Host(tmp_path / "disk")
    try:
        yield made
    finally:
        made.close()


@contextlib.contextmanager
def serving(host: Host, *command: str) -> Iterator[Server]:
    server = Server(host, *(command or APISERVER))
    try:
        yield server
    finally:
        if server.process.poll() is None:
            server.process.kill()
            server.process.communicate()


@pytest.mark.spec("T-05", "T-02")
@pytest.mark.limit(180)
def test_a_full_disk_and_room_again(host: Host) -> None:
    acknowledged, refused = set(), set()
    with serving(host) as server:
        assert not server.errors
        host.fill()
        for number in range(200):  # the log's space is there from the start, so some pass
            status, retry_after, body = server.create(f"c{number}", 400_000)
            if status != 201:
                break
            acknowledged.add(f"c{number}")
        assert (status, retry_after) == (503, "2"), body
        assert str(host.folder / "data").encode() in body
        refused.add(f"c{number}")
        assert server.send("GET", "/readyz")[0] == 500
        assert server.send("GET", "/livez")[0] == 200
        assert server.names() - {"kube-root-ca.crt"} == acknowledged
        assert server.create("small", 1)[0] == 503
        refused.add("small")
        host.make_room()
        wait_until_ready(server)
        assert server.create("after", 400_000)[0] == 201
        acknowledged.add("after")
        host.fill()
        while server.create("again", 400_000)[0] == 201:
            assert server.send("DELETE", f"{CONFIG_MAPS}/again")[0] in (200, 503)
        assert server.stop() == 0, server.errors
        assert "is not known" not in server.errors
    with serving(host) as server:
        assert server.process.returncode == 1
        assert "is full" in server.errors
        assert len(server.errors.splitlines()) == 1, server.errors
    host.make_room()
    with serving(host) as server:
        assert acknowledged <= server.names()
        assert not refused & server.names()
        assert server.stop() == 0


@pytest.mark.spec("T-05")
@pytest.mark.limit(180)
@pytest.mark.parametrize("command", [APISERVER, UP], ids=["apiserver", "up"])
def test_a_process_ends_in_any_state_of_its_disk(host: Host, command: tuple[str, ...]) -> None:
    with serving(host, *command) as server:
        assert not server.errors
        host.fill()
        fill_the_log(server)
        assert server.stop() == 0, server.errors
    host.make_room()
    with serving(host, *command) as server:
        assert not server.errors
        (host.outside / "data" / "state.db").unlink()
        host.fill()
        fill_the_log(server)
        errors = server.process.communicate(timeout=DEADLINE)[1]
        assert server.process.returncode == 1
        last = errors.splitlines()[-1]
        assert last.startswith(f"konverge {command[0]}: the state {host.folder}/data/state.db is gone"), errors


def fill_the_log(server: Server) -> None:
    """Write until a write is refused, or the server ends."""
    with contextlib.suppress(OSError):
        for number in range(200):
            if server.create(f"fill{number}", 400_000)[0] >= 500:
                return


def wait_until_ready(server: Server) -> None:
    end = time.monotonic() + DEADLINE
    while server.send("GET", "/readyz")[0] != 200:
        assert time.monotonic() < end, "the server does not come back"
        time.sleep(0.1)
