"""A schema that was accepted before is accepted unseen: by the same check only, and a refused one is refused again."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from konverge.apiserver.crd.cel import rule_validation
from konverge.apiserver.crd.definition import accepted, spec_validation
from konverge.apiserver.crd.definition.spec_validation import Options, check

ROOT_KEYWORD = {"type": "object", "minProperties": 1, "properties": {"spec": {"type": "object"}}}
"""Fine where there is no status subresource."""


@pytest.fixture(autouse=True)
def _nothing_accepted() -> Iterator[None]:
    accepted.forget()
    yield
    accepted.forget()


def spec(schema: dict[str, Any], *, status: bool = False) -> dict[str, Any]:
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    if status:
        version["subresources"] = {"status": {}}
    names = {"plural": "things", "singular": "thing", "kind": "Thing", "listKind": "ThingList"}
    return {"group": "a.io", "scope": "Cluster", "names": names, "versions": [version]}


def refusals(schema: dict[str, Any], options: Options | None = None, *, status: bool = False) -> list[str]:
    return [str(error) for error in check(spec(schema, status=status), options or Options())]


def test_it_is_looked_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    looks = 0
    looking = accepted.remember

    def remember(key: bytes | None) -> None:
        nonlocal looks
        looks += 1
        looking(key)

    monkeypatch.setattr(accepted, "remember", remember)
    assert refusals(ROOT_KEYWORD) == refusals(dict(ROOT_KEYWORD)) == []
    assert looks == 1
    assert refusals({**ROOT_KEYWORD, "minProperties": 2}) == []
    assert looks == 2


def test_a_stricter_check_looks_again() -> None:
    assert refusals(ROOT_KEYWORD) == []
    assert refusals(ROOT_KEYWORD, status=True) != []
    untyped = {"type": "object", "properties": {"spec": {"type": "wrong"}}}
    assert refusals(untyped, Options(valid_types=False, structural=False)) != refusals(untyped)


def test_what_the_strictest_check_accepted_is_not_looked_at_by_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """An update that leaves the schema alone, such as of where a webhook is, has a check of its own."""
    assert refusals(ROOT_KEYWORD) == []
    monkeypatch.setattr(spec_validation, "_schema", lambda *_, **__: pytest.fail("it looks again"))
    assert refusals(ROOT_KEYWORD, Options(same_schemas=frozenset(["v1"]), list_keys=False)) == []


def test_what_an_update_may_keep_a_new_definition_may_not(monkeypatch: pytest.MonkeyPatch) -> None:
    """The cost of rules counts only where they are new."""
    monkeypatch.setattr(rule_validation, "RULE_LIMIT", 1)
    ruled = {"type": "object", "x-kubernetes-validations": [{"rule": "self.a.size() > 1"}]}
    schema = {"type": "object", "properties": {"spec": {**ruled, "properties": {"a": {"type": "string"}}}}}
    assert refusals(schema, Options(same_schemas=frozenset(["v1"]))) == []
    assert "estimated rule cost exceeds budget" in refusals(schema)[0]


def test_a_default_that_would_be_pruned_is_refused_although_an_update_may_keep_it() -> None:
    field = {"type": "object", "properties": {"a": {"type": "string"}}, "default": {"b": 1}}
    schema = {"type": "object", "properties": {"field": field}}
    assert refusals(schema, Options(pruned_defaults=False)) == []
    assert refusals(schema) != []


def test_what_is_refused_is_refused_again_with_the_same_errors() -> None:
    first = refusals(ROOT_KEYWORD, status=True)
    assert first
    assert refusals(ROOT_KEYWORD, status=True) == first


def test_no_more_are_remembered_than_fit() -> None:
    keys = [accepted.key({"title": str(number)}) for number in range(accepted.MOST + 1)]
    for key in keys:
        accepted.remember(key)
    assert accepted.was_accepted(keys[-1])
    assert not accepted.was_accepted(keys[0])


def test_what_no_json_says_is_never_remembered() -> None:
    key = accepted.key({"title": "\ud800"})
    accepted.remember(key)
    assert not accepted.was_accepted(key)
