"""Clusters by name: one process for each, found again by `status`, ended by `down`, whatever became of it."""

from __future__ import annotations

import argparse
import json
import os
import shlex
import signal
import socket
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from konverge import clock
from konverge.cli import background, local_processes, user_kubeconfig
from konverge.cli.cluster_folders import ClusterFolder, Record, Taken, already_runs, known_clusters
from konverge.cli.endpoints import Endpoints
from konverge.cli.exit import CommandFailed
from konverge.cli.lifetime import lifetime
from konverge.cli.main import main, parser
from konverge.cli.user_kubeconfig import merge
from konverge.client import Client, Kubeconfig
from konverge.objects.kinds.core_v1 import Node

SMALL = ("--operators", "none", "--nodes", "1")
ENTRIES = {"clusters": [{"cluster": {"server": "https://x"}}], "users": [{"user": {"token": "t"}}]}
KONVERGE = [sys.executable, "-m", "konverge.cli.main"]


def konverge(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*KONVERGE, *arguments], capture_output=True, text=True, check=False)


@pytest.fixture
def sleeper() -> Iterator[subprocess.Popen[bytes]]:
    """A process that ends when asked to."""
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        yield process
        process.kill()


@pytest.fixture
def stubborn() -> Iterator[subprocess.Popen[bytes]]:
    """A process that ignores being asked to end."""
    code = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); print(flush=True); input()"
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        yield process
        process.kill()


def record(process: int, name: str = "dev", **more: Any) -> Record:
    mark = local_processes.start_mark(process)
    return Record(**{"name": name, "pid": process, "started": mark, "since": "2026-01-01T00:00:00Z", **more})


@pytest.mark.spec("O-20")
def test_a_name_is_held_by_one_process_only() -> None:
    folder = ClusterFolder("dev")
    with folder.claimed():
        folder.write(record(os.getpid(), url="https://127.0.0.1:1", kubeconfig="/where/it/is"))
        claim = f"from konverge.cli.cluster_folders import *\nwith ClusterFolder({folder.name!r}).claimed(): pass"
        other = subprocess.run([sys.executable, "-c", claim], capture_output=True, text=True, check=False)
        assert "Taken" in other.stderr
        for advice in ("https://127.0.0.1:1", "export KUBECONFIG=/where/it/is", "konverge down dev", "--name"):
            assert advice in other.stderr
    with pytest.raises(Taken), folder.claimed():
        """The record alone is enough: there are file systems without locks."""
    folder.clear()
    with folder.claimed():
        assert folder.record() is None


@pytest.fixture
def holder() -> Iterator[subprocess.Popen[bytes]]:
    """A process that has the name `dev`."""
    code = "with ClusterFolder('dev').claimed(): print(flush=True); input()"
    with subprocess.Popen(
        [sys.executable, "-c", f"from konverge.cli.cluster_folders import *\n{code}"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        yield process
        process.kill()


@pytest.mark.spec("O-20")
def test_a_name_is_taken_before_there_is_a_record(
    holder: subprocess.Popen[bytes], capsys: pytest.CaptureFixture[str]
) -> None:
    folder = ClusterFolder("dev")
    with pytest.raises(Taken, match="is starting: wait for it"), folder.claimed():
        """It is not free."""
    with pytest.raises(Taken, match="is starting: wait for it"):
        folder.refuse_if_running()
    assert main(["down", "dev"]) == 1
    assert "is starting: wait for it" in capsys.readouterr().err
    holder.communicate()
    folder.refuse_if_running()
    with folder.claimed():
        """It is free again."""


@pytest.mark.spec("O-20", "O-21")
def test_a_cluster_whose_process_cannot_be_seen_runs_as_long_as_its_lock_is_held(
    holder: subprocess.Popen[bytes], sleeper: subprocess.Popen[bytes], capsys: pytest.CaptureFixture[str]
) -> None:
    """As in a container that shares the folder: the number belongs to no process here, or to another one."""
    folder = ClusterFolder("dev")
    folder.kubeconfig.write_text("{}")
    folder.write(record(sleeper.pid, started="another time", url="http://127.0.0.1:1", kubeconfig="/none"))
    other = ClusterFolder("other")
    other.make()
    other.write(record(2**22 + 1, "other"))
    assert main(["down", "--all"]) == 1
    assert "runs in another container" in capsys.readouterr().err
    assert folder.record() is not None
    assert folder.kubeconfig.exists()
    assert (sleeper.poll(), holder.poll()) == (None, None)
    assert other.record() is None, "the others are ended nevertheless"
    with pytest.raises(Taken, match="runs already"):
        folder.refuse_if_running()
    main(["status", "--output", "json"])
    [cluster] = json.loads(capsys.readouterr().out)
    assert (cluster["state"], cluster["memory"]) == ("not answering", 0)
    holder.communicate()
    main(["status", "--output", "json"])
    assert json.loads(capsys.readouterr().out)[0]["state"] == "crashed"
    assert main(["down"]) == 1, "there is none of the usual name"
    assert main(["down", "dev"]) == 0
    assert folder.record() is None


@pytest.mark.parametrize("option", [["--database", "{}"], ["--database={}"]])
def test_passwords_are_not_in_the_record(option: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    argv = ["up", *(part.format("mysql://ann:se@cret@db.example.com:3306/n") for part in option), "--name", "dev"]
    with lifetime(parser().parse_args(argv, argparse.Namespace(argv=[*argv, "a@b"]))):
        written = (ClusterFolder("dev").path / "cluster.json").read_text()
        assert main(["status", "--output", "json"]) == 0
    shown = json.loads(capsys.readouterr().out)[0]["arguments"]
    assert "cret" not in written
    assert "mysql://ann:…@db.example.com:3306/n" in " ".join(shown)
    assert shown[-3:] == ["--name", "dev", "a@b"]


@pytest.mark.spec("C-41")
def test_the_seed_is_one_of_the_first_lines_and_of_the_facts() -> None:
    places = Endpoints(url="u", kubeconfig=Path("k"), nodes=1, state="", seed=7)
    assert "\n  seed        7 (--seed)\n" in places.welcome()
    assert places.facts()["seed"] == 7
    assert Endpoints.of(places.facts()) == places
    earlier = {key: value for key, value in places.facts().items() if key != "seed"}
    assert Endpoints.of(earlier).seed == 0, "facts of a release before"


def test_the_line_that_is_to_be_copied_is_quoted() -> None:
    path = "/my files/it's"
    welcome = Endpoints(url="u", kubeconfig=Path(path), nodes=1, state="").welcome()
    for text in (welcome, already_runs(record(1, kubeconfig=path))):
        assert f"export KUBECONFIG={shlex.quote(path)}" in text


def test_the_mark_of_a_process_does_not_depend_on_language_and_zone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ps = tmp_path / "ps"
    ps.write_text('#!/bin/sh\necho "$LC_ALL $TZ"\n')
    ps.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setenv("TZ", "Europe/Paris")
    assert local_processes._ps(1, "lstart=") == "C UTC"


@pytest.mark.spec("O-20")
def test_the_folder_is_for_its_user_alone() -> None:
    folder = ClusterFolder("dev")
    folder.path.mkdir(parents=True, mode=0o755)
    with folder.claimed():
        folder.write(record(os.getpid()))
        assert stat.S_IMODE(folder.path.stat().st_mode) == 0o700
        assert stat.S_IMODE((folder.path / "cluster.json").stat().st_mode) == 0o600


@pytest.mark.spec("O-20")
def test_a_process_with_the_same_number_that_started_at_another_time_is_not_it(
    sleeper: subprocess.Popen[bytes], capsys: pytest.CaptureFixture[str]
) -> None:
    folder = ClusterFolder("dev")
    folder.make()
    folder.write(record(sleeper.pid, started="another time"))
    assert main(["down", "dev"]) == 0
    assert sleeper.poll() is None, "it was not ours to end"
    assert "had been killed or had crashed" in capsys.readouterr().out
    assert folder.record() is None


@pytest.mark.spec("O-21")
def test_down_ends_the_process_and_removes_what_it_left(
    sleeper: subprocess.Popen[bytes], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kubeconfig = tmp_path / "config"
    merge(kubeconfig, "konverge-dev", ENTRIES, switch=False)
    folder = ClusterFolder("dev")
    folder.make()
    folder.kubeconfig.touch()
    folder.remember_port(6443)
    folder.write(record(sleeper.pid, merged=str(kubeconfig), data_dir="/my/state"))
    assert main(["down", "dev"]) == 0
    assert sleeper.wait() == -signal.SIGTERM
    assert (folder.record(), folder.kubeconfig.exists(), folder.port) == (None, False, 6443)
    assert not yaml.safe_load(kubeconfig.read_text())["contexts"]
    assert "/my/state" in capsys.readouterr().out
    assert main(["down", "dev"]) == 0, "a second time there is nothing to do"
    assert "does not run" in capsys.readouterr().out


@pytest.mark.spec("O-21", "O-22")
def test_a_context_that_could_not_be_taken_out_is_taken_out_the_next_time(
    sleeper: subprocess.Popen[bytes],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(user_kubeconfig, "LOCKED_FOR", 0.0)
    kubeconfig = tmp_path / "config"
    merge(kubeconfig, "konverge-dev", ENTRIES, switch=False)
    folder = ClusterFolder("dev")
    folder.make()
    folder.write(record(sleeper.pid, merged=str(kubeconfig)))
    lock = tmp_path / "config.lock"
    lock.touch()
    assert main(["down", "dev"]) == 1
    assert sleeper.wait() == -signal.SIGTERM
    shown = capsys.readouterr()
    assert "is gone" not in shown.out
    assert "config.lock" in shown.err
    main(["status"])
    assert "crashed" in capsys.readouterr().out
    lock.unlink()
    assert main(["down", "dev"]) == 0
    assert not yaml.safe_load(kubeconfig.read_text())["contexts"]
    assert folder.record() is None


@pytest.mark.spec("O-22")
def test_a_cluster_that_ends_by_itself_keeps_its_record_while_its_context_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(user_kubeconfig, "LOCKED_FOR", 0.0)
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "config"))
    merge(tmp_path / "config", "konverge-dev", ENTRIES, switch=False)
    arguments = argparse.Namespace(name="dev", merge_kubeconfig=True, data_dir=None, in_background=False, argv=[])
    with lifetime(arguments):
        (tmp_path / "config.lock").touch()
    folder = ClusterFolder("dev")
    kept = folder.record()
    assert kept is not None
    folder.write(msgspec.structs.replace(kept, pid=2**22 + 1))  # as when this process has ended
    arguments.merge_kubeconfig = False
    with lifetime(arguments):
        (tmp_path / "config.lock").unlink()
    assert folder.record() is None
    assert not yaml.safe_load((tmp_path / "config").read_text())["contexts"]


@pytest.mark.spec("O-21")
def test_one_that_does_not_end_is_killed(stubborn: subprocess.Popen[bytes], capsys: pytest.CaptureFixture[str]) -> None:
    folder = ClusterFolder("dev")
    folder.make()
    folder.write(record(stubborn.pid))
    assert main(["down", "dev", "--wait", "1"]) == 0
    assert stubborn.wait() == -signal.SIGKILL
    assert "killed" in capsys.readouterr().out
    assert folder.record() is None


@pytest.mark.spec("O-21")
def test_all_ends_all_and_a_wrong_name_ends_none(
    sleeper: subprocess.Popen[bytes], capsys: pytest.CaptureFixture[str]
) -> None:
    for name, pid in (("one", sleeper.pid), ("two", 2**22 + 1)):
        folder = ClusterFolder(name)
        folder.make()
        folder.write(record(pid, name))
    assert main(["down", "one", "tow"]) == 1
    assert "there are: one, two" in capsys.readouterr().err
    assert sleeper.poll() is None
    assert main(["down", "one", "--all"]) == 2
    assert main(["down", "--all"]) == 0
    assert sleeper.wait() == -signal.SIGTERM
    assert [folder.record() for folder in known_clusters()] == [None, None]


@pytest.mark.spec("O-21")
def test_status_tells_those_that_crashed_and_those_that_do_not_answer(
    sleeper: subprocess.Popen[bytes], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    closed = f"http://127.0.0.1:{port}"
    kubeconfig = tmp_path / "config"
    merge(kubeconfig, "k", {**ENTRIES, "clusters": [{"cluster": {"server": closed}}]}, switch=True)
    records = [
        record(2**22 + 1, "crashed", started="5"),
        record(sleeper.pid, "deaf", url=closed, kubeconfig=str(kubeconfig)),
        record(sleeper.pid, "starting"),
    ]
    for entry in records:
        folder = ClusterFolder(entry.name)
        folder.make()
        folder.write(entry)
    assert main(["status", "--output", "json"]) == 0
    states = {cluster["name"]: cluster["state"] for cluster in json.loads(capsys.readouterr().out)}
    assert states == {"crashed": "crashed", "deaf": "not answering", "starting": "starting"}
    assert main(["status", "nope"]) == 1
    assert "not there" in capsys.readouterr().out


@pytest.mark.parametrize("text", ["", "Upper", "a/b", "..", "-a", "a" * 51])
def test_names_are_names_of_folders(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["up", f"--name={text}"])
    assert "is not a name for a cluster" in capsys.readouterr().err


def test_a_record_that_cannot_be_read_is_none() -> None:
    folder = ClusterFolder("dev")
    folder.make()
    (folder.path / "cluster.json").write_text('{"name": ')
    assert folder.record() is None
    with folder.claimed():
        """Nor is it in the way."""


async def nodes(kubeconfig: str) -> list[str]:
    async with Client.connect(Kubeconfig.read(kubeconfig).config()) as client:
        return [node.metadata.name for node in await client.list(Node)]


@pytest.mark.blocking
@pytest.mark.spec("O-20", "O-21", "O-22")
async def test_a_cluster_in_the_background_from_start_to_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "config"))
    database = ("--database", "mysql://nacos:hidden@db.example.com/nacos")
    up = konverge("up", "--detach", "--name", "dev", "--merge-kubeconfig", "--output", "json", *database, *SMALL)
    assert up.returncode == 0, up.stderr
    places = json.loads(up.stdout)
    try:
        running = ClusterFolder("dev").record()
        assert running is not None
        process = Path(f"/proc/{running.pid}/cmdline")
        listed = process.read_bytes() if process.exists() else b"background_child\0dev"
        assert b"background_child\0dev" in listed
        assert b"hidden" not in listed
        assert await nodes(places["kubeconfig"]) == ["node-1"]
        assert await nodes(str(tmp_path / "config")) == ["node-1"]
        again = konverge("up", "--name", "dev", *SMALL)
        assert again.returncode == 1
        assert places["url"] in again.stderr
        [cluster] = json.loads(konverge("status", "--output", "json").stdout)
        assert (cluster["state"], cluster["url"], cluster["nodes"]) == ("running", places["url"], 1)
        assert cluster["memory"] > 10 << 20
        assert cluster["objects"] > 50
    finally:
        down = konverge("down", "dev")
    assert down.returncode == 0, down.stderr
    assert not Path(places["kubeconfig"]).exists()
    assert not yaml.safe_load((tmp_path / "config").read_text())["contexts"]
    assert json.loads(konverge("status", "--output", "json").stdout) == []


@pytest.mark.spec("O-21")
def test_one_that_fails_to_start_says_why(tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    (data / "state.sqlite").write_text("not a database" * 100)
    (data / "token").write_text("")
    up = konverge("up", "--detach", "--data-dir", str(data), *SMALL)
    assert up.returncode == 1
    assert "ended with exit code 1" in up.stderr
    errors = [line for line in up.stderr.splitlines() if line.startswith("konverge up: ")]
    assert len(errors) == 2, "the end of its log comes first"
    assert "token" in errors[0]


@pytest.mark.spec("O-20")
def test_the_port_of_the_last_time_is_used_again_and_a_crash_is_noticed() -> None:
    urls = []
    for _ in range(2):
        with subprocess.Popen(
            [*KONVERGE, "up", "--output", "json", *SMALL], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        ) as process:
            assert process.stdout is not None
            assert process.stderr is not None
            urls.append(json.loads(process.stdout.readline())["url"])
            process.kill()
            errors = process.stderr.read()
    assert urls[0] == urls[1]
    assert "was killed or crashed" in errors


@pytest.mark.spec("O-21")
def test_what_an_operator_prints_goes_to_the_log_of_a_cluster_in_the_background(tmp_path: Path) -> None:
    operator = tmp_path / "chatty.py"
    operator.write_text(
        "import os\n"
        "from konverge import Context, Controller, CustomResource, Manager, Model\n"
        "class Chat(CustomResource[Model, Model], group='example.com', version='v1'):\n"
        "    '''Talks.'''\n"
        "async def reconcile(ctx: Context[Chat]) -> None: ...\n"
        "manager = Manager(name='chatty')\n"
        "manager.add(Controller(Chat, reconcile))\n"
        "print('hello from', os.getpid(), flush=True)\n"
    )
    up = konverge("up", "--detach", "--output", "json", "--nodes", "1", "--operators", str(operator))
    try:
        assert up.returncode == 0, up.stderr
        assert json.loads(up.stdout.splitlines()[-1])["ready"]
        [cluster] = json.loads(konverge("status", "--output", "json").stdout)
        assert f"hello from {cluster['pid']}\n" in Path(cluster["log"]).read_text()
    finally:
        konverge("down")


@pytest.mark.parametrize("noise", ["", "a line\\n", "{}\\n5\\n[]\\n", "\\xff\\n"])
def test_the_facts_are_told_from_what_else_is_printed(noise: str) -> None:
    code = f"""print("{noise}" '{{"ready": true, "url": "u"}}', flush=True); input()"""
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert background._facts(child, clock.monotonic() + 60) == {"ready": True, "url": "u"}


def test_one_that_closes_its_output_in_time_has_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    def spawn(name: str, argv: list[str], log: Path) -> subprocess.Popen[bytes]:
        log.touch()
        code = "import os, time; os.close(1); time.sleep(60)"
        return subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)

    monkeypatch.setattr(background, "_spawn", spawn)
    monkeypatch.setattr(background, "_ENDS_WITHIN", 0.01)
    with pytest.raises(CommandFailed, match="ended with exit code"):
        background.start(argparse.Namespace(name="dev", argv=[], wait=60))
