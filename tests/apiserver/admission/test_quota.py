"""What counts against a quota, and when."""

from __future__ import annotations

import asyncio

import pytest

from tests.apiserver.api import CONFIG_MAPS, Api


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
