"""When a keeper looks at the Secret, and when it gives a look up."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest

from konverge.apiserver import ApiServer
from konverge.client import Client, MergePatch
from konverge.objects.kinds.core_v1 import Secret
from konverge.runtime.webhooks.certificates.keeper import TRIES
from tests.runtime.webhooks.test_certificates import LIFETIMES, NAME, SPACE, Replica, install, is_accepted

pytestmark = [pytest.mark.virtual, pytest.mark.spec("R-68")]


def noted(replica: Replica) -> list[float]:
    """The times of its looks."""
    times: list[float] = []
    attempt = replica.keeper.attempt

    async def noting() -> bool:
        times.append(asyncio.get_running_loop().time())
        return await attempt()

    replica.keeper.attempt = noting  # type: ignore[method-assign]
    return times


async def test_until_the_first_certificate_the_pauses_double_up_to_those_of_later_looks(server: ApiServer) -> None:
    replica = Replica(server, replace(LIFETIMES, look_every=10.0))
    times = noted(replica)
    failures = 0
    up_to_date = replica.keeper._up_to_date

    async def failing() -> Any:
        nonlocal failures
        failures += 1
        if failures <= 7:
            raise OSError("away")
        return await up_to_date()

    replica.keeper._up_to_date = failing  # type: ignore[method-assign]
    assert replica.keeper.problem == "the certificate is not issued yet"
    shown = await replica.keeper.first()
    assert shown is replica.keeper.shown
    assert replica.keeper.problem == ""
    pauses = [later - before for before, later in pairwise(times)]
    for pause, least in zip(pauses, (1, 2, 4, 8, 10, 10, 10), strict=True):
        assert least <= pause <= least * 1.2
    assert len({round(pause / least, 6) for pause, least in zip(pauses, (1, 2, 4, 8, 10, 10, 10), strict=True)}) > 1


async def test_later_looks_have_a_pause_that_differs_between_replicas(server: ApiServer) -> None:
    replica = Replica(server, replace(LIFETIMES, look_every=100.0))
    times = noted(replica)
    began = asyncio.get_running_loop().time()
    keeping = asyncio.create_task(replica.keeper.run())
    await asyncio.sleep(1000)
    keeping.cancel()
    pauses = [later - before for before, later in pairwise([began, *times])]
    assert all(100 <= pause <= 120.1 for pause in pauses)
    assert len(times) in (8, 9)
    assert max(pauses) - min(pauses) > 1


async def test_a_secret_that_others_change_all_the_time_is_given_up_for_now(server: ApiServer, client: Client) -> None:
    await install(client)
    replica = Replica(server)
    await replica.keeper.look()
    publish, passes = replica.keeper._publisher.publish, 0

    async def overtaken(bundle: Any) -> bytes:
        nonlocal passes
        passes += 1
        await publish(bundle)
        return b"of another replica"

    replica.keeper._publisher.publish = overtaken  # type: ignore[method-assign]
    with pytest.raises(TimeoutError) as given_up:
        await replica.keeper.look()
    assert (str(given_up.value), passes) == (
        f"the Secret {SPACE}/{NAME} was changed by others {TRIES} times in a row",
        TRIES,
    )


async def test_an_empty_secret_without_a_label_is_taken(server: ApiServer, client: Client) -> None:
    """An installation may create it, so that the operator needs no right to."""
    await install(client)
    await client.create({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": NAME, "namespace": SPACE}})
    await Replica(server).keeper.look()
    made = await client.get(Secret, NAME, SPACE)
    assert made.metadata.labels == {"konverge.dev/webhook-certificate": "pools"}
    assert sorted(made.data) == ["ca.crt", "ca.key", "tls.crt", "tls.key"]


async def test_the_secret_of_another_owner_is_named_with_the_way_out(server: ApiServer, client: Client) -> None:
    await client.create({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": NAME, "namespace": SPACE}})
    await client.patch(Secret, NAME, MergePatch({"data": {"a": "YQ=="}}), SPACE)
    replica = Replica(server)
    assert not await replica.keeper.attempt()
    assert replica.keeper.problem == (
        f"the certificate cannot be kept up to date: the Secret {SPACE}/{NAME} is not ours (it has no label "
        "konverge.dev/webhook-certificate): remove it, or give the webhooks another secret="
    )


async def test_a_certificate_that_the_api_server_may_not_trust_yet_is_not_enough(
    server: ApiServer, client: Client
) -> None:
    """It is shown before its authority is published; until that is done, nobody could call."""
    await install(client)
    replica = Replica(server)
    publish, failures = replica.keeper._publisher.publish, 0

    async def failing(bundle: Any) -> bytes:
        nonlocal failures
        failures += 1
        if failures <= 3:
            raise OSError("away")
        return await publish(bundle)

    replica.keeper._publisher.publish = failing  # type: ignore[method-assign]
    await replica.keeper.first()
    assert failures == 4
    assert await is_accepted(client, replica)


@pytest.mark.parametrize("name", ["ca.crt", "ca.key", "tls.crt", "tls.key"])
async def test_what_is_no_pem_is_written_again(server: ApiServer, client: Client, name: str) -> None:
    await install(client)
    first, second = Replica(server), Replica(server)
    await first.keeper.look()
    await client.patch(Secret, NAME, MergePatch({"data": {name: "////"}}), SPACE)
    await second.keeper.look()
    assert await is_accepted(client, second)
