"""What Go says of a certificate that is not what the server was to show. The texts are those of its crypto/x509."""

from __future__ import annotations

import re
from datetime import UTC, datetime

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from konverge.apiserver.go import x509 as go_x509
from konverge.apiserver.go.http import transport_failure
from konverge.wire import Request, TlsFailed, TlsOptions, server_context
from tests.wire.certificates import authority
from tests.wire.support import pool_to, serving


async def said_of(hosts: list[str], wanted: str, days: int = 36500) -> str:
    """Of a certificate for these hosts, when another one was wanted."""
    context = server_context(*authority().issue("server", hosts, days=days))
    trusting = TlsOptions(ca_data=authority().pem, server_name=wanted)
    async with serving(ssl=context) as server, pool_to(server, scheme="https", tls=trusting) as pool:
        with pytest.raises(TlsFailed) as refused:
            await pool.send(Request("GET", "/"))
        said = await transport_failure(refused.value, f"127.0.0.1:{server.port}", wanted)
    return said.removeprefix("tls: failed to verify certificate: x509: ")


@pytest.mark.parametrize(
    ("hosts", "wanted", "said"),
    [
        (["a.example", "b.example"], "c.example", "certificate is valid for a.example, b.example, not c.example"),
        (["10.0.0.1"], "c.example", "certificate is not valid for any names, but wanted to match c.example"),
        (
            ["localhost"],
            "127.0.0.1",
            "cannot validate certificate for 127.0.0.1 because it doesn't contain any IP SANs",
        ),
        (["10.0.0.1", "2001:db8::1"], "127.0.0.1", "certificate is valid for 10.0.0.1, 2001:db8::1, not 127.0.0.1"),
        ([], "server", "certificate relies on legacy Common Name field, use SANs instead"),
        ([], "c.example", "certificate is not valid for any names, but wanted to match c.example"),
        (
            [f"{number}.example" for number in range(100)],
            "c.example",
            "certificate is valid for 100 names, but none matched c.example",
        ),
        (
            [f"10.0.0.{number}" for number in range(100)],
            "127.0.0.1",
            "certificate is valid for 100 IP SANs, but none matched 127.0.0.1",
        ),
    ],
    ids=["names", "no names", "no addresses", "addresses", "common name", "other", "many names", "many addresses"],
)
@pytest.mark.spec("S-32")
async def test_a_certificate_for_others_is_said_whose_it_is(hosts: list[str], wanted: str, said: str) -> None:
    assert await said_of(hosts, wanted) == said


@pytest.mark.spec("S-32")
async def test_an_expired_certificate_is_said_since_when() -> None:
    said = await said_of(["127.0.0.1"], "127.0.0.1", days=1)
    told = r"certificate has expired or is not yet valid: current time \S+Z is after 2020-01-02T00:00:00Z"
    assert re.fullmatch(told, said)


@pytest.mark.spec("S-32")
async def test_a_server_that_is_gone_meanwhile_is_not_waited_for() -> None:
    context = server_context(*authority().issue("server", ["localhost"]))
    trusting = TlsOptions(ca_data=authority().pem, server_name="c.example")
    async with serving(ssl=context) as server, pool_to(server, scheme="https", tls=trusting) as pool:
        with pytest.raises(TlsFailed) as refused:
            await pool.send(Request("GET", "/"))
        port = server.port
    said = await transport_failure(refused.value, f"127.0.0.1:{port}", "c.example")
    assert said.endswith("x509: certificate is not valid for any names, but wanted to match c.example")


@pytest.mark.spec("S-32")
def test_names_that_cannot_be_read_are_none() -> None:
    key, name = ec.generate_private_key(ec.SECP256R1()), x509.Name([])
    unreadable = x509.UnrecognizedExtension(x509.ExtensionOID.SUBJECT_ALTERNATIVE_NAME, b"no sequence")
    builder = (
        x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key()).serial_number(1)
    )
    builder = builder.not_valid_before(datetime(2020, 1, 1, tzinfo=UTC)).not_valid_after(
        datetime(2120, 1, 1, tzinfo=UTC)
    )
    builder = builder.add_extension(unreadable, critical=False)
    shown = builder.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.DER)
    assert go_x509._read(shown) is None
    assert go_x509._read(b"no certificate") is None
