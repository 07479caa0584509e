"""A manager that is declared once and runs on several clusters: each run has its client, its caches and its engines."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from konverge.apiserver import ApiServer
from konverge.client import Client, Static
from konverge.objects.kinds.coordination_v1 import Lease
from konverge.objects.kinds.core_v1 import Secret
from konverge.runtime import Context, Controller, Manager, Settings
from konverge.runtime.config import CacheSettings, Configuration
from konverge.runtime.manager import LeaderElection
from konverge.runtime.webhooks import Review, validating
from tests.runtime.objects import secret

pytestmark = pytest.mark.virtual


async def test_one_declaration_runs_on_two_clusters_in_turn(client: Client) -> None:
    seen: list[str] = []

    async def reconcile(ctx: Context[Secret]) -> None:
        seen.append(ctx.request.name)

    declared = Manager(name="declared").add(Controller(Secret, reconcile))
    async with (
        ApiServer() as other,
        Client(other.transport, credentials=Static.bearer(other.token)) as elsewhere,
    ):
        for where, name in ((client, "here"), (elsewhere, "there")):
            await where.create(secret(name))
            async with declared.bound_to(where).running() as manager:
                await asyncio.sleep(5)
            assert manager.name == "declared"
    assert seen == ["here", "there"]
    assert declared.engines == {}


async def test_what_is_added_to_a_bound_manager_is_not_added_to_the_declaration(client: Client) -> None:
    async def nothing(ctx: Context[Any]) -> None:
        """A reconciler that is content."""

    declared = Manager().add(Controller(Secret, nothing))
    bound = declared.bound_to(client).add(Controller(Lease, nothing))
    assert [len(manager.controllers) for manager in (declared, bound)] == [1, 2]


async def test_what_is_given_takes_the_place_of_what_was_declared(client: Client) -> None:
    declared = Manager(
        settings=Settings(workers=7),
        config=Configuration(cache=CacheSettings(sync_timeout=11)),
        leader_election=LeaderElection(name="mine"),
        check_permissions=False,
    )
    kept = declared.bound_to(client)
    assert (kept.settings.workers, kept.config.cache.sync_timeout) == (7, 11)
    async with kept.running():
        assert (await client.get(Lease, "mine", "default")).spec.holder_identity
    given = declared.bound_to(
        client,
        config=Configuration(cache=CacheSettings(sync_timeout=12)),
        leader_election=LeaderElection(name="theirs"),
    )
    assert given.config.cache.sync_timeout == 12
    async with given.running():
        assert (await client.get(Lease, "theirs", "default")).spec.holder_identity


async def test_debug_pages_are_as_declared_unless_they_are_switched(client: Client) -> None:
    for declared in (True, False):
        assert Manager(debug=declared).bound_to(client).debug is declared
        assert Manager(debug=declared).bound_to(client, debug=not declared).debug is not declared


def test_controllers_that_move_keep_the_name_and_the_settings_of_their_manager() -> None:
    async def nothing(ctx: Context[Any]) -> None: ...

    config = Configuration(controller=Settings(workers=5, base_delay=3))
    manager = Manager(name="mine", settings=Settings(workers=7), config=config)
    manager.add(Controller(Secret, nothing))
    manager.add(
        Controller(Lease, nothing, field_manager="own", component="part", settings=Settings(workers=2, max_delay=9))
    )
    plain, own = manager.movable_controllers()
    assert (plain.name, plain.field_manager, plain.component) == ("secret", "mine", "mine")
    assert (own.name, own.field_manager, own.component) == ("lease", "own", "part")
    assert plain.settings == Settings(workers=7, base_delay=3)
    assert own.settings == Settings(workers=2, max_delay=9, base_delay=3)


def test_webhooks_of_other_managers_are_served_once() -> None:
    @validating(Secret)
    async def first(review: Review[Secret]) -> None: ...

    @validating(Lease)
    async def second(review: Review[Lease]) -> None: ...

    manager = Manager()
    manager.take_webhooks([])
    assert manager.webhooks is None, "webhooks are loaded for those who have some"
    manager.take_webhooks([first])
    manager.take_webhooks([first, second])
    assert manager.webhooks is not None
    assert list(manager.webhooks.routes.values()) == [first, second]
