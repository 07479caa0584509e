"""What webhooks promise over HTTPS, on any API server on this machine: the embedded one and the real one."""

from __future__ import annotations

import asyncio
import base64
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from typing import Any
from unittest.mock import patch

import pytest

from konverge import clock
from konverge.client import (
    AlreadyExists,
    ApiStatusError,
    Client,
    Forbidden,
    InternalError,
    Invalid,
    MergePatch,
)
from konverge.objects import crd
from konverge.objects.kinds.admissionregistration_v1 import ValidatingWebhookConfiguration
from konverge.objects.kinds.core_v1 import Secret
from konverge.runtime import Manager
from konverge.runtime.webhooks import (
    Denied,
    InCluster,
    Lifetimes,
    Loopback,
    Review,
    Webhook,
    Webhooks,
    mutating,
    validating,
)
from konverge.runtime.webhooks.configurations import configurations, service_target
from konverge.wire.tls import TlsOptions
from tests.runtime.webhooks.pools import SPACE, Pool, pool

SERVICE = "pools-webhook"
HOST = f"{SERVICE}.{SPACE}.svc"
PATIENCE = 180.0
"""Seconds for a real server to take something up, on a machine that is busy with other things."""


async def install(client: Client) -> None:
    try:
        await client.create(crd(Pool))
    except AlreadyExists:
        return
    await until(client, lambda: client.list(Pool, SPACE))


async def until(client: Client, attempt: Any) -> Any:
    """The first answer that is no refusal: the API server takes up definitions and configurations with a delay."""
    async with asyncio.timeout(PATIENCE):
        while True:
            try:
                return await attempt()
            except ApiStatusError:
                await asyncio.sleep(0.05)


async def called(client: Client, name: str) -> None:
    """Until the validating webhooks are called: a pool of this owner is refused by every `check`."""
    async with asyncio.timeout(PATIENCE):
        while True:
            try:
                await client.create(pool(name, owner="refused"), dry_run=True)
            except Forbidden:
                return
            except InternalError:  # the caBundle of a configuration that was just made is not written yet
                pass
            await asyncio.sleep(0.05)


async def defaulted(client: Client, name: str) -> None:
    """Until the mutating webhooks are called, too: the API server learns of them by another watch."""
    async with asyncio.timeout(PATIENCE):
        while not (await until(client, lambda: client.create(pool(name), dry_run=True))).metadata.labels:
            await asyncio.sleep(0.05)


def hooks(seen: list[tuple[Any, ...]]) -> list[Webhook]:
    @validating(Pool, operations=("CREATE", "UPDATE", "DELETE"))
    def check(review: Review[Pool]) -> None:
        if review.obj.spec.owner == "refused":
            raise Denied("not for you")
        old, new = review.old and review.old.spec.most, review.new and review.new.spec.most
        seen.append((review.operation, old, new, review.dry_run))
        if review.new is not None and review.new.spec.least > review.new.spec.most:
            review.error("spec.least", "must not be over spec.most", value=review.new.spec.least)
        if review.operation == "DELETE" and review.obj.spec.owner == "kept":
            raise Denied("it is kept")

    @mutating(Pool, operations=("CREATE",))
    def default(review: Review[Pool]) -> None:
        review.obj.metadata.labels.setdefault("team", "a")

    return [check, default]


async def create_update_delete_and_dry_run(client: Client) -> None:
    """Every operation reaches the functions, and what they say reaches the client."""
    await install(client)
    seen: list[tuple[Any, ...]] = []
    webhooks = Webhooks(place=Loopback()).add_all(hooks(seen))
    async with Manager(client, name="pools", webhooks=webhooks).running():
        await called(client, "probe")
        await defaulted(client, "probe")
        seen.clear()
        dry = await client.create(pool("w", most=4), dry_run=True)
        assert dry.metadata.labels == {"team": "a"}
        made = await client.create(pool("w", most=4))
        assert made.metadata.labels == {"team": "a"}
        await client.patch(Pool, "w", MergePatch({"spec": {"most": 5}}), SPACE)
        with pytest.raises(Invalid) as refused:
            await client.patch(Pool, "w", MergePatch({"spec": {"least": 6}}), SPACE)
        assert refused.value.message.endswith(
            'Pool.tests.konverge.dev "w" is invalid: spec.least: Invalid value: 6: must not be over spec.most'
        )
        assert [cause.field for cause in refused.value.causes] == ["spec.least"]
        await client.patch(Pool, "w", MergePatch({"spec": {"owner": "kept"}}), SPACE)
        with pytest.raises(Forbidden, match="denied the request: it is kept"):
            await client.delete(Pool, "w", SPACE)
        await client.patch(Pool, "w", MergePatch({"spec": {"owner": ""}}), SPACE)
        await client.delete(Pool, "w", SPACE)
    assert seen == [
        ("CREATE", None, 4, True),
        ("CREATE", None, 4, False),
        ("UPDATE", 4, 5, False),
        ("UPDATE", 5, 5, False),
        ("UPDATE", 5, 5, False),
        ("DELETE", 5, None, False),
        ("UPDATE", 5, 5, False),
        ("DELETE", 5, None, False),
    ]
    assert [
        item.metadata.name
        for item in (await client.list(ValidatingWebhookConfiguration)).items
        if item.metadata.name.startswith("pools")
    ] == []


async def the_failure_policy_decides_while_the_server_is_away(client: Client) -> None:
    """A failing function, and a server that is gone: Fail refuses, Ignore lets pass."""
    await install(client)

    @validating(Pool, operations=("CREATE",), match_conditions={"strict": "object.spec.owner == 'strict'"}, timeout=2)
    def strict(review: Review[Pool]) -> None:
        raise RuntimeError("internal detail")

    @validating(Pool, operations=("CREATE",), failure_policy="Ignore", timeout=2)
    def lenient(review: Review[Pool]) -> None:
        if review.obj.spec.owner == "refused":
            raise Denied("no")
        raise RuntimeError("internal detail")

    webhooks = Webhooks(place=Loopback()).add_all([strict, lenient])
    name = "pools-policy"
    async with Manager(client, name=name, webhooks=webhooks).running() as manager:
        await called(client, "probe")
        await until(client, lambda: client.create(pool("lenient"), dry_run=True))
        text = await _failure(client, pool("strict", owner="strict"))
        assert "strict.pools.tests.konverge.dev" in text
        assert "internal detail" not in text
        gone = f"https://127.0.0.1:{manager.webhook_port}"
    # The process was killed: its configuration is still there, and nothing listens.
    left = configurations(webhooks.routes.values(), name, lambda path: {"url": gone + path})
    for configuration in left:
        await client.create(configuration)
    try:
        await until(client, lambda: _raised(client, pool("strict", owner="strict"), "connection refused"))
        await client.create(pool("lenient"))
        await client.delete(Pool, "lenient", SPACE)
    finally:
        await client.delete(ValidatingWebhookConfiguration, name)


async def _failure(client: Client, obj: Pool) -> str:
    with pytest.raises(InternalError) as failed:
        await client.create(obj, dry_run=True)
    return failed.value.message


async def _raised(client: Client, obj: Pool, text: str) -> None:
    """Until the API server knows the configuration, the object is made (by a dry run) and this is tried again."""
    while True:
        try:
            await client.create(obj, dry_run=True)
        except InternalError as error:
            if text in error.message:
                return
        await asyncio.sleep(0.05)


# ------------------------------------------------------------------ renewals under load


QUICK = Lifetimes(settling=timedelta(seconds=5), look_every=0.3)


class Ahead:
    """The clock of the keepers, days ahead of that of the TLS parties: what is due soon is due now, and is good."""

    def __init__(self) -> None:
        self.days = 0

    def utc_now(self) -> datetime:
        return clock.utc_now() + timedelta(days=self.days)

    rng = staticmethod(clock.rng)


@asynccontextmanager
async def in_cluster(client: Client, *, lifetimes: Lifetimes = QUICK) -> AsyncIterator[Manager]:
    """Webhooks behind a Service that leads to this machine (ExternalName), with certificates that live for seconds."""
    await install(client)
    place = InCluster(service=SERVICE, namespace=SPACE, address=("127.0.0.1", 0), lifetimes=lifetimes)
    webhooks = Webhooks(place=place, shutdown_delay=0.0).add_all(hooks([]))
    manager = Manager(client, name="pools-in-cluster", webhooks=webhooks)
    async with manager.running():
        port = manager.webhook_port
        external = {"type": "ExternalName", "externalName": "localhost", "ports": [{"port": port}]}
        await client.create(
            {
                "apiVersion": "v1",
                "kind": "Service",
                "metadata": {"name": SERVICE, "namespace": SPACE},
                "spec": external,
            }
        )
        made = configurations(webhooks.routes.values(), SERVICE, service_target(SERVICE, SPACE, port=port))
        for configuration in made:
            await client.create(configuration)
        try:
            yield manager
        finally:
            for configuration in made:
                await client.delete(f"{configuration['kind'].lower()}s.admissionregistration.k8s.io", SERVICE)
            await client.delete("services", SERVICE, SPACE)
            await client.delete(Secret, SERVICE, SPACE)


async def no_request_is_refused_while_certificates_and_authorities_change(client: Client) -> None:
    """Constant writes, each with webhooks that must answer, and constant new TLS connections with the published
    bundle, while the certificate is renewed and the authority replaced."""
    ahead = Ahead()
    with patch("konverge.runtime.webhooks.certificates.keeper.clock", ahead):
        async with in_cluster(client) as manager:
            await called(client, "probe")
            written = [0] * 4
            loading = [asyncio.create_task(_write(client, number, written)) for number in range(4)]
            connecting = asyncio.create_task(_connect(client, manager.webhook_port))
            try:
                before = await _published(client)
                certificate = (await client.get(Secret, SERVICE, SPACE)).data["tls.crt"]
                ahead.days = 61  # a third of the certificate's life is left
                await _reached(client, lambda data, bundle: data["tls.crt"] != certificate)
                assert await _published(client) == before, "the authority is the same"
                ahead.days = 490  # a third of the authority's life is left
                await _reached(client, lambda data, bundle: bundle.startswith(before) and bundle != before)
                await _reached(client, lambda data, bundle: not bundle.startswith(before) and before in bundle)
                seen = sum(written)
                async with asyncio.timeout(PATIENCE):
                    while sum(written) < seen + 40:  # the new authority's certificates were shown to these
                        await asyncio.sleep(0.05)
            finally:
                for task in (*loading, connecting):
                    task.cancel()
                ended = await asyncio.gather(*loading, connecting, return_exceptions=True)
            refused = [error for error in ended if not isinstance(error, asyncio.CancelledError)]
            assert refused == []


async def _write(client: Client, number: int, written: list[int]) -> None:
    while True:
        await client.create(pool(f"load-{number}"), dry_run=True)  # refused if a webhook cannot be called
        written[number] += 1
        await asyncio.sleep(0.01)


async def _connect(client: Client, port: int) -> None:
    while True:
        await handshake(port, await _published(client))
        await asyncio.sleep(0.05)


async def _published(client: Client) -> bytes:
    configuration = await client.get(ValidatingWebhookConfiguration, SERVICE)
    return base64.b64decode(configuration.webhooks[0].client_config.ca_bundle or "")


async def _reached(client: Client, wanted: Callable[[dict[str, str], bytes], bool]) -> None:
    async with asyncio.timeout(PATIENCE):
        while not wanted((await client.get(Secret, SERVICE, SPACE)).data, await _published(client)):
            await asyncio.sleep(0.05)


async def handshake(port: int, trusted: bytes) -> bytes:
    """Connect as the API server does. Returns the certificate that was shown; raises when it is not trusted."""
    context = TlsOptions(ca_data=trusted).context()
    _, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context, server_hostname=HOST)
    session: ssl.SSLObject = writer.get_extra_info("ssl_object")
    shown = session.getpeercert(binary_form=True) or b""
    writer.close()
    await writer.wait_closed()
    return shown


ALL = [
    create_update_delete_and_dry_run,
    the_failure_policy_decides_while_the_server_is_away,
    no_request_is_refused_while_certificates_and_authorities_change,
]
