"""Rules are compiled once for a schema, from wherever it is reached; what is wrong with one names the place."""

from __future__ import annotations

from typing import Any

import pytest

from konverge.apiserver.crd.cel import rules
from konverge.apiserver.crd.cel.decl_types import Decl, declare
from konverge.apiserver.crd.cel.rules import compile_rules


@pytest.fixture(autouse=True)
def _nothing_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rules, "_compiled", {})


def node(*texts: str) -> dict[str, Any]:
    part = {"type": "object", "properties": {"low": {"type": "integer"}}}
    ruled = [{"rule": text} for text in texts]
    return {"type": "object", "properties": {"one": part, "two": part}, "x-kubernetes-validations": ruled}


def declared(raw: dict[str, Any], name: str = "selfType", *, resource: bool = False) -> Decl:
    decl = declare(raw, name=name, resource=resource)
    assert decl is not None
    return decl


def test_a_schema_that_is_reached_in_two_ways_is_compiled_once() -> None:
    raw = node("self.one.low < self.two.low")
    first = compile_rules(raw, declared(raw))
    assert compile_rules(raw, declared(raw, "selfType.spec")) is first
    assert first[0].program is not None
    assert first[0].program.evaluate({"self": {"one": {"low": 1}, "two": {"low": 2}}, "oldSelf": None}) is True


def test_other_rules_and_other_fields_are_compiled_by_themselves() -> None:
    raw, other = node("self.one.low < self.two.low"), node("self.one.low > self.two.low")
    assert compile_rules(raw, declared(raw)) is not compile_rules(other, declared(other))
    resource = declared(raw, resource=True)
    assert compile_rules(raw, resource) is not compile_rules(raw, declared(raw)), "it has kind and metadata"


@pytest.mark.parametrize("texts", [("self.one == self.two",), ("self.one.low > 0", "self.one == self.two")])
def test_an_error_names_the_type_of_its_place(texts: tuple[str, ...]) -> None:
    raw = node(*texts)
    assert "selfType.one, selfType.two" in compile_rules(raw, declared(raw))[-1].error
    assert "selfType.spec.one, selfType.spec.two" in compile_rules(raw, declared(raw, "selfType.spec"))[-1].error
