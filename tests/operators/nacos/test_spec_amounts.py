"""The rules about amounts, evaluated as the API server does it, and the same checks without it."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

import pytest
from msgspec import Meta

from konverge.apiserver.crd.cel.rules import RuleValidator
from konverge.apiserver.crd.schema import structural
from konverge.objects import Quantity, crd_dict, from_dict
from konverge.operators.nacos.resource import Nacos, keeps_size
from konverge.operators.nacos.spec import NacosSpec
from konverge.operators.nacos.spec_amounts import (
    above,
    probe_rule,
    resource_rules,
    storage_rules,
    template_size,
    wrong_amounts,
)

pytestmark = pytest.mark.spec("N-02")
NO_SIZE = "a volume needs a size above 0, such as 10Gi"


def validator(field: str, rules: Sequence[Meta]) -> RuleValidator:
    """Of one field of the spec, with these rules alone."""
    schema = crd_dict(Nacos)["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    node = copy.deepcopy(schema["properties"]["spec"]["properties"][field])
    extra = [rule.extra_json_schema or {} for rule in rules]
    node["x-kubernetes-validations"] = [entry for part in extra for entry in part["x-kubernetes-validations"]]
    built = RuleValidator.of_node(structural.build(node), resource=False)
    assert built is not None
    return built


def refused(given: RuleValidator, value: dict[str, Any]) -> list[tuple[str, str]]:
    errors, _ = given.validate(value, None)
    return sorted((error.path, error.detail) for error in errors)


def template(size: Any) -> dict[str, Any]:
    return {"volumeClaimTemplate": {"spec": {"resources": {"requests": {"storage": size}}}}}


@pytest.mark.parametrize(
    ("volume", "path"),
    [
        ({"requests": {"storage": 0}}, "requests"),
        ({"requests": {"storage": "-1Gi"}}, "requests"),
        ({"requests": {"storage": "1"}}, ""),
        ({"requests": {"storage": 1}}, ""),
        ({"requests": {"storage": "much"}}, ""),  # refused by its pattern
        ({"requests": {"other": "-1"}}, ""),
        ({"persistentVolumeSize": "0"}, "persistentVolumeSize"),
        ({"persistentVolumeSize": "1Gi"}, ""),
        (template("0"), "volumeClaimTemplate.spec.resources.requests"),
        (template("1Gi"), ""),
        ({"volumeClaimTemplate": {"spec": {}}}, ""),
        ({"volumeClaimTemplate": {"spec": {"resources": {}}}}, ""),
        ({"volumeClaimTemplate": {"spec": {"resources": {"requests": {"other": "-1"}}}}}, ""),
        ({"emptyDir": {"sizeLimit": "0"}}, "emptyDir.sizeLimit"),
        ({"emptyDir": {"sizeLimit": "1Gi"}}, ""),
        ({"emptyDir": {}}, ""),
    ],
)
def test_a_volume_has_a_size_above_nothing(volume: dict[str, Any], path: str) -> None:
    errors = refused(validator("volume", storage_rules()), {"enabled": False, **volume})
    assert errors == ([(path, NO_SIZE)] if path else [])


@pytest.mark.parametrize(
    ("volume", "enough"),
    [
        ({}, False),
        ({"requests": {"other": "1"}}, False),
        ({"volumeClaimTemplate": {"spec": {"resources": {}}}}, False),
        ({"requests": {"storage": "1Gi"}}, True),
        (template("1Gi"), True),
        ({"persistentVolumeSize": "1Gi"}, True),
        ({"emptyDir": {}}, True),
        ({"hostPath": {"path": "/data"}}, True),
    ],
)
def test_an_enabled_volume_needs_a_size_or_another_place(volume: dict[str, Any], enough: bool) -> None:
    rules = validator("volume", storage_rules())
    expected = [] if enough else [("requests", "an enabled volume needs requests.storage")]
    assert refused(rules, {"enabled": True, **volume}) == expected
    assert refused(rules, {"enabled": False, **volume}) == []


ABOVE = ("requests", "a request cannot be above its limit: lower it, or raise the limit")


@pytest.mark.parametrize(
    ("resources", "errors"),
    [
        ({"requests": {"cpu": "1"}, "limits": {"cpu": "1000m"}}, []),
        ({"requests": {"cpu": 2}, "limits": {"cpu": "1500m"}}, [ABOVE]),
        ({"requests": {"memory": "2Gi"}, "limits": {"memory": "1Gi"}}, [ABOVE]),
        ({"requests": {"ephemeral-storage": "2Gi"}, "limits": {"ephemeral-storage": "1Gi"}}, [ABOVE]),
        ({"requests": {"memory": "2Gi"}, "limits": {"cpu": "1"}}, []),
        ({"requests": {"memory": "2Gi"}}, []),
        ({"limits": {"memory": "2Gi"}}, []),
        ({}, []),
        ({"requests": {"cpu": "-1"}}, [("requests", "an amount cannot be negative")]),
        ({"requests": {"cpu": "0"}}, []),
        ({"limits": {"memory": "-1"}}, [("limits", "an amount cannot be negative")]),
        ({"limits": {"memory": "0"}}, []),
        ({"requests": {"cpu": "much"}, "limits": {"cpu": "1"}}, []),
        ({"requests": {"cpu": "1"}, "limits": {"cpu": "much"}}, []),
    ],
)
def test_requests_are_within_limits_and_nothing_is_negative(
    resources: dict[str, Any], errors: list[tuple[str, str]]
) -> None:
    assert refused(validator("resources", resource_rules()), resources) == errors


def test_numbers_of_a_probe() -> None:
    rules = validator("livenessProbe", [probe_rule()])
    numbers = ("initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold")
    assert refused(rules, dict.fromkeys(numbers, 0)) == []
    assert refused(rules, {}) == []
    for number in numbers:
        assert [detail for _, detail in refused(rules, {number: -1})] == ["the numbers of a probe cannot be negative"]


# ------------------------------------------------------------------ volumes do not shrink


def resource(size: Any, applied: Any = None, *, status: bool = True) -> dict[str, Any]:
    """A Nacos with this size of its volumes; `applied` is that of the claims."""
    volume = {} if size is None else {"persistentVolumeSize": size}
    made: dict[str, Any] = {"apiVersion": "nacos.io/v1alpha1", "kind": "Nacos", "metadata": {"name": "n"}}
    made["spec"] = {"volume": volume}
    if status:
        made["status"] = {} if applied is None else {"applied": {"size": applied} if applied else {}}
    return made


@pytest.mark.parametrize(
    ("old", "new", "accepted"),
    [
        (resource("10Gi", "10Gi"), resource("20Gi"), True),
        (resource("20Gi", "10Gi"), resource("10Gi"), True),  # the larger size was never in force
        (resource("10Gi", "10Gi"), resource("10Gi"), True),
        (resource("10Gi", "10Gi"), resource("10240Mi"), True),
        (resource("10Gi", "10Gi"), resource("9Gi"), False),
        (resource(None, "10Gi"), resource("9Gi"), False),
        (resource("5Gi", "10Gi"), resource("5Gi"), True),  # as before: nothing new to refuse
        (resource("10Gi", "10Gi"), resource(None), True),
        (resource("10Gi", "10Gi"), resource("much"), True),  # refused by its pattern
        (resource("10Gi", status=False), resource("1Gi"), True),
        (resource("10Gi"), resource("1Gi"), True),
        (resource("10Gi", ""), resource("1Gi"), True),
    ],
)
def test_volumes_do_not_shrink(old: dict[str, Any], new: dict[str, Any], accepted: bool) -> None:
    schema = copy.deepcopy(crd_dict(Nacos)["spec"]["versions"][0]["schema"]["openAPIV3Schema"])
    size = "self.spec.volume.persistentVolumeSize"
    schema["x-kubernetes-validations"] = [{"rule": keeps_size(f"has(self.spec) && has({size})", size), "message": "m"}]
    del schema["properties"]["spec"]["x-kubernetes-validations"]
    del schema["properties"]["spec"]["properties"]["volume"]["x-kubernetes-validations"]
    rules = RuleValidator.of(structural.build(schema))
    assert rules is not None
    errors, _ = rules.validate(new, old)
    assert [error.detail for error in errors] == ([] if accepted else ["m"])


@pytest.mark.parametrize(
    ("spec", "paths"),
    [
        ({}, []),
        ({"volume": {"requests": {"storage": "0"}}}, ["volume.requests.storage"]),
        ({"volume": {"requests": {"storage": "1"}}}, []),
        ({"volume": {"persistentVolumeSize": "-1"}}, ["volume.persistentVolumeSize"]),
        ({"volume": template("0")}, ["volume.volumeClaimTemplate.spec.resources.requests.storage"]),
        ({"volume": {"emptyDir": {"sizeLimit": "0"}}}, ["volume.emptyDir.sizeLimit"]),
        ({"volume": {"emptyDir": {}}}, []),
        ({"resources": {"requests": {"cpu": "0"}, "limits": {"cpu": "0"}}}, []),
        (
            {"resources": {"requests": {"cpu": "-1"}, "limits": {"memory": "-1"}}},
            ["resources.requests.cpu", "resources.limits.memory"],
        ),
        ({"resources": {"requests": {"cpu": "2"}, "limits": {"cpu": "1"}}}, ["resources.requests.cpu"]),
    ],
)
def test_the_same_without_the_api_server(spec: dict[str, Any], paths: list[str]) -> None:
    problems = list(wrong_amounts(from_dict(NacosSpec, spec)))
    assert [problem.partition(": ")[0] for problem in problems] == [f"spec.{path}" for path in paths]


def test_what_is_above_its_limit() -> None:
    one, two = Quantity("1"), Quantity("2")
    assert above({"cpu": two, "memory": one, "disk": two}, {"cpu": one, "memory": one}) == ["cpu"]


def test_the_size_in_a_template() -> None:
    volume = from_dict(NacosSpec, {"volume": template("3Gi")}).volume
    assert template_size(volume) == Quantity("3Gi")
    for part in ({}, {"volumeClaimTemplate": {"spec": {}}}):
        assert template_size(from_dict(NacosSpec, {"volume": part}).volume) is None
