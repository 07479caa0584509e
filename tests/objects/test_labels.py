"""Label selectors: grammar and messages of the API server, matching, rendering."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from konverge.objects import labels
from konverge.objects.labels import Operator, Requirement, Selector, SelectorError, requirement
from konverge.objects.meta import LabelSelector, LabelSelectorRequirement

from .upstream import differences

keys = st.sampled_from(["a", "b", "app.kubernetes.io/name", "x_y"])
values = st.sampled_from(["", "1", "2", "10", "-3", "web", "in", "notin"])
label_sets = st.dictionaries(keys, values)
integers = st.integers(-20, 20).map(lambda n: f"{n:d}" if n >= 0 else "7")  # a label value cannot begin with a dash
requirements = st.one_of(
    st.builds(
        lambda key, op, value: requirement(key, op, [value]),
        keys,
        st.sampled_from([Operator.EQUALS, Operator.DOUBLE_EQUALS, Operator.NOT_EQUALS]),
        st.sampled_from(["", "1", "2", "web", "in"]),
    ),
    st.builds(
        lambda key, op, some: requirement(key, op, sorted(some)),
        keys,
        st.sampled_from([Operator.IN, Operator.NOT_IN]),
        st.sets(st.sampled_from(["", "1", "2", "web", "notin"]), min_size=1),
    ),
    st.builds(requirement, keys, st.sampled_from([Operator.EXISTS, Operator.DOES_NOT_EXIST])),
    st.builds(
        lambda key, op, value: requirement(key, op, [value]),
        keys,
        st.sampled_from([Operator.GREATER_THAN, Operator.LESS_THAN]),
        integers,
    ),
)
selectors = st.lists(requirements, max_size=4).map(Selector)


@pytest.mark.spec("S-15")
def test_agrees_with_upstream() -> None:
    assert not differences("label", lambda text: str(labels.parse(text)))


@given(selectors)
def test_rendering_parses_back(selector: Selector) -> None:
    assert labels.parse(str(selector)) == selector
    assert hash(labels.parse(str(selector))) == hash(selector)


@given(selectors, label_sets)
def test_matching_is_what_each_term_says(selector: Selector, have: dict[str, str]) -> None:
    assert selector.matches(have) == all(_naive(term, have) for term in selector.requirements)


def _naive(term: Requirement, have: dict[str, str]) -> bool:
    match term.operator:
        case Operator.EXISTS:
            return term.key in have
        case Operator.DOES_NOT_EXIST:
            return term.key not in have
        case Operator.EQUALS | Operator.DOUBLE_EQUALS | Operator.IN:
            return term.key in have and have[term.key] in term.values
        case Operator.NOT_EQUALS | Operator.NOT_IN:
            return term.key not in have or have[term.key] not in term.values
    try:
        number = int(have[term.key])
    except (KeyError, ValueError):
        return False
    return number > int(term.values[0]) if term.operator is Operator.GREATER_THAN else number < int(term.values[0])


@given(st.text(alphabet="ab=!(),<> in\t\0.", max_size=30))
def test_any_text_parses_or_is_refused(text: str) -> None:
    try:
        selector = labels.parse(text)
    except SelectorError:
        return
    assert labels.parse(str(selector)) == selector


def test_of_label_selector_objects() -> None:
    selector = LabelSelector(
        match_labels={"app": "web"},
        match_expressions=[
            LabelSelectorRequirement(key="tier", operator="In", values=["b", "a"]),
            LabelSelectorRequirement(key="canary", operator="DoesNotExist"),
        ],
    )
    parsed = labels.from_selector(selector)
    assert str(parsed) == "app=web,!canary,tier in (a,b)"
    assert parsed.matches({"app": "web", "tier": "a"})
    assert not parsed.matches({"app": "web", "tier": "a", "canary": ""})
    same = {
        "matchLabels": {"app": "web"},
        "matchExpressions": [
            {"key": "tier", "operator": "In", "values": ["a", "b"]},
            {"key": "canary", "operator": "DoesNotExist"},
        ],
    }
    assert labels.from_selector_dict(same) == parsed


def test_nothing_and_everything() -> None:
    assert labels.from_selector(None) is labels.NOTHING
    assert labels.from_selector_dict(None) is labels.NOTHING
    assert not labels.NOTHING.matches({})
    assert not labels.NOTHING.empty
    assert labels.from_selector(LabelSelector()).empty
    assert labels.from_selector_dict({}) == labels.EVERYTHING == labels.from_labels({}) == labels.parse("")
    assert labels.NOTHING != labels.EVERYTHING


def test_refuses_bad_label_selector_objects() -> None:
    bad = LabelSelector(match_expressions=[LabelSelectorRequirement(key="a", operator="Near")])
    with pytest.raises(SelectorError, match=r'^"Near" is not a valid label selector operator$'):
        labels.from_selector(bad)
    empty = LabelSelector(match_expressions=[LabelSelectorRequirement(key="a", operator="In")])
    with pytest.raises(SelectorError, match=r"^values: Invalid value: null: .* values set can.t be empty$"):
        labels.from_selector(empty)
    both = r"^\[key: Invalid value: \"-\".*, values\[0\]\[-\]: Invalid value: \"-\""
    with pytest.raises(SelectorError, match=both):
        requirement("-", Operator.EQUALS, ["-"])


def test_exact_value_of_a_key() -> None:
    selector = labels.parse("a=1,b in (x),c in (x,y),d!=1")
    assert [selector.exact(key) for key in "abcde"] == ["1", "x", None, None, None]


def test_size_is_bounded() -> None:
    with pytest.raises(SelectorError, match="longer than"):
        labels.parse("a" * 300_000)
