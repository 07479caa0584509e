"""The definitions of Wukong on the real API server: good resources and samples are accepted, mistakes are refused."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from konverge.operators.catalog import find
from konverge.operators.wukong.protection import API_VERSION, MESSAGE
from konverge.operators.wukong.resource import KINDS, Wukong, definitions
from tests.operators.wukong.specs import BAD, GOOD, SMALL, Spec, random_specs, spec
from tests.operators.wukong.test_spec import CAN, CANNOT, body, verdict
from tests.real.definitions import Api, installed

pytestmark = [pytest.mark.spec("W-01")]

PATH = Wukong.resource.path("default")


@pytest.fixture(scope="module")
def api(real_api: Api) -> Iterator[Api]:
    with installed(real_api, *definitions()):
        yield real_api


def attempt(api: Api, given: Spec, name: str = "web") -> tuple[int, Any]:
    """Strictly, as kubectl asks: an unknown field is refused too. Nothing is kept."""
    return api("POST", f"{PATH}?dryRun=All&fieldValidation=Strict", json.dumps(body(given, name)).encode())


def messages(answer: Any) -> dict[str, str]:
    by_field: dict[str, str] = {}
    for cause in answer["details"]["causes"]:
        by_field[cause["field"]] = f"{by_field.get(cause['field'], '')} {cause['message']}"
    return by_field


@pytest.mark.parametrize("case", GOOD)
def test_the_real_server_accepts_good_specs(api: Api, case: str) -> None:
    status, answer = attempt(api, GOOD[case])
    assert status == 201, answer.get("message")


def test_samples_of_the_package_are_accepted(api: Api) -> None:
    samples = [sample for sample in find("wukong").sample_objects() if sample["kind"] != "Secret"]
    assert len(samples) == 10
    for sample in samples:
        (kind,) = (kind for kind in KINDS if kind.resource.kind == sample["kind"])
        path = kind.resource.path("default")
        status, answer = api("POST", f"{path}?dryRun=All&fieldValidation=Strict", json.dumps(sample).encode())
        assert status == 201, answer.get("message")


@pytest.mark.parametrize(("bad", "path", "message"), BAD, ids=[f"{bad[1]}-{n}" for n, bad in enumerate(BAD)])
def test_the_real_server_refuses_with_the_path(api: Api, bad: Spec, path: str, message: str) -> None:
    status, answer = attempt(api, bad)
    assert status == 422, answer
    assert message in messages(answer).get(path, ""), messages(answer)


@given(random_specs)
@settings(max_examples=200, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
def test_python_and_the_real_server_agree_on_random_specs(api: Api, given: Spec) -> None:
    status, answer = attempt(api, given)
    assert (status == 201) == (verdict(given) == []), (given, answer.get("message"), verdict(given))


@pytest.mark.parametrize("name", ["a.b", "a" * 61])
def test_a_name_that_no_machine_can_have_is_refused(api: Api, name: str) -> None:
    status, answer = attempt(api, SMALL, name)
    assert status == 422
    assert "the name becomes a host name" in answer["message"]


def test_a_misspelt_field_is_refused(api: Api) -> None:
    status, answer = attempt(api, spec(memroy="1Gi"))
    assert status == 400
    assert 'unknown field "spec.memroy"' in answer["message"]


@pytest.mark.spec("W-06")
@pytest.mark.parametrize("number", range(len(CANNOT)))
def test_a_forbidden_change_is_refused(api: Api, number: int) -> None:
    before, after, path, message = CANNOT[number]
    name = f"cannot-{number}"
    status, made = api("POST", PATH, json.dumps(body(before, name)).encode())
    assert status == 201, made
    status, answer = api("PUT", f"{PATH}/{name}", json.dumps({**made, "spec": after}).encode())
    assert status == 422, answer
    assert message in messages(answer).get(path, ""), messages(answer)


@pytest.mark.spec("W-06")
@pytest.mark.parametrize("number", range(len(CAN)))
def test_an_allowed_change_is_accepted(api: Api, number: int) -> None:
    before, after = CAN[number]
    status, made = api("POST", PATH, json.dumps(body(before, f"can-{number}")).encode())
    assert status == 201, made
    status, answer = api("PUT", f"{PATH}/can-{number}", json.dumps({**made, "spec": after}).encode())
    assert status == 200, answer


def test_columns_and_status_are_served(api: Api) -> None:
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
    table = api.table(f"{PATH}/columns")
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


@pytest.mark.spec("W-18")
@pytest.mark.limit(300)
def test_the_real_server_refuses_to_delete_a_protected_machine(api: Api) -> None:
    plurals = {
        "ValidatingAdmissionPolicy": "validatingadmissionpolicies",
        "ValidatingAdmissionPolicyBinding": "validatingadmissionpolicybindings",
    }
    policies = find("wukong").policies("test")
    for item in policies:
        status, answer = api("POST", f"/apis/{API_VERSION}/{plurals[item['kind']]}", json.dumps(item).encode())
        assert status == 201, answer
    for name, protected in (("kept", True), ("free", False)):
        status, answer = api("POST", PATH, json.dumps(body({**SMALL, "deletionProtection": protected}, name)).encode())
        assert status == 201, answer
    try:
        status, answer = 0, {}
        while status != 403:  # the server takes a policy up a moment after it was made
            status, answer = api("DELETE", f"{PATH}/kept?dryRun=All")
            assert status in (200, 403), answer
        assert MESSAGE in answer["message"]
        assert api("DELETE", f"{PATH}/free")[0] == 200
        off = json.dumps({"spec": {"deletionProtection": False}}).encode()
        assert api("PATCH", f"{PATH}/kept", off, **{"Content-Type": "application/merge-patch+json"})[0] == 200
        assert api("DELETE", f"{PATH}/kept")[0] == 200
    finally:
        for item in policies:
            api("DELETE", f"/apis/{API_VERSION}/{plurals[item['kind']]}/{item['metadata']['name']}")
