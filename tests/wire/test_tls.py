"""TLS: whom the client trusts, whom the server sees, and the same streams as in the clear."""

from __future__ import annotations

import asyncio
import gzip
import ssl
import tempfile
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509

from konverge.wire import (
    ClientLimits,
    Headers,
    ProtocolError,
    Request,
    Response,
    ServerLimits,
    Sink,
    TlsFailed,
    TlsOptions,
    server_context,
)

from .certificates import authority
from .support import both, echo, pool_to, raw_client, serving, until

GET = Request("GET", "/")
TRUSTING = TlsOptions(ca_data=authority().pem)


def server_tls(hosts: list[str] | None = None, **options: object) -> ssl.SSLContext:
    certificate, key = authority().issue("server", hosts or ["127.0.0.1"])
    return server_context(certificate, key, **options)  # type: ignore[arg-type]


async def whoami(request: Request) -> Response:
    if request.peer.certificate is None:
        return Response(200, None, b"nobody")
    name = x509.load_der_x509_certificate(request.peer.certificate).subject.rfc4514_string()
    return Response(200, None, name.encode())


async def test_a_trusted_server() -> None:
    async with serving(ssl=server_tls()) as server, pool_to(server, scheme="https", tls=TRUSTING) as pool:
        for size in (0, 1, 1_000_000):
            assert len((await pool.send(Request("POST", "/", body=bytes(size)))).body) == (size or 5)
        assert server.connections == 1


@pytest.mark.parametrize(
    ("tls", "advice"),
    [
        (None, "check the CA"),
        (TlsOptions(ca_data=authority("another").pem), "check the CA"),
        (TlsOptions(ca_data=authority().pem, server_name="other.example"), "tls-server-name"),
    ],
    ids=["system CAs", "another CA", "another name"],
)
async def test_servers_that_are_not_trusted(tls: TlsOptions | None, advice: str) -> None:
    async with serving(ssl=server_tls()) as server, pool_to(server, scheme="https", tls=tls) as pool:
        with pytest.raises(TlsFailed, match=advice):
            await pool.send(GET)


async def test_a_servers_own_certificate_may_be_trusted() -> None:
    """As Go has it: whatever is named is trusted. envtest names the webhook's certificate, not its authority."""
    certificate, key = authority().issue("server", ["127.0.0.1"])
    another, _ = authority().issue("server", ["127.0.0.1"])
    async with serving(ssl=server_context(certificate, key)) as server:
        async with pool_to(server, scheme="https", tls=TlsOptions(ca_data=certificate)) as pool:
            assert (await pool.send(GET)).status == 200
        async with pool_to(server, scheme="https", tls=TlsOptions(ca_data=another)) as pool:
            with pytest.raises(TlsFailed):
                await pool.send(GET)


async def test_the_checksum_of_gzip_is_computed_only_in_the_clear() -> None:
    packed = gzip.compress(b"content")
    wrong = packed[:-8] + bytes(4) + packed[-4:]

    async def handler(request: Request) -> Response:
        return Response(200, Headers.of({"content-encoding": "gzip"}), wrong)

    async with serving(handler, ssl=server_tls()) as server, pool_to(server, scheme="https", tls=TRUSTING) as pool:
        assert (await pool.send(GET)).body == b"content"
        assert await (await pool.stream(GET)).read() == b"content"
    async with serving(handler) as server, pool_to(server) as pool:
        with pytest.raises(ProtocolError):
            await pool.send(GET)
        with pytest.raises(ProtocolError):
            await (await pool.stream(GET)).read()


async def test_a_name_of_its_own_and_files(tmp_path: Path) -> None:
    file = tmp_path / "ca.pem"
    file.write_bytes(authority().pem)
    async with serving(ssl=server_tls(["kubernetes.default"])) as server:
        options = TlsOptions(ca_file=str(file), server_name="kubernetes.default")
        async with pool_to(server, scheme="https", tls=options) as pool:
            assert (await pool.send(GET)).status == 200
        async with pool_to(server, scheme="https", tls=TlsOptions(insecure=True)) as pool:
            assert (await pool.send(GET)).status == 200
        async with pool_to(server, scheme="https", tls=options.context()) as pool:
            with pytest.raises(TlsFailed):
                await pool.send(GET)


@pytest.mark.parametrize("from_files", [True, False])
async def test_client_certificates(from_files: bool, tmp_path: Path) -> None:
    certificate, key = authority().issue("alice")
    if from_files:
        (tmp_path / "cert").write_bytes(certificate)
        (tmp_path / "key").write_bytes(key)
        options = TlsOptions(
            ca_data=authority().pem, certificate_file=str(tmp_path / "cert"), key_file=str(tmp_path / "key")
        )
    else:
        options = TlsOptions(ca_data=authority().pem, certificate_data=certificate, key_data=key)
    async with serving(whoami, ssl=server_tls(client_ca=authority().pem)) as server:
        async with pool_to(server, scheme="https", tls=options) as pool:
            assert (await pool.send(GET)).body == b"CN=alice"
        async with pool_to(server, scheme="https", tls=TlsOptions(ca_data=authority().pem)) as pool:
            assert (await pool.send(GET)).body == b"nobody"


async def test_a_required_client_certificate() -> None:
    context = server_tls(client_ca=authority().pem, require_client=True)
    async with serving(whoami, ssl=context) as server:
        async with pool_to(server, scheme="https", tls=TlsOptions(ca_data=authority().pem)) as pool:
            with pytest.raises(ConnectionError):
                await pool.send(GET)
        assert server.connections == 0


async def test_streams_and_backpressure_over_tls() -> None:
    full, ended = asyncio.Event(), asyncio.Event()
    written = 0

    async def producer(sink: Sink) -> None:
        nonlocal written
        try:
            while sink.buffered < 1_000_000:
                sink.write(bytes(65536))
                written += 65536
                await asyncio.sleep(0)
            full.set()
            await sink.drain()
            await asyncio.Event().wait()
        finally:
            ended.set()

    async def handler(request: Request) -> Response:
        return Response(200, producer=producer)

    async with serving(handler, ssl=server_tls()) as server, pool_to(server, scheme="https", tls=TRUSTING) as pool:
        stream = await pool.stream(GET)
        await full.wait()
        assert written < 64_000_000
        total = 0
        while total < written:
            total += len(await anext(stream))
        await stream.aclose()
        await ended.wait()
        await until(lambda: server.connections == 0)


async def test_plain_http_to_a_tls_server_and_the_reverse() -> None:
    async with serving(ssl=server_tls()) as server, pool_to(server) as pool:
        with pytest.raises(ConnectionError):
            await pool.send(GET)
    async with serving() as server, pool_to(server, scheme="https", tls=TlsOptions(insecure=True)) as pool:
        with pytest.raises(TlsFailed, match="speaks TLS"):
            await pool.send(GET)


async def test_cancellation_in_the_handshake_leaves_nothing() -> None:
    async with serving(ssl=server_tls()) as server:
        limits = ClientLimits(connections=1)
        async with pool_to(server, scheme="https", tls=TlsOptions(ca_data=authority().pem), limits=limits) as pool:
            for steps in range(25):
                task = asyncio.create_task(pool.send(GET))
                for _ in range(steps):
                    await asyncio.sleep(0)
                task.cancel()
                await asyncio.wait([task])
                for connection in list(pool._all):
                    connection.abort()
            assert (await pool.send(GET)).status == 200
            assert pool._slots + len(pool._all) == 1


async def test_a_refusal_over_tls() -> None:
    context = ssl.create_default_context(cadata=authority().pem.decode())
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT  # from Python 3.13 on the default; this authority is a plain one
    async with serving(echo, ssl=server_tls(), limits=ServerLimits(body=10)) as server:
        async with raw_client(server, ssl=context) as client:
            client.write(b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 11\r\n\r\n" + bytes(11))
            assert (await client.answer())[0] == 413
        await until(lambda: server.connections == 0)


def test_keys_are_neither_shown_nor_left_behind() -> None:
    certificate, key = authority().issue("alice")
    options = TlsOptions(certificate_data=certificate, key_data=key, insecure=True)
    assert b"PRIVATE" in key
    assert "PRIVATE" not in repr(options)
    before = set(Path(tempfile.gettempdir()).glob("konverge-*.pem"))
    options.context()
    assert set(Path(tempfile.gettempdir()).glob("konverge-*.pem")) <= before


def test_an_encrypted_key_does_not_ask_the_terminal() -> None:
    from cryptography.hazmat.primitives import serialization

    certificate, key = authority().issue("alice")
    locked = serialization.load_pem_private_key(key, None).private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.BestAvailableEncryption(b"pw")
    )
    with pytest.raises((ssl.SSLError, ValueError)):
        TlsOptions(certificate_data=certificate, key_data=locked, insecure=True).context()


GARBAGE = b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"
ALICE, BOB = authority().issue("alice"), authority().issue("bob")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"ca_file": "/nowhere/ca.crt"}, "/nowhere/ca.crt"),
        ({"ca_data": GARBAGE}, "check the CA"),
        ({"ca_data": b"-"}, "check the CA"),
        ({"certificate_file": "/nowhere/tls.crt", "key_file": "/nowhere/tls.key"}, "/nowhere/tls.crt"),
        ({"certificate_data": ALICE[0], "key_data": BOB[1]}, "a key that belongs to its certificate"),
        ({"certificate_data": ALICE[0]}, "the key"),
    ],
)
async def test_certificates_that_cannot_be_used_are_named(options: dict[str, Any], message: str) -> None:
    async with serving(ssl=server_tls()) as server:
        tls = TlsOptions(**{"ca_data": authority().pem, **options} if "ca_file" not in options else options)
        async with pool_to(server, scheme="https", tls=tls) as pool:
            with pytest.raises(TlsFailed, match="cannot be used") as caught:
                await pool.send(GET)
            assert message in str(caught.value)
            assert pool._slots == pool.limits.connections
        assert server.connections == 0


async def test_an_expired_certificate() -> None:
    context = server_context(*authority().issue("server", ["127.0.0.1"], days=1))
    async with serving(ssl=context) as server, pool_to(server, scheme="https", tls=TRUSTING) as pool:
        with pytest.raises(TlsFailed, match=r"expired.*this machine's clock"):
            await pool.send(GET)


async def test_words_between_certificates_may_be_in_any_language(tmp_path: Path) -> None:
    bundle = "# für das Cluster 集群\n".encode() + authority("another").pem + "# ©\n".encode() + authority().pem
    (tmp_path / "ca.crt").write_bytes(bundle)
    context = server_tls(client_ca=bundle)
    for tls in (TlsOptions(ca_data=bundle), TlsOptions(ca_file=str(tmp_path / "ca.crt"))):
        async with serving(ssl=context) as server, pool_to(server, scheme="https", tls=tls) as pool:
            assert (await pool.send(GET)).status == 200


async def test_a_name_written_in_full_is_the_name_without_its_dot() -> None:
    tls = TlsOptions(ca_data=authority().pem, server_name="kubernetes.default.svc.cluster.local.")
    context = server_tls(["kubernetes.default.svc.cluster.local"])
    async with serving(ssl=context) as server, pool_to(server, scheme="https", tls=tls) as pool:
        assert (await pool.send(GET)).status == 200


async def test_a_context_is_for_https_only() -> None:
    async with both() as (server, _), pool_to(server, tls=TRUSTING.context()) as pool:
        assert (await pool.send(GET)).status == 200


def test_clients_do_not_negotiate_anew() -> None:
    assert server_tls().options & ssl.OP_NO_RENEGOTIATION
