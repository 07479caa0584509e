"""What an isolated process sees of this machine, and what it can do to it: next to nothing.

Where the kernel does not allow isolation these tests are skipped; that it is noticed and said is tested everywhere.
"""

from __future__ import annotations

import json
import os
import pty
import socket
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing, asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from konverge.objects.kinds.core_v1 import Event, Pod
from konverge.sim.cluster import Cluster
from konverge.sim.processes import ProcessRule, isolation, permitted, runtime, warden
from konverge.sim.processes.isolation import Isolation, RunningAsRoot, why_not
from tests.sim.conftest import SPACE
from tests.sim.processes.support import (
    SCRIPT,
    WAITS,
    is_over,
    is_running,
    lines,
    main_status,
    marked,
    output,
    process_cluster,
    script,
    until,
    waits_for,
)
from tests.sim.processes.test_sessions import ran

pytestmark = [pytest.mark.spec("T-14"), pytest.mark.long]

POSSIBLE = why_not() == ""
isolated = pytest.mark.skipif(not POSSIBLE, reason="this machine cannot isolate processes")
VOLUMES = {"volumes": [{"name": "data", "emptyDir": {}}, {"name": "conf", "configMap": {"name": "conf"}}]}
MOUNTS = [{"name": "data", "mountPath": "/data"}, {"name": "conf", "mountPath": "/conf"}]
RULE = replace(SCRIPT, image="*", env={"DATA": "{mount:/data}", "CONF": "{mount:/conf}", "ROOT": "{root}"})


def config_map(**data: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "conf", "namespace": SPACE}, "data": data}


def tried(*attempts: str) -> str:
    """A script that says for each statement whether it was possible."""
    code = [
        "import glob, json, os, signal, subprocess, sys",
        "def attempt(text):",
        "    try: exec(text, globals())",
        "    except Exception as error: return type(error).__name__",
        "    return 'done'",
        f"print(json.dumps([attempt(text) for text in {list(attempts)!r}]))",
    ]
    return lines(*code)


async def answers(cluster: Cluster, *attempts: str) -> list[str]:
    pod = script("curious", tried(*attempts), volumeMounts=MOUNTS, pod=VOLUMES)
    [line] = await output(cluster, pod)
    return list(json.loads(line))


@pytest.fixture
def outdoors(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder that all users may read and write, and that is not hidden as those for temporary files are."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o777)
        monkeypatch.setattr(isolation, "temporary_folders", set)
        yield folder


# ------------------------------------------------------------------ what it sees


@isolated
async def test_the_state_of_the_server_and_other_pods_are_hidden(outdoors: Path) -> None:
    state = outdoors / "state"
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s", "namespace": SPACE}}
    async with process_cluster(RULE, data_dir=state) as cluster:
        await cluster.client.create(config_map(key="theirs"))
        await cluster.client.create({**secret, "stringData": {"password": "of the administrator"}})
        await cluster.client.create(script("other", WAITS, volumeMounts=MOUNTS, pod=VOLUMES))
        other = await until(cluster.client, "other", is_running)
        assert cluster.processes is not None
        theirs = cluster.processes._root / "pods" / other.metadata.uid
        assert (theirs / "volumes/conf/key").exists()
        found = await answers(
            cluster,
            f"open({str(state / 'state.db')!r}, 'rb')",
            f"os.listdir({str(theirs)!r})",
            f"open({str(theirs / 'volumes/conf/key')!r})",
            f"if not os.listdir({str(cluster.processes._root / 'pods')!r})[1:]: raise OSError",
            "os.chdir('../../../../../..'); open('state.db', 'rb')",
            "if not glob.glob('../../../../*/volumes/*/key')[1:]: raise OSError",
            "assert open(os.environ['CONF'] + '/key').read() == 'theirs'",
        )
    assert (state / "state.db").exists()
    assert "done" not in found[:6], found
    assert found[6] == "done"


@isolated
async def test_a_kubeconfig_and_the_home_of_the_user_are_hidden(
    outdoors: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home, admin = outdoors / "home", outdoors / "admin"
    home.mkdir()
    for path in (admin, home / "key", home / "shown"):
        path.write_text("text")
        path.chmod(0o644)
    home.chmod(0o755)
    monkeypatch.setenv("HOME", str(home))
    reading = [f"assert open({str(path)!r}).read()" for path in (home / "key", admin, home / "shown")]
    async with process_cluster(replace(RULE, files=(*RULE.files, str(home / "shown")))) as cluster:
        assert cluster.processes is not None
        cluster.processes.hide(admin)
        await cluster.client.create(config_map())
        found = await answers(cluster, *reading, f"open({str(home / 'new')!r}, 'w')")
    assert "done" not in found[:2], found
    assert found[2:] == ["done", "done"], "its home is an empty folder of its own"
    assert not (home / "new").exists()


@isolated
@pytest.mark.parametrize(
    ("template", "seen"), [("", ["", ""]), ("{volume:conf}", ["conf", ""]), ("{volumes}", ["conf", "data"])]
)
async def test_volumes_that_it_does_not_mount_are_there_if_the_rule_names_them(template: str, seen: list[str]) -> None:
    text = lines(
        "import os",
        "seen = [name if os.path.exists(os.environ['ALL'] + '/' + name) else '' for name in ('conf', 'data')]",
        "print(*seen, sep='|')",
    )
    async with process_cluster(replace(SCRIPT, image="*", env={"NAMED": template})) as cluster:
        assert cluster.processes is not None
        await cluster.client.create(config_map(key="value"))
        env: list[Any] = [{"name": "UID", "valueFrom": {"fieldRef": {"fieldPath": "metadata.uid"}}}]
        env.append({"name": "ALL", "value": f"{cluster.processes._root}/pods/$(UID)/volumes"})
        assert await output(cluster, script("volumes", text, env=env, pod=VOLUMES)) == ["|".join(seen)]


@isolated
async def test_it_sees_no_process_but_its_own() -> None:
    async with process_cluster(RULE) as cluster:
        await cluster.client.create(config_map())
        await cluster.client.create(script("other", WAITS, volumeMounts=MOUNTS, pod=VOLUMES))
        await until(cluster.client, "other", is_running)
        found = await answers(
            cluster,
            f"os.kill({os.getpid()}, 0)",
            f"open('/proc/{os.getpid()}/environ', 'rb')",
            "if len([name for name in os.listdir('/proc') if name.isdigit()]) < 3: raise OSError",
            "open('/proc/self/status')",
            "open('/tmp/own', 'w')",
            "assert os.getcwd() == os.environ['ROOT']",
        )
    assert found == ["ProcessLookupError", "FileNotFoundError", "OSError", "done", "done", "done"]
    assert not Path("/tmp/own").exists()


# ------------------------------------------------------------------ what it can do


@isolated
async def test_it_writes_nowhere_but_to_its_own_folders(outdoors: Path) -> None:
    async with process_cluster(RULE) as cluster:
        await cluster.client.create(config_map(key="theirs"))
        found = await answers(
            cluster,
            f"open({str(outdoors / 'planted')!r}, 'w')",
            "open(os.environ['CONF'] + '/planted', 'w')",
            "os.unlink(os.environ['CONF'] + '/key')",
            "open(os.environ['ROOT'] + '/../planted', 'w')",
            "open(os.environ['ROOT'] + '/../1.log', 'w')",
            "os.setuid(0); open('/etc/planted', 'w')",
            f"subprocess.run(['mount', '-o', 'remount,rw,bind', {str(outdoors)!r}], check=True, capture_output=True)",
            "subprocess.run(['umount', '/run'], check=True, capture_output=True)",
            "subprocess.run(['unshare', '-Urm', 'umount', '/run'], check=True, capture_output=True)",
            "open(os.environ['DATA'] + '/own', 'w')",
            "open(os.environ['ROOT'] + '/own', 'w')",
            "open('/dev/stdout', 'w')",
            "open('/dev/null', 'w')",
        )
    assert list(outdoors.iterdir()) == []
    assert "done" not in found[:9], found
    assert found[9:] == ["done"] * 4, found


@isolated
@pytest.mark.skipif(os.getuid() != 0, reason="only root can become others")
async def test_root_becomes_another_user_for_each_namespace() -> None:
    groups = os.getgroups()
    os.setgroups([4242])  # of ours, which the process must not have
    try:
        await root_becomes_another_user()
    finally:
        os.setgroups(groups)


async def root_becomes_another_user() -> None:
    async with process_cluster(RULE) as cluster:
        await cluster.client.create(config_map())
        who = "import os; print(os.getuid(), os.getgid(), *os.getgroups(), *os.getresuid())"
        [line] = await output(cluster, script("who", who, volumeMounts=MOUNTS, pod=VOLUMES))
        assert cluster.processes is not None
        assert cluster.processes.isolation is not None
        users = [cluster.processes.isolation.user(space) for space in (SPACE, "kube-system")]
    assert line.split() == [str(users[0])] * 5
    assert users[0] != users[1]
    assert min(user or 0 for user in users) > 10_000


@isolated
async def test_variables_of_a_pod_do_not_reach_what_runs_before_its_program(tmp_path: Path) -> None:
    """A library that the loader takes from a variable would run as the cluster's user, outside."""
    env = [{"name": "LD_PRELOAD", "value": "/no/such/library.so"}, {"name": "LD_DEBUG", "value": "libs"}]
    free = ProcessRule(image="*", container_command="replace", files=SCRIPT.files)
    async with process_cluster(free) as cluster:
        pod = script("loud", "", command=["sh", "-c", "echo $LD_DEBUG"], args=[], env=env)
        said = await output(cluster, pod)
    assert "libs" in said
    assert not [line for line in said if "python" in line], "the interpreter of the trampoline heard of it"


@isolated
@pytest.mark.parametrize("below", ["", "/deep"])
async def test_a_host_path_that_is_exchanged_for_a_link_is_not_shown(
    outdoors: Path, monkeypatch: pytest.MonkeyPatch, below: str
) -> None:
    """By a process that writes there, after the folder was checked and before it is mounted."""
    shared, other, check = outdoors / "shared", outdoors / "other", permitted.check_host_path
    for folder in (shared / "folder/deep", other / "deep"):
        folder.mkdir(parents=True)
    for folder in (other, other / "deep"):
        folder.chmod(0o777)

    def checked_and_exchanged(*args: Any) -> None:
        check(*args)
        if not (shared / "folder").is_symlink():
            (shared / "folder").rename(shared / "before")
            (shared / "folder").symlink_to(other)

    monkeypatch.setattr(permitted, "check_host_path", checked_and_exchanged)
    volumes = {"volumes": [{"name": "data", "hostPath": {"path": f"{shared}/folder{below}"}}]}
    async with process_cluster(replace(RULE, host_paths=(str(shared),))) as cluster:
        text = "import os; open(os.environ['DATA'] + '/planted', 'w')"
        await cluster.client.create(script("racer", text, volumeMounts=MOUNTS[:1], pod=volumes))
        status = main_status(await until(cluster.client, "racer", is_over))
    assert not (other / "planted").exists()
    assert not (other / "deep/planted").exists()
    assert status is not None
    assert status.state is not None
    assert status.state.terminated is not None
    assert status.state.terminated.reason == "StartError"


@isolated
async def test_it_opens_no_terminal_of_this_machine() -> None:
    ours, theirs = pty.openpty()
    try:
        name = os.ttyname(theirs)
        Path(name).chmod(0o666)
        async with process_cluster(RULE) as cluster:
            await cluster.client.create(config_map())
            found = await answers(
                cluster,
                f"os.open({name!r}, os.O_RDWR | os.O_NOCTTY)",
                "import pty; master, slave = pty.openpty(); os.open(os.ttyname(slave), os.O_RDWR | os.O_NOCTTY)",
            )
    finally:
        os.close(ours)
        os.close(theirs)
    assert found == ["FileNotFoundError", "done"]


@isolated
@pytest.mark.spec("S-82")
async def test_it_connects_to_no_socket_of_this_machine_that_its_rule_does_not_name(outdoors: Path) -> None:
    (outdoors / "named").mkdir(mode=0o755)
    paths = [outdoors / "daemon", outdoors / "named/daemon"]
    with socket.socket(socket.AF_UNIX) as daemon, socket.socket(socket.AF_UNIX) as named:
        for server, path in zip((daemon, named), paths, strict=True):
            server.bind(str(path))
            server.listen()
            path.chmod(0o777)
        assert sorted(set(map(str, paths)) & set(isolation.listening())) == sorted(map(str, paths))
        attempts = [f"import socket; socket.socket(socket.AF_UNIX).connect({str(path)!r})" for path in paths]
        async with process_cluster(replace(RULE, files=(*RULE.files, str(outdoors / "named")))) as cluster:
            await cluster.client.create(config_map())
            assert await answers(cluster, *attempts) == ["ConnectionRefusedError", "done"]


@pytest.mark.spec("S-82")
def test_only_sockets_that_listen_are_hidden(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = ("listens here", "quiet", "unbound", "file")
    for name in names[:3]:
        with socket.socket(socket.AF_UNIX) as made:
            made.bind(str(tmp_path / name))
    (tmp_path / "file").write_text("")
    row = "0000000000000000: 00000002 00000000 {} 0001 01 1 {}"
    flags = dict(zip(names, ("00010000", "00000000", "00000000", "00010000"), strict=True))
    said = ["Num RefCount Protocol Flags Type St Inode Path", row.format("00010000", "@abstract")]
    said += [row.format("00010000", tmp_path / "gone"), row.format("00010000", "").rstrip()]
    said += [row.format(flags[name], tmp_path / name) for name in names]
    table = tmp_path / "unix"
    table.write_text("\n".join(said))
    monkeypatch.setattr(isolation, "_UNIX_SOCKETS", table)
    assert isolation.listening() == [str(tmp_path / "listens here")]
    monkeypatch.setattr(isolation, "temporary_folders", set)
    assert Isolation().view("default", [], [], []).hides(tmp_path / "listens here")
    for read, written in (([tmp_path], []), ([], [tmp_path])):
        assert not Isolation().view("default", [], read, written).hides(tmp_path / "listens here")
    table.unlink()
    assert isolation.listening() == []


@isolated
@pytest.mark.spec("S-82")
def test_a_socket_that_is_gone_meanwhile_does_not_keep_a_process_from_starting() -> None:
    view = Isolation().view("default", [], [], [])
    gone = replace(view, covers=(*view.covers, ("/usr/gone", "mode=0755", False)))
    assert isolation._tried(gone, "/bin/true") == ("", 0)


@pytest.mark.spec("S-82")
def test_folders_of_container_managers_are_hidden(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "/var/snap/lxd/common" in isolation._DAEMONS
    monkeypatch.setattr(isolation, "_DAEMONS", (str(tmp_path / "lxd"), str(tmp_path / "not-there")))
    monkeypatch.setattr(isolation, "temporary_folders", set)
    (tmp_path / "lxd").mkdir()
    view = Isolation().view("default", [], [], [])
    assert str(tmp_path / "lxd") in {path for path, _, _ in view.covers}
    assert view.hides(tmp_path / "lxd/unix.socket")


# ------------------------------------------------------------------ all that runs beside it


@isolated
async def test_commands_run_in_the_namespaces_of_their_container() -> None:
    look = "import os; print(sorted(n for n in os.listdir('/proc') if n.isdigit())[:1], os.path.exists('/tmp/here'))"
    text = "open('/tmp/here', 'w').close(); print('ready'); " + WAITS
    async with process_cluster() as cluster:
        await cluster.client.create(script("web", text))
        pod = await until(cluster.client, "web", is_running)
        async for _ in cluster.client.log_lines("web", SPACE):
            break
        for flags in (("stdout",), ("stdout", "tty")):
            said, _ = await ran(cluster, [sys.executable, "-c", look], *flags)
            assert said[1].strip() == b"['1'] True"
        speak = "print('hi', file=open('/dev/tty', 'w')); open('/dev/stdout', 'w').write('ho')"
        said, _ = await ran(cluster, [sys.executable, "-c", speak], "stdout", "tty")
        assert said[1].split() == [b"hi", b"ho"], "the terminal of a session works, although its folder is another"
        said, _ = await ran(cluster, ["sh", "-c", "cat /proc/self/status /proc/1/status; id -u"], "stdout")
        assert said[1].count(b"CapEff:\t0000000000000000") == said[1].count(b"CapPrm:\t0000000000000000") == 2
        assert said[1].count(b"NoNewPrivs:\t1") == 2
        assert cluster.processes is not None
        assert said[1].split()[-1].decode() == str(cluster.processes._user(pod) or os.getuid())


@isolated
async def test_a_container_that_sees_nothing_of_our_python_is_one_all_the_same() -> None:
    text = "cp /bin/echo /tmp/own; echo ready; exec sleep 1000"
    rule = ProcessRule(image="*", command=("sh", "-c", text), stop_signal="SIGKILL")
    async with process_cluster(rule) as cluster:
        await cluster.client.create(script("web", "", args=[]))
        await until(cluster.client, "web", is_running)
        async for _ in cluster.client.log_lines("web", SPACE):
            break
        for command in (["sh", "-c", "echo hi"], ["/tmp/own", "hi"]):
            for flags in (("stdout",), ("stdout", "tty")):
                said, status = await ran(cluster, command, *flags)
                assert said[1].strip() == b"hi", status
        _, status = await ran(cluster, ["/tmp/not-there"], "stdout")
        assert status["details"]["causes"][0]["message"] == "126"


@isolated
async def test_a_session_of_its_own_does_not_hide_a_process() -> None:
    text = "import signal; print(1, flush=True); signal.pause()"
    leave = f"import subprocess, sys; subprocess.Popen([sys.executable, '-c', {text!r}], start_new_session=True).wait()"
    async with process_cluster() as cluster:
        await cluster.client.create(script("web", leave))
        pod = await until(cluster.client, "web", is_running)
        async for _ in cluster.client.log_lines("web", SPACE):
            break
        assert cluster.processes is not None
        process = cluster.processes.runners[pod.metadata.uid].runs["main"].process
        assert process is not None
        assert sorted(warden.members(process.pid)) == sorted(marked(pod.metadata.uid))
        os.kill(process.pid, 9)
        await until(cluster.client, "web", is_over)
        assert marked(pod.metadata.uid) == []


# ------------------------------------------------------------------ what cannot be


async def test_a_program_that_is_hidden_is_refused_with_what_to_do(tmp_path: Path) -> None:
    if not POSSIBLE:
        pytest.skip("this machine cannot isolate processes")
    program = tmp_path / "tool"
    program.write_text("#!/bin/sh\necho ran\n")
    program.chmod(0o755)
    tmp_path.chmod(0o755)
    hidden = ProcessRule(image="hidden:*", command=(str(program),))
    async with process_cluster(hidden, replace(hidden, image="shown:*", files=(str(tmp_path),))) as cluster:
        await cluster.client.create(script("hidden", "", image="hidden:1", args=[]))
        pod = await until(cluster.client, "hidden", waits_for("CreateContainerError"))
        assert f"show {tmp_path} with `files`" in message_of(pod)
        assert await output(cluster, script("shown", "", image="shown:1", args=[])) == ["ran"]


def message_of(pod: Pod) -> str:
    status = main_status(pod)
    state = status.state if status is not None else None
    return (state.waiting.message or "") if state is not None and state.waiting is not None else ""


@asynccontextmanager
async def without_isolation(monkeypatch: pytest.MonkeyPatch, user: int, **options: Any) -> AsyncIterator[Cluster]:
    monkeypatch.setattr(runtime, "why_not", lambda: "unshare: Operation not permitted")
    monkeypatch.setattr(runtime.os, "getuid", lambda: user)
    async with process_cluster(**options) as cluster:
        yield cluster


async def test_as_root_without_isolation_nothing_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(RunningAsRoot, match="--processes-as-root"):
        async with without_isolation(monkeypatch, 0):
            pass


async def test_as_root_a_rule_without_isolation_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runtime, "why_not", lambda: "")
    monkeypatch.setattr(runtime.os, "getuid", lambda: 0)
    with pytest.raises(RunningAsRoot, match="`isolated: false`"):
        async with process_cluster(replace(SCRIPT, isolated=False)):
            pass


@pytest.mark.parametrize("user", [0, 1000])
async def test_without_isolation_processes_run_and_every_node_says_so(
    monkeypatch: pytest.MonkeyPatch, user: int
) -> None:
    """As root only if that was asked for."""
    async with without_isolation(monkeypatch, user, processes_as_root=user == 0) as cluster:
        assert await output(cluster, script("free", "import os; print(os.getuid())")) == [str(os.geteuid())]
        async with aclosing(cluster.client.watch(Event, "default")) as events:
            async for event in events:
                if event.object.reason == "ProcessesNotIsolated":
                    assert event.object.involved_object.kind == "Node"
                    break


def test_what_is_hidden_is_known_before_it_is_tried(tmp_path: Path) -> None:
    home, state, kept = tmp_path / "home", tmp_path / "state", tmp_path / "home/kept"
    for folder in (home, state, kept):
        folder.mkdir()
    (state / "link").symlink_to(home)
    view = Isolation([state], {"HOME": str(home)}).view("default", [str(kept)], [], [])
    with_temporary = {path for path, _, _ in view.covers}
    assert not any(Path(path).is_relative_to(other) for path in with_temporary for other in with_temporary - {path})
    assert view.hides(home)
    assert view.hides(state / "link")
    assert not view.hides(kept / "program")
    assert not view.hides("/usr/bin/env")


def test_users_are_of_those_that_this_machine_has() -> None:
    users = isolation._users()
    assert 1000 < users.start < users.stop <= 2**31
