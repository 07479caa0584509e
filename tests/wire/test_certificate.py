"""The certificate of the service, renewed while it serves."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from konverge.wire import certificate as module
from konverge.wire.certificate import Certificate
from konverge.wire.message import Request, Response
from konverge.wire.server import Server
from konverge.wire.tls import TlsOptions
from tests.wire.certificates import Authority, authority

pytestmark = pytest.mark.spec("N-22")


def write(folder: Path, pair: tuple[bytes, bytes]) -> tuple[Path, Path]:
    files = folder / "tls.crt", folder / "tls.key"
    for file, data in zip(files, pair, strict=True):
        file.write_bytes(data)
    return files


async def hello(request: Request) -> Response:
    return Response(200)


async def shown_is_from(server: Server, trusted: Authority) -> bool:
    """Whether a new connection is shown a certificate of this authority."""
    host, port = server.addresses[0]
    try:
        _, writer = await asyncio.open_connection(host, port, ssl=TlsOptions(ca_data=trusted.pem).context())
    except OSError:
        return False
    writer.close()
    await writer.wait_closed()
    return True


async def test_a_renewed_certificate_is_shown_to_new_connections(tmp_path: Path) -> None:
    before, after = authority(), authority("another")
    certificate = Certificate(*write(tmp_path, before.issue("one", ["127.0.0.1"])))
    async with Server(hello) as server:
        await server.start("127.0.0.1", 0, ssl=certificate.context)
        assert await shown_is_from(server, before)
        assert not certificate.reload(), "nothing has changed"
        write(tmp_path, after.issue("two", ["127.0.0.1"]))
        assert certificate.reload()
        assert await shown_is_from(server, after)
        assert not await shown_is_from(server, before)


@pytest.mark.parametrize("what", ["a pair that is none", "half a file", "nothing"])
async def test_an_unusable_certificate_changes_nothing_until_it_is_usable(
    tmp_path: Path, what: str, caplog: pytest.LogCaptureFixture
) -> None:
    before, after = authority(), authority("another")
    files = write(tmp_path, before.issue("one", ["127.0.0.1"]))
    certificate = Certificate(*files)
    good = after.issue("two", ["127.0.0.1"])
    if what == "a pair that is none":
        write(tmp_path, (good[0], before.issue("three")[1]))
    elif what == "half a file":
        write(tmp_path, (good[0][:100], good[1]))
    else:
        files[0].unlink()
    async with Server(hello) as server:
        await server.start("127.0.0.1", 0, ssl=certificate.context)
        assert not certificate.reload()
        assert "the previous one stays in use" in caplog.text
        assert "PRIVATE" not in caplog.text
        assert await shown_is_from(server, before)
        write(tmp_path, good)
        assert certificate.reload()
        assert await shown_is_from(server, after)


@pytest.mark.virtual
async def test_a_new_certificate_is_noticed(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    certificate = Certificate(*write(tmp_path, authority().issue("one")))
    following = asyncio.create_task(certificate.follow(), name="following")
    await asyncio.sleep(module.RELOAD_PERIOD * 3)
    assert "renewed" not in caplog.text
    write(tmp_path, authority().issue("two"))
    await asyncio.sleep(module.RELOAD_PERIOD)
    assert caplog.text.count("renewed") == 1
    following.cancel()
    await asyncio.gather(following, return_exceptions=True)
