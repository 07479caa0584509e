"""Step 8 alone: when the VirtualMachine is written, what goes before it, and its power."""

from __future__ import annotations

from typing import Any

import pytest

from konverge.client import Conflict, Forbidden, NotFound
from konverge.objects.kinds.core_v1 import Secret, Service
from konverge.operators.wukong.definitions import ANYTHING, Definitions, Fields
from konverge.operators.wukong.kinds import NetworkAttachmentDefinition, VirtualMachine, VirtualMachineInstance
from konverge.operators.wukong.names import LABEL
from konverge.operators.wukong.status import Trouble
from konverge.operators.wukong.steps.machine import PARTS, look, machine
from konverge.operators.wukong.steps.power import (
    ASKED,
    GIVEN,
    HALTED_FROM,
    INSTANCE,
    halt_mark,
    overruled,
    restart_marks,
    strategy_for,
)
from tests.operators.wukong.specs import Spec, net, spec, wukong
from tests.operators.wukong.stage import NAME, OLD, Sent, Stage, condition, controlled_by, made, refused, vm, vmi

pytestmark = [pytest.mark.virtual, pytest.mark.spec("W-07", "W-13")]

NEWER = "2021-01-01T00:00:00Z"


async def run(given: Spec | None = None, *objects: Any, before: Any = None, **more: Any) -> Stage:
    stage = Stage(given, *objects, **more)
    await look(stage.state)
    if before is not None:
        before(stage)
    await machine(stage.state)
    return stage


def applied(stage: Stage) -> Sent:
    (sent,) = [sent for sent in stage.sent if (sent.verb, sent.kind) == ("apply", "VirtualMachine")]
    return sent


def asked(stage: Stage) -> list[tuple[str, str, str]]:
    """Calls to KubeVirt's own API, and deletions of instances."""
    return [
        (sent.verb, sent.kind, sent.subresource)
        for sent in stage.sent
        if sent.subresource or sent.kind == "VirtualMachineInstance"
    ]


def trouble(*entries: Trouble, missing: set[str] | None = None) -> Any:
    def add(stage: Stage) -> None:
        stage.state.trouble += entries
        stage.state.missing_disks |= missing or set()

    return add


# ------------------------------------------------------------------ whose


async def test_which_machine_and_which_instance_are_ours() -> None:
    async def seen(*objects: Any, **more: Any) -> tuple[bool, bool]:
        stage = Stage(None, *objects, **more)
        await look(stage.state)
        return stage.state.vm is not None, stage.state.vmi is not None

    foreign = vm(owners=[controlled_by("X", "x")])
    unlabelled, other = vmi(meta={"labels": {}}), vmi(meta={"labels": {LABEL: "other"}})
    assert await seen() == (False, False)
    assert await seen(vm(), vmi()) == (True, True)
    assert await seen(vm(), unlabelled) == (True, True), "its machine is ours"
    assert await seen(foreign, vmi()) == (False, False), "its machine is not, whatever its label says"
    assert await seen(vmi()) == (False, True), "of the machine before, on its way out"
    assert await seen(unlabelled) == (False, False)
    assert await seen(vm(meta={"uid": "newer"}), vmi()) == (True, True)
    assert await seen(vm(meta={"uid": "newer"}), other) == (True, False)
    alone = made(VirtualMachineInstance, "web-vm", owners=(), meta={"labels": {LABEL: NAME}})
    assert await seen(vm(), alone) == (True, True)
    assert await seen(vm(), vmi(), without=[VirtualMachine]) == (False, True)
    assert await seen(vm(), vmi(), without=[VirtualMachineInstance]) == (True, False)


# ------------------------------------------------------------------ when it is made


async def test_a_new_machine_is_made_after_what_it_needs() -> None:
    stage = await run(spec(expose=[{"name": "ssh", "port": 22}]))
    assert [(sent.kind, sent.name) for sent in stage.sent] == [
        ("Secret", "web-cloudinit"),
        ("Service", "web-ssh"),
        ("VirtualMachine", "web-vm"),
    ]
    assert applied(stage).body["metadata"]["annotations"] == {PARTS: "cloudinitdisk,default,system"}
    assert stage.events == [("Normal", "VirtualMachineCreated")]


async def test_without_kubevirt_nothing_is_made() -> None:
    stage = await run(spec(expose=[{"name": "ssh", "port": 22}]), without=[VirtualMachine])
    assert (stage.sent, stage.reasons()) == ([], ["KubeVirtMissing"])
    assert stage.state.trouble[0].condition == "VirtualMachineReady"


async def test_trouble_keeps_a_machine_from_being_made_but_not_one_that_is_there_from_its_power() -> None:
    disk, network = Trouble("VolumesBound", "Importing", ""), Trouble("NetworksConfigured", "Missing", "")
    assert (await run(None, before=trouble(disk, missing={"system"}))).sent == []
    assert (await run(None, before=trouble(network))).sent == []
    stage = await run(spec(powerState="Stopped"), vm(), before=trouble(disk, missing={"system"}))
    assert applied(stage).body["spec"]["runStrategy"] == "Halted"
    assert (await run(None, vm(volumes=["other"]), before=trouble(disk, missing={"system"}))).sent == []
    bare = vm()
    bare.spec.template.spec.volumes = None
    assert (await run(None, bare, before=trouble(disk, missing={"system"}))).sent == []
    assert (await run(None, vm(), before=trouble(network))).sent == []
    assert (await run(None, vm(), before=trouble(disk, network))).sent == []


async def test_secrets_of_the_user_must_be_there_first() -> None:
    given = spec(cloudInitUser={"name": "ann", "passwordSecret": {"name": "login", "key": "pw"}}, sshKeySecret="keys")
    keys = made(Secret, "keys", owners=(), data={"id_rsa.pub": "c3NoLXJzYSBBQUFB"})
    stage = await run(given, keys)
    assert (stage.sent, stage.reasons()) == ([], ["SecretNotFound"])
    assert stage.state.trouble[0].message == "there is no Secret login"
    stage = await run(given, keys, made(Secret, "login", owners=(), data={"other": "eA=="}))
    assert (stage.sent, stage.reasons()) == ([], ["SecretNotFound"])
    stage = await run(given, keys, made(Secret, "login", owners=(), data={"pw": "eA=="}))
    assert stage.applied("Secret") == ["web-cloudinit"]
    assert stage.applied("VirtualMachine") == ["web-vm"]
    users = [{"name": name, "sshKeySecret": f"of-{name}"} for name in "cfbeda"]
    missing = "of-a, of-b, of-c, of-d, of-e, of-f"
    assert (await run(spec(users=users))).state.trouble[0].message == f"there is no Secret {missing}", "in order"
    mounted = spec(bootstrap={"type": "sysprep", "sysprepSecret": "answers"}, guest="windows")
    assert (await run(mounted)).reasons() == ["SecretNotFound"]


async def test_what_it_does_not_need_any_more_goes() -> None:
    objects = (
        made(Service, "web-ssh"),
        made(Service, "web-http"),
        made(Service, "web-theirs", owners=()),
        made(Secret, "web-cloudinit"),
        made(Secret, "web-old"),
        made(Service, "web-going", meta={"deletionTimestamp": OLD}),
    )
    stage = await run(spec(expose=[{"name": "ssh", "port": 22}]), *objects)
    assert stage.deleted() == [("Secret", "web-old"), ("Service", "web-http")]
    stage = await run(spec(bootstrap={"type": "none"}), *objects)
    assert ("Secret", "web-cloudinit") in stage.deleted()
    assert stage.applied("Secret") == []


async def test_a_machine_that_goes_or_is_put_back_is_not_written_to() -> None:
    for present in (vm(meta={"deletionTimestamp": OLD}), vm(restoreInProgress="back")):
        stage = await run(None, present)
        assert (stage.applied("VirtualMachine"), stage.events) == ([], [])


async def test_a_machine_of_another_version_of_kubevirt_is_not_touched() -> None:
    def old(stage: Stage) -> None:
        stage.state.definitions = definitions

    definitions = Definitions()
    definitions._known["virtualmachines.kubevirt.io"] = (
        1e9,
        Fields(names={"spec": Fields(names={"template": ANYTHING})}),
    )
    stage = await run(None, vm(), before=old)
    assert (stage.applied("VirtualMachine"), stage.reasons()) == ([], ["KubeVirtTooOld"])
    assert stage.state.failed is not None
    assert "spec.runStrategy" in stage.state.failed.message


async def test_what_others_plugged_in_is_applied_along() -> None:
    live = vm(volumes=["system", "hot", "old"], meta={"annotations": {PARTS: "system,old"}})
    volumes = applied(await run(None, live)).body["spec"]["template"]["spec"]["volumes"]
    assert [volume["name"] for volume in volumes] == ["system", "cloudinitdisk", "hot"]
    unmarked = applied(await run(None, vm(volumes=["system", "hot"]))).body["spec"]["template"]["spec"]["volumes"]
    assert [volume["name"] for volume in unmarked] == ["system", "cloudinitdisk", "hot"], "ours is there once"


# ------------------------------------------------------------------ who owns power


async def test_a_power_state_that_was_changed_elsewhere_is_put_back_with_a_warning() -> None:
    acted = {"observedGeneration": 2}
    stage = await run(spec(powerState="Running"), vm("Halted"), status=acted)
    assert applied(stage).body["spec"]["runStrategy"] == "Always"
    assert stage.events == [("Warning", "PowerReverted")]
    assert "spec.powerState" in stage.messages[0]
    stage = await run(spec(running=True), vm("Halted"), status=acted)
    assert "spec.running" in stage.messages[0]
    for given, live, status in (
        (spec(powerState="Running"), vm("Halted"), {"observedGeneration": 1}),
        (spec(powerState="Running"), vm("Always"), acted),
        (spec(), vm("Halted"), acted),
        (spec(powerState="Running"), vm("Halted", meta={"annotations": {HALTED_FROM: "Always"}}), acted),
        (spec(powerState="Stopped"), vm("Halted"), acted),
    ):
        assert (await run(given, live, status=status)).events == [], (given, live)

    def restoring(stage: Stage) -> None:
        stage.state.restoring = "back"

    stage = await run(spec(powerState="Running"), vm("Always"), status=acted, before=restoring)
    assert (applied(stage).body["spec"]["runStrategy"], stage.events) == ("Halted", [])
    assert applied(stage).body["metadata"]["annotations"][HALTED_FROM] == "Always"


def test_who_overrules_what_is_declared() -> None:
    off, on = wukong(spec(powerState="Stopped")).spec, wukong(spec(powerState="Running")).spec
    assert overruled(on, vm("Halted"), "Always")
    assert overruled(off, vm("Always"), "Halted")
    assert not overruled(wukong().spec, vm("Halted"), "Always"), "nothing is declared"
    assert not overruled(off, vm(""), "Halted"), "nothing is said yet"


def test_a_machine_that_was_off_for_a_restore_is_on_again_as_before() -> None:
    noted = vm("Halted", meta={"annotations": {HALTED_FROM: "RerunOnFailure"}})
    assert strategy_for(wukong().spec, noted) == "RerunOnFailure"
    assert strategy_for(wukong().spec, vm("")) == "Always"
    assert halt_mark(noted, halt=True) == {HALTED_FROM: "RerunOnFailure"}
    assert halt_mark(vm("Manual"), halt=True) == {HALTED_FROM: "Manual"}
    assert halt_mark(vm(""), halt=True) == {HALTED_FROM: "Halted"}
    assert halt_mark(vm("Manual"), halt=False) == {}
    assert halt_mark(None, halt=True) == {}


@pytest.mark.spec("W-37")
async def test_a_strategy_is_written_with_the_note_that_the_spec_gave_it() -> None:
    stage = await run(spec(highAvailability={"restartPolicy": "OnFailure"}), vm("Always"))
    body = applied(stage).body
    assert (body["spec"]["runStrategy"], body["metadata"]["annotations"][GIVEN]) == ("RerunOnFailure",) * 2
    assert GIVEN not in applied(await run(None, vm("Manual"))).body["metadata"]["annotations"]


# ------------------------------------------------------------------ pausing


PAUSED = [condition("Paused")]


@pytest.mark.parametrize(
    ("given", "instance", "call"),
    [
        ({"powerState": "Paused"}, vmi(), "pause"),
        ({"powerState": "Paused"}, vmi(conditions=PAUSED), ""),
        ({"powerState": "Running"}, vmi(conditions=PAUSED), "unpause"),
        ({"running": True}, vmi(conditions=PAUSED), "unpause"),
        ({"powerState": "Running"}, vmi(), ""),
        ({}, vmi(conditions=PAUSED), ""),
        ({"powerState": "Paused"}, vmi("Scheduling"), ""),
        ({"powerState": "Paused"}, vmi(meta={"deletionTimestamp": OLD}), ""),
        ({"powerState": "Paused"}, None, ""),
    ],
)
async def test_a_machine_is_paused_where_that_is_declared(given: Spec, instance: Any, call: str) -> None:
    stage = await run(spec(**given), vm(), *([instance] if instance is not None else []))
    assert asked(stage) == ([("update", "VirtualMachineInstance", call)] if call else [])
    assert stage.state.again == bool(call)
    assert stage.events == ([("Normal", f"{call.capitalize()}d")] if call else [])
    if call:
        (made,) = [made for made in stage.calls if made.subresource == call]
        assert made.resource is not None
        assert (made.resource.group, made.namespace, made.name) == ("subresources.kubevirt.io", "team-a", "web-vm")
        assert (made.body, made.content_type) == (b"{}", "application/json")


async def test_a_kubevirt_that_cannot_pause_is_named() -> None:
    stage = Stage(spec(powerState="Paused"), vm(), vmi())
    stage.errors["pause", "VirtualMachineInstance"] = refused(NotFound)
    await look(stage.state)
    await machine(stage.state)
    assert (stage.reasons(), stage.events, stage.state.again) == (["PauseUnavailable"], [], False)


async def test_while_it_is_put_back_a_machine_is_neither_paused_nor_restarted() -> None:
    def restoring(stage: Stage) -> None:
        stage.state.restoring = "back"

    stage = await run(spec(powerState="Paused", restartAt="now"), vm(), vmi(), before=restoring)
    assert asked(stage) == []


# ------------------------------------------------------------------ restarts


DUE = {ASKED: "now", INSTANCE: "uid-of-instance"}


def with_marks(given: dict[str, str], strategy: str = "Always", **status: Any) -> VirtualMachine:
    return vm(strategy, meta={"annotations": given}, **status)


@pytest.mark.parametrize(
    ("token", "live", "instance", "last", "expected"),
    [
        (None, {}, True, "", {}),
        ("", {}, True, "", {}),
        ("now", {}, True, "", DUE),
        ("now", {}, False, "", {ASKED: "now", INSTANCE: ""}),
        ("now", DUE, True, "", DUE),
        ("now", {ASKED: "now", INSTANCE: "before"}, True, "", {ASKED: "now", INSTANCE: "before"}),
        ("now", {ASKED: "now"}, True, "", {ASKED: "now", INSTANCE: ""}),
        ("now", {ASKED: "then", INSTANCE: "before"}, True, "then", DUE),
        ("now", {}, True, "now", {ASKED: "now", INSTANCE: ""}),
        ("now", None, True, "", {ASKED: "now", INSTANCE: ""}),
    ],
)
async def test_which_instance_a_restart_is_about(
    token: str | None, live: dict[str, str] | None, instance: bool, last: str, expected: dict[str, str]
) -> None:
    objects = ([with_marks(live)] if live is not None else []) + ([vmi()] if instance else [])
    stage = Stage(spec(**({} if token is None else {"restartAt": token})), *objects, status={"lastRestart": last})
    await look(stage.state)
    assert restart_marks(stage.state) == expected


async def test_a_restart_is_the_deletion_of_that_very_instance() -> None:
    stage = await run(spec(restartAt="now"), with_marks(DUE), vmi())
    (sent,) = [sent for sent in stage.sent if sent.kind == "VirtualMachineInstance"]
    assert (sent.verb, sent.body["preconditions"]) == ("delete", {"uid": "uid-of-instance"})
    assert (sent.name, sent.namespace) == ("web-vm", "team-a")
    assert (stage.events, stage.state.again) == ([("Normal", "Restarted")], True)
    assert stage.state.status.last_restart == "now"
    marks = applied(stage).body["metadata"]["annotations"]
    assert marks.items() >= DUE.items()
    kinds = [sent.kind for sent in stage.sent]
    assert kinds.index("VirtualMachine") < kinds.index("VirtualMachineInstance"), "the mark is written before"
    assert asked(await run(spec(restartAt="now"), with_marks(DUE))) == []
    assert asked(await run(spec(updatePolicy="Automatic"), vmi())) == [], "of the machine before"
    later = await run(spec(restartAt="now"), with_marks(DUE), vmi(meta={"uid": "next"}))
    assert (asked(later), later.events, later.state.again) == ([], [], False)
    assert (await run(None, vm(), vmi(), status={"lastRestart": "now"})).state.status.last_restart == ""


@pytest.mark.parametrize(
    ("strategy", "call"),
    [
        ("Always", [("delete", "VirtualMachineInstance", "")]),
        ("RerunOnFailure", [("update", "VirtualMachine", "restart")]),
        ("Manual", [("update", "VirtualMachine", "restart")]),
        ("Once", []),
    ],
)
async def test_how_a_machine_is_restarted(strategy: str, call: list[Any]) -> None:
    stage = await run(spec(restartAt="now"), with_marks(DUE, strategy), vmi())
    assert asked(stage) == call
    assert bool(stage.events) == bool(call)
    going = await run(spec(restartAt="now"), with_marks(DUE, strategy), vmi(meta={"deletionTimestamp": OLD}))
    assert (asked(going), going.events, going.state.again) == ([], [], True)


async def test_a_restart_that_comes_too_late_is_none() -> None:
    for error in (NotFound, Conflict):
        stage = Stage(spec(restartAt="now"), with_marks(DUE), vmi())
        stage.errors["delete", "VirtualMachineInstance"] = refused(error)
        await look(stage.state)
        await machine(stage.state)
        assert stage.events == []
    stage = Stage(spec(restartAt="now"), with_marks(DUE), vmi())
    stage.errors["delete", "VirtualMachineInstance"] = refused(Forbidden)
    await look(stage.state)
    with pytest.raises(Forbidden):
        await machine(stage.state)


REQUIRED = condition("RestartRequired", since=NEWER)


@pytest.mark.parametrize(
    ("given", "conditions", "instance", "restarted"),
    [
        ({"updatePolicy": "Automatic"}, [REQUIRED], vmi(), True),
        ({"updatePolicy": "Automatic"}, [condition("RestartRequired", since=OLD)], vmi(), True),
        ({"updatePolicy": "Automatic"}, [condition("RestartRequired", since="")], vmi(), True),
        ({"updatePolicy": "Automatic"}, [REQUIRED], vmi(meta={"creationTimestamp": None}), True),
        ({"updatePolicy": "Automatic"}, [REQUIRED], vmi(meta={"creationTimestamp": "2022-01-01T00:00:00Z"}), False),
        ({"updatePolicy": "Automatic"}, [condition("RestartRequired", "False", since=NEWER)], vmi(), False),
        ({"updatePolicy": "Automatic"}, [], vmi(), False),
        ({}, [REQUIRED], vmi(), False),
        ({}, [REQUIRED], vmi("Scheduled"), False),
        ({}, [REQUIRED], vmi("Scheduling"), True),
        ({}, [REQUIRED], vmi("Pending"), True),
        ({}, [REQUIRED], vmi(""), True),
        ({"updatePolicy": "Automatic"}, [REQUIRED], None, False),
    ],
)
async def test_changes_restart_a_machine_where_that_is_asked_for_or_no_guest_runs(
    given: Spec, conditions: list[Any], instance: Any, restarted: bool
) -> None:
    stage = await run(spec(**given), vm(conditions=conditions), *([instance] if instance is not None else []))
    assert asked(stage) == ([("delete", "VirtualMachineInstance", "")] if restarted else [])


async def test_networks_that_went_are_swept_after_the_machine() -> None:
    stage = await run(net(), made(NetworkAttachmentDefinition, f"{NAME}-old-nad"))
    assert stage.deleted() == [("NetworkAttachmentDefinition", "web-old-nad")]
    assert stage.sent[-1].verb == "delete"
