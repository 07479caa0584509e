"""Which members are deleted now, and which later."""

from __future__ import annotations

import pytest

from konverge.objects.kinds.core_v1 import ConfigMap
from konverge.runtime.apply_set.members import Ref
from konverge.runtime.apply_set.pruning import Member, Pruning, prune

pytestmark = pytest.mark.spec("R-64")


def ref(name: str) -> Ref:
    return Ref("", "ConfigMap", "default", name)


def member(name: str, *after: str, deleting: bool = False) -> Member:
    tokens = frozenset(ref(other).token for other in after)
    return Member(ref(name), ConfigMap, f"uid-{name}", "1", deleting, tokens)


def names(pruning: Pruning) -> tuple[list[str], dict[str, str], list[str]]:
    return (
        [entry.ref.name for entry in pruning.delete],
        {entry.ref.name: dependant.name for entry, dependant in pruning.held},
        [entry.ref.name for entry in pruning.leaving],
    )


def test_members_that_are_desired_stay() -> None:
    members = [member("a"), member("b", "a")]
    assert names(prune(members, {ref("a"): None, ref("b"): None})) == ([], {}, [])
    assert names(prune(members, {ref("a"): None})) == (["b"], {}, [])


def test_what_others_depend_on_waits_for_them() -> None:
    members = [member("a"), member("b", "a"), member("c", "b"), member("alone")]
    assert names(prune(members, {})) == (["c", "alone"], {"a": "b", "b": "c"}, [])


def test_a_member_that_is_not_gone_yet_is_still_waited_for() -> None:
    members = [member("a"), member("b", "a", deleting=True)]
    assert names(prune(members, {})) == ([], {"a": "b"}, ["b"])


def test_a_desired_child_that_no_longer_depends_on_it_is_not_waited_for() -> None:
    """`b` was applied in this call, and its annotation in the cache is an old one."""
    assert names(prune([member("a"), member("b", "a")], {ref("b"): None})) == (["a"], {}, [])


def test_a_dependency_that_is_gone_holds_up_nothing() -> None:
    assert names(prune([member("b", "gone")], {})) == (["b"], {}, [])


def test_a_circle_made_by_hand_is_deleted_at_once() -> None:
    assert names(prune([member("a", "b"), member("b", "a")], {})) == (["a", "b"], {}, [])
    assert names(prune([member("a", "a"), member("b")], {})) == (["a", "b"], {}, [])


def test_only_members_with_dependencies_are_waited_for() -> None:
    pruning = prune([member("a"), member("b", "a")], {})
    assert pruning.is_waited_for(member("b", "a"))
    assert not pruning.is_waited_for(member("a"))
