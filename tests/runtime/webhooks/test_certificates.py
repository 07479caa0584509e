"""Certificates that replicas issue and renew: at every moment the API server trusts what any replica shows."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

import pytest
from cryptography import x509 as reading

from konverge import clock
from konverge.apiserver import ApiServer
from konverge.client import Client, Conflict, MergePatch, Static
from konverge.objects.kinds.admissionregistration_v1 import ValidatingWebhookConfiguration
from konverge.objects.kinds.core_v1 import Secret
from konverge.objects.meta import ObjectMeta
from konverge.runtime.webhooks.certificates.keeper import LABEL, Keeper
from konverge.runtime.webhooks.certificates.material import Lifetimes, split
from konverge.runtime.webhooks.certificates.publishing import Publisher, Targets
from konverge.wire.errors import ConnectFailed
from konverge.wire.message import Request, Response, Stream

pytestmark = [pytest.mark.virtual, pytest.mark.spec("R-68")]

SPACE, NAME = "default", "pools-webhook"
HOST = f"{NAME}.{SPACE}.svc"
DAY = 24 * 3600.0
LIFETIMES = Lifetimes(settling=timedelta(hours=12), look_every=6 * 3600.0)


class Wire:
    """A way to the API server that can be cut."""

    def __init__(self, server: ApiServer) -> None:
        self._transport = server.transport
        self.cut = False

    async def send(self, request: Request) -> Response:
        if self.cut:
            raise ConnectFailed("the network is down")
        return await self._transport.send(request)

    async def stream(self, request: Request) -> Stream:
        return await self._transport.stream(request)


class Replica:
    """A process with a keeper."""

    def __init__(self, server: ApiServer, lifetimes: Lifetimes = LIFETIMES) -> None:
        self.wire = Wire(server)
        self.client = Client(self.wire, credentials=Static.bearer(server.token))
        targets = Targets(service=NAME, namespace=SPACE, validating=NAME)
        self.keeper = Keeper(
            self.client,
            Publisher(self.client, targets),
            owner="pools",
            namespace=SPACE,
            secret=NAME,
            hosts=(HOST,),
            lifetimes=lifetimes,
        )

    @asynccontextmanager
    async def running(self) -> AsyncIterator[Replica]:
        await self.keeper.first()
        task = asyncio.create_task(self.keeper.run(), name="keeper")
        try:
            yield self
        finally:
            task.cancel()
            await asyncio.wait([task])


def entry(name: str, config: dict[str, Any]) -> dict[str, Any]:
    rule = {"apiGroups": ["a"], "apiVersions": ["v1"], "resources": ["pools"], "operations": ["CREATE"]}
    return {
        "name": f"{name}.pools.example.com",
        "admissionReviewVersions": ["v1"],
        "clientConfig": config,
        "rules": [rule],
        "sideEffects": "None",
    }


def of_service(name: str = NAME, namespace: str = SPACE) -> dict[str, Any]:
    return {"service": {"name": name, "namespace": namespace, "path": "/x", "port": 443}}


async def install(client: Client, *entries: dict[str, Any]) -> None:
    await client.create(
        {
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": "ValidatingWebhookConfiguration",
            "metadata": {"name": NAME},
            "webhooks": list(entries or (entry("check", of_service()),)),
        }
    )


async def bundles(client: Client) -> list[str | None]:
    configuration = await client.get(ValidatingWebhookConfiguration, NAME)
    return [webhook.client_config.ca_bundle for webhook in configuration.webhooks]


async def trusted(client: Client) -> tuple[bytes, ...]:
    bundle = (await bundles(client))[0]
    return split(base64.b64decode(bundle or ""))


async def secret(client: Client) -> dict[str, bytes]:
    data = (await client.get(Secret, NAME, SPACE)).data
    return {name: base64.b64decode(value) for name, value in data.items()}


async def is_accepted(client: Client, replica: Replica) -> bool:
    """Whether the API server would accept what this replica shows now."""
    assert replica.keeper.shown is not None
    shown, now = reading.load_pem_x509_certificate(replica.keeper.shown.certificate), clock.utc_now()
    if not shown.not_valid_before_utc <= now < shown.not_valid_after_utc:
        return False
    for pem in await trusted(client):
        authority = reading.load_pem_x509_certificate(pem)
        try:
            shown.verify_directly_issued_by(authority)
        except Exception:
            continue
        return authority.not_valid_before_utc <= now < authority.not_valid_after_utc
    return False


async def test_replicas_that_start_at_once_end_with_one_authority(server: ApiServer, client: Client) -> None:
    await install(client)
    replicas = [Replica(server) for _ in range(4)]
    await asyncio.gather(*(replica.keeper.look() for replica in replicas))
    shown = {replica.keeper.shown.certificate for replica in replicas if replica.keeper.shown}
    assert shown == {(await secret(client))["tls.crt"]}
    assert len(await trusted(client)) == 1
    for replica in replicas:
        assert await is_accepted(client, replica)


async def test_only_entries_of_our_service_are_written(server: ApiServer, client: Client) -> None:
    theirs = base64.b64encode(b"-----BEGIN CERTIFICATE-----\nx").decode()
    await client.create(
        {
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": "ValidatingWebhookConfiguration",
            "metadata": {"name": "of-another"},
            "webhooks": [entry("other", of_service())],
        }
    )
    by_url = {"url": "https://example.com/x"}
    await install(
        client, entry("a", of_service()), entry("b", by_url), entry("c", of_service("other")), entry("d", of_service())
    )
    await Replica(server).keeper.look()
    first, second, third, fourth = await bundles(client)
    assert first == fourth
    assert split(base64.b64decode(first or ""))
    assert (second, third) == (None, None)
    other = await client.get(ValidatingWebhookConfiguration, "of-another")
    assert other.webhooks[0].client_config.ca_bundle is None
    assert theirs


async def test_at_rest_nothing_is_written(server: ApiServer, client: Client) -> None:
    await install(client)
    replica = Replica(server)
    await replica.keeper.look()
    before = server.store.revision
    for _ in range(3):
        await replica.keeper.look()
    assert server.store.revision == before


SHORT = Lifetimes(
    authority=timedelta(days=60), certificate=timedelta(days=18), settling=timedelta(hours=30), look_every=DAY
)


@pytest.mark.parametrize(
    ("lifetimes", "days", "every", "outage"),
    [
        pytest.param(SHORT, 180, 12, 2, id="half a year, in short lives"),
        pytest.param(LIFETIMES, 3 * 365, 90, 14, id="three years", marks=pytest.mark.long),
    ],
)
async def test_in_years_no_certificate_is_refused(
    server: ApiServer, client: Client, lifetimes: Lifetimes, days: int, every: int, outage: int
) -> None:
    """Replicas join and leave, and the API server is away for long, while certificates and authorities change."""
    await install(client)
    random = clock.seeded(7)
    authorities: set[bytes] = set()
    certificates: set[bytes] = set()
    async with Replica(server, lifetimes).running() as always:
        replicas = [always]
        for day in range(days):
            await asyncio.sleep(DAY)
            match random.randrange(20):
                case 0:
                    replicas.append(joined := Replica(server, lifetimes))
                    await joined.keeper.first()
                case 1 if len(replicas) > 1:
                    replicas.pop()
            for number, replica in enumerate(replicas):
                replica.wire.cut = day % every >= every - outage
                if replica is not always and (day + number) % 2:  # they look at different times
                    await replica.keeper.attempt()
                assert await is_accepted(client, replica), f"on day {day}"
            trusted_now = await trusted(client)
            assert len(trusted_now) <= 3
            authorities |= set(trusted_now)
            certificates.add((await secret(client))["tls.crt"])
    assert len(authorities) >= days * DAY // lifetimes.authority.total_seconds()
    assert len(certificates) >= days * DAY // lifetimes.certificate.total_seconds()


async def test_an_authority_signs_only_when_it_was_published_and_some_time_has_passed(
    server: ApiServer, client: Client
) -> None:
    await install(client)
    replica = Replica(server)
    await replica.keeper.look()
    old = (await trusted(client))[0]
    await asyncio.sleep((730 * 2 / 3 + 1) * DAY)
    await replica.keeper.look()
    (both,) = [await trusted(client)]
    assert len(both) == 2
    assert both[0] == old
    data = await secret(client)
    assert data["next-ca.crt"] == both[1]
    issuer = reading.load_pem_x509_certificate(data["tls.crt"])
    issuer.verify_directly_issued_by(reading.load_pem_x509_certificate(old))
    # The configuration is put back by hand before the next look: that is not enough for the new authority to sign.
    stale = {"webhooks": [entry("check", {**of_service(), "caBundle": base64.b64encode(old).decode()})]}
    await client.patch(ValidatingWebhookConfiguration, NAME, MergePatch(stale))
    await asyncio.sleep(LIFETIMES.settling.total_seconds() + 1)
    await replica.keeper.look()
    assert set(await trusted(client)) == set(both)
    data = await secret(client)
    reading.load_pem_x509_certificate(data["tls.crt"]).verify_directly_issued_by(
        reading.load_pem_x509_certificate(both[1])
    )
    assert "next-ca.crt" not in data
    assert data["ca.key"]
    assert await is_accepted(client, replica)


async def test_a_replica_with_an_old_view_does_not_put_back_an_old_bundle(server: ApiServer, client: Client) -> None:
    await install(client)
    replica = Replica(server)
    await replica.keeper.look()
    publisher = Publisher(client, Targets(service=NAME, namespace=SPACE, validating=NAME))

    async def meanwhile() -> bytes:
        """Between this replica's look at the object and its write, another one writes."""
        patch = {"metadata": {"labels": {"touched": "yes"}}}
        await client.patch(ValidatingWebhookConfiguration, NAME, MergePatch(patch))
        return b"an old view"

    before = await bundles(client)
    with pytest.raises(Conflict):
        await publisher.publish(meanwhile)
    assert await bundles(client) == before


@pytest.mark.parametrize("how", ["removed", "emptied", "broken", "half"])
async def test_a_secret_that_is_removed_or_broken_is_restored(server: ApiServer, client: Client, how: str) -> None:
    await install(client)
    replica = Replica(server)
    await replica.keeper.look()
    before = await secret(client)
    match how:
        case "removed":
            await client.delete(Secret, NAME, SPACE)
        case "emptied":
            await client.patch(Secret, NAME, MergePatch({"data": None}), SPACE)
        case "broken":
            await client.patch(Secret, NAME, MergePatch({"data": {"ca.key": "YWJj"}}), SPACE)
        case "half":
            await client.patch(Secret, NAME, MergePatch({"data": {"ca.crt": None}}), SPACE)
    await replica.keeper.look()
    assert await secret(client) == before
    assert (await client.get(Secret, NAME, SPACE)).metadata.labels == {LABEL: "pools"}


async def test_a_new_replica_that_finds_no_secret_keeps_the_trust_in_the_others(
    server: ApiServer, client: Client
) -> None:
    await install(client)
    old, new = Replica(server), Replica(server)
    await old.keeper.look()
    await client.delete(Secret, NAME, SPACE)
    await new.keeper.look()
    assert len(await trusted(client)) == 2
    assert await is_accepted(client, old)
    assert await is_accepted(client, new)
    await old.keeper.look()
    assert old.keeper.shown is not None
    assert new.keeper.shown is not None
    assert old.keeper.shown.certificate == new.keeper.shown.certificate


async def test_a_secret_of_another_owner_is_left_alone(server: ApiServer, client: Client) -> None:
    await install(client)
    meta = ObjectMeta(name=NAME, namespace=SPACE)
    await client.create(Secret(metadata=meta, data={"tls.crt": "YWJj", "password": "eHl6"}))
    replica = Replica(server)
    assert not await replica.keeper.attempt()
    assert "is not ours" in replica.keeper.problem
    assert await secret(client) == {"tls.crt": b"abc", "password": b"xyz"}
    await client.delete(Secret, NAME, SPACE)
    assert await replica.keeper.attempt()
    assert replica.keeper.problem == ""


async def test_a_crash_between_the_two_writes_is_made_good_by_the_next_replica(
    server: ApiServer, client: Client
) -> None:
    await install(client)
    first = Replica(server)
    material = await first.keeper._up_to_date()  # the Secret is written, and then the process ends
    assert await bundles(client) == [None]
    second = Replica(server)
    await second.keeper.look()
    assert await trusted(client) == material.trusted


async def test_without_a_configuration_it_is_served_all_the_same(
    server: ApiServer, client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    replica = Replica(server)
    assert await replica.keeper.attempt()
    assert await replica.keeper.attempt()
    assert caplog.text.count("is not there") == 1
    await install(client)
    assert await replica.keeper.attempt()
    assert await is_accepted(client, replica)


async def test_while_the_api_server_is_away_the_certificate_is_still_shown(server: ApiServer, client: Client) -> None:
    await install(client)
    replica = Replica(server)
    await replica.keeper.attempt()
    replica.wire.cut = True
    assert not await replica.keeper.attempt()
    assert replica.keeper.problem == ""
    await asyncio.sleep(91 * DAY)
    assert not await replica.keeper.attempt()
    assert "cannot be kept up to date" in replica.keeper.problem
    replica.wire.cut = False
    assert await replica.keeper.attempt()
    assert await is_accepted(client, replica)


async def test_keys_are_never_logged_or_printed(
    server: ApiServer, client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG")
    await install(client)
    replica = Replica(server)
    material = await replica.keeper._up_to_date()
    await client.patch(Secret, NAME, MergePatch({"data": {"ca.crt": "YWJj"}}), SPACE)
    await replica.keeper.look()
    assert "PRIVATE KEY" in (await secret(client))["tls.key"].decode()
    for text in (caplog.text, repr(material), repr(replica.keeper.shown)):
        assert "PRIVATE" not in text
        assert base64.b64encode(material.key).decode()[:60] not in text


async def test_a_certificate_for_another_service_is_issued_again(server: ApiServer, client: Client) -> None:
    """The Service was renamed in an upgrade, and the Secret was kept."""
    await install(client)
    replica = Replica(server)
    await replica.keeper.look()
    replica.keeper._hosts = ("renamed.default.svc",)
    await replica.keeper.look()
    certificate = reading.load_pem_x509_certificate((await secret(client))["tls.crt"])
    names = certificate.extensions.get_extension_for_class(reading.SubjectAlternativeName).value
    assert names.get_values_for_type(reading.DNSName) == ["renamed.default.svc"]
    assert len(await trusted(client)) == 1


async def test_a_definition_with_a_conversion_of_ours_is_kept_and_no_other(server: ApiServer, client: Client) -> None:
    def definition(plural: str, service: str) -> dict[str, Any]:
        config = {"service": {"name": service, "namespace": SPACE, "path": "/convert", "port": 443}}
        schema = {"openAPIV3Schema": {"type": "object"}}
        versions = [{"name": n, "served": True, "storage": n == "v1", "schema": schema} for n in ("v1", "v2")]
        webhook = {"clientConfig": config, "conversionReviewVersions": ["v1"]}
        return {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": f"{plural}.example.com"},
            "spec": {
                "group": "example.com",
                "scope": "Namespaced",
                "names": {"plural": plural, "singular": plural[:-1], "kind": plural[:-1].title()},
                "versions": versions,
                "conversion": {"strategy": "Webhook", "webhook": webhook},
            },
        }

    for plural, service in (("lamps", NAME), ("pumps", "other"), ("pools", NAME)):
        await client.create(definition(plural, service))
    names = ("lamps.example.com", "pumps.example.com")
    publisher = Publisher(client, Targets(service=NAME, namespace=SPACE, definitions=names))

    async def bundle() -> bytes:
        return (await secret(client))["ca.crt"]

    await Replica(server).keeper.look()
    assert await publisher.publish(bundle) == await bundle()
    kept = {}
    for plural in ("lamps", "pumps", "pools"):
        live = await client.get("customresourcedefinitions.apiextensions.k8s.io", f"{plural}.example.com")
        kept[plural] = live["spec"]["conversion"]["webhook"]["clientConfig"].get("caBundle")
    expected = base64.b64encode(await bundle()).decode()
    assert kept == {"lamps": expected, "pumps": None, "pools": None}  # one is of another Service, one was not named


async def test_two_replicas_promote_an_authority_once(server: ApiServer, client: Client) -> None:
    """Another replica has promoted it between this one's publication and its write: what it stored stays."""
    await install(client)
    slow, fast = Replica(server), Replica(server)
    await slow.keeper.look()
    await asyncio.sleep((730 * 2 / 3 + 1) * DAY)
    await slow.keeper.look()
    await asyncio.sleep(LIFETIMES.settling.total_seconds() + 1)
    publish, stored = slow.keeper._publisher.publish, []

    async def overtaken(bundle: Any) -> bytes:
        published = await publish(bundle)
        if not stored:
            await fast.keeper.look()
            stored.append((await secret(client))["tls.crt"])
        return published

    slow.keeper._publisher.publish = overtaken  # type: ignore[method-assign]
    await slow.keeper.look()
    assert stored == [(await secret(client))["tls.crt"]]
    assert len(await trusted(client)) == 2
    assert slow.keeper.shown is not None
    assert slow.keeper.shown.certificate == stored[0]
