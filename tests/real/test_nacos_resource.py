"""The definition of Nacos on the real API server, with its columns: samples are accepted, mistakes are refused."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from konverge.objects import crd
from konverge.operators.catalog import find
from konverge.operators.nacos.resource import Nacos
from tests.operators.nacos.specs import BAD, GOOD, MYSQL
from tests.operators.nacos.world import CLUSTER
from tests.real.definitions import Api, installed

pytestmark = [pytest.mark.spec("N-01", "N-02")]


@pytest.fixture(scope="module")
def api(real_api: Api) -> Iterator[Api]:
    with installed(real_api, crd(Nacos)):
        yield real_api


def attempt(api: Api, spec: dict[str, Any], name: str = "nacos") -> tuple[int, Any]:
    """Strictly, as kubectl asks: an unknown field is refused too. Nothing is kept."""
    body = {"apiVersion": "nacos.io/v1alpha1", "kind": "Nacos", "metadata": {"name": name}, "spec": spec}
    path = Nacos.resource.path("default") + "?dryRun=All&fieldValidation=Strict"
    return api("POST", path, json.dumps(body).encode())


@pytest.mark.parametrize("case", GOOD)
def test_the_real_server_accepts_good_specs(api: Api, case: str) -> None:
    status, answer = attempt(api, GOOD[case])
    assert status == 201, answer.get("message")


def test_samples_of_the_package_are_accepted(api: Api) -> None:
    samples = [sample for sample in find("nacos").sample_objects() if sample["kind"] == "Nacos"]
    assert len(samples) == 3
    for sample in samples:
        status, answer = attempt(api, sample["spec"], sample["metadata"]["name"])
        assert status == 201, answer.get("message")


@pytest.mark.parametrize(("spec", "path", "message"), BAD, ids=[f"{bad[1]}-{n}" for n, bad in enumerate(BAD)])
def test_the_real_server_refuses_with_the_path(api: Api, spec: dict[str, Any], path: str, message: str) -> None:
    status, answer = attempt(api, spec)
    assert status == 422, answer
    causes = {cause["field"]: cause["message"] for cause in answer["details"]["causes"]}
    assert path in causes, causes
    assert message in causes[path]


def test_a_name_that_no_service_can_have_is_refused(api: Api) -> None:
    status, answer = attempt(api, {}, "1nacos")
    assert status == 422
    assert "the name becomes that of Services" in answer["message"]


def test_a_name_too_long_for_the_job_is_refused_only_with_the_job(api: Api) -> None:
    with_job = {**CLUSTER, "database": MYSQL, "mysqlInitImage": "mysql:8"}
    assert attempt(api, with_job, "n" * 48)[0] == 201
    status, answer = attempt(api, with_job, "n" * 49)
    assert status == 422
    assert "with mysqlInitImage it becomes that of a Job: at most 48" in answer["message"]
    for other in (CLUSTER, {**with_job, "mysqlInitImage": ""}, {**CLUSTER, "mysqlInitImage": "mysql:8"}):
        assert attempt(api, other, "n" * 50)[0] == 201
    assert attempt(api, CLUSTER, "n" * 51)[0] == 422


@pytest.mark.parametrize(
    ("spec", "path"),
    [
        ({"replica": 3}, "spec.replica"),
        ({"service": {"type": "NodePort", "nodePorts": {"main": 30848}}}, "spec.service.nodePorts.main"),
    ],
)
def test_a_misspelt_field_is_refused(api: Api, spec: dict[str, Any], path: str) -> None:
    status, answer = attempt(api, spec)
    assert status == 400
    assert f'unknown field "{path}"' in answer["message"]


def test_columns_scale_and_status_are_served(api: Api) -> None:
    path = Nacos.resource.path("default")
    body = {"apiVersion": "nacos.io/v1alpha1", "kind": "Nacos", "metadata": {"name": "nacos"}, "spec": CLUSTER}
    status, made = api("POST", path, json.dumps(body).encode())
    assert status == 201, made
    assert made["status"]["observedGeneration"] == 0, "not seen yet, for kstatus"
    assert api("GET", f"{path}/nacos")[1]["status"]["observedGeneration"] == 0
    made["status"] = {"phase": "Running", "version": "2.0.4", "replicas": 3, "selector": "app=nacos"}
    status, made = api("PUT", f"{path}/nacos/status", json.dumps(made).encode())
    assert status == 200, made
    status, scale = api("GET", f"{path}/nacos/scale")
    assert (scale["spec"], scale["status"]) == ({"replicas": 3}, {"replicas": 3, "selector": "app=nacos"})
    table = api.table(path)
    columns = [column["name"].upper() for column in table["columnDefinitions"]]
    assert columns == ["NAME", "REPLICAS", "READY", "TYPE", "DBTYPE", "VERSION", "CREATETIME"]
    created = made["metadata"]["creationTimestamp"]
    assert table["rows"][0]["cells"] == ["nacos", 3, "Running", "cluster", "embedded", "2.0.4", created]
    api("DELETE", f"{path}/nacos")
