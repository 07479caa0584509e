"""Certificates and their times, without a cluster: what is due, what is dropped, and what stays."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

import pytest
from cryptography import x509 as reading

from konverge import clock
from konverge.runtime.webhooks.certificates.material import (
    MOST_TRUSTED,
    Lifetimes,
    Material,
    also_trusting,
    brought_up_to_date,
    is_valid,
    may_promote,
    promoted,
    split,
)
from konverge.wire import x509

pytestmark = [pytest.mark.virtual, pytest.mark.spec("R-68")]

HOSTS = ("pools.default.svc", "pools")
SECOND, DAY = timedelta(seconds=1), timedelta(days=1)
LIFETIMES = Lifetimes(authority=90 * DAY, certificate=30 * DAY, settling=DAY)


def fresh(lifetimes: Lifetimes = LIFETIMES) -> Material:
    return brought_up_to_date(None, HOSTS, lifetimes, clock.utc_now())


def load(pem: bytes) -> reading.Certificate:
    return reading.load_pem_x509_certificate(pem)


def ends(pem: bytes) -> datetime:
    return load(pem).not_valid_after_utc


def begins(pem: bytes) -> datetime:
    return load(pem).not_valid_before_utc


def with_next(material: Material, since: datetime | None = None) -> Material:
    certificate, key = x509.authority("next", valid=180 * DAY).pem
    return replace(material, next_authority=certificate, next_key=key, next_since=since or clock.utc_now())


async def test_the_first_material_is_one_authority_and_its_certificate() -> None:
    material = fresh()
    (authority,) = material.trusted
    certificate = load(material.certificate)
    certificate.verify_directly_issued_by(load(authority))
    names = certificate.extensions.get_extension_for_class(reading.SubjectAlternativeName).value
    assert names.get_values_for_type(reading.DNSName) == list(HOSTS)
    assert load(authority).subject.rfc4514_string() == "CN=webhooks of pools.default.svc"
    assert ends(authority) - ends(material.certificate) == 60 * DAY
    assert (material.bundle, material.next_authority, material.next_key) == (authority, b"", b"")
    assert material.data() == {
        "ca.crt": authority,
        "ca.key": material.key,
        "tls.crt": material.certificate,
        "tls.key": material.certificate_key,
    }


async def test_what_is_stored_is_read_again() -> None:
    material = with_next(fresh())
    since = clock.utc_now().replace(microsecond=0)
    material = replace(material, next_since=since, trusted=(*material.trusted, *fresh().trusted))
    assert Material.read(material.data()) == material
    assert material.bundle == b"".join((*material.trusted, material.next_authority))
    assert Material.read({**fresh().data(), "next-since": b"rubbish"}).next_since is None, "of no authority"


@pytest.mark.parametrize("name", ["ca.crt", "ca.key", "next-ca.key"])
@pytest.mark.parametrize("value", [b"", b"rubbish"])
async def test_what_is_missing_or_broken_cannot_be_used(name: str, value: bytes) -> None:
    data = with_next(fresh()).data()
    with pytest.raises(ValueError):
        Material.read({**data, name: value})
    with pytest.raises(ValueError, match=r"^ca.crt has no certificate$"):
        Material.read({})
    other = fresh().key
    with pytest.raises(ValueError, match="does not belong"):
        Material.read({**data, "next-ca.key": other})


async def test_a_certificate_is_good_from_its_beginning_until_before_its_end() -> None:
    pem = fresh().certificate
    begin, end = begins(pem), ends(pem)
    assert [is_valid(pem, now) for now in (begin - SECOND, begin, end - SECOND, end)] == [False, True, True, False]


async def test_an_authority_may_sign_when_it_was_known_for_long_enough() -> None:
    material = with_next(fresh())
    since = material.next_since
    assert since is not None
    assert [may_promote(material, LIFETIMES, since + DAY - SECOND), may_promote(material, LIFETIMES, since + DAY)] == [
        False,
        True,
    ]
    assert not may_promote(replace(material, next_since=None), LIFETIMES, since + DAY)
    end = ends(material.next_authority)
    assert not may_promote(material, LIFETIMES, end), "it is over itself"


async def test_an_authority_may_sign_early_when_the_other_one_ends() -> None:
    end = ends((material := fresh()).trusted[0])
    late = with_next(material, since=end - DAY - SECOND)
    assert not may_promote(late, LIFETIMES, end - DAY - SECOND)
    assert may_promote(late, LIFETIMES, end - DAY)


async def test_the_next_authority_signs_and_the_old_one_stays_trusted() -> None:
    before = with_next(fresh())
    after = promoted(before, HOSTS, LIFETIMES, clock.utc_now())
    assert after.trusted == (before.next_authority, *before.trusted)
    assert after.key == before.next_key
    assert (after.next_authority, after.next_key, after.next_since) == (b"", b"", None)
    load(after.certificate).verify_directly_issued_by(load(before.next_authority))
    assert before.key not in after.data().values()


async def test_nothing_is_changed_before_it_is_due() -> None:
    material = fresh()
    due = ends(material.certificate) - 10 * DAY
    assert brought_up_to_date(material, HOSTS, LIFETIMES, due - SECOND) is material
    assert brought_up_to_date(material, HOSTS[:1], LIFETIMES, due - SECOND) is material, "it covers more"
    renewed = brought_up_to_date(material, HOSTS, LIFETIMES, due)
    assert renewed.certificate != material.certificate
    assert replace(renewed, certificate=b"", certificate_key=b"") == replace(
        material, certificate=b"", certificate_key=b""
    )


async def test_the_next_authority_is_made_when_a_third_is_left() -> None:
    material = fresh()
    due = ends(material.trusted[0]) - 30 * DAY
    assert brought_up_to_date(material, HOSTS, LIFETIMES, due - SECOND).next_authority == b""
    after = brought_up_to_date(material, HOSTS, LIFETIMES, due)
    assert (after.next_since, after.trusted, after.key) == (due, material.trusted, material.key)
    assert brought_up_to_date(after, HOSTS, LIFETIMES, due).next_authority == after.next_authority


async def test_a_certificate_that_would_gain_little_is_not_issued_again() -> None:
    """The authority ends first: its certificates can be good for no longer than itself."""
    short = replace(LIFETIMES, certificate=60 * DAY)
    material = with_next(fresh(replace(short, authority=60 * DAY)))
    end = ends(material.trusted[0])
    assert ends(material.certificate) == end
    assert brought_up_to_date(material, HOSTS, short, end - DAY) is material


async def test_a_next_authority_that_is_not_good_is_dropped_with_its_key() -> None:
    material = with_next(fresh())
    authority, key = x509.authority("long", valid=3000 * DAY).pem
    long = replace(material, trusted=(authority,), key=key)
    after = brought_up_to_date(long, HOSTS, LIFETIMES, ends(material.next_authority))
    assert (after.next_authority, after.next_key, after.next_since) == (b"", b"", None)


async def test_when_an_authority_is_over_the_next_one_takes_its_place() -> None:
    before = with_next(fresh())
    after = brought_up_to_date(before, HOSTS, LIFETIMES, ends(before.trusted[0]))
    assert (after.trusted, after.key) == ((before.next_authority,), before.next_key)
    load(after.certificate).verify_directly_issued_by(load(before.next_authority))


async def test_a_certificate_of_another_authority_of_the_same_name_is_issued_again() -> None:
    material, other = fresh(), fresh()
    mixed = replace(material, certificate=other.certificate, certificate_key=other.certificate_key)
    assert load(other.certificate).issuer == load(material.trusted[0]).subject
    after = brought_up_to_date(mixed, HOSTS, LIFETIMES, clock.utc_now())
    load(after.certificate).verify_directly_issued_by(load(material.trusted[0]))


async def test_a_certificate_for_other_hosts_is_issued_again() -> None:
    material = fresh()
    after = brought_up_to_date(material, (*HOSTS, "new"), LIFETIMES, clock.utc_now())
    assert after.certificate != material.certificate
    assert after.trusted == material.trusted


async def test_what_is_over_is_no_longer_trusted_and_only_so_many_are() -> None:
    material = fresh()
    others = tuple(x509.authority(f"a{n}", valid=100 * DAY).pem[0] for n in range(MOST_TRUSTED))
    old = x509.authority("old", valid=DAY).pem[0]
    full = replace(material, trusted=(*material.trusted, old, *others))
    now = clock.utc_now()
    assert brought_up_to_date(full, HOSTS, LIFETIMES, now).trusted == full.trusted[:MOST_TRUSTED]
    assert brought_up_to_date(full, HOSTS, LIFETIMES, ends(old)).trusted == (
        *material.trusted,
        *others[: MOST_TRUSTED - 1],
    )


async def test_authorities_that_clients_trust_are_added_once() -> None:
    material, other = fresh(), fresh().trusted[0]
    now = clock.utc_now()
    assert also_trusting(material, b"", now) is material
    assert also_trusting(material, material.trusted[0], now) is material
    assert also_trusting(material, b"-----BEGIN CERTIFICATE-----\nx\n-----END CERTIFICATE-----\n", now) is material
    assert also_trusting(material, material.trusted[0] + other + other, now).trusted == (*material.trusted, other)
    assert also_trusting(material, other, ends(other)) is material, "it is over"


async def test_a_bundle_has_each_certificate_once() -> None:
    first, second = fresh().trusted[0], fresh().trusted[0]
    assert split(b" \n") == ()
    assert split(first + b"\n" + second + first) == (first, second)
