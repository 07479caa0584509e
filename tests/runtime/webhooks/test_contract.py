"""Webhooks over HTTPS on the embedded API server; tests/real/test_webhooks.py has the same on the real one."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from pathlib import Path

import pytest

from konverge.client import Client, NotFound
from konverge.objects.kinds.core_v1 import Secret
from konverge.runtime import Manager
from konverge.runtime.webhooks import Lifetimes, Mounted, Webhooks
from konverge.wire.message import Request
from tests.runtime.webhooks import contract
from tests.wire.certificates import authority

pytestmark = pytest.mark.spec("R-67")


@pytest.mark.spec("R-71")
async def test_create_update_delete_and_dry_run(client: Client) -> None:
    await contract.create_update_delete_and_dry_run(client)


async def test_the_failure_policy_decides_while_the_server_is_away(client: Client) -> None:
    await contract.the_failure_policy_decides_while_the_server_is_away(client)


@pytest.mark.spec("R-68")
async def test_an_installed_operator_is_called_through_its_service(client: Client) -> None:
    lifetimes = Lifetimes(settling=timedelta(seconds=1))
    async with contract.in_cluster(client, lifetimes=lifetimes) as manager:
        # The next look would write the caBundle of the configurations that were just installed; it is a minute away.
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05):
                await contract.called(client, "probe")
        assert (await client.get(Secret, contract.SERVICE, contract.SPACE)).data.keys() >= {"ca.crt", "tls.crt"}
        assert await _ready(manager)
    assert not await _ready(manager)


async def _ready(manager: Manager) -> bool:
    return (await manager.health.handle(Request("GET", "/readyz/webhook"))).status == 200


@pytest.mark.spec("R-69")
async def test_mounted_certificates_are_taken_over_also_when_a_link_is_swapped(
    client: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As the kubelet does it: `..data` is a link to a folder of a version, and the files are links through it."""
    monkeypatch.setattr("konverge.runtime.webhooks.places.LOOK_EVERY", 0.02)
    first, second = authority("first"), authority("second")
    folder = tmp_path / "mounted"
    folder.mkdir()
    webhooks = Webhooks(place=Mounted(folder=folder, address=("127.0.0.1", 0)), shutdown_delay=0).add_all(
        contract.hooks([])
    )
    manager = Manager(client, name="mounted", webhooks=webhooks)
    starting = asyncio.create_task(_run(manager, stop := asyncio.Event()))
    await asyncio.sleep(0.05)
    assert not await _ready(manager)  # the certificate is late
    _version(folder, "1", first.issue("a", [contract.HOST]))
    for name in ("tls.crt", "tls.key"):
        (folder / name).symlink_to(Path("..data") / name)
    async with asyncio.timeout(60):
        while not manager.webhook_port:
            await asyncio.sleep(0.01)
    assert await _ready(manager)
    await contract.handshake(manager.webhook_port, first.pem)
    pair = second.issue("b", [contract.HOST])
    _version(folder, "2", (pair[0][:50], pair[1]))  # half written: the old one stays
    await asyncio.sleep(0.1)
    await contract.handshake(manager.webhook_port, first.pem)
    _version(folder, "3", pair)
    async with asyncio.timeout(60):
        while True:
            try:
                await contract.handshake(manager.webhook_port, second.pem)
                break
            except OSError:
                await asyncio.sleep(0.02)
    with pytest.raises(NotFound):  # another program keeps the certificates
        await client.get(Secret, contract.SERVICE, contract.SPACE)
    stop.set()
    await starting


async def _run(manager: Manager, stop: asyncio.Event) -> None:
    await manager.serve(stop)


def _version(folder: Path, name: str, pair: tuple[bytes, bytes]) -> None:
    version = folder / f"..{name}"
    version.mkdir()
    for file, data in zip(("tls.crt", "tls.key"), pair, strict=True):
        (version / file).write_bytes(data)
    link = folder / "..data_tmp"
    link.symlink_to(version.name)
    link.replace(folder / "..data")


async def test_the_end_does_not_wait_for_a_certificate_that_never_comes(client: Client, tmp_path: Path) -> None:
    webhooks = Webhooks(place=Mounted(folder=tmp_path)).add_all(contract.hooks([]))
    manager = Manager(client, name="late", webhooks=webhooks)
    stop = asyncio.Event()
    running = asyncio.create_task(manager.serve(stop))
    await asyncio.sleep(0.05)
    stop.set()
    async with asyncio.timeout(60):
        await running
