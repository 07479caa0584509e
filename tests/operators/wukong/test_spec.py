"""What the API server takes for a Wukong, and what it refuses, by the definition alone; Python says the same."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from konverge.apiserver import ApiServer
from konverge.objects import crd_dict, from_dict
from konverge.operators.wukong.resource import KINDS, Wukong, WukongSnapshot, problems
from tests.apiserver.api import Api
from tests.operators.wukong.specs import BAD, DISK, GOOD, SMALL, Spec, disk, random_specs, spec

pytestmark = pytest.mark.spec("W-01")

PATH = Wukong.resource.path("default")
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


@asynccontextmanager
async def a_server() -> AsyncIterator[Api]:
    async with ApiServer() as server:
        api = Api(server)
        for kind in KINDS:
            await api.call("POST", DEFINITIONS, crd_dict(kind))
        yield api


def body(given: Spec, name: str = "web") -> dict[str, Any]:
    kind = {"apiVersion": Wukong.resource.api_version, "kind": "Wukong"}
    return {**kind, "metadata": {"name": name}, "spec": given}


async def attempt(api: Api, given: Spec, name: str = "web") -> tuple[int, dict[str, str]]:
    """Strictly, and keeping nothing: the status, and the messages by field."""
    query = {"dryRun": "All", "fieldValidation": "Strict"}
    response = await api.send("POST", PATH, body(given, name), query=query)
    answer = msgspec.json.decode(response.body)
    causes = answer.get("details", {}).get("causes", [])
    result: dict[str, str] = {}
    for cause in causes:
        result[cause["field"]] = f"{result.get(cause['field'], '')} {cause['message']}"
    return response.status, result or {"": answer.get("message", "")}


def verdict(given: Spec, name: str = "web") -> list[str]:
    """What Python says: the class when it reads the spec, then the rules."""
    try:
        return problems(from_dict(Wukong, body(given, name)))
    except msgspec.ValidationError as refused:
        return [str(refused)]


async def test_good_ones_are_accepted() -> None:
    async with a_server() as api:
        for case, item in GOOD.items():
            assert await attempt(api, item) == (201, {"": ""}), case


@pytest.mark.parametrize("case", GOOD)
def test_python_has_nothing_against_good_ones(case: str) -> None:
    assert verdict(GOOD[case]) == []


async def test_bad_ones_are_refused_with_their_path() -> None:
    async with a_server() as api:
        for item, path, text in BAD:
            status, causes = await attempt(api, item)
            assert status == 422, item
            assert text in causes.get(path, ""), (path, causes)


@pytest.mark.parametrize(("item", "path", "text"), BAD, ids=[f"{bad[1]}-{n}" for n, bad in enumerate(BAD)])
def test_python_refuses_bad_ones_too(item: Spec, path: str, text: str) -> None:
    assert verdict(item) != [], f"{path}: {text}"


@settings(max_examples=settings().max_examples // 10)  # each is a server and twenty specs
@given(st.lists(random_specs, min_size=20, max_size=20))
async def test_python_and_the_server_agree_about_random_ones(specs: list[Spec]) -> None:
    async with a_server() as api:
        for item in specs:
            status, causes = await attempt(api, item)
            event(f"answered {status}")
            assert (status == 201) == (verdict(item) == []), (item, causes, verdict(item))


async def test_names_that_no_machine_can_have() -> None:
    async with a_server() as api:
        for name in ("Web", "a.b", "a" * 61, "-a"):
            status, _ = await attempt(api, SMALL, name)
            assert status == 422
            assert verdict(SMALL, name) != []


async def test_names_of_services_begin_with_a_letter() -> None:
    exposed = spec(expose=[{"name": "ssh", "port": 22}])
    async with a_server() as api:
        status, causes = await attempt(api, exposed, "1web")
        assert (status, "the first one a letter" in causes["spec.expose"]) == (422, True)
        assert (await attempt(api, SMALL, "1web"))[0] == 201
    assert verdict(exposed, "1web") != []


async def test_a_misspelt_field_is_refused() -> None:
    async with a_server() as api:
        status, causes = await attempt(api, spec(memroy="1Gi"))
        assert (status, 'unknown field "spec.memroy"' in causes[""]) == (400, True)


def _changed(**more: Any) -> Spec:
    return disk(image="http://x/y", storageClassName="fast", **more)


CANNOT: list[tuple[Spec, Spec, str, str]] = [
    (disk(size="10Gi"), disk(size="9Gi"), "spec.disks[0].size", "cannot shrink"),
    (disk(size="10Gi"), disk(size="10737418239"), "spec.disks[0].size", "cannot shrink"),
    (_changed(), disk(image="http://x/z", storageClassName="fast"), "spec.disks[0]", "cannot change"),
    (_changed(), disk(storageClassName="fast"), "spec.disks[0]", "cannot change"),
    (SMALL, disk(source={"blank": {}}), "spec.disks[0]", "cannot change"),
    (_changed(), disk(image="http://x/y", storageClassName="slow"), "spec.disks[0].storageClassName", "class"),
    (_changed(), disk(image="http://x/y"), "spec.disks[0].storageClassName", "class"),
    (spec(osImage="a"), spec(osImage="b"), "spec.osImage", "cannot change"),
]
CAN: list[tuple[Spec, Spec]] = [
    (disk(size="10Gi"), disk(size="10240Mi")),
    (disk(size="10Gi"), disk(size="11Gi")),
    (disk(size="10Gi"), spec(disks=[DISK, {"name": "data", "size": "1Gi"}])),
    (spec(disks=[DISK, {"name": "data", "size": "1Gi"}]), SMALL),
    (SMALL, spec(cpu=1, memory="1Gi", powerState="Stopped", restartAt="now")),
]


@pytest.mark.spec("W-06")
async def test_what_cannot_change() -> None:
    async with a_server() as api:
        for number, (before, after, path, text) in enumerate(CANNOT):
            made = await api.call("POST", PATH, body(before, f"web-{number}"))
            changed = {**made, "spec": after}
            answer = await api.call("PUT", f"{PATH}/web-{number}", changed, expect=422)
            causes = {cause["field"]: cause["message"] for cause in answer["details"]["causes"]}
            assert text in causes.get(path, ""), causes


@pytest.mark.spec("W-06")
async def test_what_can_change() -> None:
    async with a_server() as api:
        for number, (before, after) in enumerate(CAN):
            made = await api.call("POST", PATH, body(before, f"web-{number}"))
            await api.call("PUT", f"{PATH}/web-{number}", {**made, "spec": after})


async def test_columns_short_name_and_status() -> None:
    async with a_server() as api:
        made = await api.call("POST", PATH, body(SMALL))
        made["status"] = {
            "phase": "Running",
            "powerState": "Running",
            "primaryIP": "10.0.0.7",
            "nodeName": "node-1",
            "vmName": "web-vm",
            "message": "all is well",
            "conditions": [
                {
                    "type": "Ready",
                    "status": "True",
                    "reason": "VMRunning",
                    "message": "",
                    "lastTransitionTime": "2026-01-01T00:00:00Z",
                }
            ],
        }
        await api.call("PUT", f"{PATH}/web/status", made)
        table = await api.call("GET", PATH, accept="application/json;as=Table;v=v1;g=meta.k8s.io")
        columns = table["columnDefinitions"]
        assert [column["name"] for column in columns if not column["priority"]] == [
            "Name",
            "Phase",
            "Ready",
            "Power",
            "IP",
            "Node",
            "Age",
        ]
        assert [column["name"] for column in columns if column["priority"]] == ["CPU", "Memory", "VM", "Message"]
        cells = dict(zip((column["name"] for column in columns), table["rows"][0]["cells"], strict=True))
        del cells["Age"]
        assert list(cells.values()) == [
            *("web", "Running", "True", "Running", "10.0.0.7", "node-1"),
            *(2, "2Gi", "web-vm", "all is well"),
        ]
        kinds = await api.call("GET", "/apis/vm.novasphere.dev/v1alpha1")
        short = {kind["name"]: kind.get("shortNames") for kind in kinds["resources"]}
        assert short["wukongs"] == ["wk"]
        assert short["wukongsnapshots"] == ["wks"]


async def test_a_snapshot_is_of_one_machine() -> None:
    path = WukongSnapshot.resource.path("default")
    async with a_server() as api:
        made = await api.call("POST", path, {"metadata": {"name": "one"}, "spec": {"wukongName": "web"}})
        made["spec"] = {"wukongName": "other"}
        await api.call("PUT", f"{path}/one", made, expect=422)
        await api.call("POST", path, {"metadata": {"name": "two"}, "spec": {}}, expect=422)
