"""The API server away for the operator, and its Lease in the hands of another process."""

from __future__ import annotations

import asyncio

import pytest

from konverge.check.model import LeaderLost, Place, Plan, TimePasses
from tests.check.gate.test_errors import CREATE, STEPS, UPDATE, config, small, writes
from tests.check.small import THINGS, Api, Caches, Small, create, run

LEASES = "/apis/coordination.k8s.io/v1/namespaces/default/leases"


@pytest.mark.spec("K-16")
def test_the_api_server_is_away_while_the_user_goes_on() -> None:
    away = run(small, STEPS, Plan("time", (TimePasses(0, 30.0, away=True),)))
    assert not away.missed
    assert [checkpoint.step for checkpoint in away.checkpoints] == ["create", "grow"]
    changed = next(change for change in away.changes if change.writer == "user" and change.moment.type == "MODIFIED")
    written = next(change for change in away.changes if change.writer == "operator" and change.differences)
    assert written.time - changed.time >= 29.0
    assert config(away)["data"] == {"size": "2"}
    assert not away.checkpoints[-1].blind
    assert {exchange.incarnation for exchange in writes(away)} == {1}


@pytest.mark.spec("K-16")
def test_the_api_server_is_away_after_the_last_step() -> None:
    away = run(small, STEPS, Plan("time", (TimePasses(1, 30.0, away=True),)))
    assert [checkpoint.step for checkpoint in away.checkpoints] == ["create", "grow", "grow, then"]


class Elected:
    """Holds a Lease; ends when it is another's."""

    def __init__(self, *, ends: bool = True) -> None:
        self.lives = 0
        self._ends = ends

    def __call__(self) -> Small:
        return Small(self._reconcile, (THINGS, LEASES))

    async def _reconcile(self, api: Api, caches: Caches) -> None:
        lease = await api.get(LEASES, "lock")
        if lease is None:
            await api.create(LEASES, {"metadata": {"name": "lock"}, "spec": {"holderIdentity": "me"}})
        elif not lease["spec"].get("holderIdentity"):
            lease["spec"]["holderIdentity"] = "me"
            await api.update(LEASES, lease)
        elif lease["spec"]["holderIdentity"] != "me":
            self.lives += 1
            if self._ends:
                raise SystemError("leader election lost")
            await asyncio.sleep(10.0)
        await small().reconcile(api, caches)


@pytest.mark.spec("K-17")
@pytest.mark.parametrize("ends", [True, False])
def test_a_lease_is_taken_after_a_write_and_is_free_again(ends: bool) -> None:
    elected = Elected(ends=ends)
    lost = run(elected, (*STEPS, create("more", size=3)), Plan("leader", (LeaderLost(UPDATE),)))
    assert not lost.missed
    assert lost.hit == [f"another process takes the Lease after {UPDATE}"]
    assert elected.lives >= 1
    assert bool(lost.exits) == ends
    assert config(lost)["data"] == {"size": "3"}


@pytest.mark.spec("K-17")
def test_without_a_lease_there_is_nothing_to_lose() -> None:
    assert run(small, STEPS, Plan("leader", (LeaderLost(CREATE),))).missed
    assert run(Elected(), STEPS, Plan("leader", (LeaderLost(Place("create", "/pods", "default", "x")),))).missed
