"""`konverge console` for a cluster of a kubeconfig: on loopback, by a link, with the credentials of its owner."""

from __future__ import annotations

import argparse
import asyncio
import json
from pathlib import Path

import pytest

from konverge.apiserver import ApiServer
from konverge.cli import console
from konverge.cli.main import main
from konverge.client import Client, Static, load_config
from konverge.objects.kinds.core_v1 import ServiceAccount
from konverge.objects.meta import ObjectMeta
from konverge.wire.message import Headers, Request, Response
from konverge.wire.pool import ConnectionPool

pytestmark = pytest.mark.spec("C-01")


async def linked(capsys: pytest.CaptureFixture[str]) -> tuple[str, str]:
    """The URL and the code of the link that is printed."""
    async with asyncio.timeout(60):
        while not (text := capsys.readouterr().out):
            await asyncio.sleep(0.01)
    url, code = text.split()[0].split("/#sign-in=")
    return url, code


async def ask(pool: ConnectionPool, path: str, **fields: str) -> Response:
    return await pool.send(Request("GET", path, Headers.of(fields)))


@pytest.mark.blocking
async def test_it_acts_as_the_kubeconfig_says_for_whoever_has_the_link(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    async with ApiServer() as server:
        certificates = server.certificates("127.0.0.1")
        url = await server.listen("127.0.0.1", 0, tls=certificates.context())
        async with Client(server.transport, credentials=Static.bearer(server.token)) as admin:
            await admin.create(ServiceAccount(metadata=ObjectMeta(name="jane", namespace="default")))
            token = (await admin.request_token("jane", "default")).token
        whole = server.kubeconfig(url, certificates)
        whole["users"] = [{"name": "jane", "user": {"token": token}}]
        whole["contexts"][0]["context"]["user"] = "jane"
        file = tmp_path / "kubeconfig"
        file.write_text(json.dumps(whole))
        context = whole["contexts"][0]["name"]
        config = load_config(kubeconfig=file, context=context)
        stopping = asyncio.Event()
        arguments = argparse.Namespace(context=context, port=0, open=False)
        serving = asyncio.create_task(console.serve(config, arguments, stopping))
        place, code = await linked(capsys)
        assert place.startswith("http://127.0.0.1:")
        async with ConnectionPool(place) as pool:
            assert (await ask(pool, "/k8s/version")).status == 401
            body = json.dumps({"code": code}).encode()
            fields = Headers.of({"x-konverge-console": "1"})
            session = await pool.send(Request("POST", "/console/v1/session", fields, body))
            known = json.loads(session.body)
            assert known["user"] == "system:serviceaccount:default:jane"
            assert (known["context"], known["server"], known["simulated"]) == (context, url, False)
            cookie = session.headers.get("set-cookie").partition(";")[0]
            refused = await ask(pool, "/k8s/api/v1/nodes", cookie=cookie)
            assert (refused.status, "jane" in json.loads(refused.body)["message"]) == (403, True)
            assert (await ask(pool, "/k8s/version", cookie=cookie)).status == 200
            assert (await ask(pool, "/console/v1/simulation", cookie=cookie)).status == 404
            assert token not in session.body.decode() + cookie + place + code
        stopping.set()
        await serving


def test_a_name_and_a_context_exclude_each_other(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["console", "dev", "--context", "prod"]) == 2
    assert "--context" in capsys.readouterr().err


def test_a_cluster_that_does_not_run_is_said_and_what_to_do(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["console", "no-such-cluster"]) == 1
    error = capsys.readouterr().err
    assert "no cluster no-such-cluster runs" in error
    assert "konverge console --context" in error
