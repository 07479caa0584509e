"""Internal structs, as messages print them."""

from __future__ import annotations

import pytest

from konverge.apiserver.field_errors import render
from konverge.apiserver.go.structs import difference, internal


@pytest.mark.spec("S-04")
@pytest.mark.parametrize(
    ("kind", "value", "text"),
    [
        ("apps.DeploymentStrategy", {"type": "Magic"}, '{"Type":"Magic","RollingUpdate":null}'),
        ("rbac.RoleRef", {"kind": "Role", "name": "r"}, '{"APIGroup":"","Kind":"Role","Name":"r"}'),
        (
            "batch.SuccessPolicy",
            {"rules": [{"succeededCount": 1}]},
            '{"Rules":[{"SucceededIndexes":null,"SucceededCount":1}]}',
        ),
        ("*meta.LabelSelector", None, "null"),
        ("meta.LabelSelector", {"matchExpressions": [{"operator": "Exists", "key": "a"}]}, None),
    ],
)
def test_a_struct_is_printed_in_its_internal_form(kind: str, value: object, text: str | None) -> None:
    expected = text or '{"matchExpressions":[{"key":"a","operator":"Exists"}]}'
    assert render(internal(kind, value)) == expected


@pytest.mark.spec("S-04")
def test_metadata_is_flattened_and_keeps_its_json_names() -> None:
    claim = {"kind": "PersistentVolumeClaim", "metadata": {"name": "c"}, "spec": {"accessModes": ["ReadWriteOnce"]}}
    shown = internal("core.PersistentVolumeClaim", claim)
    assert list(shown) == ["name", "Spec", "Status"]
    assert shown["Spec"]["AccessModes"] == ["ReadWriteOnce"]
    assert shown["Spec"]["Resources"] == {"Limits": None, "Requests": None}


def test_differences_are_unified_and_escaped_as_in_go() -> None:
    assert difference({"A": "<", "B": 1}, {"A": "<", "B": 2}) == (
        '@@ -1,4 +1,4 @@\n {\n  "A": "\\u003c",\n- "B": 1\n+ "B": 2\n }\n'
    )
