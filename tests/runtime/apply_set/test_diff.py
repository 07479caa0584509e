"""The difference of an object as text."""

from __future__ import annotations

from typing import Any

import pytest

from konverge.runtime.apply_set.diff import object_diff
from konverge.runtime.apply_set.members import Ref

pytestmark = pytest.mark.spec("R-65")

MAP = Ref("", "ConfigMap", "default", "a")
SECRET = Ref("", "Secret", "default", "a")


def obj(**parts: Any) -> dict[str, Any]:
    meta = {"name": "a", "uid": "u", "resourceVersion": "7", "managedFields": [{}], "creationTimestamp": "x"}
    return {"apiVersion": "v1", "metadata": {**meta, **parts.pop("metadata", {})}, **parts}


def test_a_changed_field_is_shown_with_its_surroundings_and_nothing_of_the_servers() -> None:
    before, after = obj(data={"k": "1"}, status={"x": 1}), obj(data={"k": "2"}, metadata={"resourceVersion": "8"})
    assert object_diff(MAP, before, after).splitlines() == [
        "--- live/ConfigMap/default/a",
        "+++ desired/ConfigMap/default/a",
        "@@ -1,5 +1,5 @@",
        " apiVersion: v1",
        " data:",
        "-  k: '1'",
        "+  k: '2'",
        " metadata:",
        "   name: a",
    ]


def test_text_in_any_language_is_shown_as_it_is() -> None:
    assert "+  k: 你好" in object_diff(MAP, obj(data={}), obj(data={"k": "你好"}))


def test_no_difference_is_no_text() -> None:
    assert object_diff(MAP, obj(data={"k": "1"}), obj(data={"k": "1"}, metadata={"resourceVersion": "9"})) == ""


def test_objects_that_come_and_go() -> None:
    assert object_diff(MAP, None, obj()).splitlines()[:2] == ["--- /dev/null", "+++ desired/ConfigMap/default/a"]
    assert object_diff(MAP, obj(), None).splitlines()[:2] == ["--- live/ConfigMap/default/a", "+++ /dev/null"]


COPY = "kubectl.kubernetes.io/last-applied-configuration"


@pytest.mark.parametrize("before", [None, {"data": {"p": "b2xk"}}, {}, {"stringData": {"p": "b2xk"}}])
@pytest.mark.parametrize(
    "after", [None, {"data": {"p": "bmV3", "q": "bmV3"}}, {"metadata": {"annotations": {COPY: "bmV3"}}}]
)
def test_values_of_secrets_are_never_shown(before: Any, after: Any) -> None:
    old = None if before is None else obj(**before)
    text = object_diff(SECRET, old, None if after is None else obj(**after))
    assert "b2xk" not in text
    assert "bmV3" not in text


def test_a_changed_value_of_a_secret_is_seen_to_differ() -> None:
    text = object_diff(SECRET, obj(data={"p": "1", "same": "x"}), obj(data={"p": "2", "same": "x"}))
    assert "-  p: '*** (before)'" in text
    assert "+  p: '*** (after)'" in text
    assert "   same: '***'" in text


def test_what_is_not_confidential_of_a_secret_is_shown() -> None:
    """Its type and its labels, and which keys it has."""
    before, after = obj(type="Opaque", data={"p": "1"}), obj(type="tls", data={"p": "1", "q": "2"})
    after["metadata"]["labels"] = {"team": "a"}
    lines = object_diff(SECRET, before, after).splitlines()
    assert [line for line in lines if line[0] in "+-"][2:] == [
        "+  q: '***'",
        "+  labels:",
        "+    team: a",
        "-type: Opaque",
        "+type: tls",
    ]


def test_masking_changes_nothing_of_the_callers() -> None:
    before, after = obj(data={"p": "1"}), obj(data={"p": "2"})
    object_diff(SECRET, before, after)
    assert (before["data"], after["data"]) == ({"p": "1"}, {"p": "2"})


def test_what_is_not_a_secret_is_shown() -> None:
    custom = Ref("other.example.com", "Secret", "default", "a")
    assert "+  p: shown" in object_diff(custom, obj(data={"p": "x"}), obj(data={"p": "shown"}))
