"""Rules in two languages, what a schema knows, and what the fields of a spec mean together: tables, no cluster."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from msgspec import Meta

from konverge.client import Forbidden
from konverge.objects import Model, from_dict, to_dict
from konverge.objects.kinds.apiextensions_v1 import CustomResourceDefinition
from konverge.operators.wukong import effective_spec
from konverge.operators.wukong.children.disks import data_volume_for
from konverge.operators.wukong.children.virtualmachine import restore_for, virtual_machine_for
from konverge.operators.wukong.definitions import ANYTHING, Definitions, absent_fields, read_schema
from konverge.operators.wukong.ownership import is_marked, may_write
from konverge.operators.wukong.resource import problems
from konverge.operators.wukong.rules import broken, check, given, rule, unchanged
from konverge.operators.wukong.spec_networks import IpConfig, Network, _any
from tests.operators.wukong.specs import DISK, STATIC, Spec, disk, net, spec, wukong
from tests.operators.wukong.stage import OWNER, Stage, controlled_by, made, refused, vm

pytestmark = pytest.mark.spec("W-01")


# ------------------------------------------------------------------ rules


def in_schema(meta: Meta) -> Any:
    return (meta.extra_json_schema or {}).get("x-kubernetes-validations")


def test_a_rule_is_for_the_server_and_for_python() -> None:
    meta = rule("self.a > 1", lambda part: part > 1, "more", ".a")
    (served,) = in_schema(meta)
    assert (served["rule"], served["message"], served["fieldPath"]) == ("self.a > 1", "more", ".a")
    assert meta.extra is not None
    assert (meta.extra["problem"], meta.extra["holds"](1), meta.extra["holds"](2)) == (".a: more", False, True)
    (served,) = in_schema(rule("self.a > 1", bool, "more"))
    assert "fieldPath" not in served


def test_a_check_is_for_python_alone() -> None:
    meta = check(bool, "more", ".a")
    assert in_schema(meta) is None
    assert meta.extra is not None
    assert (meta.extra["problem"], meta.extra["holds"](0)) == (".a: more", False)


def test_fields_that_are_as_they_were() -> None:
    assert unchanged("a") == "has(self.a) == has(oldSelf.a) && (!has(self.a) || self.a == oldSelf.a)"
    assert unchanged("a", "b") == f"{unchanged('a')} && {unchanged('b')}"


class _Part(Model, rules=[check(lambda part: part.one_field > 0, "too small", ".oneField")]):
    """A part with a rule."""

    one_field: int = 0
    entries: list[str] = []
    other: str | None = None


def test_which_rules_a_part_breaks_and_which_fields_it_gives() -> None:
    assert broken(_Part()) == [".oneField: too small"]
    assert broken(_Part(one_field=1)) == []
    fields = ("oneField", "entries", "other")
    assert given(_Part(), fields) == ["oneField"]
    assert given(_Part(entries=["a"], other=""), fields) == list(fields)
    assert _any("a", "b") == "(has(self.a) || has(self.b))"


@pytest.mark.parametrize(
    ("item", "expected"),
    [
        (spec(memory="1Ki"), ["spec.memory: must be at least 1Mi"]),
        (spec(disks=[DISK, DISK]), ["spec.disks: there are two called system"]),
        (disk(size="1Ki"), ["spec.disks[system].size: must be at least 1Mi"]),
        (net(ipConfig={"mode": "static", "address": "xxxx"}), ["spec.networks[lan].ipConfig: must be an address"]),
        (disk(name="x" * 60), ["spec.disks: claims are called NAME-DISK"]),
        (disk(name="x" * 59), []),
        (spec(highAvailability={"restartPolicy": "Never"}, startStrategy={"runStrategy": "Manual"}), []),
        (spec(highAvailability={"restartPolicy": "Never"}, startStrategy={"runStrategy": "Once"}), []),
        (spec(networks=[{"name": "default", "primary": True}], expose=[{"name": "a", "port": 1}]), []),
        (
            spec(sshKeySecret="k", sshKeyPropagation="guestAgent", bootstrap={"type": "none"}),
            ["spec.sshKeyPropagation: "],
        ),
        (disk(size="1Mi"), []),
    ],
)
def test_problems_name_the_field(item: Spec, expected: list[str]) -> None:
    errors = problems(wukong(item))
    assert len(errors) == len(expected)
    assert all(text.startswith(start) for text, start in zip(errors, expected, strict=True)), errors


# ------------------------------------------------------------------ what a definition knows


def definition(*versions: dict[str, Any], **spec: Any) -> CustomResourceDefinition:
    return made(
        CustomResourceDefinition,
        "datavolumes.cdi.kubevirt.io",
        owners=(),
        spec={
            "group": "cdi.kubevirt.io",
            "names": {"kind": "DataVolume", "plural": "datavolumes"},
            "scope": "Namespaced",
            "versions": [{"served": True, "storage": True, **version} for version in versions],
            **spec,
        },
    )


def version(schema: dict[str, Any], name: str = "v1beta1") -> dict[str, Any]:
    return {"name": name, "schema": {"openAPIV3Schema": schema}}


FREE = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
EMPTY = {"type": "object", "properties": {"spec": {"type": "object", "properties": {"storage": FREE}}}}
OWNER_OF_IT = wukong(disk(image="https://x", checksum="md5:aa"))
WRITTEN = data_volume_for(OWNER_OF_IT, OWNER_OF_IT.spec.disks[0])


async def lacking(*objects: Any, definitions: Definitions | None = None) -> tuple[str, int]:
    stage = Stage(None, *objects)
    said = await (definitions or Definitions()).lacking(stage.client, WRITTEN)
    return said, len(stage.calls)


@pytest.mark.virtual
@pytest.mark.spec("W-17")
async def test_what_a_definition_lacks_is_said_with_the_version_that_has_it() -> None:
    assert (await lacking(definition(version(FREE))))[0] == ""
    start = "the installed definition of DataVolume lacks "
    assert (await lacking(definition(version(EMPTY))))[0] == f"{start}spec.source"
    http = {"type": "object", "properties": {"url": {"type": "string"}}}
    source = {"type": "object", "properties": {"http": http}}
    inner = {"type": "object", "properties": {"storage": FREE, "source": source}}
    said, reads = await lacking(definition(version({"type": "object", "properties": {"spec": inner}})))
    assert said == f"{start}spec.source.http.checksum (CDI 1.65 has it)"
    assert reads == 1
    top = {"type": "object", "properties": {"spec": {"type": "object", "properties": {"template": {"type": "object"}}}}}
    machine = to_dict(definition(version(top, "v1")))
    machine["metadata"]["name"] = "virtualmachines.kubevirt.io"
    stage = Stage(None, from_dict(CustomResourceDefinition, machine))
    given_ = spec(instancetype={"name": "a"}, preference={"name": "b"}, cpu=None, memory=None)
    said = await Definitions().lacking(stage.client, virtual_machine_for(wukong(given_)))
    lacks = "spec.instancetype, spec.preference, spec.runStrategy, spec.template.metadata, spec.template.spec"
    assert said == f"the installed definition of VirtualMachine lacks {lacks}"


@pytest.mark.virtual
@pytest.mark.spec("W-17")
async def test_a_definition_that_says_nothing_refuses_nothing() -> None:
    for item in (
        definition(version(EMPTY, "v1")),
        definition({"name": "v1beta1"}),
        definition(version(EMPTY), preserveUnknownFields=True),
    ):
        assert (await lacking(item))[0] == ""
    assert (await lacking())[0] == "", "there is none"
    stage = Stage()
    stage.errors["get", "CustomResourceDefinition"] = refused(Forbidden)
    assert await Definitions().lacking(stage.client, WRITTEN) == ""


@pytest.mark.virtual
@pytest.mark.spec("W-17")
async def test_a_schema_is_believed_for_some_minutes_and_one_that_lacks_something_for_seconds() -> None:
    fine, poor = definition(version(FREE)), definition(version(EMPTY))
    definitions = Definitions()
    assert await lacking(fine, definitions=definitions) == ("", 1)
    await asyncio.sleep(299)
    assert await lacking(poor, definitions=definitions) == ("", 0)
    await asyncio.sleep(1)
    said, reads = await lacking(poor, definitions=definitions)
    assert (bool(said), reads) == (True, 1)
    await asyncio.sleep(9)
    assert (await lacking(fine, definitions=definitions))[1] == 0
    await asyncio.sleep(1)
    assert await lacking(fine, definitions=definitions) == ("", 1)


@pytest.mark.virtual
@pytest.mark.spec("W-17")
async def test_many_machines_wait_for_one_read() -> None:
    stage, definitions = Stage(None, definition(version(FREE))), Definitions()
    await asyncio.gather(*(definitions.lacking(stage.client, WRITTEN) for _ in range(5)))
    assert len(stage.calls) == 1
    await definitions.lacking(stage.client, restore_for(wukong(), "back"))
    assert [call.name for call in stage.calls][1:] == ["virtualmachinerestores.snapshot.kubevirt.io"]


def test_what_a_schema_says_of_maps_lists_and_words() -> None:
    fields = read_schema(
        {
            "type": "object",
            "additionalProperties": True,
            "properties": {"l": {"type": "array", "items": {"type": "string", "enum": ["a"]}}},
        }
    )
    assert (fields.others, fields.free, fields.entries, fields.values) == (ANYTHING, False, None, ())
    assert fields.names["l"].entries is not None
    assert fields.names["l"].entries.values == ("a",)
    assert list(absent_fields(fields, {"l": ["a", "b"], "other": {"x": 1}}, {})) == ["l[]: b"]
    assert read_schema({"properties": None, "enum": None}).names == {}
    assert read_schema({"additionalProperties": False}).others is None


# ------------------------------------------------------------------ whose


@pytest.mark.spec("W-16")
def test_what_is_ours_to_write_and_what_has_our_mark() -> None:
    owner = wukong()
    owner.kind = "Wukong"
    mine, other = {"konverge.dev/adopt-by": "Wukong/web"}, {"konverge.dev/adopt-by": "Wukong/x"}
    assert may_write(owner, vm())
    assert not may_write(owner, vm(owners=[controlled_by("Wukong", "web", "another")], meta={"annotations": mine}))
    assert may_write(owner, vm(owners=(), meta={"annotations": mine}))
    assert not may_write(owner, vm(owners=(), meta={"annotations": other}))
    assert not may_write(owner, vm(owners=[OWNER | {"controller": False}]))
    assert is_marked("web", vm(meta={"labels": {"vm.novasphere.dev/wukong": "web"}}))
    assert not is_marked("web", vm(meta={"labels": {"vm.novasphere.dev/wukong": "x"}}))
    assert is_marked("web", vm(meta={"annotations": {"vm.novasphere.dev/requested-size": "1Gi"}}))


# ------------------------------------------------------------------ fields together


@pytest.mark.parametrize(
    ("network", "pod", "attachment", "bridge", "policy"),
    [
        ({"name": "default"}, True, "", "", False),
        ({"name": "default", "nadName": "n"}, False, "n", "", False),
        ({"name": "lan", "type": "bridge"}, False, "web-lan-nad", "br-lan", False),
        ({"name": "lan", "type": "ovs", "bridgeName": "b"}, False, "web-lan-nad", "b", False),
        ({"name": "lan", "type": "sriov", "physicalInterface": "e"}, False, "web-lan-nad", "", False),
        ({"name": "lan", "type": "bridge", "physicalInterface": "e"}, False, "web-lan-nad", "br-lan", True),
        ({"name": "lan", "type": "bridge", "physicalInterface": "e", "nadName": "n"}, False, "n", "", False),
    ],
)
@pytest.mark.spec("W-04")
def test_what_a_network_is_attached_to(
    network: dict[str, Any], pod: bool, attachment: str, bridge: str, policy: bool
) -> None:
    owner = wukong(spec(networks=[network]))
    (item,) = owner.spec.networks
    assert item.is_pod_network == pod
    assert effective_spec.attachment_name(owner, item) == attachment
    assert effective_spec.needs_attachment(item) == (attachment == "web-lan-nad")
    assert effective_spec.bridge_of(item) == bridge
    assert effective_spec.wants_policy(item) == policy
    assert item.has_bridge == bool(bridge)


@pytest.mark.parametrize(
    ("network", "fits"),
    [
        ({"name": "default", "binding": "masquerade"}, True),
        ({"name": "lan", "type": "bridge", "binding": "masquerade"}, False),
        ({"name": "lan", "type": "sriov", "binding": "sriov"}, True),
        ({"name": "lan", "type": "sriov", "binding": "bridge"}, False),
        ({"name": "lan", "type": "bridge", "binding": "sriov"}, False),
        ({"name": "lan", "type": "bridge", "binding": "bridge"}, True),
    ],
)
@pytest.mark.spec("W-04")
def test_which_bindings_fit(network: dict[str, Any], fits: bool) -> None:
    (item,) = wukong(spec(networks=[network])).spec.networks
    assert item.binding_fits == fits


@pytest.mark.spec("W-04")
def test_what_is_static() -> None:
    assert wukong(net(ipConfig=STATIC)).spec.networks[0].is_static
    assert not wukong(net(ipConfig={"mode": "dhcp"})).spec.networks[0].is_static
    assert not Network(name="lan").is_static
    ip = IpConfig(mode="static", address="a", addresses=["b"], gateway="g", dns_servers=["d"])
    assert (ip.nets, ip.gateways, ip.is_fixed) == (["a", "b"], ["g", "d"], True)
    assert (IpConfig(mode="dhcp").is_fixed, IpConfig(mode="static", addresses=["b"]).is_fixed) == (False, True)


@pytest.mark.parametrize(
    ("given_", "filled", "by_http", "fetched"),
    [
        ({}, False, False, False),
        ({"image": "http://x"}, True, True, True),
        ({"image": "https://x"}, True, True, True),
        ({"image": "docker://x"}, True, False, True),
        ({"source": {"http": {"url": "http://x"}}}, True, True, True),
        ({"source": {"registry": {"url": "docker://x"}}}, True, False, True),
        ({"source": {"s3": {"url": "https://x"}}}, True, False, True),
        ({"source": {"blank": {}}}, True, False, False),
        ({"existingClaim": "x"}, True, False, False),
    ],
)
@pytest.mark.spec("W-05")
def test_what_a_disk_is_filled_with(given_: dict[str, Any], filled: bool, by_http: bool, fetched: bool) -> None:
    (item,) = wukong(spec(disks=[{"name": "system", **given_}])).spec.disks
    assert (item.is_filled, item.by_http, item.fetched) == (filled, by_http, fetched)


@pytest.mark.spec("W-05")
def test_the_image_of_the_machine_is_for_the_boot_disk_alone() -> None:
    disks = [{"name": "data", "size": "1Gi"}, {"name": "root", "size": "1Gi", "boot": True}]
    owner = wukong(spec(osImage="quay.io/x:1", disks=disks))
    data, root = owner.spec.disks
    source = effective_spec.source_of(owner.spec, root)
    assert source is not None
    assert source.registry is not None
    assert source.registry.url == "docker://quay.io/x:1"
    assert effective_spec.source_of(owner.spec, data) is None
    theirs = wukong(spec(osImage="x", disks=[{"name": "a", "existingClaim": "old", "boot": True}]))
    assert effective_spec.source_of(theirs.spec, theirs.spec.disks[0]) is None
    assert effective_spec.claim_name(theirs, theirs.spec.disks[0]) == "old"
    for image, http in (("http://x", True), ("https://x", True), ("ftp://x", False)):
        made_of = effective_spec.source_of_image(image)
        assert (made_of.http is not None) == http
        assert (made_of.http or made_of.registry).url == image  # type: ignore[union-attr]


@pytest.mark.spec("W-13")
def test_how_a_guest_is_set_up() -> None:
    for item, read, mounted in (
        (spec(sshKeySecret="k"), {"k"}, set()),
        (spec(bootstrap={"type": "none"}, sshKeySecret="k"), set(), set()),
        (spec(guest="windows", sshKeySecret="k"), set(), set()),
        (spec(cloudInitUser={"name": "a", "sshKeySecret": "own"}, bootstrap={"type": "none"}), set(), set()),
        (spec(guest="windows", bootstrap={"type": "cloudInit"}, sshKeySecret="k"), {"k"}, set()),
        (spec(bootstrap={"userDataSecret": "mine"}), set(), {"mine"}),
    ):
        owner = wukong(item).spec
        assert (effective_spec.secrets_read(owner), effective_spec.secrets_mounted(owner)) == (read, mounted)
