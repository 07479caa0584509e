"""Versions that an operator converts, on the real kube-apiserver."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from konverge.cli.main import main
from konverge.client import Client, load_config
from konverge.objects.kinds.apiextensions_v1 import CustomResourceDefinition
from konverge.testing.operators import install_definitions
from tests.runtime.webhooks import policies_contract as policies
from tests.runtime.webhooks import versions_contract as contract
from tools.control_plane import ControlPlane

pytestmark = [pytest.mark.spec("R-75"), pytest.mark.limit(600)]


@asynccontextmanager
async def operating(server: ControlPlane) -> AsyncIterator[Client]:
    async with Client.connect(load_config(kubeconfig=str(server.kubeconfig))) as client:
        await install_definitions(client, contract.VERSIONS)
        async with contract.operator().bound_to(client).running():
            await contract.converted(client)
            yield client


async def test_objects_of_the_time_with_one_version(real_server: ControlPlane) -> None:
    """The first one here: without an operator that converts, a definition with objects cannot even be deleted."""
    async with Client.connect(load_config(kubeconfig=str(real_server.kubeconfig))) as client:
        await contract.before_there_were_versions(client)
        await contract.define(client)
        async with operating(real_server):
            await contract.after_there_are_versions(client)


async def test_every_version_is_written_read_and_applied(real_server: ControlPlane) -> None:
    async with operating(real_server) as client:
        await contract.written_and_read_in_every_version(client)
        await contract.nothing_is_lost_by_a_version_that_cannot_say_it(client)
        await contract.applied_in_another_version_than_the_stored(client)


async def test_lists_and_watches(real_server: ControlPlane) -> None:
    async with operating(real_server) as client:
        await contract.lists_and_watches_in_every_version(client, 500)


async def test_the_stored_version_changes(real_server: ControlPlane) -> None:
    async with operating(real_server) as client:
        await contract.the_stored_version_changes(client)
        await contract.stored_objects_are_migrated(client)
        command = ["store", "migrate", contract.DEFINITION, "--kubeconfig", str(real_server.kubeconfig)]
        assert await asyncio.to_thread(main, command) == 0
        stored = (await client.get(CustomResourceDefinition, contract.DEFINITION)).status.stored_versions
        assert stored == ["v2"]


@pytest.mark.spec("R-76")
async def test_policies_from_rules(real_server: ControlPlane) -> None:
    async with Client.connect(load_config(kubeconfig=str(real_server.kubeconfig))) as client:
        await policies.rules_of_a_class(client)
        await policies.rules_over_a_built_in_kind(client)
