"""Three clusters by seed: one comes and goes, is cut off and changes its credentials, while users work in all."""

from __future__ import annotations

import asyncio
import random

import pytest

from konverge.objects.kinds.core_v1 import Secret
from konverge.runtime.clusters import fleet as loaded
from tests.runtime.clusters.places import Copying, Driven, places
from tests.runtime.clusters.test_fleet import controller, manager
from tests.runtime.objects import SPACE
from tests.runtime.test_engine import settle

pytestmark = [pytest.mark.virtual, pytest.mark.spec("R-84")]

assert loaded  # before a loop runs
QUICK = 5.0
"""Seconds in which a change in a healthy cluster is acted upon, whatever happens to the other one."""


@pytest.mark.parametrize("seed", range(4))
async def test_faults_of_one_cluster_stay_there(seed: int) -> None:
    rng = random.Random(seed)
    async with places("home", "steady", "shaky") as [home, steady, shaky]:
        provider, version = Driven(), 1
        provider.say(steady, shaky)
        before = {task.get_name() for task in asyncio.all_tasks()}
        async with manager(home.client, provider, controller(Copying())).running() as running:
            for number in range(25):
                match rng.choice(["cut", "back", "remove", "add", "change", "break", "nothing"]):
                    case "cut":
                        shaky.cut.away = True
                    case "back":
                        shaky.cut.away = False
                    case "remove":
                        provider.say(steady)
                    case "add":
                        provider.say(steady, shaky, version=version)
                    case "change":
                        version += 1
                        provider.say(steady, shaky, version=version)
                    case "break":
                        provider.fail(OSError("the provider is away"))
                for place in (home, steady, shaky):
                    await place.create(f"n{number}")
                await settle(QUICK)
                for place in (home, steady):
                    assert len(await place.maps()) == number + 1, f"seed {seed}, step {number}, {place.name}"
                if rng.random() < 0.3:
                    await shaky.client.delete(Secret, f"n{number}", SPACE)
            shaky.cut.away = False
            provider.say(steady, shaky, version=version)
            await settle(300)
            left = {item.metadata.name for item in (await shaky.client.list(Secret, SPACE)).items}
            assert left & (await shaky.maps()).keys() == {name for name in left if name.startswith("n")}
            assert set((await shaky.maps()).values()) == {"shaky"}
            assert running.health.remarks["clusters"]() == ""
            names = [numbers.name for numbers in running.numbers.controllers]
            assert sorted(names) == ["secret", "secret@shaky", "secret@steady"]
        assert {task.get_name() for task in asyncio.all_tasks()} <= before
