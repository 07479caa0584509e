"""Certificates in a world that is not as it should be: clocks that are wrong, Secrets that others write."""

from __future__ import annotations

import asyncio
import base64
from dataclasses import replace
from datetime import timedelta

import pytest
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    PrivateFormat,
    load_pem_private_key,
)

from konverge import clock
from konverge.apiserver import ApiServer
from konverge.client import Client, MergePatch
from konverge.objects.kinds.admissionregistration_v1 import ValidatingWebhookConfiguration
from konverge.objects.kinds.core_v1 import Secret
from konverge.runtime.webhooks.certificates.material import (
    MOST_TRUSTED,
    brought_up_to_date,
    is_trusted,
    is_valid,
    may_promote,
)
from tests.runtime.webhooks.test_certificates import (
    DAY,
    HOST,
    LIFETIMES,
    NAME,
    SPACE,
    Replica,
    entry,
    install,
    is_accepted,
    of_service,
    secret,
    trusted,
)

pytestmark = [pytest.mark.virtual, pytest.mark.spec("R-68")]


class Ahead:
    """A clock that can be set wrong."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.days = 0.0
        right = clock.utc_now
        monkeypatch.setattr(clock, "utc_now", lambda: right() + timedelta(days=self.days))


@pytest.fixture
def ahead(monkeypatch: pytest.MonkeyPatch) -> Ahead:
    return Ahead(monkeypatch)


async def test_what_a_clock_that_is_ahead_issues_first_is_replaced(
    server: ApiServer, client: Client, ahead: Ahead
) -> None:
    await install(client)
    replica = Replica(server)
    ahead.days = 20
    await replica.keeper.look()
    ahead.days = 0
    assert not await is_accepted(client, replica)
    await replica.keeper.look()
    assert await is_accepted(client, replica)
    before = server.store.revision
    await replica.keeper.look()
    assert server.store.revision == before


@pytest.mark.parametrize("days", [70, 500, 1100], ids=["certificate", "next authority", "authority"])
async def test_a_clock_that_jumps_ahead_once_does_no_lasting_harm(
    server: ApiServer, client: Client, ahead: Ahead, days: float
) -> None:
    await install(client)
    replica = Replica(server)
    await replica.keeper.look()
    before = await secret(client)
    ahead.days = days
    await replica.keeper.look()
    assert await secret(client) != before
    ahead.days = 0
    await replica.keeper.look()
    assert await is_accepted(client, replica)
    # Later everything is renewed as ever: no leftover of the future is in the way.
    for _ in range(9):
        await asyncio.sleep(80 * DAY)
        await replica.keeper.look()
        assert await is_accepted(client, replica)
        await asyncio.sleep(LIFETIMES.settling.total_seconds() + 1)
        await replica.keeper.look()
        assert await is_accepted(client, replica)


async def test_an_authority_of_the_future_never_signs(server: ApiServer, client: Client, ahead: Ahead) -> None:
    await install(client)
    replica = Replica(server)
    await replica.keeper.look()
    (now,) = await trusted(client)
    ahead.days = 500
    await replica.keeper.look()
    assert len(await trusted(client)) == 2, "the next authority is there, and is of the future"
    ahead.days = 0
    await replica.keeper.look()
    assert await trusted(client) == (now,)
    assert "next-ca.crt" not in await secret(client)


async def test_replicas_whose_clocks_differ_by_years_do_not_fill_the_secret(
    server: ApiServer, client: Client, ahead: Ahead
) -> None:
    await install(client)
    right, wrong = Replica(server), Replica(server)
    for _ in range(2 * MOST_TRUSTED):
        ahead.days = 1100
        await wrong.keeper.look()
        ahead.days = 0
        await right.keeper.look()
        assert await is_accepted(client, right)
    assert len(await trusted(client)) <= MOST_TRUSTED


async def test_a_next_authority_of_the_future_is_no_way_out(ahead: Ahead) -> None:
    ahead.days = 20
    first = brought_up_to_date(None, (HOST,), LIFETIMES, clock.utc_now())
    other = brought_up_to_date(None, (HOST,), LIFETIMES, clock.utc_now())
    ahead.days = 0
    now = clock.utc_now()
    since = now - timedelta(days=1)
    material = replace(first, next_authority=other.trusted[0], next_key=other.key, next_since=since)
    assert not may_promote(material, LIFETIMES, now)
    assert may_promote(material, LIFETIMES, now + timedelta(days=20))
    mended = brought_up_to_date(material, (HOST,), LIFETIMES, now)
    assert is_valid(mended.trusted[0], now)
    assert is_valid(mended.certificate, now)
    assert mended.next_since is None


# ------------------------------------------------------------------ what others write


async def test_an_authority_that_was_dropped_does_not_come_back(server: ApiServer, client: Client) -> None:
    """Its key was stolen: the Secret and the caBundles were removed, and a replica still has both in its memory."""
    await install(client)
    replica = Replica(server)
    await replica.keeper.look()
    stolen = await secret(client)
    await client.delete(Secret, NAME, SPACE)
    await client.patch(ValidatingWebhookConfiguration, NAME, MergePatch({"webhooks": [entry("check", of_service())]}))
    await replica.keeper.look()
    new = await secret(client)
    assert not {new["ca.crt"], new["ca.key"], new["tls.key"]} & set(stolen.values())
    assert stolen["ca.crt"] not in await trusted(client)
    assert await is_accepted(client, replica)


async def test_a_bundle_that_is_no_bundle_trusts_nothing(server: ApiServer) -> None:
    material = await Replica(server).keeper._up_to_date()
    assert is_trusted(material, material.bundle)
    assert not is_trusted(material, b"")
    assert not is_trusted(material, b"-----BEGIN CERTIFICATE-----\nx\n-----END CERTIFICATE-----\n")


def with_password(pem: bytes) -> bytes:
    key = load_pem_private_key(pem, None)
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(b"x"))


@pytest.mark.parametrize("name", ["ca.key", "tls.key", "next-since"])
async def test_whatever_is_in_the_secret_a_usable_certificate_follows(
    server: ApiServer, client: Client, name: str
) -> None:
    await install(client)
    replica = Replica(server)
    await replica.keeper.look()
    data = await secret(client)
    odd = b"2020-01-01T00:00:00Z" if name == "next-since" else with_password(data[name])
    await client.patch(Secret, NAME, MergePatch({"data": {name: base64.b64encode(odd).decode()}}), SPACE)
    fresh = Replica(server)
    for keeper in (fresh.keeper, replica.keeper):
        assert await keeper.attempt()
    assert await is_accepted(client, fresh)
    assert await is_accepted(client, replica)


async def test_keeping_goes_on_after_an_error_that_was_not_expected(server: ApiServer, client: Client) -> None:
    await install(client)
    failures = 0

    async def fail() -> None:
        nonlocal failures
        failures += 1
        raise RuntimeError("not expected")

    async with Replica(server).running() as replica:
        look = replica.keeper.look
        replica.keeper.look = fail  # type: ignore[method-assign]
        await asyncio.sleep(91 * DAY)
        assert failures > 100
        assert "not expected" in replica.keeper.problem
        replica.keeper.look = look  # type: ignore[method-assign]
        await asyncio.sleep(DAY)
        assert replica.keeper.problem == ""
        assert await is_accepted(client, replica)
