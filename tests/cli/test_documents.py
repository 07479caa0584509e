"""What commands print means the same to kubectl and Helm, which read it with goyaml."""

from __future__ import annotations

import json
from typing import Any, Literal

import pytest
import yaml

from konverge.apiserver.go.yaml import parse_all
from konverge.cli.charts import chart
from konverge.cli.documents import write
from konverge.cli.installation import Installation
from konverge.objects import CustomResource, Model, NoStatus
from konverge.operators.catalog import Operator

pytestmark = pytest.mark.spec("O-93")

TEXTS = [
    "y",
    "N",
    "1e3",
    "12e5",
    "1E-3",
    "0o14",
    "0X1F",
    "089",
    "-.5",
    "1_0e3",
    "on",
    "1:30",
    "2026-01-02",
    "~",
    "plain",
]


class AnswerSpec(Model):
    x: int = 0
    y: int = 0
    answer: Literal["y", "n"] = "y"


class Answer(CustomResource[AnswerSpec, NoStatus], group="x.example.com", version="v1"): ...


def operator(**others: Any) -> Operator:
    return Operator(name="answers", kinds=[Answer], controllers=list, **others)


@pytest.mark.parametrize("text", TEXTS)
def test_texts_stay_texts(text: str) -> None:
    obj = {"a": {text: text, "l": [text]}}
    written = write([obj, obj], "yaml")
    assert parse_all(written.encode()) == [obj, obj]
    assert list(yaml.safe_load_all(written)) == [obj, obj]
    assert json.loads(write([obj], "json"))["items"] == [obj]


def test_keys_have_their_order_and_texts_no_needless_quotes() -> None:
    assert write([{"b": "1", "a": "é x", "y": 1}, {"c": "x " * 58 + "x"}], "yaml") == (
        "b: '1'\na: é x\n'y': 1\n---\nc: " + "x " * 58 + "x"
    )


def test_a_definition_keeps_its_fields() -> None:
    definitions = operator().definitions()
    read = parse_all(write(definitions, "yaml").encode())
    assert read == definitions
    properties = read[0]["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]
    assert set(properties) == {"x", "y", "answer"}
    assert (properties["answer"]["enum"], properties["answer"]["default"]) == (["n", "y"], "y")


def test_variables_of_an_installation_are_texts() -> None:
    plan = Installation(operators=[operator(environment=lambda: {"N": "1e5"})], namespace="tools")
    objects = [obj for obj in plan.everything() if obj["kind"] == "Deployment"]
    read = parse_all(write(objects, "yaml").encode())
    assert read == objects
    assert {"name": "N", "value": "1e5"} in read[0]["spec"]["template"]["spec"]["containers"][0]["env"]


def test_a_chart_keeps_its_definition_and_its_version() -> None:
    made = chart(operator(image="registry/answers:12345e7"), "1.2.3")
    assert parse_all(made["Chart.yaml"].encode())[0]["appVersion"] == "12345e7"
    assert parse_all(made["crds/answers.x.example.com.yaml"].encode()) == operator().definitions()
