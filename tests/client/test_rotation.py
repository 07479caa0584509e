"""Which pool a request goes through: certificates that change, in files or from a plugin, and closing."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Any

import pytest

from konverge.client import Client, Config, ConfigError, Credential, Static, TlsSettings
from konverge.client import connection as module
from konverge.client.connection import LOOK_PERIOD, Reconnecting
from konverge.client.credentials import Renewing
from konverge.objects.kinds.coordination_v1 import Lease
from konverge.objects.kinds.core_v1 import ConfigMap
from konverge.wire import Headers, Request, Response
from konverge.wire.limits import ClientLimits
from konverge.wire.proxy import Proxy
from konverge.wire.tls import TlsOptions
from tests.client.scripted import config_map, ok

GET = Request("GET", "/", Headers())


class Pool:
    """In the place of a pool of connections: remembers what it was made with, and what went through it."""

    made: list[Pool]

    def __init__(self, server: str, **settings: Any) -> None:
        self.server = server
        self.settings = settings
        self.sent: list[str] = []
        self.closed = 0
        Pool.made.append(self)

    async def send(self, request: Request) -> Response:
        self.sent.append("send")
        return ok(config_map())

    async def stream(self, request: Request) -> Any:
        self.sent.append("stream")

    async def aclose(self) -> None:
        self.closed += 1


@pytest.fixture(autouse=True)
def pools(monkeypatch: pytest.MonkeyPatch) -> list[Pool]:
    Pool.made = []
    monkeypatch.setattr(module, "ConnectionPool", Pool)
    monkeypatch.setattr(TlsOptions, "context", lambda self: None)
    return Pool.made


class Plugin(Renewing):
    """Gives the certificate that the test names; each time as a text of its own."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name

    async def _fetch(self) -> Credential:
        return Credential("Bearer t", "".join(["certificate of ", self.name]), f"key of {self.name}")


def files_of(tmp_path: Path) -> tuple[Path, TlsSettings]:
    for name in ("ca", "crt", "key"):
        (tmp_path / name).write_text("old")
    paths = {"ca_file": tmp_path / "ca", "certificate_file": tmp_path / "crt", "key_file": tmp_path / "key"}
    return tmp_path, TlsSettings(**{name: str(path) for name, path in paths.items()})


@pytest.mark.virtual
@pytest.mark.parametrize("changed", ["ca", "crt", "key"])
async def test_files_are_looked_at_every_ten_seconds(tmp_path: Path, pools: list[Pool], changed: str) -> None:
    folder, tls = files_of(tmp_path)
    transport = Reconnecting(Config(server="https://k", tls=tls))
    await transport.send(GET)
    (folder / changed).write_text("newer")
    await asyncio.sleep(LOOK_PERIOD - 1)
    await transport.send(GET)
    assert len(pools) == 1
    await asyncio.sleep(1)
    await transport.stream(GET)
    await asyncio.sleep(LOOK_PERIOD)
    await transport.send(GET)
    assert [pool.sent for pool in pools] == [["send", "send"], ["stream", "send"]]


@pytest.mark.parametrize("how", ["size", "time", "another file", "gone"])
async def test_any_trace_of_a_change_counts(tmp_path: Path, pools: list[Pool], how: str) -> None:
    folder, tls = files_of(tmp_path)
    transport = Reconnecting(Config(server="https://k", tls=tls), look_period=0)
    path = folder / "key"
    before = path.stat()
    await transport.send(GET)
    if how == "size":
        path.write_text("longer")
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    elif how == "time":
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns + 1))
    elif how == "another file":
        (folder / "new").write_text("new")
        os.utime(folder / "new", ns=(before.st_atime_ns, before.st_mtime_ns))
        (folder / "new").rename(path)
    else:
        path.unlink()
    await transport.send(GET)
    await transport.send(GET)
    assert [len(pool.sent) for pool in pools] == [1, 2]


@pytest.mark.virtual
async def test_a_certificate_of_a_plugin_is_used_at_once(pools: list[Pool]) -> None:
    plugin = Plugin("jane")
    tls = TlsSettings(certificate_data="of the file", key_data="of the file")
    transport = Reconnecting(Config(server="https://k", credentials=plugin, tls=tls))
    await transport.send(GET)
    jane = await plugin.renew()
    await transport.send(GET)
    await transport.send(GET)
    assert await plugin.renew(jane) is not jane
    await transport.send(GET)  # the same certificate in another text: nothing to reconnect for
    plugin.name = "john"
    await plugin.renew(plugin.current())
    await transport.send(GET)
    used = [(pool.settings["tls"].certificate_data, pool.settings["tls"].key_data) for pool in pools]
    assert used == [
        (b"of the file", b"of the file"),
        (b"certificate of jane", b"key of jane"),
        (b"certificate of john", b"key of john"),
    ]
    assert [len(pool.sent) for pool in pools] == [1, 3, 1]


@pytest.mark.virtual
async def test_files_beside_a_plugin_are_looked_at_every_ten_seconds_too(tmp_path: Path, pools: list[Pool]) -> None:
    folder, tls = files_of(tmp_path)
    plugin = Plugin("jane")
    await plugin.renew()
    transport = Reconnecting(Config(server="https://k", credentials=plugin, tls=tls))
    await transport.send(GET)
    (folder / "ca").write_text("newer")
    await transport.send(GET)
    assert len(pools) == 1
    await asyncio.sleep(LOOK_PERIOD)
    await transport.send(GET)
    assert len(pools) == 2


async def test_a_certificate_of_a_plugin_that_cannot_be_used_is_an_error(
    pools: list[Pool], monkeypatch: pytest.MonkeyPatch
) -> None:
    plugin = Plugin("jane")
    jane = await plugin.renew()
    transport = Reconnecting(Config(server="https://k", credentials=plugin))
    await transport.send(GET)

    def broken(options: TlsOptions) -> None:
        raise ValueError("no PEM")

    monkeypatch.setattr(TlsOptions, "context", broken)
    plugin.name = "nonsense"
    await plugin.renew(jane)
    for _ in range(2):
        with pytest.raises(ConfigError, match="the certificates cannot be used: no PEM"):
            await transport.send(GET)
    assert len(pools[0].sent) == 1


async def test_closing_closes_also_the_pools_of_old_certificates(tmp_path: Path, pools: list[Pool]) -> None:
    folder, tls = files_of(tmp_path)
    transport = Reconnecting(Config(server="https://k", tls=tls), look_period=0)
    await transport.aclose()
    for text in ("one", "three", "fifteen"):
        (folder / "key").write_text(text)
        await transport.send(GET)
    await transport.aclose()
    assert [pool.closed for pool in pools] == [1, 1, 1]


async def test_everything_that_a_configuration_says_reaches_the_pool(pools: list[Pool]) -> None:
    proxy = Proxy.parse("http://proxy:1")
    tls = TlsSettings(
        ca_file="ca", certificate_file="crt", key_file="key", ca_data="CA", certificate_data="C", key_data="K",
        server_name="api", insecure=True,
    )  # fmt: skip
    limits = ClientLimits(connections=3)
    config = Config(server="https://k", tls=tls, proxy=proxy, compression=False)
    await Reconnecting(config, limits).send(GET)
    (pool,) = pools
    expected = TlsOptions(
        ca_file="ca", certificate_file="crt", key_file="key", ca_data=b"CA", certificate_data=b"C", key_data=b"K",
        server_name="api", insecure=True,
    )  # fmt: skip
    assert pool.server == "https://k"
    assert pool.settings == {"tls": expected, "limits": limits, "proxy": proxy, "gzip": False}


async def test_a_server_without_tls_needs_no_certificates(pools: list[Pool]) -> None:
    await Reconnecting(Config(server="http://k", tls=TlsSettings(ca_file="/absent"))).send(GET)
    assert pools[0].settings == {"tls": None, "limits": ClientLimits(), "proxy": None, "gzip": True}


async def test_a_client_has_a_few_connections_for_leases_alone_and_closes_all(pools: list[Pool]) -> None:
    limits = ClientLimits(connections=50)
    config = Config(server="http://k", credentials=Static.bearer("t"))
    async with Client.connect(config, limits=limits) as client:
        await client.get(ConfigMap, "a", "shop")
        await client.get(Lease, "l", "shop")
        assert [pool.settings["limits"].connections for pool in pools] == [50, 4]
        assert [pool.sent for pool in pools] == [["send"], ["send"]]
        assert [pool.closed for pool in pools] == [0, 0]
    assert [pool.closed for pool in pools] == [1, 1]
