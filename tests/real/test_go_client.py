"""client-go on the embedded server, and on the real one; its elector and ours at one Lease."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from konverge import LeaderElector, Timing, clock
from konverge.client import Client, load_config
from konverge.objects.resource import Resource
from tests.real.clients import programs
from tests.real.clients.waiting import until

LEASES = Resource("coordination.k8s.io", "v1", "Lease", "leases")
TIMING = Timing(lease_duration=8.0, renew_deadline=6.0, retry_period=0.5)
"""That of tests/real/programs/go/elector. A leader that a busy machine keeps from renewing for so long is none."""
NAMESPACE = "default"
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@pytest.mark.spec("S-01")
def test_client_go_does_its_job(go_programs: Path, either_kubeconfig: Path) -> None:
    steps = programs.run(go_programs / "client", kubeconfig=either_kubeconfig)
    assert steps == ["discovery", "objects", "apply", "wait", "informers", "pages", "rights", "delete"]


# ------------------------------------------------------------------ two kinds of electors, one Lease


@dataclass
class GoElector:
    """A candidate by client-go, as a process."""

    process: asyncio.subprocess.Process

    async def says(self, *expected: str) -> datetime:
        """When it said so, on the clock that both share."""
        assert self.process.stdout is not None
        async with asyncio.timeout(120):
            while line := (await self.process.stdout.readline()).decode().split():
                if line[1:] == list(expected):
                    return EPOCH + timedelta(microseconds=int(line[0]))
        raise AssertionError(f"it ended without saying {expected}")

    async def give_back(self) -> datetime:
        """The moment before it gave the Lease back."""
        self.process.send_signal(signal.SIGTERM)
        moment = await self.says("stopping")
        await self.process.wait()
        return moment


@asynccontextmanager
async def go_elector(folder: Path, kubeconfig: Path, lease: str) -> AsyncIterator[GoElector]:
    process = await asyncio.create_subprocess_exec(
        folder / "elector",
        *(NAMESPACE, lease, "go"),
        env=os.environ | {"KUBECONFIG": str(kubeconfig)},
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
    )
    try:
        yield GoElector(process)
    finally:
        if process.returncode is None:
            process.kill()
        await process.communicate()


class Ours:
    """Our elector as a candidate: when it led, and how to make it stop."""

    def __init__(self, client: Client, lease: str) -> None:
        self.elector = LeaderElector(client, lease, NAMESPACE, identity="konverge", timing=TIMING)
        self.began: datetime | None = None
        self._leads, self._enough = asyncio.Event(), asyncio.Event()
        self._task = asyncio.create_task(self._run(), name="our elector")

    async def _run(self) -> None:
        async with self.elector.leading() as lost:
            self.began = clock.utc_now()
            self._leads.set()
            await self._enough.wait()
            assert not lost.is_set()

    async def leads(self) -> datetime:
        async with asyncio.timeout(120):
            await self._leads.wait()
        assert self.began is not None
        return self.began

    async def give_back(self) -> datetime:
        moment = clock.utc_now()
        self._enough.set()
        await self._task
        return moment


async def holder(client: Client, lease: str, name: str) -> dict[str, Any]:
    """The Lease as soon as `name` holds it."""
    leases = await until(client, LEASES, NAMESPACE, lambda leases: _holder(leases.get(lease)) == name)
    return leases[lease]


def _holder(lease: dict[str, Any] | None) -> str:
    return ((lease or {}).get("spec") or {}).get("holderIdentity") or ""


@pytest.mark.spec("R-27")
async def test_both_kinds_of_electors_share_a_lease(go_programs: Path, either_kubeconfig: Path) -> None:
    lease = "shared-by-both"
    async with Client.connect(load_config(kubeconfig=either_kubeconfig)) as client:
        async with go_elector(go_programs, either_kubeconfig, lease) as go:
            await go.says("leading")
            ours = Ours(client, lease)
            await _waits(ours, client, lease)
            ended = await go.give_back()
            assert await ours.leads() > ended  # given back by client-go, taken by us
        async with go_elector(go_programs, either_kubeconfig, lease) as go:
            await go.says("leader", "konverge")  # it reads our record
            assert ours.elector.is_leader
            ended = await ours.give_back()
            assert await go.says("leading") > ended  # given back by us, taken by client-go
            ours = Ours(client, lease)
            await _waits(ours, client, lease)
            renewed = await _last_renewal(client, lease)
            go.process.kill()
        # It died without a word: ours takes over, but not before its time is over.
        assert await ours.leads() >= renewed + timedelta(seconds=TIMING.lease_duration)
        last = await client.get(LEASES, lease, NAMESPACE)
        assert last["spec"]["leaseTransitions"] == 3
        await ours.give_back()


async def _waits(ours: Ours, client: Client, lease: str) -> None:
    """The leader renews several times, while ours sees it and does not lead."""
    first = await _last_renewal(client, lease)
    later = first + timedelta(seconds=TIMING.lease_duration)
    await until(client, LEASES, NAMESPACE, lambda leases: _renewal(leases[lease]) > later)
    assert not ours.elector.is_leader
    assert _holder(await client.get(LEASES, lease, NAMESPACE)) == "go"


async def _last_renewal(client: Client, lease: str) -> datetime:
    return _renewal(await client.get(LEASES, lease, NAMESPACE))


def _renewal(lease: dict[str, Any]) -> datetime:
    return datetime.fromisoformat(lease["spec"]["renewTime"])
