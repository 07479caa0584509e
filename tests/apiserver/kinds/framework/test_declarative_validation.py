"""Rules from tags: what the recorded exchanges (tests.apiserver.kinds.cases_resource) do not reach."""

from __future__ import annotations

from typing import Any

import pytest

from konverge.apiserver.kinds.framework import declarative_validation
from konverge.apiserver.kinds.framework.declarative_validation import CREATED, Declared
from konverge.apiserver.kinds.framework.declare import Report

THING = "test/v1.Thing"
Checks = list[list[Any]]


def errors(
    monkeypatch: pytest.MonkeyPatch, checks: Checks, new: Any, old: Any = CREATED, *, options: tuple[str, ...] = ()
) -> list[str]:
    monkeypatch.setattr(declarative_validation, "_types", lambda: {THING: checks})
    report = Report()
    Declared(THING, options=options).updated(new, old, "", report)
    return [str(error) for error in report.errors]


def field(name: str, *checks: list[Any], zero: Any = None) -> list[Any]:
    return ["field", name, zero, list(checks)]


def test_every_type_in_the_data_is_understood() -> None:
    for name in declarative_validation._types():
        Declared(name)


def test_a_failed_gate_skips_the_other_checks_but_not_the_other_gates(monkeypatch: pytest.MonkeyPatch) -> None:
    checks = [field("name", ["RequiredValue!"], ["Immutable!"], ["ShortName"], zero="")]
    assert errors(monkeypatch, checks, {}, {"name": "a"}) == [
        "name: Required value",
        "name: Invalid value: null: field is immutable",
    ]


def test_checks_of_stage_alpha_skip_others_and_report_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    checks = [field("name", ["~Immutable!"], ["MaxBytes", 1], zero="")]
    assert errors(monkeypatch, checks, {"name": "ab"}, {"name": "a"}) == []
    assert errors(monkeypatch, checks, {"name": "ab"}) == ["name: Too long: may not be more than 1 byte"]


def test_an_update_does_not_check_what_has_not_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    item = ["EachValSliceVal", ["name"], "==", ["all", [field("size", ["Maximum", 3])]]]
    old = {"items": [{"name": "a", "size": 9}, {"name": "b", "size": 9}]}
    new = {"items": [{"name": "b", "size": 9}, {"name": "a", "size": 8}, {"name": "c", "size": 7}]}
    assert errors(monkeypatch, [field("items", item)], new, old) == [
        "items[1].size: Invalid value: 8: must be less than or equal to 3",
        "items[2].size: Invalid value: 7: must be less than or equal to 3",
    ]


def test_an_absent_list_is_as_an_empty_one(monkeypatch: pytest.MonkeyPatch) -> None:
    assert errors(monkeypatch, [field("names", ["Immutable!"])], {"names": []}, {}) == []


@pytest.mark.parametrize(
    ("options", "expected"),
    [((), ["size: Forbidden"]), (("Sizes",), ["size: Invalid value: -1: must be greater than or equal to 0"])],
)
def test_a_feature_gate_chooses_the_checks(
    monkeypatch: pytest.MonkeyPatch, options: tuple[str, ...], expected: list[str]
) -> None:
    off, on = (["IfOption!", "Sizes", False, ["ForbiddenPointer"]], ["IfOption", "Sizes", True, ["Minimum", 0]])
    assert errors(monkeypatch, [field("size", off, on)], {"size": -1}, options=options) == expected


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ({}, {"at": 1}, ["at: Invalid value: null: field cannot be set once created"]),
        ({"at": 1}, {}, ["at: Invalid value: null: field cannot be cleared once set"]),
        ({"at": 1}, {"at": 2}, ["at: Invalid value: null: field cannot be modified once set"]),
        (CREATED, {"at": 1}, []),
    ],
)
def test_constraints_of_updates(monkeypatch: pytest.MonkeyPatch, old: Any, new: Any, expected: list[str]) -> None:
    checks = [field("at", ["UpdatePointer!", ["NoSet"], ["NoUnset"], ["NoModify"]])]
    assert errors(monkeypatch, checks, new, old) == expected


def test_one_member_decides_about_another(monkeypatch: pytest.MonkeyPatch) -> None:
    needed = [["Queue", ["all", [["RequiredPointer"]]]]]
    checks = [["Discriminated", "queuing", ["queuing"], ["type"], "==", ["all", [["ForbiddenPointer"]]], needed]]
    assert errors(monkeypatch, checks, {"type": "Queue"}) == ["queuing: Required value"]
    assert errors(monkeypatch, checks, {"type": "Reject", "queuing": {}}) == ["queuing: Forbidden"]
    assert errors(monkeypatch, checks, {"type": "Queue"}, {"type": "Queue"}) == []


def test_at_most_one_item_of_a_list_has_one_of_these_values(monkeypatch: pytest.MonkeyPatch) -> None:
    names, members = ["Approved", "Denied"], [{"type": "Approved"}, {"type": "Denied"}]
    checks = [field("conditions", ["ZeroOrOneOfUnion", names, *members])]
    both = [{"type": "Approved"}, {"type": "Denied"}]
    assert errors(monkeypatch, checks, {"conditions": []}) == []
    assert errors(monkeypatch, checks, {"conditions": both}) == [
        'conditions: Invalid value: "{Approved, Denied}": must specify at most one of: `Approved`, `Denied`'
    ]
    assert errors(monkeypatch, checks, {"conditions": [*both, {}]}, {"conditions": both}) == []
