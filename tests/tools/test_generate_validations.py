"""Which of the declared rules go into the data."""

from __future__ import annotations

import pytest

from tools import generate_validations
from tools.generate_validations import Types, pruned, simple


@pytest.fixture(autouse=True)
def _groups(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(generate_validations, "GROUPS", ("a/v1",))


def test_an_alpha_check_is_kept_only_where_it_skips_an_enforced_check() -> None:
    types: Types = {
        "a/v1.Shadowed": [["field", "x", "", [["~RequiredValue!"], ["~MaxBytes", 9]]]],
        "a/v1.Skipping": [["field", "x", "", [["~RequiredValue!"], ["MaxBytes", 9]]]],
    }
    assert pruned(types) == {"a/v1.Skipping": types["a/v1.Skipping"]}


def test_a_type_without_enforced_checks_is_dropped_with_those_that_refer_to_it() -> None:
    each = ["EachValSliceVal", None, None, ["type", "a/v1.Inner"]]
    types: Types = {
        "a/v1.Outer": [["field", "items", None, [["OptionalSlice!"], each]]],
        "a/v1.Inner": [["field", "x", None, [["OptionalPointer!"], ["type", "a/v1.Gone"]]]],
        "a/v1.Gone": [["~Enum", ["A"], None]],
    }
    assert pruned(types) == {}


def test_other_groups_are_read_but_not_written() -> None:
    types: Types = {"a/v1.A": [["type", "b/v1.B"]], "b/v1.B": [["Immutable!"]]}
    assert list(pruned(types)) == ["a/v1.A"]


def test_both_equalities_of_go_are_one() -> None:
    assert simple([["ValSliceUnique", ["DirectEqual"]], ["EachMapVal", ["SemanticDeepEqual"], ["UUID"]]]) == [
        ["ValSliceUnique", "=="],
        ["EachMapVal", "==", ["UUID"]],
    ]
