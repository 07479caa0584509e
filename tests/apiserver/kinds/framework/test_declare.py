"""The vocabulary of declarations."""

from __future__ import annotations

from typing import Any, cast

from konverge.apiserver.kinds.framework.declare import (
    Report,
    Rule,
    as_created,
    at_most,
    chain,
    distinct,
    distinct_by,
    exactly_one,
    field,
    given,
    items,
    one_of,
    one_of_required,
    present,
    required,
    section,
    struct,
    unchanged,
    update,
)
from konverge.apiserver.kinds.rules.names import dns_label
from konverge.apiserver.kinds.rules.numbers import not_negative
from konverge.apiserver.strategy import Context


def texts(rule: Rule, value: Any, path: str = "x") -> list[str]:
    report = Report()
    rule(value, path, report)
    return [str(error) for error in report.errors]


def test_a_chain_ends_with_the_first_error() -> None:
    rule = struct(field("name", required, dns_label, distinct))
    assert texts(rule, {}) == ["x.name: Required value"]
    assert len(texts(rule, {"name": "A"})) == 1


def test_parts_report_in_the_order_in_which_they_are_written() -> None:
    rule = struct(field("b", required), field("a", required), lambda value, path, report: report.forbidden(path, "no"))
    assert texts(rule, {}) == ["x.b: Required value", "x.a: Required value", "x: Forbidden: no"]


def test_absent_fields_are_skipped_unless_asked_for() -> None:
    rule = struct(field("kind", one_of("A", "B")), field("mode", present, not_negative))
    assert texts(rule, {"kind": "", "mode": 0}) == []
    assert texts(rule, {"kind": None}) == ["x.mode: Required value"]


def test_a_pointer_to_an_empty_text_is_a_value() -> None:
    rule = struct(given("kind", one_of("A", "B")))
    assert texts(rule, {}) == []
    assert texts(rule, {"kind": ""}) == ['x.kind: Unsupported value: "": supported values: "A", "B"']


def test_a_section_is_there_even_when_it_is_not() -> None:
    rule = struct(section("spec", field("items", required)))
    assert texts(rule, {}, "") == ["spec.items: Required value"]


def test_distinct_looks_at_the_innermost_list() -> None:
    inner = items(struct(field("name", distinct)))
    rule = items(struct(field("name", distinct), field("ports", inner)))
    twice = {"name": "a", "ports": [{"name": "p"}, {"name": "p"}]}
    assert texts(rule, [twice, {"name": "b", "ports": [{"name": "p"}]}]) == ['x[0].ports[1].name: Duplicate value: "p"']


def test_exactly_one_member_of_a_union_is_set() -> None:
    rule = exactly_one(("a", "b"), noun="thing", none_detail="must specify a thing", rules={"a": not_negative})
    assert texts(rule, {}) == ["x: Required value: must specify a thing"]
    assert texts(rule, {"a": -1, "b": 1}) == [
        "x.a: Invalid value: -1: must be greater than or equal to 0",
        "x.b: Forbidden: may not specify more than 1 thing",
    ]


def test_distinct_by_goes_on_after_a_duplicate() -> None:
    rule = items(distinct_by("type"), struct(field("status", required)))
    twice = [{"type": "a", "status": "True"}, {"type": "a"}]
    assert texts(rule, twice) == ['x[1].type: Duplicate value: "a"', "x[1].status: Required value"]


def test_lists_have_a_limit_and_a_text_may_be_required() -> None:
    assert texts(at_most(1), ["a", "b"]) == ["x: Too many: 2: must have at most 1 item"]
    assert texts(chain(one_of_required("A")), "") == ["x: Required value"]


def test_unchanged_treats_nothing_and_empty_alike() -> None:
    report = Report()
    unchanged("spec.a", "spec.b")({"spec": {"a": [], "b": 2}}, {"spec": {"b": 1}}, "", report)
    assert [str(error) for error in report.errors] == ["spec.b: Invalid value: 2: field is immutable"]


def test_as_created_asks_of_the_new_state() -> None:
    report = Report()
    as_created(field("a", required))({}, {"a": 1}, "", report)
    assert [str(error) for error in report.errors] == ["a: Required value"]


def test_an_update_checks_fields_and_tuples_of_parts_as_new_states() -> None:
    validate = update(field("a", required), (field("b", required), field("c", required)), unchanged("d"))
    errors = validate({"d": 2}, {"a": 1, "b": 1, "c": 1, "d": 1}, cast(Context, None))
    assert [error.path for error in errors] == ["a", "b", "c", "d"]
