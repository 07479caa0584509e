"""Certificates as others read them: OpenSSL (through `ssl`) and `cryptography`."""

from __future__ import annotations

import ssl
from datetime import UTC, datetime, timedelta

import pytest
from cryptography import x509 as reading
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, load_pem_private_key

from konverge import clock
from konverge.apiserver.certificates import make
from konverge.wire import x509
from konverge.wire.tls import TlsOptions, server_context

HOSTS = ("127.0.0.1", "::1", "host.example")


@pytest.mark.spec("S-12")
def test_certificates_have_their_chain_names_and_purposes() -> None:
    made = make(HOSTS)
    authority, server, admin = (
        reading.load_pem_x509_certificate(pem) for pem in (made.authority, made.server, made.admin)
    )
    for certificate in (authority, server, admin):
        certificate.verify_directly_issued_by(authority)
    names = server.extensions.get_extension_for_class(reading.SubjectAlternativeName).value
    assert {str(name.value) for name in names} >= {*HOSTS, "localhost", "kubernetes.default.svc"}
    assert admin.subject.rfc4514_string() == "CN=kubernetes-admin,O=system:masters"
    assert authority.extensions.get_extension_for_class(reading.BasicConstraints).value.ca
    assert not server.extensions.get_extension_for_class(reading.BasicConstraints).value.ca
    usages = [leaf.extensions.get_extension_for_class(reading.ExtendedKeyUsage).value for leaf in (server, admin)]
    assert [[purpose.dotted_string for purpose in usage] for usage in usages] == [
        ["1.3.6.1.5.5.7.3.1"],
        ["1.3.6.1.5.5.7.3.2"],
    ]


def test_keys_belong_to_their_certificates() -> None:
    made = make(HOSTS)
    pairs = ((made.authority, made.authority_key), (made.server, made.server_key), (made.admin, made.admin_key))
    for certificate, key in pairs:
        public = reading.load_pem_x509_certificate(certificate).public_key()
        assert load_pem_private_key(key, None).public_key() == public


@pytest.mark.spec("S-60")
def test_the_key_of_a_client_is_as_openssl_writes_it() -> None:
    """Its first line names the algorithm, for clients that do not look further."""
    key = make(HOSTS).admin_key
    form = PrivateFormat.TraditionalOpenSSL
    assert load_pem_private_key(key, None).private_bytes(Encoding.PEM, form, NoEncryption()) == key
    assert key.startswith(b"-----BEGIN EC PRIVATE KEY-----\n")


def test_both_certificates_pass_a_strict_handshake() -> None:
    """As strictly as Python 3.13's default context, which users of aiohttp and httpx have."""
    made = make(HOSTS)
    server = server_context(made.server, made.server_key, client_ca=made.authority)
    options = TlsOptions(ca_data=made.authority, certificate_data=made.admin, key_data=made.admin_key)
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    ours = server.wrap_bio(to_server, to_client, server_side=True)
    strict = options.context()
    for context in (server, strict):
        context.verify_flags |= ssl.VERIFY_X509_STRICT
    theirs = strict.wrap_bio(to_client, to_server, server_hostname="host.example")
    waiting = [ours, theirs]
    for _ in range(6):
        waiting = [side for side in waiting if not _handshake_done(side)]
    assert not waiting
    seen = ours.getpeercert()
    assert seen is not None
    assert (("commonName", "kubernetes-admin"),) in seen["subject"]


def _handshake_done(side: ssl.SSLObject) -> bool:
    try:
        side.do_handshake()
    except ssl.SSLWantReadError:
        return False
    return True


def test_times_past_2049_are_written_in_full(monkeypatch: pytest.MonkeyPatch) -> None:
    later = datetime(2045, 6, 1, tzinfo=UTC)
    monkeypatch.setattr(clock, "utc_now", lambda: later)
    late = reading.load_pem_x509_certificate(x509.authority("late").pem[0])
    assert late.not_valid_after_utc == later + timedelta(days=3650)
    assert late.not_valid_before_utc == later - timedelta(days=1)
