from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from konverge.apiserver.merge import field_set
from konverge.apiserver.merge.field_set import FieldSet, FieldSetError, Path

elements = st.sampled_from(
    ["f:a", "f:b", 'k:{"name":"x"}', 'k:{"port":80}', 'k:{"port":443}', 'v:"x"', "v:2", "v:10", "i:0"]
)
path_sets = st.sets(st.lists(elements, min_size=1, max_size=4).map(tuple), max_size=8)


def made(paths: set[Path]) -> FieldSet:
    return field_set.of(*paths)


def of(fields: FieldSet) -> set[Path]:
    return set(field_set.paths(fields))


@given(path_sets)
def test_a_set_has_its_paths(paths: set[Path]) -> None:
    fields = made(paths)
    assert of(fields) == paths
    assert all(field_set.has(fields, path) for path in paths)
    assert field_set.canonical(fields) == fields == field_set.ordered(fields)


@given(path_sets, path_sets)
def test_the_algebra_is_that_of_sets(a: set[Path], b: set[Path]) -> None:
    first, second = made(a), made(b)
    before = repr((first, second))
    assert of(field_set.union(first, second)) == a | b
    assert of(field_set.intersection(first, second)) == a & b
    assert of(field_set.difference(first, second)) == a - b
    assert repr((first, second)) == before


@given(path_sets, path_sets)
def test_results_have_the_canonical_form(a: set[Path], b: set[Path]) -> None:
    assert field_set.union(made(a), made(b)) == made(a | b)
    assert field_set.intersection(made(a), made(b)) == made(a & b)
    assert field_set.difference(made(a), made(b)) == made(a - b)


@given(path_sets, path_sets)
def test_a_recursive_difference_removes_what_is_below(a: set[Path], b: set[Path]) -> None:
    left = {path for path in a if not any(path[: len(other)] == other for other in b)}
    assert field_set.difference(made(a), made(b), recursive=True) == made(left)


def test_a_set_is_written_as_fields_v1() -> None:
    fields = field_set.of(("f:spec", "f:replicas"), ("f:spec", "f:ports"), ("f:spec", "f:ports", 'k:{"port":80}'))
    assert fields == {"f:spec": {"f:replicas": {}, "f:ports": {".": {}, 'k:{"port":80}': {}}}}


def test_elements_are_written_in_canonical_order() -> None:
    fields: FieldSet = {
        "i:2": {},
        "v:10": {},
        "v:9": {},
        'v:"a"': {},
        'k:{"port":443}': {},
        'k:{"port":80}': {},
        "f:b": {},
        "f:a": {},
    }
    assert list(field_set.ordered(fields)) == [
        *("f:a", "f:b", 'k:{"port":80}', 'k:{"port":443}', "v:9", "v:10", 'v:"a"', "i:2"),
    ]


def test_members_of_a_level_come_before_those_below() -> None:
    fields = field_set.of(("f:spec", "f:env", "f:X"), ("f:spec", "f:n"), ("f:spec", "f:args"))
    assert [field_set.show(path) for path in field_set.paths(fields)] == [".spec.args", ".spec.n", ".spec.env.X"]


@pytest.mark.parametrize(
    ("element", "shown"),
    [
        ("f:a", ".a"),
        ('k:{"name":"c","port":80}', '[name="c",port=80]'),
        ('v:"x"', '[="x"]'),
        ("v:1.5", "[=1.5]"),
        ("v:true", "[=true]"),
        ("i:3", "[3]"),
    ],
)
def test_a_path_is_shown_in_messages(element: str, shown: str) -> None:
    assert field_set.show((element,)) == shown


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ({'k:{"b":1,"a":"x"}': {}}, {'k:{"a":"x","b":1}': {}}),
        ({"v:1.0": {}}, {"v:1": {}}),
        ({"x:what": {}, "f:a": {}}, {"f:a": {}}),
        ({"f:a": {".": {}}}, {"f:a": {}}),
        ({'k:{"name":"\\u003c"}': {}}, {'k:{"name":"\\u003c"}': {}}),
        ({'k:{"name":"<"}': {}}, {'k:{"name":"\\u003c"}': {}}),
    ],
)
def test_elements_become_canonical(given: Any, kept: FieldSet) -> None:
    assert field_set.canonical(given) == kept


@pytest.mark.parametrize("fields", [[], {"a": {}}, {"fa": {}}, {"k:x": {}}, {"v:": {}}, {"i:x": {}}, {"f:a": 1}])
def test_invalid_fields_are_refused(fields: Any) -> None:
    with pytest.raises(FieldSetError):
        field_set.canonical(fields)
