"""The definitions of Wukong on the real API server: accepted; good resources and samples go in, mistakes do not."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from konverge.objects import to_json
from konverge.operators.catalog import find
from konverge.operators.wukong.resource import Wukong, definitions
from tests.operators.wukong.specs import BAD, GOOD, SMALL, Spec, random_specs, spec
from tests.operators.wukong.test_spec import CAN, CANNOT, body, verdict
from tests.real.test_crd_from_classes import DEFINITIONS_PATH, Api, _wait_until_established
from tools.control_plane import ControlPlane

pytestmark = [pytest.mark.spec("W-01")]

PATH = Wukong.resource.path("default")


@pytest.fixture(scope="module")
def api(real_server: ControlPlane) -> Iterator[Api]:
    made = definitions()
    with closing(Api(real_server)) as api:
        for one in made:
            status, answer = api("POST", DEFINITIONS_PATH, to_json(one))
            assert status == 201, answer["message"]
        for one in made:
            _wait_until_established(api, one.metadata.name)
        yield api
        for one in made:
            api("DELETE", f"{DEFINITIONS_PATH}/{one.metadata.name}")


def attempt(api: Api, given: Spec, name: str = "web") -> tuple[int, Any]:
    """Strictly, as kubectl asks: an unknown field is refused too. Nothing is kept."""
    return api("POST", f"{PATH}?dryRun=All&fieldValidation=Strict", json.dumps(body(given, name)).encode())


def messages(answer: Any) -> dict[str, str]:
    found: dict[str, str] = {}
    for cause in answer["details"]["causes"]:
        found[cause["field"]] = f"{found.get(cause['field'], '')} {cause['message']}"
    return found


@pytest.mark.parametrize("case", GOOD)
def test_the_real_server_accepts(api: Api, case: str) -> None:
    status, answer = attempt(api, GOOD[case])
    assert status == 201, answer.get("message")


def test_samples_of_the_package_are_accepted(api: Api) -> None:
    samples = [one for one in find("wukong").sample_objects() if one["kind"] != "Secret"]
    assert len(samples) == 6
    for sample in samples:
        path = f"/apis/vm.novasphere.dev/v1alpha1/namespaces/default/{sample['kind'].lower()}s"
        status, answer = api("POST", f"{path}?dryRun=All&fieldValidation=Strict", json.dumps(sample).encode())
        assert status == 201, answer.get("message")


@pytest.mark.parametrize(("one", "path", "words"), BAD, ids=[f"{bad[1]}-{n}" for n, bad in enumerate(BAD)])
def test_the_real_server_refuses_with_the_path(api: Api, one: Spec, path: str, words: str) -> None:
    status, answer = attempt(api, one)
    assert status == 422, answer
    assert words in messages(answer).get(path, ""), messages(answer)


@given(random_specs)
@settings(max_examples=200, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
def test_python_and_the_real_server_agree_about_random_ones(api: Api, one: Spec) -> None:
    status, answer = attempt(api, one)
    assert (status == 201) == (verdict(one) == []), (one, answer.get("message"), verdict(one))


@pytest.mark.parametrize("name", ["a.b", "a" * 61])
def test_a_name_that_no_machine_can_have(api: Api, name: str) -> None:
    status, answer = attempt(api, SMALL, name)
    assert status == 422
    assert "the name becomes a host name" in answer["message"]


def test_a_misspelt_field_is_refused(api: Api) -> None:
    status, answer = attempt(api, spec(memroy="1Gi"))
    assert status == 400
    assert 'unknown field "spec.memroy"' in answer["message"]


@pytest.mark.spec("W-06")
@pytest.mark.parametrize("number", range(len(CANNOT)))
def test_what_cannot_change(api: Api, number: int) -> None:
    before, after, path, words = CANNOT[number]
    name = f"cannot-{number}"
    status, made = api("POST", PATH, json.dumps(body(before, name)).encode())
    assert status == 201, made
    status, answer = api("PUT", f"{PATH}/{name}", json.dumps({**made, "spec": after}).encode())
    assert status == 422, answer
    assert words in messages(answer).get(path, ""), messages(answer)


@pytest.mark.spec("W-06")
@pytest.mark.parametrize("number", range(len(CAN)))
def test_what_can_change(api: Api, number: int) -> None:
    before, after = CAN[number]
    status, made = api("POST", PATH, json.dumps(body(before, f"can-{number}")).encode())
    assert status == 201, made
    status, answer = api("PUT", f"{PATH}/can-{number}", json.dumps({**made, "spec": after}).encode())
    assert status == 200, answer


def test_columns_and_status(api: Api) -> None:
    status, made = api("POST", PATH, json.dumps(body(SMALL, "columns")).encode())
    assert status == 201, made
    ready = {"type": "Ready", "status": "True", "reason": "VMRunning", "message": ""}
    made["status"] = {
        "phase": "Running",
        "powerState": "Running",
        "primaryIP": "10.0.0.7",
        "nodeName": "node-1",
        "conditions": [{**ready, "lastTransitionTime": "2026-01-01T00:00:00Z"}],
    }
    status, made = api("PUT", f"{PATH}/columns/status", json.dumps(made).encode())
    assert status == 200, made
    api._headers["Accept"] = "application/json;as=Table;v=v1;g=meta.k8s.io"
    status, table = api("GET", f"{PATH}/columns")
    del api._headers["Accept"]
    shown = [
        (column["name"], cell)
        for column, cell in zip(table["columnDefinitions"], table["rows"][0]["cells"], strict=True)
        if not column["priority"] and column["name"] != "Age"
    ]
    assert shown == [
        ("Name", "columns"),
        ("Phase", "Running"),
        ("Ready", "True"),
        ("Power", "Running"),
        ("IP", "10.0.0.7"),
        ("Node", "node-1"),
    ]
    assert table["columnDefinitions"][-1]["name"] == "Age"
