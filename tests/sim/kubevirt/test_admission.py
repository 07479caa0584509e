"""What the webhooks of KubeVirt and CDI refuse, and what they fill in."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest

from konverge.client import Client, Forbidden, Invalid, MergePatch, Static
from konverge.client.config import Impersonation
from konverge.sim.kubevirt.admission import PROTECTED
from konverge.sim.kubevirt.machine_rules import MACHINE_TYPE, PCI_TOPOLOGY, fill_in
from konverge.sim.kubevirt.machine_rules import problems as machine_problems
from konverge.sim.kubevirt.volume_rules import problems as volume_problems
from tests.sim.kubevirt.conftest import DV, SPACE, VM, VMI, VMIM, Obj, claim, condition, data_volume, machine, playing

pytestmark = [pytest.mark.virtual, pytest.mark.spec("S-22")]


def changed(obj: Obj, path: str, value: Any) -> Obj:
    """A copy with one thing changed; a path of keys and numbers, `+` appends."""
    made = deepcopy(obj)
    *way, last = path.split(".")
    inner: Any = made
    for key in way:
        inner = inner[int(key)] if key.isdigit() else inner.setdefault(key, {})
    if last == "+":
        inner.append(value)
    else:
        inner[int(last) if last.isdigit() else last] = value
    return made


T = "spec.template.spec"
D = f"{T}.domain.devices"
NET = {"name": "lan", "multus": {"networkName": "lan"}}
BAD_MACHINES = {
    "interface without a network": (f"{D}.interfaces.+", {"name": "lan", "bridge": {}}, "no network of that name"),
    "network without an interface": (f"{T}.networks.+", NET, "no interface of that name"),
    "two pod networks": (f"{T}.networks.+", {"name": "two", "pod": {}}, "more than one interface"),
    "network of two kinds": (f"{T}.networks.0.multus", {"networkName": "x"}, "exactly one type"),
    "a bad MAC": (f"{D}.interfaces.0.macAddress", "02:00:00", "malformed MAC"),
    "disk without a volume": (f"{D}.disks.+", {"name": "ghost"}, "volume that does not exist"),
    "the same disk twice": (f"{D}.disks.+", {"name": "root", "disk": {}}, "unique name"),
    "the same volume twice": (f"{T}.volumes.+", {"name": "root", "emptyDisk": {}}, "unique name"),
    "a volume with two sources": (f"{T}.volumes.0.emptyDisk", {}, "exactly one source"),
    "a disk on IDE": (f"{D}.disks.0.disk", {"bus": "ide"}, "not supported"),
    "a CD-ROM on virtio": (f"{D}.disks.0", {"name": "root", "cdrom": {"bus": "virtio"}}, "invalid for CD-ROM"),
    "a read-only SATA disk": (f"{D}.disks.0.disk", {"bus": "sata", "readonly": True}, "read-only"),
    "a bad serial": (f"{D}.disks.0.serial", "no spaces", "serial of disk"),
    "boot order 0": (f"{D}.disks.0.bootOrder", 0, "must have a value > 0"),
    "boot order twice": (f"{D}.interfaces.0.bootOrder", 1, "already set"),
    "long user data": (f"{T}.volumes.1.cloudInitNoCloud", {"userData": "x" * 2049}, "Should use SecretRef"),
    "user data twice": (
        f"{T}.volumes.1.cloudInitNoCloud",
        {"userData": "x", "secretRef": {"name": "s"}},
        "only one source",
    ),
    "no user data": (f"{T}.volumes.1.cloudInitNoCloud", {}, "at least one userdatasource"),
    "an instance type and a size": ("spec.instancetype", {"name": "small"}, "conflict with selected instance type"),
    "a plugged disk on SATA": (
        f"{T}.volumes.0.persistentVolumeClaim",
        {"claimName": "root", "hotpluggable": True},
        "must use the bus",
    ),
}


def good_machine() -> Obj:
    made = machine("web-vm", "root")
    devices = made["spec"]["template"]["spec"]["domain"]["devices"]
    devices["disks"] = [
        {"name": "root", "bootOrder": 1, "disk": {"bus": "sata"}},
        {"name": "init", "disk": {"bus": "virtio"}},
    ]
    init = {"name": "init", "cloudInitNoCloud": {"secretRef": {"name": "web-cloudinit"}}}
    made["spec"]["template"]["spec"]["volumes"].append(init)
    return made


@pytest.mark.parametrize("name", BAD_MACHINES)
async def test_a_machine_with_this_is_refused(name: str) -> None:
    path, value, text = BAD_MACHINES[name]
    assert machine_problems(good_machine()) == []
    assert text in str(machine_problems(changed(good_machine(), path, value)))


async def test_masquerade_is_for_the_pod_network() -> None:
    made = machine("web-vm", networks={"lan": "lan"})
    made["spec"]["template"]["spec"]["domain"]["devices"]["interfaces"][1] = {"name": "lan", "masquerade": {}}
    assert "only implemented with pod network" in str(machine_problems(made))
    made = machine("web-vm", networks={"lan": "lan"})
    made["spec"]["template"]["spec"]["networks"][1]["multus"]["default"] = True
    assert "Multus default network" in str(machine_problems(made))


async def test_a_machine_gets_its_architecture_and_its_machine_type() -> None:
    async with playing(parts=["kubevirt"]) as play:
        made = await play.client.create(machine("web-vm", runStrategy="Halted"))
        template = made["spec"]["template"]["spec"]
        assert (template["architecture"], template["domain"]["machine"]) == ("amd64", {"type": MACHINE_TYPE})
        board = template["domain"]["firmware"]
        assert set(board) == {"uuid", "serial"}
        assert made["spec"]["template"]["metadata"]["annotations"] == {PCI_TOPOLOGY: "v3"}
        fill_in({"spec": {"template": {}}}, new=True)
        updated: Obj = {"spec": {"template": {"spec": {"domain": {}}}}}
        fill_in(updated, new=False)
        assert updated["spec"]["template"]["spec"]["domain"] == {"machine": {"type": MACHINE_TYPE}}


async def test_the_server_refuses_in_the_words_of_the_webhook() -> None:
    async with playing(parts=["kubevirt"]) as play:
        with pytest.raises(Invalid, match=r"virtualmachine-validator\.kubevirt\.io.*denied the request"):
            await play.client.create(machine("web-vm", "root", template={"volumes": []}))
        with pytest.raises(Invalid, match="mutually exclusive"):
            await play.client.create(machine("web-vm", running=True))
        with pytest.raises(Invalid, match="Unsupported value"):
            await play.client.create(machine("web-vm", runStrategy="Sometimes"))
        with pytest.raises(Invalid, match="template"):
            await play.client.create({**machine("web-vm"), "spec": {"runStrategy": "Always"}})


async def test_a_protected_machine_is_not_deleted() -> None:
    async with playing(parts=["kubevirt"]) as play:
        made = machine("web-vm", runStrategy="Halted", metadata={"labels": {PROTECTED: "True"}})
        await play.client.create(made)
        with pytest.raises(Invalid, match=PROTECTED):
            await play.client.delete(VM, "web-vm", SPACE)
        await play.patch(VM, "web-vm", {"metadata": {"labels": {PROTECTED: None}}})
        await play.client.delete(VM, "web-vm", SPACE)
        await play.after(10)
        assert await play.find(VM) is None


P = "spec.pvc"
DIGEST = "sha256:" + "a" * 64
BAD_VOLUMES: dict[str, tuple[str, Any, str]] = {
    "neither pvc nor storage": ("spec.pvc", None, "Missing Data volume PVC"),
    "both": ("spec.storage", {}, "Duplicate storage definition, both target storage and target pvc defined"),
    "no access mode": (f"{P}.accessModes", [], "Required value: at least 1 access mode is required"),
    "two access modes": (f"{P}.accessModes", ["ReadWriteOnce", "ReadWriteMany"], "PVC multiple accessModes"),
    "no size": (f"{P}.resources", {}, "PVC size is missing"),
    "too small": (f"{P}.resources.requests.storage", "1Ki", "PVC size should be at least 1MiB"),
    "nothing": (f"{P}.resources.requests.storage", "0", "PVC size can't be equal or less than zero"),
    "no source": (
        "spec.source",
        None,
        "Data volume should have either Source or SourceRef, or be externally populated",
    ),
    "source and reference": (
        "spec.sourceRef",
        {"kind": "DataSource", "name": "x"},
        "Data volume should have either Source or SourceRef, or be externally populated",
    ),
    "two sources": ("spec.source.blank", {}, "Multiple Data volume sources"),
    "an empty source": ("spec.source", {}, "Missing Data volume source"),
    "http without a scheme": ("spec.source.http.url", "debian.qcow2", "spec.source Invalid source URL: debian.qcow2"),
    "http by ftp": ("spec.source.http.url", "ftp://x/y", "spec.source Invalid source URL scheme: ftp://x/y"),
    "a bucket by s3": ("spec.source", {"s3": {"url": "s3://x/y"}}, "spec.source Invalid source URL scheme: s3://x/y"),
    "a short checksum": (
        "spec.source.http.checksum",
        "sha256:abc",
        "Invalid checksum format: invalid sha256 hash length: expected 64 hex characters, got 3",
    ),
    "an image without docker://": (
        "spec.source",
        {"registry": {"url": "quay.io/x"}},
        "Illegal registry source URL scheme quay.io/x",
    ),
    "a registry without a url": (
        "spec.source",
        {"registry": {}},
        "Source registry should have either URL or ImageStream",
    ),
    "a clone without a namespace": (
        "spec.source",
        {"pvc": {"namespace": "", "name": "x"}},
        "spec.source.PVC source PVC is not valid",
    ),
}
GOOD_VOLUMES: dict[str, tuple[str, Any]] = {
    "a checksum": ("spec.source.http.checksum", DIGEST),
    "a bucket": ("spec.source", {"s3": {"url": "https://x/y"}}),
    "an image": ("spec.source", {"registry": {"url": "docker://quay.io/x"}}),
    "a clone": ("spec.source", {"pvc": {"namespace": SPACE, "name": "x"}}),
    "nothing but room": ("spec.source", {"blank": {}}),
    "an upload": ("spec.source", {"upload": {}}),
}


@pytest.mark.parametrize("name", BAD_VOLUMES)
async def test_a_data_volume_with_this_is_refused(name: str) -> None:
    path, value, text = BAD_VOLUMES[name]
    good = data_volume("root")
    assert volume_problems(good, None) == []
    bad = changed(good, path, value)
    if value is None:
        del bad["spec"][path.partition(".")[2]]
    assert [found for _, found in volume_problems(bad, None)] == [text]


@pytest.mark.parametrize("name", GOOD_VOLUMES)
def test_a_data_volume_with_this_is_taken(name: str) -> None:
    assert volume_problems(changed(data_volume("root"), *GOOD_VOLUMES[name]), None) == []


def test_a_name_that_is_too_long_is_refused() -> None:
    assert volume_problems(data_volume("x" * 254), None) == [("", "Name cannot be longer than 253 characters")]


async def test_data_volumes_are_immutable_and_take_no_claim_that_is_there() -> None:
    async with playing(parts=["cdi"]) as play:
        await play.client.create(claim("root"))
        with pytest.raises(Invalid, match="already exists"):
            await play.client.create(data_volume("root"))
        await play.client.create(data_volume("other"))
        with pytest.raises(Invalid, match="Cannot update DataVolume Spec"):
            await play.patch(DV, "other", {"spec": {"source": {"http": {"url": "http://elsewhere/x"}}}})
        await play.patch(DV, "other", {"metadata": {"labels": {"a": "b"}}})


async def test_a_copy_from_another_namespace_is_for_those_who_may_read_there() -> None:
    account = "system:serviceaccount:default:cloner"
    async with playing(parts=["cdi"]) as play:
        await play.client.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "images"}})
        api, server = "rbac.authorization.k8s.io", play.cluster.server

        async def allow(name: str, namespace: str, group: str, *resources: str) -> None:
            meta = {"name": name, "namespace": namespace}
            rule = {"apiGroups": [group], "resources": resources, "verbs": ["create"]}
            await play.client.create({"apiVersion": f"{api}/v1", "kind": "Role", "metadata": meta, "rules": [rule]})
            binding = {"apiVersion": f"{api}/v1", "kind": "RoleBinding", "metadata": meta}
            subject = {"kind": "User", "name": account, "apiGroup": api}
            role = {"kind": "Role", "name": name, "apiGroup": api}
            await play.client.create({**binding, "subjects": [subject], "roleRef": role})

        def copy(name: str, word: str = "pvc", place: str = "images") -> Obj:
            return data_volume(name, source={word: {"namespace": place, "name": "golden"}})

        await allow("makes", SPACE, "cdi.kubevirt.io", "datavolumes")
        who, secret = Impersonation(user=account), Static.bearer(server.token)
        async with Client(server.transport, credentials=secret, impersonate=who) as client:
            await client.create(copy("here", place=SPACE))
            with pytest.raises(
                Invalid, match=f"{account} has insufficient permissions in clone source namespace images"
            ):
                await client.create(copy("there"))
            await allow("pods", "images", "", "pods")
            await client.create(copy("there"))
            with pytest.raises(Invalid, match="insufficient permissions"):
                await client.create(copy("kept", "snapshot"))
            await allow("copies", "images", "cdi.kubevirt.io", "datavolumes/source")
            await client.create(copy("kept", "snapshot"))


async def test_a_claim_can_be_adopted_where_that_is_said() -> None:
    async with playing(parts=["cdi"]) as play:
        await play.client.create(claim("root"))
        notes = {"annotations": {"cdi.kubevirt.io/allowClaimAdoption": "true"}}
        await play.client.create(data_volume("root", metadata=notes))
        await play.until(DV, "root", "Succeeded", limit=20)


async def test_what_cannot_be_migrated_is_refused_with_the_claim() -> None:
    async with playing() as play:
        await play.client.create(claim("root"))
        await play.client.create(machine("web-vm", "root"))
        await play.until(VMI, "web-vm", "Running")
        desired = {"apiVersion": "kubevirt.io/v1", "kind": VMIM.kind, "metadata": {"name": "move", "namespace": SPACE}}
        with pytest.raises(Invalid, match=r"DisksNotLiveMigratable.*PVC root is not shared"):
            await play.client.create({**desired, "spec": {"vmiName": "web-vm"}})
        with pytest.raises(Invalid, match="does not exist"):
            await play.client.create({**desired, "spec": {"vmiName": "nobody"}})


async def test_claims_neither_shrink_nor_grow_where_the_class_cannot() -> None:
    async with playing(parts=["cdi"]) as play:
        fixed = {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": "fixed"}}
        await play.client.create({**fixed, "provisioner": "sim.konverge.dev/volumes"})
        await play.client.create(claim("small"))
        await play.client.create(claim("rigid", kind="fixed"))
        await play.after(2)
        size = MergePatch({"spec": {"resources": {"requests": {"storage": "1Gi"}}}})
        with pytest.raises(Invalid, match="less than"):
            await play.client.patch("persistentvolumeclaims", "small", size, SPACE)
        more = MergePatch({"spec": {"resources": {"requests": {"storage": "20Gi"}}}})
        with pytest.raises(Forbidden, match="resize"):
            await play.client.patch("persistentvolumeclaims", "rigid", more, SPACE)
        await play.client.patch("persistentvolumeclaims", "small", more, SPACE)
        await play.after(2)
        persistentvolumeclaims = await play.client.get("persistentvolumeclaims", "small", SPACE)
        assert persistentvolumeclaims["status"]["capacity"] == {"storage": "20Gi"}


async def test_a_class_may_take_its_time_to_grow() -> None:
    async with playing(parts=[]) as play:
        meta = {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": "slow"}}
        more = {"allowVolumeExpansion": True, "parameters": {"sim.konverge.dev/resize": "30s"}}
        await play.client.create({**meta, "provisioner": "sim.konverge.dev/volumes", **more})
        await play.client.create(claim("data", kind="slow"))
        await play.after(1)
        size = MergePatch({"spec": {"resources": {"requests": {"storage": "20Gi"}}}})
        await play.client.patch("persistentvolumeclaims", "data", size, SPACE)
        await play.after(20)
        result = (await play.client.get("persistentvolumeclaims", "data", SPACE))["status"]
        assert (result["capacity"]["storage"], condition(result, "Resizing")[0]) == ("10Gi", "True")
        await play.after(12)
        result = (await play.client.get("persistentvolumeclaims", "data", SPACE))["status"]
        assert (result["capacity"]["storage"], condition(result, "Resizing")) == ("20Gi", ("", ""))
