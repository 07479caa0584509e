"""Over real sockets and TLS: certificates that change, credentials that are refused, servers that are not there."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from konverge.client import Client, Config, ConfigError, NotConnected, TlsSettings, TokenFile
from konverge.client.call import Call
from konverge.client.connection import Reconnecting
from konverge.objects.kinds.core_v1 import ConfigMap
from konverge.wire import Request, Response, Server, server_context
from tests.client.scripted import config_map, ok, refused
from tools.control_plane import Authority


class Site:
    """A CA, a server certificate, and client certificates in one place that can be overwritten."""

    def __init__(self, folder: Path) -> None:
        self.authority = Authority(folder / "pki")
        crt, key = self.authority.issue("server", user="server", server=True)
        self.ca = self.authority.ca_file
        client_ca = self.ca.read_bytes()
        self.context = server_context(crt.read_bytes(), key.read_bytes(), client_ca=client_ca, require_client=True)
        self.crt, self.key = folder / "client.crt", folder / "client.key"

    def become(self, user: str) -> bytes:
        """Put this user's certificate where the client looks for it; returns its last bytes, to know it again."""
        crt, key = self.authority.issue(user, user=user)
        shutil.copy(crt, self.crt)
        shutil.copy(key, self.key)
        from cryptography import x509
        from cryptography.hazmat.primitives.serialization import Encoding

        return x509.load_pem_x509_certificate(crt.read_bytes()).public_bytes(Encoding.DER)

    def config(self, server: Server, **more: str) -> Config:
        tls = TlsSettings(ca_file=str(self.ca), certificate_file=str(self.crt), key_file=str(self.key), **more)
        return Config(server=f"https://127.0.0.1:{server.port}", tls=tls, source="test")


async def test_new_certificates_are_used_when_the_files_change(tmp_path: Path) -> None:
    site, seen = Site(tmp_path), []

    async def handler(request: Request) -> Response:
        seen.append(request.peer.certificate)
        return ok(config_map())

    jane = site.become("jane")
    async with Server(handler) as server:
        await server.start(ssl=site.context)
        transport = Reconnecting(site.config(server), look_period=0)
        client = Client(transport, owns=(transport,))
        await client.get(ConfigMap, "a", "shop")
        await client.get(ConfigMap, "a", "shop")
        john = site.become("john")
        await client.get(ConfigMap, "a", "shop")
        await client.aclose()
    assert seen == [jane, jane, john]


async def test_a_certificate_whose_key_is_still_to_come_waits_for_it(tmp_path: Path) -> None:
    site, seen = Site(tmp_path), []

    async def handler(request: Request) -> Response:
        seen.append(request.peer.certificate)
        return ok(config_map())

    jane = site.become("jane")
    async with Server(handler) as server:
        await server.start(ssl=site.context)
        transport = Reconnecting(site.config(server), look_period=0)
        async with Client(transport, owns=(transport,)) as client:
            await client.get(ConfigMap, "a", "shop")
            old_key = site.key.read_bytes()
            john = site.become("john")
            new_key = site.key.read_bytes()
            for half in (old_key, b"", new_key[:100]):
                site.key.write_bytes(half)
                await client.get(ConfigMap, "a", "shop")
            site.key.write_bytes(new_key)
            await client.get(ConfigMap, "a", "shop")
    assert seen == [jane, jane, jane, jane, john]


async def test_certificates_that_cannot_be_used(tmp_path: Path) -> None:
    site = Site(tmp_path)
    site.become("jane")
    site.key.write_text("nonsense")
    async with Server(lambda request: pytest.fail("no request gets here")) as server:
        await server.start(ssl=site.context)
        async with Client.connect(site.config(server)) as client:
            with pytest.raises(ConfigError, match="certificates cannot be used"):
                await client.get(ConfigMap, "a", "shop")


async def test_the_name_of_the_server_is_verified(tmp_path: Path) -> None:
    site = Site(tmp_path)
    site.become("jane")

    async def handler(request: Request) -> Response:
        return ok(config_map())

    async with Server(handler) as server:
        await server.start(ssl=site.context)
        async with Client.connect(site.config(server, server_name="localhost")) as client:
            await client.get(ConfigMap, "a", "shop")
        async with Client.connect(site.config(server, server_name="elsewhere")) as client:
            with pytest.raises(NotConnected, match="tls-server-name"):
                await client.get(ConfigMap, "a", "shop")


async def test_a_rotated_token_is_read_after_a_401(tmp_path: Path) -> None:
    path = tmp_path / "token"
    path.write_text("old")

    async def handler(request: Request) -> Response:
        fits = request.headers.get("authorization") == "Bearer new"
        return ok(config_map()) if fits else refused(401, "Unauthorized")

    credentials = TokenFile(path)
    credentials.current()
    path.write_text("new")
    async with Server(handler) as server:
        await server.start()
        config = Config(server=f"http://127.0.0.1:{server.port}", credentials=credentials)
        async with Client.connect(config) as client:
            await client.get(ConfigMap, "a", "shop")


async def test_nobody_listens() -> None:
    async with Server(lambda request: pytest.fail("closed")) as server:
        await server.start()
        port = server.port
    async with Client.connect(Config(server=f"http://127.0.0.1:{port}", source="context 'c'")) as client:
        with pytest.raises(NotConnected, match="context 'c'"):
            await client.get(ConfigMap, "a", "shop")


async def test_what_is_asked_of_a_connection_reaches_the_server() -> None:
    agents: list[str | None] = []

    async def answer(request: Request) -> Response:
        agents.append(request.headers.get("user-agent"))
        return Response(200, body=b"{}")

    async with Server(answer) as server:
        await server.start("127.0.0.1", 0)
        config = Config(server=f"http://127.0.0.1:{server.port}")
        for options in ({}, {"user_agent": "shop/1"}):
            async with Client.connect(config, **options) as client:
                await client.caller.call(Call("get", None, path="/version"))
    assert agents == ["konverge", "shop/1"]
