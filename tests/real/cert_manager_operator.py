"""An operator of ours whose webhooks have a certificate of cert-manager, installed as `konverge manifests` says."""

from __future__ import annotations

import asyncio
import base64
from pathlib import Path

from konverge.cli.webhook_objects import WebhookObjects
from konverge.client import Client
from konverge.runtime import Manager
from konverge.runtime.webhooks import Mounted, Webhooks
from tests.real.cert_manager import CERTIFICATES, VALIDATING, Obj, bundle, ready, renew, secret
from tests.real.clients.waiting import LIMIT
from tests.real.controller_sides import Side
from tests.runtime.webhooks import contract
from tests.runtime.webhooks.pools import SPACE


async def certified_operator(client: Client, folder: Path) -> None:
    """The API server calls it by what the CA injector wrote, before and after the certificate is renewed."""
    await contract.install(client)
    side = Side(client, SPACE)
    place = Mounted(folder=folder, address=("127.0.0.1", 0))
    webhooks = Webhooks(place=place, shutdown_delay=0.0).add_all(contract.hooks([]))
    routes = list(webhooks.routes.values())
    installed = WebhookObjects(webhooks=routes, name="pools", namespace=SPACE, cert_manager=True)
    service, issuer, certificate, *configurations = installed.everything({"app": "pools"})
    for made in (issuer, certificate):
        await client.create(made)
    await ready(side, CERTIFICATES, contract.SERVICE)
    await _mount(side, folder)
    async with Manager(client, name="pools", webhooks=webhooks).running() as manager:
        port = manager.webhook_port
        service["spec"] = {"type": "ExternalName", "externalName": "localhost", "ports": [{"port": port}]}
        for made in (service, *(_at_port(configuration, port) for configuration in configurations)):
            await client.create(made)
        await contract.called(client, "probe")
        first = await _shown(side, port)
        await renew(side, contract.SERVICE)
        await ready(side, CERTIFICATES, contract.SERVICE, revision=2)
        await _mount(side, folder)
        assert await _shown(side, port) != first
        await contract.called(client, "probe")
        await contract.defaulted(client, "probe")


def _at_port(configuration: Obj, port: int) -> Obj:
    for hook in configuration["webhooks"]:
        hook["clientConfig"]["service"]["port"] = port
    return configuration


async def _mount(side: Side, folder: Path) -> None:
    """What a kubelet does for a pod with this Secret."""
    for name, data in (await secret(side, contract.SERVICE)).items():
        (folder / name).write_bytes(data)


async def _shown(side: Side, port: int) -> bytes:
    """The certificate that the operator shows, as soon as it is that of the Secret, and the configuration says to trust
    it: beside the one before, so that it does not matter which of the two changes is seen first."""
    authority = (await secret(side, contract.SERVICE))["ca.crt"]
    wanted = authority.strip()
    await side.until(VALIDATING, lambda found: wanted in base64.b64decode(bundle(found[contract.SERVICE])))
    async with asyncio.timeout(LIMIT):
        while True:
            try:
                return await contract.handshake(port, authority)
            except OSError:  # it still has the one before
                await asyncio.sleep(0.05)
