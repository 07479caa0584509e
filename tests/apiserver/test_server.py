"""A server on sockets, with TLS, and with data on disk."""

from __future__ import annotations

import ssl
from pathlib import Path

import pytest

from konverge.apiserver import ApiServer
from konverge.wire import ConnectionPool, TlsOptions
from konverge.wire.message import Headers, Request
from tests.apiserver.api import CONFIG_MAPS, Api
from tests.apiserver.definitions import define, definition


@pytest.mark.spec("S-01")
async def test_a_server_answers_on_a_socket() -> None:
    async with ApiServer() as server:
        url = await server.listen()
        pool = ConnectionPool(url)
        headers = Headers.of({"authorization": f"Bearer {server.token}"})
        response = await pool.send(Request("GET", "/api/v1/namespaces/default", headers))
        assert response.status == 200
        await pool.aclose()


@pytest.mark.spec("S-01", "S-12")
async def test_a_client_certificate_identifies_the_administrator(tmp_path: Path) -> None:
    async with ApiServer(data_dir=tmp_path) as server:
        certificates = server.certificates("127.0.0.1")
        assert server.certificates("127.0.0.1") == certificates
        url = await server.listen(tls=certificates.context())
        options = TlsOptions(
            ca_data=certificates.authority, certificate_data=certificates.admin, key_data=certificates.admin_key
        )
        pool = ConnectionPool(url, tls=options)
        response = await pool.send(Request("GET", "/api/v1/namespaces/default"))
        assert response.status == 200
        await pool.aclose()
        stranger = ConnectionPool(url, tls=TlsOptions(ca_data=certificates.authority))
        response = await stranger.send(Request("GET", "/api/v1/namespaces/default"))
        assert response.status == 403
        await stranger.aclose()
    assert (tmp_path / "pki/admin_key.pem").stat().st_mode & 0o777 == 0o600
    assert isinstance(certificates.context(), ssl.SSLContext)


@pytest.mark.spec("S-14")
async def test_state_survives_a_restart(tmp_path: Path) -> None:
    async with ApiServer(data_dir=tmp_path) as server:
        made = await Api(server).create("a", data={"x": "1"})
        token, revision = server.token, server.store.revision
    async with ApiServer(data_dir=tmp_path) as server:
        api = Api(server)
        assert server.token == token
        assert server.store.revision == revision
        assert await api.call("GET", f"{CONFIG_MAPS}/a") == made
        async with api.watch(resourceVersion=made["metadata"]["resourceVersion"]) as watch:
            again = await api.create("b")
            event = await watch.next()
        assert event["object"] == again


@pytest.mark.spec("S-14")
async def test_custom_kinds_are_served_again_after_a_restart(tmp_path: Path) -> None:
    things = "/apis/example.com/v1/namespaces/default/things"
    async with ApiServer(data_dir=tmp_path) as server:
        api = Api(server)
        await define(api, definition("things", "Thing"))
        made = await api.call(
            "POST", things, {"kind": "Thing", "apiVersion": "example.com/v1", "metadata": {"name": "t"}}
        )
    async with ApiServer(data_dir=tmp_path) as server:
        assert await Api(server).call("GET", f"{things}/t") == made
