"""What counts against a quota, and when."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from konverge.apiserver.http import stored_size, writes
from tests.apiserver.api import CONFIG_MAPS, Api
from tests.apiserver.test_meanwhile import LARGE, Gate

CLAIMS = "/api/v1/namespaces/default/persistentvolumeclaims"


@pytest.fixture
def gate(monkeypatch: pytest.MonkeyPatch) -> Gate:
    gate = Gate()
    monkeypatch.setattr(writes, "draft_of", gate.draft)
    return gate


async def _quota(api: Api, hard: dict[str, str]) -> None:
    path = "/api/v1/namespaces/default/resourcequotas"
    await api.create("q", path, spec={"hard": hard})
    status = {"status": {"hard": hard, "used": dict.fromkeys(hard, "0")}}
    await api.patch(f"{path}/q/status", status)


@pytest.mark.spec("S-13")
async def test_a_quota_is_never_exceeded_by_writes_at_the_same_time(api: Api) -> None:
    await _quota(api, {"configmaps": "5"})
    bodies = [{"metadata": {"name": f"m{index}"}} for index in range(20)]
    answers = await asyncio.gather(*(api.send("POST", CONFIG_MAPS, body) for body in bodies))
    assert sorted(answer.status for answer in answers) == [201] * 5 + [403] * 15
    quota = api.server.objects.get("", "resourcequotas", "default", "q")
    assert quota is not None
    assert quota["status"]["used"] == {"configmaps": "5"}


@pytest.mark.spec("S-13")
async def test_a_dry_run_uses_nothing_of_a_quota(api: Api) -> None:
    await _quota(api, {"configmaps": "1"})
    for _ in range(3):
        await api.call("POST", CONFIG_MAPS, {"metadata": {"name": "m"}}, query={"dryRun": "All"})
    await api.create("m")
    await api.call("POST", CONFIG_MAPS, {"metadata": {"name": "n"}}, query={"dryRun": "All"}, expect=403)


async def _used(api: Api) -> dict[str, str]:
    quota = await api.call("GET", "/api/v1/namespaces/default/resourcequotas/q")
    used: dict[str, str] = quota["status"]["used"]
    return used


def _claim(size: str, **metadata: Any) -> dict[str, Any]:
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": size}}, "storageClassName": "grows"}
    return {"metadata": {"name": "c", **metadata}, "spec": spec}


@pytest.mark.spec("S-13")
async def test_a_large_write_that_begins_again_is_booked_once(api: Api, gate: Gate) -> None:
    """Another write comes while it is encoded beside the loop."""
    await api.create("grows", "/apis/storage.k8s.io/v1/storageclasses", provisioner="x", allowVolumeExpansion=True)
    await _quota(api, {"requests.storage": "10Gi"})
    await api.call("POST", CLAIMS, _claim("1Gi"))
    await api.patch(f"{CLAIMS}/c/status", {"status": {"phase": "Bound", "capacity": {"storage": "1Gi"}}})
    async with gate.holding(api, "PUT", f"{CLAIMS}/c", _claim("3Gi", annotations=LARGE)) as answers:
        await api.patch(f"{CLAIMS}/c", {"metadata": {"labels": {"other": "writer"}}})
    assert answers[0].status == 200
    assert await _used(api) == {"requests.storage": "3Gi"}


@pytest.mark.spec("S-13")
async def test_a_name_that_is_taken_meanwhile_uses_nothing(api: Api, gate: Gate) -> None:
    await _quota(api, {"configmaps": "5"})
    async with gate.holding(api, "POST", CONFIG_MAPS, {"metadata": {"name": "x"}, "data": LARGE}) as answers:
        await api.create("x")
    assert answers[0].status == 409
    assert await _used(api) == {"configmaps": "1"}


@pytest.mark.spec("S-13")
async def test_what_others_use_meanwhile_counts(api: Api, gate: Gate) -> None:
    """A large write is admitted, and the last of the quota is used before it is stored."""
    await _quota(api, {"configmaps": "1"})
    async with gate.holding(api, "POST", CONFIG_MAPS, {"metadata": {"name": "x"}, "data": LARGE}) as answers:
        await api.create("y")
    assert answers[0].status == 403
    assert b"exceeded quota: q" in answers[0].body
    assert await _used(api) == {"configmaps": "1"}
    await api.call("GET", f"{CONFIG_MAPS}/x", expect=404)


@pytest.mark.spec("S-13")
async def test_what_is_too_large_to_be_stored_uses_nothing(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    await _quota(api, {"configmaps": "1"})
    monkeypatch.setattr(stored_size, "MOST", 1000)
    monkeypatch.setattr(stored_size, "_NEARLY", 0)
    assert (await api.send("POST", CONFIG_MAPS, {"metadata": {"name": "x"}, "data": LARGE})).status >= 400
    assert await _used(api) == {"configmaps": "0"}
