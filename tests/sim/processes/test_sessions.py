"""exec, attach, port-forward and logs, as clients ask for them over a socket."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any
from urllib.parse import urlencode, urlsplit

import pytest

from konverge.client import BadRequest
from konverge.objects.kinds.core_v1 import Pod
from konverge.sim.cluster import Cluster
from konverge.sim.kubelet.behaviour import ADDRESS
from konverge.wire import spdy
from konverge.wire.websocket_frames import Opcode
from tests.sim.conftest import SPACE
from tests.sim.conftest import pod as simulated
from tests.sim.processes.support import (
    SCRIPT,
    WAITS,
    is_over,
    is_running,
    lines,
    outside,
    process_cluster,
    script,
    until,
)
from tests.wire.test_spdy import Peer
from tests.wire.websocket_client import Talker, talking

pytestmark = pytest.mark.spec("S-16")


@asynccontextmanager
async def session(
    cluster: Cluster, name: str, what: str, query: list[tuple[str, str]], *protocols: str
) -> AsyncIterator[Talker]:
    url = urlsplit(await cluster.listen())
    target = f"/api/v1/namespaces/{SPACE}/pods/{name}/{what}?{urlencode(query)}"
    token = f"authorization: Bearer {cluster.server.token}\r\n"
    async with talking(url.port or 0, target, *(protocols or ("v5.channel.k8s.io",)), extra=token) as talker:
        yield talker


def asked(command: list[str], *flags: str) -> list[tuple[str, str]]:
    return [("command", word) for word in command] + [(flag, "true") for flag in flags]


async def outcome(talker: Talker) -> tuple[dict[int, bytes], dict[str, Any]]:
    """All output by channel, and the Status at the end."""
    result: dict[int, bytes] = {}
    while True:
        opcode, data = await talker.receive()
        assert opcode is Opcode.BINARY, data
        if data[0] == 3:
            return result, json.loads(data[1:])
        result[data[0]] = result.get(data[0], b"") + data[1:]


async def ran(
    cluster: Cluster, command: list[str], *flags: str, send: tuple[bytes, ...] = (), protocol: str = "v5.channel.k8s.io"
) -> tuple[dict[int, bytes], dict[str, Any]]:
    """Run a command in the pod `web`."""
    async with session(cluster, "web", "exec", asked(command, *flags), protocol) as talker:
        assert talker.status == 101
        assert f"sec-websocket-protocol: {protocol}" in talker.head.lower()
        for message in send:
            talker.send(message)
        return await outcome(talker)


@asynccontextmanager
async def running(text: str = WAITS, **container: Any) -> AsyncIterator[Cluster]:
    async with process_cluster() as cluster:
        await cluster.client.create(script("web", text, **container))
        await until(cluster.client, "web", is_running)
        yield cluster


# ------------------------------------------------------------------ exec


@pytest.mark.parametrize("protocol", ["v5.channel.k8s.io", "v4.channel.k8s.io"])
async def test_a_command_runs_in_the_containers_environment_and_its_exit_code_comes_back(protocol: str) -> None:
    program = "import os, sys; print(os.environ['COLOUR']); print('oh', file=sys.stderr); sys.exit(3)"
    command = [sys.executable, "-c", program]
    async with running(env=[{"name": "COLOUR", "value": "red"}]) as cluster:
        result, status = await ran(cluster, command, "stdout", "stderr", protocol=protocol)
    assert (result[1], result[2]) == (b"red\n", b"oh\n")
    assert status["details"]["causes"] == [{"reason": "ExitCode", "message": "3"}]


@pytest.mark.spec("S-57")
@pytest.mark.parametrize("protocol", ["channel.k8s.io", "base64.channel.k8s.io", ""])
@pytest.mark.parametrize(
    ("code", "told"), [(0, b""), (3, b"command terminated with non-zero exit code: exit status 3")]
)
async def test_older_clients_are_told_of_failures_alone(protocol: str, code: int, told: bytes) -> None:
    program = f"import sys; print(sys.stdin.readline()); sys.exit({code})"
    query = asked([sys.executable, "-c", program], "stdin", "stdout", "stderr")
    is_text, said = "base64" in protocol, {0: b"", 1: b"", 2: b"", 3: b""}
    async with running() as cluster, session(cluster, "web", "exec", query, protocol) as talker:
        assert talker.status == 101
        assert ("sec-websocket-protocol" in talker.head.lower()) is bool(protocol)
        talker.send(
            b"0" + base64.b64encode(b"hello\n") if is_text else b"\0hello\n", Opcode.TEXT if is_text else Opcode.BINARY
        )
        while (message := await talker.receive())[0] is not Opcode.CLOSE:
            assert message[0] is (Opcode.TEXT if is_text else Opcode.BINARY)
            data = message[1]
            said[data[0] - (48 if is_text else 0)] += base64.b64decode(data[1:]) if is_text else data[1:]
    assert (said[1], said[3]) == (b"hello\n\n", told)


@pytest.mark.spec("S-57")
async def test_a_newer_client_may_speak_base64() -> None:
    query = asked(["echo", "hello"], "stdout")
    async with running() as cluster, session(cluster, "web", "exec", query, "v4.base64.channel.k8s.io") as talker:
        said = []
        while (message := await talker.receive())[0] is not Opcode.CLOSE:
            said.append((chr(message[1][0]), base64.b64decode(message[1][1:])))
    assert said[:2] == [("1", b""), ("1", b"hello\n")]
    assert said[2][0] == "3"
    assert json.loads(said[2][1])["status"] == "Success"


async def test_an_unknown_subprotocol_is_refused() -> None:
    async with running() as cluster, session(cluster, "web", "exec", asked(["ls"]), "v9.channel.k8s.io") as talker:
        assert talker.status == 400


@pytest.mark.spec("S-57")
@pytest.mark.parametrize("protocol", ["binary.k8s.io", "base64.binary.k8s.io", ""])
async def test_a_log_comes_as_messages(protocol: str) -> None:
    """And goes on with the process, until the client goes."""
    text = lines("print('one')", "input()", "print('two')", "input()")
    is_text = "base64" in protocol
    async with running(text, stdin=True) as cluster:
        async with session(cluster, "web", "log", asked([], "follow"), protocol) as talker:
            assert talker.status == 101
            assert await talker.receive() == (Opcode.TEXT if is_text else Opcode.BINARY, b"")
            for word in (b"one\n", b"two\n"):
                opcode, data = await talker.receive()
                assert opcode is (Opcode.TEXT if is_text else Opcode.BINARY)
                assert (base64.b64decode(data) if is_text else data) == word
                if word == b"one\n":
                    async with session(cluster, "web", "attach", asked([], "stdin")) as attached:
                        attached.send(b"\0\n")
                        await attached.receive()
        async with session(cluster, "web", "log", asked([], "follow"), "v4.channel.k8s.io") as talker:
            assert talker.status == 400


async def test_input_goes_in_and_its_end_is_noticed() -> None:
    async with running() as cluster:
        sent = (b"\x00one ", b"\x00" + b"x" * 200_000, b"\xff\x00")
        result, status = await ran(cluster, ["cat"], "stdin", "stdout", send=sent)
    assert result[1] == b"one " + b"x" * 200_000
    assert status["status"] == "Success"


async def test_much_output_arrives_whole() -> None:
    program = "import sys; sys.stdout.write('y' * 5_000_000)"
    async with running() as cluster:
        result, _ = await ran(cluster, [sys.executable, "-c", program], "stdout")
    assert result[1] == b"y" * 5_000_000


async def test_a_terminal_has_a_size() -> None:
    program = lines("import os, sys", "sys.stdin.readline()", "print(os.isatty(0), *os.get_terminal_size())")
    size = b"\x04" + json.dumps({"Width": 132, "Height": 43}).encode()
    async with running() as cluster:
        command = [sys.executable, "-c", program]
        result, status = await ran(cluster, command, "stdin", "stdout", "tty", send=(size, b"\x00\r"))
    assert b"True 132 43" in result[1]
    assert status["status"] == "Success"


async def test_a_command_ends_with_its_client() -> None:
    program = "import os, signal; print(os.getpid(), flush=True); signal.pause()"
    async with running() as cluster:
        query = asked([sys.executable, "-c", program], "stdout")
        async with session(cluster, "web", "exec", query) as talker:
            data = b""
            while not data.endswith(b"\n"):
                data = (await talker.receive())[1]
            uid = (await cluster.client.get(Pod, "web", SPACE)).metadata.uid
            descriptor = os.pidfd_open(outside(uid, int(data[1:])))
        ended = asyncio.Event()
        asyncio.get_running_loop().add_reader(descriptor, ended.set)
        await ended.wait()
        asyncio.get_running_loop().remove_reader(descriptor)
        os.close(descriptor)


async def test_a_command_that_is_not_there() -> None:
    async with running() as cluster:
        _, status = await ran(cluster, ["no-such-program"], "stdout")
    assert status["status"] == "Failure"
    assert "executable file not found" in status["message"]


async def test_paths_of_mounts_are_replaced_as_kubectl_cp_needs_it() -> None:
    volumes = {"volumes": [{"name": "data", "emptyDir": {}}]}
    mounts = [{"name": "data", "mountPath": "/data"}]
    async with process_cluster() as cluster:
        await cluster.client.create(script("web", WAITS, volumeMounts=mounts, pod=volumes))
        await until(cluster.client, "web", is_running)
        await ran(cluster, ["tee", "/data/note"], "stdin", send=(b"\x00hello", b"\xff\x00"))
        result, _ = await ran(cluster, ["tar", "cf", "-", "/data/note"], "stdout")
    assert result[1].startswith(b"data/note\0")
    assert b"hello" in result[1]


# ------------------------------------------------------------------ who may not


async def test_a_simulated_pod_says_what_to_do() -> None:
    async with process_cluster() as cluster:
        await cluster.client.create(simulated("plain"))
        await until(cluster.client, "plain", is_running)
        for what in ("exec", "attach"):
            with pytest.raises(BadRequest, match="start the cluster with `konverge up --processes RULES`"):
                await cluster.client.get_sub(Pod, "plain", f"{what}?command=ls", SPACE)


async def test_a_plain_request_is_told_about_websockets() -> None:
    async with running() as cluster:
        with pytest.raises(BadRequest, match="this server speaks SPDY and WebSockets here"):
            await cluster.client.create_sub(Pod, "web", "exec?command=ls&stdout=true", {}, SPACE)
        with pytest.raises(BadRequest, match="at least 1 command"):
            await cluster.client.create_sub(Pod, "web", "exec", {}, SPACE)


async def test_who_may_only_read_may_not_connect() -> None:
    role = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "reader"}}
    rules = [{"apiGroups": [""], "resources": ["pods", "pods/exec"], "verbs": ["get"]}]
    binding = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": "reader"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "reader"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "jane"}],
    }
    async with running() as cluster:
        await cluster.client.create({**role, "rules": rules})
        await cluster.client.create(binding)
        url = urlsplit(await cluster.listen())
        target = f"/api/v1/namespaces/{SPACE}/pods/web/exec?command=ls&stdout=true"
        extra = f"authorization: Bearer {cluster.server.token}\r\nimpersonate-user: jane\r\n"
        async with talking(url.port or 0, target, "v5.channel.k8s.io", extra=extra) as talker:
            assert talker.status == 403


# ------------------------------------------------------------------ attach


async def test_attach_hears_and_is_heard() -> None:
    text = lines("import sys", "for line in sys.stdin: print('heard', line.strip())")
    async with running(text, stdin=True) as cluster:
        query = asked([], "stdin", "stdout", "stderr")
        async with session(cluster, "web", "attach", query) as talker:
            assert (await talker.receive())[1] == b"\x01"
            talker.send(b"\x00you\n")
            said = b""
            while not said.endswith(b"\n"):
                said += (await talker.receive())[1][1:]
            assert said == b"heard you\n"
            talker.send(b"\xff\x00")
            _, status = await outcome(talker)
            assert status["status"] == "Success"


# ------------------------------------------------------------------ port-forward

ECHO = lines(
    "import os, socketserver",
    "class Echo(socketserver.StreamRequestHandler):",
    "    def handle(self):",
    "        for line in self.rfile: self.wfile.write(line.upper())",
    "socketserver.ThreadingTCPServer.daemon_threads = True",
    "server = socketserver.ThreadingTCPServer((os.environ['POD_IP'], 7000), Echo)",
    "print('listening')",
    "server.serve_forever()",
)


@asynccontextmanager
async def echoing() -> AsyncIterator[Cluster]:
    async with running(ECHO) as cluster:
        async for _ in cluster.client.log_lines("web", SPACE):
            break
        yield cluster


async def frames(talker: Talker, count: int) -> list[tuple[int, int, bytes]]:
    """So many SPDY frames: kind (0 for data), stream, payload."""
    result, data = [], b""
    while len(result) < count:
        opcode, message = await talker.receive()
        assert opcode is Opcode.BINARY
        data += message
        while len(data) >= 8 and len(data) >= 8 + int.from_bytes(data[5:8], "big"):
            size = int.from_bytes(data[5:8], "big")
            body, kind = data[8 : 8 + size], int.from_bytes(data[2:4], "big") if data[0] & 0x80 else 0
            stream = int.from_bytes(body[:4] if kind else data[:4], "big")
            result.append((kind, stream, body))
            data = data[8 + size :]
    return result


async def test_kubectls_way_many_connections_over_one_tunnel() -> None:
    async with (
        echoing() as cluster,
        session(cluster, "web", "portforward", [], "SPDY/3.1+portforward.k8s.io") as talker,
    ):
        peer = Peer()
        for number in (0, 1):
            for place, kind in enumerate(("error", "data")):
                headers = {"streamtype": kind, "port": "7000", "requestid": str(number)}
                talker.send(peer.syn(4 * number + 2 * place + 1, headers))
        assert [(kind, stream) for kind, stream, _ in await frames(talker, 4)] == [(2, 1), (2, 3), (2, 5), (2, 7)]
        talker.send(spdy.data(3, b"one\n"))
        assert await frames(talker, 1) == [(0, 3, b"ONE\n")]
        talker.send(spdy.data(7, b"two\n"))
        assert await frames(talker, 1) == [(0, 7, b"TWO\n")]
        talker.send(spdy.data(3, b"", final=True))
        assert await frames(talker, 2) == [(0, 3, b""), (0, 1, b"")]


async def test_a_port_where_nobody_listens_is_told_on_the_error_stream() -> None:
    async with (
        echoing() as cluster,
        session(cluster, "web", "portforward", [], "SPDY/3.1+portforward.k8s.io") as talker,
    ):
        peer = Peer()
        for stream, kind in ((1, "error"), (3, "data")):
            talker.send(peer.syn(stream, {"streamtype": kind, "port": "7001", "requestid": "0"}))
        result = await frames(talker, 4)
        assert result[2][1] == 1
        assert b"connection refused" in result[2][2]


async def test_the_way_of_channels() -> None:
    async with echoing() as cluster:
        query = [("ports", "7000"), ("ports", "7001")]
        async with session(cluster, "web", "portforward", query, "v4.channel.k8s.io") as talker:
            hello = [(await talker.receive())[1] for _ in range(4)]
            assert hello == [
                bytes((0, 0x58, 0x1B)),
                bytes((1, 0x58, 0x1B)),
                bytes((2, 0x59, 0x1B)),
                bytes((3, 0x59, 0x1B)),
            ]
            assert b"connection refused" in (await talker.receive())[1]
            talker.send(b"\x00hi\n")
            assert (await talker.receive())[1] == b"\x00HI\n"


async def test_a_simulated_server_that_really_listens_is_forwarded_to() -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(await reader.readline())
        writer.close()

    async with Cluster(controllers=False, nodes=1) as cluster:
        server = await asyncio.start_server(answer, "127.9.9.9", 0)
        port = server.sockets[0].getsockname()[1]
        await cluster.client.create(simulated("plain", annotations={ADDRESS: "127.9.9.9"}))
        await until(cluster.client, "plain", is_running)
        async with session(cluster, "plain", "portforward", [("ports", str(port))], "v4.channel.k8s.io") as talker:
            await talker.receive()
            await talker.receive()
            talker.send(b"\x00echo\n")
            assert (await talker.receive())[1] == b"\x00echo\n"
        server.close()
        await server.wait_closed()


async def test_only_this_machine_is_connected_to() -> None:
    async with Cluster(controllers=False, nodes=1) as cluster:
        await cluster.client.create(simulated("far", annotations={ADDRESS: "192.0.2.1"}))
        await until(cluster.client, "far", is_running)
        with pytest.raises(BadRequest, match="only loopback addresses are forwarded to"):
            await cluster.client.create_sub(Pod, "far", "portforward?ports=80", {}, SPACE)


# ------------------------------------------------------------------ logs


async def test_logs_in_all_ways() -> None:
    text = "import sys; [print(n) for n in range(5)]; print('oh', file=sys.stderr)"
    async with process_cluster() as cluster:
        await cluster.client.create(script("talks", text))
        await until(cluster.client, "talks", is_over)
        client = cluster.client
        assert sorted((await client.log("talks", SPACE)).split()) == ["0", "1", "2", "3", "4", "oh"]
        assert len((await client.log("talks", SPACE, tail_lines=2)).split()) == 2
        assert len(await client.log("talks", SPACE, limit_bytes=3)) == 3
        assert (await client.log("talks", SPACE, since_seconds=3600)).count("\n") == 6
        stamped = (await client.log("talks", SPACE, timestamps=True)).splitlines()
        assert all(line.partition(" ")[0].endswith("Z") for line in stamped)
        with pytest.raises(BadRequest, match='previous terminated container "main" in pod "talks" not found'):
            await client.log("talks", SPACE, previous=True)


async def test_a_container_that_waits_has_no_log_yet() -> None:
    rule = replace(SCRIPT, image="*")
    env = [{"name": "X", "valueFrom": {"secretKeyRef": {"name": "none", "key": "x"}}}]
    async with process_cluster(rule) as cluster:
        await cluster.client.create(script("waits", "", env=env))
        await until(cluster.client, "waits", lambda pod: pod.status.container_statuses)
        with pytest.raises(BadRequest, match='container "main" in pod "waits" is waiting to start'):
            await cluster.client.log("waits", SPACE)
