"""`shardSelector` on the real kube-apiserver with its gate on: the same answers as ours."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from konverge.apiserver import ApiServer
from konverge.apiserver.config import Config
from tests.apiserver.api import Api
from tests.apiserver.http.shard_cases import LOWER, NAMESPACE, ODD, REFUSED, UPPER
from tests.real.sides import Side, real_side_of
from tools.control_plane import ControlPlane

pytestmark = pytest.mark.spec("R-81")

GATE = "ShardedListAndWatch"
SPACES = ["shop", "bar", "kitchen", "tenant-1", "tenant-2"]
ASKED = [*REFUSED, *ODD, LOWER.format(field=NAMESPACE), UPPER.format(field=NAMESPACE)]


@pytest.fixture(scope="module")
def plane(binaries: Path) -> Iterator[ControlPlane]:
    with ControlPlane(binaries, extra_args=[f"--feature-gates={GATE}=true"]) as plane:
        yield plane


@pytest.fixture
def real(plane: ControlPlane) -> Iterator[Side]:
    with closing(real_side_of(plane)) as side:
        for space in SPACES:
            side.send("POST", "/api/v1/namespaces", {"metadata": {"name": space}})
            side.send("POST", f"/api/v1/namespaces/{space}/configmaps", {"metadata": {"name": "c"}})
        yield side


@pytest.fixture
async def ours() -> AsyncIterator[Api]:
    async with ApiServer(config=Config(feature_gates=frozenset({GATE}))) as server:
        api = Api(server)
        for space in SPACES:
            await api.create(space, "/api/v1/namespaces")
            await api.create("c", f"/api/v1/namespaces/{space}/configmaps")
        yield api


async def test_lists_of_shards_and_refusals_are_the_same(real: Side, ours: Api) -> None:
    for selector in ASKED:
        query = {"shardSelector": selector, "fieldSelector": "metadata.name=c"}
        theirs, answer = real.send("GET", "/api/v1/configmaps", **query)
        response = await ours.send("GET", "/api/v1/configmaps", query=query)
        mine = json.loads(response.body)
        assert response.status == theirs, selector
        if theirs == 200:
            assert mine["metadata"]["shardInfo"] == answer["metadata"]["shardInfo"]
            spaces = [[item["metadata"]["namespace"] for item in listed["items"]] for listed in (mine, answer)]
            assert spaces[0] == spaces[1]
        else:
            assert mine == answer
