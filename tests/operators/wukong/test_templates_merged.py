"""What a machine is together with its template: without a cluster."""

from __future__ import annotations

from typing import Any

import pytest

from konverge.objects import from_dict
from konverge.operators.wukong.resource import AnyWukong
from konverge.operators.wukong.templates import merged, resolved_spec, with_passwords, without_passwords
from tests.operators.wukong.specs import Spec
from tests.operators.wukong.stage import made

pytestmark = pytest.mark.spec("W-28")

HTTP = {"http": {"url": "http://x"}}


@pytest.mark.parametrize(
    ("template", "machine", "expected"),
    [
        ({"cpu": 2}, {"memory": "1Gi"}, {"cpu": 2, "memory": "1Gi"}),
        ({"cpu": 2}, {"cpu": 4}, {"cpu": 4}),
        ({"cpu": 2, "memory": "1Gi"}, {"instancetype": {"name": "a"}}, {"instancetype": {"name": "a"}}),
        ({"instancetype": {"name": "a"}}, {"cpu": 2}, {"cpu": 2}),
        ({"instancetype": {"name": "a"}}, {"memory": "1Gi"}, {"memory": "1Gi"}),
        ({"instancetype": {"name": "a"}}, {"instancetype": {"name": "b"}}, {"instancetype": {"name": "b"}}),
        ({"preference": {"name": "a", "kind": "X"}}, {"preference": {"name": "b"}}, {"preference": {"name": "b"}}),
        ({"firmware": "efi"}, {"hostname": "x"}, {"firmware": "efi", "hostname": "x"}),
    ],
)  # fmt: skip
def test_a_machine_goes_before_its_template(template: Spec, machine: Spec, expected: Spec) -> None:
    assert merged(template, machine) == expected


@pytest.mark.parametrize(
    ("name", "template", "default", "other"),
    [
        ("guest", "windows", "linux", "windows"),
        ("updatePolicy", "Automatic", "Manual", "Automatic"),
        ("deletePolicy", "Retain", "Delete", "Retain"),
        ("evictionStrategy", "None", "LiveMigrateIfPossible", "External"),
        ("startStrategy", {"autoStart": False}, {"autoStart": True}, {"runStrategy": "Manual"}),
    ],
)
def test_a_default_of_the_definition_counts_as_not_said(name: str, template: Any, default: Any, other: Any) -> None:
    assert merged({name: template}, {name: default}) == {name: template}
    assert merged({name: template}, {name: other}) == {name: other}
    assert merged({}, {name: default}) == {}


@pytest.mark.parametrize("name", ["disks", "networks", "users", "gpus", "expose"])
def test_lists_are_merged_by_name_in_the_order_of_the_template(name: str) -> None:
    template = {name: [{"name": "b", "x": 1, "y": 1}, {"name": "a", "x": 1}]}
    machine = {name: [{"name": "c"}, {"name": "a", "x": 2}, {"name": "b", "y": 2}]}
    expected = [{"name": "b", "x": 1, "y": 2}, {"name": "a", "x": 2}, {"name": "c"}]
    assert merged(template, machine) == {name: expected}
    assert merged({}, machine) == machine
    assert merged(template, {}) == template
    assert template[name][0] == {"name": "b", "x": 1, "y": 1}, "the template is not changed by it"


def test_a_default_in_an_entry_counts_as_not_said_either() -> None:
    template = {"disks": [{"name": "a", "boot": True, "size": "1Gi"}]}
    machine = {"disks": [{"name": "a", "boot": False, "cdrom": False, "hotpluggable": True, "size": "2Gi"}]}
    assert merged(template, machine) == {
        "disks": [{"name": "a", "boot": True, "hotpluggable": True, "size": "2Gi"}]
    }  # fmt: skip


@pytest.mark.parametrize(
    ("template", "machine", "expected"),
    [
        ({"image": "x", "size": "1Gi"}, {"size": "2Gi"}, {"image": "x", "size": "2Gi"}),
        ({"image": "x", "checksum": "md5:a", "size": "1Gi"}, {"source": HTTP}, {"source": HTTP, "size": "1Gi"}),
        ({"source": HTTP, "secretRef": "s"}, {"image": "y"}, {"image": "y"}),
        ({"existingClaim": "old"}, {"image": "y", "size": "1Gi"}, {"image": "y", "size": "1Gi"}),
        (
            {"image": "x", "size": "1Gi", "storageClassName": "fast", "volumeMode": "Block", "serial": "7"},
            {"existingClaim": "old"},
            {"existingClaim": "old", "serial": "7"},
        ),
    ],
)
def test_what_is_on_a_disk_is_said_by_one_of_the_two(template: Spec, machine: Spec, expected: Spec) -> None:
    name = {"name": "a"}
    assert merged({"disks": [template | name]}, {"disks": [machine | name]}) == {"disks": [expected | name]}


@pytest.mark.parametrize("given", [{"disks": 7}, {"disks": ["x"]}, {"disks": [{"size": 7}]}, {"cpu": []}])
def test_nonsense_stays_to_be_reported(given: Spec) -> None:
    result = merged({"disks": [{"name": "a", "size": "1Gi"}], "cpu": 1}, given)
    ((name, value),) = given.items()
    assert result[name] == value or result[name][1:] == value


def test_only_a_machine_that_names_a_template_has_one() -> None:
    status = {"template": {"name": "small", "spec": {"cpu": 2}}}
    with_one = made(AnyWukong, "web", spec={"template": {"name": "small"}}, status=status)
    assert resolved_spec(with_one) == {"template": {"name": "small"}, "cpu": 2}
    without = made(AnyWukong, "web", spec={"memory": "1Gi"}, status=status)
    assert resolved_spec(without) == {"memory": "1Gi"}
    new = from_dict(AnyWukong, {"spec": {"template": {"name": "small"}}})
    assert resolved_spec(new) == {"template": {"name": "small"}}


FIRST, SECOND = {"name": "a", "password": "s3cret"}, {"name": "b", "passwordHash": "$6$x$y", "sudo": ""}
WHOLE: Spec = {"cpu": 2, "cloudInitUser": FIRST, "users": [SECOND, {"name": "c", "passwordSecret": {"name": "s"}}]}
BARE: Spec = {
    "cpu": 2,
    "cloudInitUser": {"name": "a", "password": None},
    "users": [{"name": "b", "passwordHash": None, "sudo": ""}, {"name": "c", "passwordSecret": {"name": "s"}}],
}
KNOWN: dict[str, Spec] = {
    "a": {"password": "s3cret"},
    "b": {"passwordHash": "$6$x$y"},
    "c": {"password": "of a Secret"},
}


@pytest.mark.spec("W-45")
def test_a_copy_of_a_template_has_no_passwords_but_where_they_were() -> None:
    assert without_passwords(WHOLE) == BARE
    assert WHOLE["cloudInitUser"] == FIRST, "it is a copy"
    for nothing in ({"cpu": 2}, {"users": [{"name": "c"}]}, {"cloudInitUser": {"name": "a", "lockPasswd": True}}, {}):
        assert without_passwords(nothing) == nothing


@pytest.mark.spec("W-45")
def test_passwords_come_back_where_they_were_and_nowhere_else() -> None:
    assert with_passwords(BARE, {}, KNOWN) == WHOLE
    assert with_passwords(WHOLE, {}, {"a": {"password": "other"}}) == WHOLE, "an earlier version has left them in"
    lacking = {"cpu": 2, "cloudInitUser": {"name": "a"}, "users": [{"name": "b", "sudo": ""}, WHOLE["users"][1]]}
    assert with_passwords(BARE, {}, {}) == lacking, "one that is not known is left out"
    swapped = {"a": {"passwordHash": "$6$x$y"}, "b": {"password": "s3cret"}}
    assert with_passwords(BARE, {}, swapped) == lacking
    for strange in ({"cpu": 2}, {"cloudInitUser": "a", "users": {"b": 1}}, {"users": ["b", {"name": ["b"]}, {}]}):
        assert with_passwords(strange, {}, KNOWN) == strange, "a user wrote that on the machine"


@pytest.mark.spec("W-45")
@pytest.mark.parametrize("field", [{"password": "x"}, {"passwordHash": "x"}, {"passwordSecret": {"name": "s"}}])
def test_what_a_machine_gives_a_user_is_not_what_its_template_gave(field: Spec) -> None:
    """What is known is what the machine has: it may be out of a Secret."""
    machine = {"cloudInitUser": {"name": "a", **field}, "users": [{"name": "b"}]}
    taken = with_passwords(BARE, machine, KNOWN)
    assert (taken["cloudInitUser"], taken["users"]) == ({"name": "a"}, WHOLE["users"])
    taken = with_passwords(BARE, {"users": [{"name": "b", **field}]}, KNOWN)
    assert (taken["cloudInitUser"], taken["users"][0]) == (FIRST, {"name": "b", "sudo": ""})
