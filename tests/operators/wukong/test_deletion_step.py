"""Step 2 alone: one look at a Wukong that is being deleted. What goes, what stays, and what it waits for."""

from __future__ import annotations

from typing import Any

import pytest

from konverge.client import Conflict, Forbidden, NotFound
from konverge.objects.kinds.core_v1 import PersistentVolumeClaim
from konverge.operators.wukong.children.networks import policy_for
from konverge.operators.wukong.deletion import delete
from konverge.operators.wukong.kinds import (
    DataVolume,
    NetworkAttachmentDefinition,
    NodeNetworkConfigurationPolicy,
    NodeNetworkState,
    VirtualMachine,
    VirtualMachineInstance,
)
from konverge.operators.wukong.names import LABEL, REQUESTED_SIZE
from konverge.operators.wukong.options import Options
from konverge.operators.wukong.resource import FINALIZER, AnyWukong
from konverge.runtime import Result
from tests.operators.wukong.specs import Spec, disk, net, spec
from tests.operators.wukong.stage import (
    MANAGER,
    OLD,
    OWNER,
    Sent,
    Stage,
    condition,
    controlled_by,
    made,
    refused,
    vm,
    vmi,
)

pytestmark = [pytest.mark.virtual, pytest.mark.spec("W-10")]

SOON = Result(requeue_after=10.0)
GOING = {"deletionTimestamp": OLD}
PROTECTION = "kubevirt.io/vm-delete-protection"
MACHINE = controlled_by("VirtualMachine", "web-vm")
BYSTANDER = controlled_by("Thing", "x") | {"controller": False}


def leaving(given: Spec | None = None, *objects: Any, **more: Any) -> Stage:
    meta = {"deletionTimestamp": OLD, "finalizers": [FINALIZER], **more.pop("meta", {})}
    stage = Stage(given, *objects, meta=meta, **more)
    stage.state.wukong = None  # it is read by the step
    return stage


def released(stage: Stage) -> bool:
    """Whether the finalizer was taken off."""
    return any(sent.kind == "Wukong" and sent.body["metadata"].get("finalizers") is None for sent in stage.sent)


def claim(name: str = "web-system", **more: Any) -> PersistentVolumeClaim:
    return made(PersistentVolumeClaim, name, **more)


def said(stage: Stage) -> str:
    return next(entry.message for entry in stage.state.status.conditions if entry.type == "Deleting")


# ------------------------------------------------------------------ whether


async def test_when_nothing_is_left_the_finalizer_goes() -> None:
    stage = leaving()
    assert await delete(stage.state) is None
    assert released(stage)
    assert len(stage.sent) == 1


async def test_without_our_finalizer_there_is_nothing_to_do() -> None:
    stage = leaving(None, vm(), claim(), meta={"finalizers": ["of/others"]})
    assert await delete(stage.state) is None
    assert stage.calls == []


@pytest.mark.spec("W-18")
async def test_a_protected_machine_is_held_and_stays_ready() -> None:
    before = {"message": "running", "conditions": [condition("Ready")]}
    stage = leaving(spec(deletionProtection=True), vm(), claim(), status=before)
    assert await delete(stage.state) == SOON
    assert stage.sent == []
    assert stage.said("Deleting") == ("True", "DeletionProtected")
    assert (stage.said("Ready"), stage.state.status.message) == (("True", "R"), "running")
    stage = leaving(spec(deletionProtection=False))
    await delete(stage.state)
    assert released(stage)


@pytest.mark.spec("W-16")
async def test_a_deletion_that_orphans_leaves_everything() -> None:
    stage = leaving(None, vm(), claim(), meta={"finalizers": [FINALIZER, "orphan"]})
    assert await delete(stage.state) is None
    (sent,) = stage.sent
    assert sent.body["metadata"]["finalizers"] == ["orphan"]


async def test_a_spec_that_cannot_be_read_is_deleted_all_the_same() -> None:
    stage = leaving({"disks": 7}, claim())
    assert await delete(stage.state) == SOON
    assert (stage.deleted(), stage.reasons()) == ([("PersistentVolumeClaim", "web-system")], [])


async def test_a_refusal_is_shown_and_tried_again() -> None:
    stage = leaving(None, vm())
    stage.errors["delete", "VirtualMachine"] = refused(Forbidden)
    assert await delete(stage.state) == SOON
    assert stage.said("Deleting") == ("True", "Refused")
    assert stage.said("Ready") == ("False", "Deleting")
    assert not released(stage)


# ------------------------------------------------------------------ the machine


async def test_the_machine_goes_first_and_alone() -> None:
    stage = leaving(net(), vm(), vmi(), claim(), made(NetworkAttachmentDefinition, "web-lan-nad"))
    assert await delete(stage.state) == SOON
    (sent,) = stage.sent
    assert (sent.verb, sent.kind, sent.name, sent.namespace) == ("delete", "VirtualMachine", "web-vm", "team-a")
    assert sent.body["preconditions"] == {"uid": "uid-of-web-vm", "resourceVersion": "7"}
    assert sent.body["propagationPolicy"] == "Background"
    assert stage.said("Deleting") == ("True", "DeletingMachine")
    assert stage.said("Ready") == ("False", "Deleting")
    assert said(stage) == "VirtualMachine web-vm is deleted, VirtualMachineInstance web-vm is deleted"
    assert stage.state.status.message == said(stage)
    assert [call.subresource for call in stage.calls if call.subresource] == ["status"]


async def test_what_goes_already_is_waited_for_by_name() -> None:
    stage = leaving(None, vm(meta={**GOING, "finalizers": ["kubevirt.io/x", "y"]}), vmi(meta=GOING), claim())
    assert await delete(stage.state) == SOON
    assert stage.sent == []
    machine, instance = (
        "VirtualMachine web-vm waits for its finalizers kubevirt.io/x, y",
        "VirtualMachineInstance web-vm",
    )
    assert said(stage) == f"{machine}, {instance} is on its way out"


async def test_an_instance_that_is_left_over_is_waited_for() -> None:
    stage = leaving(None, vmi(), claim())
    assert await delete(stage.state) == SOON
    assert (stage.sent, stage.said("Deleting")) == ([], ("True", "DeletingMachine"))
    other = vmi(meta={"labels": {LABEL: "other"}})
    stage = leaving(None, other, claim())
    await delete(stage.state)
    assert stage.deleted() == [("PersistentVolumeClaim", "web-system")]


@pytest.mark.spec("W-16")
async def test_a_machine_of_others_is_left_and_not_waited_for() -> None:
    for owners, adopt in (([controlled_by("X", "x")], {}), ((), {"konverge.dev/adopt-by": "Wukong/web"})):
        stage = leaving(None, vm(owners=owners, meta={"annotations": adopt}))
        assert await delete(stage.state) is None
        assert stage.deleted() == []
        assert released(stage)
    asks = {"annotations": {"konverge.dev/adopt-by": "Wukong/web"}}
    stage = leaving(None, vm(owners=(), meta=asks), vmi(meta={"labels": {}}))
    assert await delete(stage.state) is None, "nor is its instance"


async def test_without_kubevirt_there_is_no_machine() -> None:
    stage = leaving(None, claim(), without=[VirtualMachine, VirtualMachineInstance])
    await delete(stage.state)
    assert stage.deleted() == [("PersistentVolumeClaim", "web-system")]


async def test_our_own_protection_is_taken_off_and_that_of_others_is_not() -> None:
    ours = {"f:metadata": {"f:labels": {f"f:{PROTECTION}": {}}}}
    for fields, operation in ((ours, "Apply"), ({"f:metadata": {"f:labels": {"f:x": {}}}}, "Apply"), ({}, "Apply")):
        written = [{"manager": MANAGER, "operation": operation, "fieldsV1": fields}]
        stage = leaving(None, vm(meta={"labels": {PROTECTION: "True"}, "managedFields": written}))
        await delete(stage.state)
        patches = [sent.body["metadata"]["labels"] for sent in stage.sent if sent.verb == "patch"]
        assert patches == ([{PROTECTION: None}] if fields is ours else [])
        assert stage.deleted() == [("VirtualMachine", "web-vm")]
    going = vm(meta={**GOING, "managedFields": [{"manager": MANAGER, "operation": "Apply", "fieldsV1": ours}]})
    stage = leaving(None, going)
    await delete(stage.state)
    assert stage.sent == []


async def test_claims_that_the_machine_owns_are_taken_from_it_when_they_are_kept() -> None:
    going = {"name": "other", "size": "1Gi", "deletePolicy": "Delete"}
    kept = disk(deletePolicy="Retain")
    objects = (claim(owners=[MACHINE, BYSTANDER]), claim("web-other", owners=[MACHINE]))
    stage = leaving(kept | {"disks": [*kept["disks"], going]}, vm(), *objects)
    await delete(stage.state)
    patch, ended = stage.sent
    assert (patch.verb, patch.name, ended.verb) == ("patch", "web-system", "delete")
    assert [owner["name"] for owner in patch.body["metadata"]["ownerReferences"]] == ["x"]
    assert patch.body["metadata"]["resourceVersion"] == "7"
    stage = leaving(disk(deletePolicy="Retain"), vm(), claim(owners=[controlled_by("VirtualMachine", "x")]))
    await delete(stage.state)
    assert [sent.verb for sent in stage.sent] == ["delete"]


@pytest.mark.spec("W-47")
async def test_claims_that_the_machine_owns_stay_unless_the_spec_says_that_they_go() -> None:
    """A restore has put them back: one that is named by `existingClaim`, or of a disk that is in the spec no more."""
    theirs = claim("theirs", owners=[MACHINE])
    for given, owned in (
        (disk(existingClaim="theirs"), theirs),
        (disk(existingClaim="theirs", deletePolicy="Delete"), theirs),
        (disk(), claim("web-data", owners=[MACHINE])),
        (disk(), claim("system", owners=[MACHINE])),
        ({"disks": 7}, claim(owners=[MACHINE])),
    ):
        stage = leaving(given, vm(), owned)
        assert await delete(stage.state) == SOON
        patch, ended = stage.sent
        assert (patch.verb, patch.name, ended.kind) == ("patch", owned.metadata.name, "VirtualMachine")
        assert patch.body["metadata"].get("ownerReferences") == []


@pytest.mark.spec("W-42")
async def test_a_machine_does_not_go_before_claims_that_are_kept_are_taken_from_it() -> None:
    """Otherwise the garbage collector would delete them with it: the claim has changed since it was seen."""
    stage = leaving(disk(deletePolicy="Retain"), vm(), claim(owners=[MACHINE]))
    stage.errors["patch", "PersistentVolumeClaim"] = refused(Conflict)
    assert await delete(stage.state) == SOON
    assert stage.deleted() == []
    assert stage.said("Deleting") == ("True", "DeletingMachine")
    assert said(stage) == (
        "PersistentVolumeClaim web-system is to be kept, and has just been changed: it is let go next"
    )
    assert not released(stage)


async def test_a_claim_that_is_gone_holds_nothing_up() -> None:
    stage = leaving(disk(deletePolicy="Retain"), vm(), claim(owners=[MACHINE]))
    stage.errors["patch", "PersistentVolumeClaim"] = refused(NotFound)
    assert await delete(stage.state) == SOON
    assert stage.deleted() == [("VirtualMachine", "web-vm")]
    stage.errors["delete", "VirtualMachine"] = refused(NotFound)
    assert await delete(stage.state) == SOON


# ------------------------------------------------------------------ disks


async def test_disks_go_when_the_machine_is_gone_and_networks_after_them() -> None:
    stage = leaving(net(), made(DataVolume, "web-system"), claim("web-data"), made(NetworkAttachmentDefinition, "n"))
    assert await delete(stage.state) == SOON
    assert stage.deleted() == [("DataVolume", "web-system"), ("PersistentVolumeClaim", "web-data")]
    assert stage.said("Deleting") == ("True", "DeletingDisks")
    assert said(stage) == "DataVolume web-system is deleted, PersistentVolumeClaim web-data is deleted"


async def test_disks_that_are_kept_lose_their_owner_and_nothing_else() -> None:
    for kept in (claim(owners=[OWNER, BYSTANDER]), made(DataVolume, "web-system", owners=[OWNER, BYSTANDER])):
        stage = leaving(disk(deletePolicy="Retain"), kept)
        assert await delete(stage.state) is None
        patch = stage.sent[0]
        assert (patch.verb, patch.kind) == ("patch", kept.kind)
        assert [owner["name"] for owner in patch.body["metadata"]["ownerReferences"]] == ["x"]
        assert stage.deleted() == []
        assert released(stage)


@pytest.mark.spec("W-47")
@pytest.mark.parametrize("kind", [PersistentVolumeClaim, DataVolume])
async def test_a_disk_of_ours_that_is_used_as_an_existing_claim_stays(kind: type[Any]) -> None:
    """Under its own name or another one, and whatever else the spec says of it."""
    again = {"existingClaim": "web-data"}
    for disks in (
        [{"name": "data", **again}],
        [{"name": "data", **again, "deletePolicy": "Delete"}],
        [{"name": "other", **again}],
        [{"name": "data"}, {"name": "other", **again}],
    ):
        for owners in ([OWNER], [OWNER | {"controller": False}]):
            stage = leaving({**spec(), "disks": disks}, made(kind, "web-data", owners=owners))
            assert await delete(stage.state) is None
            assert stage.deleted() == []
            assert stage.sent[0].body["metadata"]["ownerReferences"] == []
            assert released(stage)


@pytest.mark.spec("W-42")
@pytest.mark.parametrize("kind", [PersistentVolumeClaim, DataVolume])
async def test_a_disk_that_is_kept_is_ours_no_more_before_our_finalizer_goes(kind: type[Any]) -> None:
    """It has changed since it was seen, and still has us as its owner."""
    stage = leaving(disk(deletePolicy="Retain"), made(kind, "web-system", owners=[OWNER]))
    stage.errors["patch", kind.__name__] = refused(Conflict)
    assert await delete(stage.state) == SOON
    assert stage.said("Deleting") == ("True", "DeletingDisks")
    assert said(stage) == f"{kind.__name__} web-system is to be kept, and has just been changed: it is let go next"
    assert not released(stage)
    stage.errors["patch", kind.__name__] = refused(NotFound)
    assert await delete(stage.state) is None
    assert released(stage)


@pytest.mark.spec("W-46")
async def test_what_has_us_as_an_owner_beside_is_not_deleted_and_a_disk_to_keep_loses_us() -> None:
    """Else the garbage collector would take it; what has another controller or none is not ours to delete."""
    weak, other = OWNER | {"controller": False}, controlled_by("Thing", "x")
    for kind in (PersistentVolumeClaim, DataVolume):
        for owners in ([weak], [weak, other]):
            beside = made(kind, "web-system", owners=owners)
            stage = leaving(disk(), beside, made(NetworkAttachmentDefinition, "n", owners=owners))
            assert await delete(stage.state) is None
            assert [sent.kind for sent in stage.sent] == ["Wukong"]
            stage = leaving(disk(deletePolicy="Retain"), beside)
            assert await delete(stage.state) is None
            patch = stage.sent[0]
            assert (patch.verb, patch.kind, patch.name) == ("patch", kind.resource.kind, "web-system")
            assert patch.body["metadata"]["ownerReferences"] == owners[1:]


async def test_the_claim_of_an_import_shares_its_fate() -> None:
    """CDI controls it, so it is none of our children."""
    status = {"volumes": [{"name": "system", "pvcName": "web-system", "type": "DataVolume"}]}
    cdi = controlled_by("DataVolume", "web-system")
    mark = {"annotations": {REQUESTED_SIZE: "10Gi"}}

    async def fate(given: Spec, *objects: Any, known: dict[str, Any] = status, **more: Any) -> list[tuple[str, str]]:
        stage = leaving(given, *objects, status=known, **more)
        await delete(stage.state)
        return stage.deleted() or [(sent.verb, sent.kind) for sent in stage.sent if sent.kind != "Wukong"]

    image, kept = disk(image="x"), disk(image="x", deletePolicy="Retain")
    gone = [("PersistentVolumeClaim", "web-system")]
    volume = made(DataVolume, "web-system")
    assert await fate(image, volume, claim(owners=[cdi])) == [("DataVolume", "web-system"), *gone]
    assert await fate(image, claim(owners=[cdi], meta=mark)) == gone
    assert await fate(image, claim(owners=[cdi], meta=mark), without=[DataVolume]) == gone
    assert await fate(image, claim(owners=[cdi])) == [], "of a DataVolume that is gone, and without our mark"
    strange = made(DataVolume, "web-system", owners=(), meta={"uid": "another"})
    assert await fate(image, strange, claim(owners=[cdi], meta=mark)) == []
    assert await fate(image, claim(owners=[cdi], meta=mark), known={}) == [], "not on record"
    second = {"volumes": [{"name": "gone", "pvcName": "web-gone", "type": "DataVolume"}, *status["volumes"]]}
    assert await fate(image, claim(owners=[cdi], meta=mark), known=second) == gone
    plain = {"volumes": [{"name": "system", "pvcName": "web-system", "type": "PersistentVolumeClaim"}]}
    assert await fate(image, claim(owners=[cdi], meta=mark), known=plain) == []
    assert await fate(image, claim(owners=[controlled_by("Pod", "web-system")], meta=mark)) == []
    weak = OWNER | {"controller": False}
    assert await fate(image, claim(owners=[weak])) == gone
    assert await fate(kept, claim(owners=[weak])) == [("patch", "PersistentVolumeClaim")]
    assert await fate(image, claim(owners=())) == []
    assert await fate(image, claim(owners=[BYSTANDER])) == []
    assert await fate(image, claim(owners=[controlled_by("Pod", "p"), weak])) == []
    assert await fate(kept, claim(owners=[cdi], meta=mark)) == [], "kept, and we are no owner to take off"


async def test_a_disk_that_goes_already_is_waited_for() -> None:
    stage = leaving(None, claim(meta={**GOING, "finalizers": ["kubernetes.io/pvc-protection"]}))
    assert await delete(stage.state) == SOON
    assert (stage.sent, stage.said("Deleting")) == ([], ("True", "DeletingDisks"))
    assert "waits for its finalizers kubernetes.io/pvc-protection" in said(stage)


# ------------------------------------------------------------------ networks


LAN = net(physicalInterface="ens224")
BRIDGE = "wukong-br-br-lan"
ALLOWED = Options(node_interfaces=frozenset({"ens224"}))


def policy(**more: Any) -> NodeNetworkConfigurationPolicy:
    desired = policy_for("br-lan", "ens224")
    meta = {"labels": desired.metadata.labels, **more.pop("meta", {})}
    spec = {"desiredState": more.pop("state", desired.spec.desired_state)}
    return made(NodeNetworkConfigurationPolicy, BRIDGE, owners=(), meta=meta, spec=spec, **more)


REMOVED = {
    "interfaces": [
        {"name": "br-lan", "type": "linux-bridge", "state": "absent"},
        {"name": "ens224", "type": "ethernet", "state": "up"},
    ]
}


def node(*interfaces: str) -> NodeNetworkState:
    return made(
        NodeNetworkState,
        "node-1",
        owners=(),
        status={"currentState": {"interfaces": [{"name": name} for name in interfaces]}},
    )


def about_policy(stage: Stage) -> list[Sent]:
    return [sent for sent in stage.sent if sent.kind == "NodeNetworkConfigurationPolicy"]


async def test_attachments_go_last() -> None:
    stage = leaving(net(), made(NetworkAttachmentDefinition, "web-lan-nad"))
    assert await delete(stage.state) == SOON
    assert stage.deleted() == [("NetworkAttachmentDefinition", "web-lan-nad")]
    assert stage.said("Deleting") == ("True", "DeletingNetworks")
    stage = leaving(net(), made(NetworkAttachmentDefinition, "web-lan-nad"), without=[NetworkAttachmentDefinition])
    assert await delete(stage.state) is None


async def test_a_bridge_is_taken_off_the_nodes_before_its_policy_goes() -> None:
    stage = leaving(LAN, policy(), node("br-lan"), options=ALLOWED)
    assert await delete(stage.state) == SOON
    (sent,) = about_policy(stage)
    assert (sent.verb, sent.body["spec"]["desiredState"]) == ("apply", REMOVED)
    assert "ownerReferences" not in sent.body["metadata"]
    assert said(stage) == "bridge br-lan is taken off the nodes"
    stage = leaving(LAN, policy(state=REMOVED), node("br-lan"), options=ALLOWED)
    assert await delete(stage.state) == SOON, "it is on a node still"
    assert about_policy(stage) == []
    for left in (node("ens224"), policy(state=REMOVED, status={"conditions": [condition("Degraded")]})):
        stage = leaving(LAN, policy(state=REMOVED), node("br-lan"), left, options=ALLOWED)
        assert await delete(stage.state) is None
        assert [(sent.verb, sent.name) for sent in about_policy(stage)] == [("delete", BRIDGE)]
        assert released(stage)
    stage = leaving(LAN, policy(state=REMOVED), without=[NodeNetworkState], options=ALLOWED)
    assert await delete(stage.state) is None
    assert [sent.verb for sent in about_policy(stage)] == ["delete"]


async def test_an_ovs_bridge_is_removed_as_one() -> None:
    stage = leaving(net(type="ovs", physicalInterface="ens224"), policy(), options=ALLOWED)
    await delete(stage.state)
    (sent,) = about_policy(stage)
    assert sent.body["spec"]["desiredState"]["interfaces"][0]["type"] == "ovs-bridge"


async def test_a_bridge_that_others_use_or_made_stays() -> None:
    def user(**more: Any) -> AnyWukong:
        return made(AnyWukong, "other", owners=(), spec=LAN, **more)

    for objects, options in (
        ((policy(), user()), ALLOWED),
        ((policy(meta={"labels": {}}),), ALLOWED),
        ((), ALLOWED),
        ((policy(),), Options()),
    ):
        stage = leaving(LAN, *objects, options=options)
        assert await delete(stage.state) is None
        assert about_policy(stage) == []
        assert released(stage)
    for other in (
        user(meta=GOING),
        made(AnyWukong, "other", owners=(), spec=net(physicalInterface="ens224", name="x")),
    ):
        stage = leaving(LAN, policy(), other, options=ALLOWED)
        assert await delete(stage.state) == SOON
        assert len(about_policy(stage)) == 1


async def test_without_a_bridge_of_ours_nodes_are_left_alone() -> None:
    for given in (net(), net(physicalInterface="ens224", nodeNetwork={"manage": False}), {"disks": 7}):
        stage = leaving(given, policy(), options=ALLOWED)
        assert await delete(stage.state) is None
        assert about_policy(stage) == []
    stage = leaving(LAN, policy(), options=ALLOWED, without=[NodeNetworkConfigurationPolicy])
    assert await delete(stage.state) is None
    assert about_policy(stage) == []
