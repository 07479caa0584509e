"""A server that starts again shows a certificate that is good for where it listens, by the same authority."""

from __future__ import annotations

from pathlib import Path

import pytest
from cryptography import x509 as reader
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from konverge.apiserver import certificates
from konverge.apiserver.certificates import Certificates, kept
from konverge.wire import x509

pytestmark = pytest.mark.spec("S-12")


def _hosts(found: Certificates) -> set[str]:
    own = reader.load_pem_x509_certificate(found.server)
    names = own.extensions.get_extension_for_class(reader.SubjectAlternativeName).value
    return {str(name.value) for name in names}


def test_those_that_fit_stay_as_they_are(tmp_path: Path) -> None:
    first = kept(tmp_path, ("node-1",))
    assert kept(tmp_path, ("node-1",)) == first
    assert kept(tmp_path, ("localhost",)) == first


@pytest.mark.parametrize("host", ["node-2", "192.0.2.7", "2001:db8::7"])
def test_another_host_is_named_by_the_same_authority_and_key(tmp_path: Path, host: str) -> None:
    first = kept(tmp_path, ("node-1",))
    again = kept(tmp_path, (host,))
    assert (again.authority, again.admin, again.server_key) == (first.authority, first.admin, first.server_key)
    assert {host, "localhost", "10.96.0.1"} <= _hosts(again)
    key = load_pem_private_key(again.server_key, None).public_key()
    own = reader.load_pem_x509_certificate(again.server)
    assert own.public_key() == key
    own.verify_directly_issued_by(reader.load_pem_x509_certificate(again.authority))
    again.context()
    assert kept(tmp_path, (host,)) == again, "and is kept"


def test_a_name_that_an_earlier_version_did_not_know_is_added(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(certificates, "_NAMES", ("localhost",))
    first = kept(tmp_path, ("node-1",))
    monkeypatch.undo()
    again = kept(tmp_path, ("node-1",))
    assert "10.96.0.1" in _hosts(again) - _hosts(first)


def test_certificates_of_another_authority_are_left_alone(tmp_path: Path) -> None:
    first = kept(tmp_path, ("node-1",))
    other = x509.authority("somebody's")
    (tmp_path / "pki" / "authority.pem").write_bytes(other.pem[0])
    again = kept(tmp_path, ("node-2",))
    assert (again.server, again.authority) == (first.server, other.pem[0])
