"""`konverge service` as a process, and beside `konverge up`."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from konverge.apiserver import ApiServer
from konverge.cli.install_objects import install_definitions
from konverge.cli.main import main
from konverge.cli.management import AUTHORITY, CERTIFICATE, Management
from konverge.client import Client, Static
from konverge.operators.catalog import find
from konverge.wire.message import Headers, Request, Response
from konverge.wire.pool import ConnectionPool
from konverge.wire.tls import TlsOptions
from tests.wire.certificates import authority

pytestmark = pytest.mark.spec("N-22")


def begin(*arguments: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "konverge.cli.main", *arguments]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def end(process: subprocess.Popen[str]) -> None:
    process.send_signal(signal.SIGTERM)
    _, errors = process.communicate()
    assert process.returncode == 0, errors
    assert "Traceback" not in errors


async def ask(url: str, path: str, token: str = "") -> Response:
    async with ConnectionPool(url) as pool:
        fields = {"authorization": f"Bearer {token}"} if token else {}
        return await pool.send(Request("GET", path, Headers.of(fields)))


@pytest.mark.blocking
async def test_it_serves_a_cluster_over_tls_without_the_rights_of_its_own_kubeconfig(tmp_path: Path) -> None:
    async with ApiServer() as server:
        certificates = server.certificates("127.0.0.1")
        api = await server.listen(tls=certificates.context())
        async with Client(server.transport, credentials=Static.bearer(server.token)) as admin:
            await install_definitions(admin, [find("nacos")])
        whole = server.kubeconfig(api, certificates)
        assert "client-certificate-data" in whole["users"][0]["user"]
        (tmp_path / "kubeconfig").write_text(json.dumps(whole))
        process = begin("service", "--kubeconfig", str(tmp_path / "kubeconfig"), "--bind-address", "127.0.0.1:0")
        try:
            assert process.stdout is not None
            url = (await asyncio.to_thread(process.stdout.readline)).split()[1]
            assert (await ask(url, "/readyz")).status == 200
            assert (await ask(url, "/api/v1/instances")).status == 401
            assert (await ask(url, "/api/v1/instances", "other")).status == 401
            mine = await ask(url, "/api/v1/instances", server.token)
            assert (mine.status, json.loads(mine.body)["items"]) == (200, [])
        finally:
            await asyncio.to_thread(end, process)


@pytest.mark.blocking
async def test_with_the_arguments_of_its_pod_it_serves_https_without_any_kubeconfig(tmp_path: Path) -> None:
    """Where the volumes are mounted, and on which port, is all that differs here."""
    async with ApiServer() as server:
        certificates = server.certificates("127.0.0.1")
        api = await server.listen(tls=certificates.context())
        (tmp_path / "ca.crt").write_bytes(certificates.authority)
        for file, data in zip(("tls.crt", "tls.key"), authority().issue("service", ["127.0.0.1"]), strict=True):
            (tmp_path / file).write_bytes(data)
        plan = Management(operator="nacos-operator", namespace="nacos", image="x", tls_secret="certificate")
        arguments = [
            argument.replace(place, str(tmp_path)) for argument in plan.arguments() for place in [_place(argument)]
        ]
        arguments[1:3] = ["--bind-address=127.0.0.1:0", f"--server={api}"]
        process = begin(*arguments)
        try:
            assert process.stdout is not None
            url = (await asyncio.to_thread(process.stdout.readline)).split()[1]
            assert url.startswith("https://")
            async with ConnectionPool(url, tls=TlsOptions(ca_data=authority().pem)) as pool:
                assert (await pool.send(Request("GET", "/readyz"))).status == 200
                fields = Headers.of({"authorization": f"Bearer {server.token}"})
                assert (await pool.send(Request("GET", "/api/v1/identity", fields))).status == 200
        finally:
            await asyncio.to_thread(end, process)


def _place(argument: str) -> str:
    return next((place for place in (AUTHORITY, CERTIFICATE) if place in argument), AUTHORITY)


@pytest.mark.blocking
@pytest.mark.spec("C-44")
@pytest.mark.parametrize("proxied", [False, True], ids=["plain", "behind a proxy"])
async def test_only_over_https_is_the_token_the_cookie_of_a_session(proxied: bool) -> None:
    """Cookies do not know ports: over http the browser would show the token to every server of the machine."""
    async with ApiServer() as server:
        arguments = ["--server", await server.listen(), *(["--behind-proxy"] if proxied else [])]
        process = begin("service", *arguments, "--bind-address", "127.0.0.1:0")
        try:
            assert process.stdout is not None
            url = (await asyncio.to_thread(process.stdout.readline)).split()[1]
            async with ConnectionPool(url) as pool:
                fields = Headers.of({"x-konverge-console": "1"})
                body = json.dumps({"token": server.token}).encode()
                session = await pool.send(Request("POST", "/console/v1/session", fields, body))
                name, _, value = session.headers.get("set-cookie").partition(";")[0].partition("=")
                if proxied:
                    assert (name, value) == ("__Host-konverge-console", server.token)
                else:
                    assert name.startswith("konverge-console-")
                    assert server.token not in session.headers.get("set-cookie") + session.body.decode()
                cookie = Headers.of({"cookie": f"{name}={value}"})
                assert (await pool.send(Request("GET", "/k8s/api/v1/namespaces", cookie))).status == 200
        finally:
            await asyncio.to_thread(end, process)


@pytest.mark.blocking
async def test_up_starts_it_on_loopback_and_says_where() -> None:
    process = begin("up", "--operators", "nacos", "--no-samples", "--output", "json", "--nodes", "1")
    try:
        assert process.stdout is not None
        places = json.loads(process.stdout.readline())
        assert places["console"].startswith("http://127.0.0.1:")
        file = Path(places["console_token"])
        assert file.stat().st_mode & 0o077 == 0
        token = file.read_text()
        assert (await ask(places["console"], "/api/v1/versions", token)).status == 200
        assert (await ask(places["console"], "/api/v1/versions")).status == 401
        url, code = places["console_link"].split("/#sign-in=")
        assert url == places["console"]
        async with ConnectionPool(url) as pool:
            fields = Headers.of({"x-konverge-console": "1"})
            signing = Request("POST", "/console/v1/session", fields, json.dumps({"code": code}).encode())
            session = await pool.send(signing)
            assert json.loads(session.body)["user"] == "admin"
            cookie = Headers.of({"cookie": session.headers.get("set-cookie").partition(";")[0]})
            assert (await pool.send(Request("GET", "/k8s/api/v1/nodes/node-1", cookie))).status == 200
            assert (await pool.send(signing)).status == 403
        asking = begin("console", places["name"])
        made, _ = await asyncio.to_thread(asking.communicate)
        assert asking.returncode == 0
        assert made.startswith(f"{url}/#sign-in=")
        assert code not in made
    finally:
        end(process)


def test_up_leaves_it_out() -> None:
    process = begin("up", "--no-samples", "--output", "json", "--nodes", "1", "--no-console")
    try:
        assert process.stdout is not None
        assert json.loads(process.stdout.readline())["console"] == ""
    finally:
        end(process)


@pytest.mark.blocking
async def test_the_console_is_there_without_nacos_and_its_service_is_not() -> None:
    process = begin("up", "--operators", "none", "--output", "json", "--nodes", "1")
    try:
        assert process.stdout is not None
        places = json.loads(process.stdout.readline())
        token = Path(places["console_token"]).read_text()
        assert (await ask(places["console"], "/api/v1/versions", token)).status == 404
        assert (await ask(places["console"], "/k8s/api/v1/nodes/node-1", token)).status == 200
    finally:
        end(process)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--bind-address", ":8082"), "in the clear"),
        (("--bind-address", "0"), "serve no client"),
        (("--tls-cert-file", "c.pem"), "belong together"),
        (("--tls-cert-file", "nowhere.pem", "--tls-private-key-file", "nowhere.key"), "No such file"),
        (("--server", "https://127.0.0.1:6443", "--kubeconfig", "x"), "leave out --kubeconfig"),
        (("--server", "https://127.0.0.1:6443", "--certificate-authority", "nowhere.crt"), "does not exist"),
        (("--certificate-authority", "nowhere.crt"), "belongs to --server"),
        (("--versions", "latest"), "three numbers"),
        (("--versions", "2.4.3", "--default-version", "2.0.4"), "not among"),
    ],
)
def test_what_cannot_be_meant_is_refused_at_once(
    capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], message: str
) -> None:
    assert main(["service", *arguments]) == 2
    assert message in capsys.readouterr().err
