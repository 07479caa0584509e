"""Nothing is offered that has no effect: every field of the spec changes a child, or is known to lead the operator.

The fields are read from the definition itself, so one that is added has to be placed here.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib.resources import files
from typing import Any

import pytest

from konverge.objects import crd_dict, to_dict
from konverge.objects.kinds.core_v1 import Secret
from konverge.operators.wukong import effective_spec
from konverge.operators.wukong.children.cloudinit import cloud_init_for
from konverge.operators.wukong.children.disks import claim_for, data_volume_for
from konverge.operators.wukong.children.networks import nad_for, policy_for
from konverge.operators.wukong.children.virtualmachine import services_for, virtual_machine_for
from konverge.operators.wukong.resource import (
    KINDS,
    Wukong,
    problems,
)
from tests.operators.wukong.specs import DISK, Spec, disk, net, spec, wukong

pytestmark = pytest.mark.spec("W-01")

KEYS = {
    name: Secret(data={"ssh-publickey": "c3NoLWVkMjU1MTkgQUFBQQ==", "password": "YQ==", "other": "Yg=="})
    for name in ("keys", "more")
}

BY_THE_RECONCILER = {
    "restartAt": ("steps/power.py", "spec.restart_at"),
    "migrateAt": ("steps/migration.py", "spec.migrate_at"),
    "restoreFromSnapshot": ("steps/restore.py", "spec.restore_from_snapshot"),
    "updatePolicy": ("steps/power.py", "spec.update_policy"),
    "template.name": ("steps/template.py", "reference.name"),
    "template.updateAt": ("steps/template.py", "reference.update_at"),
    "paused": ("reconciler.py", "spec.paused"),
    "deletePolicy": ("effective_spec.py", "spec.delete_policy"),
    "disks[].deletePolicy": ("effective_spec.py", "disk.delete_policy"),
}
"""Fields that no child shows, and where the operator looks at them: what it does is tested with it."""


def leaves(schema: dict[str, Any], path: str = "") -> Iterator[str]:
    """The fields of a schema; what comes from Kubernetes itself (tolerations) is one field."""
    if "tolerations" in path or "properties" not in schema:
        yield path
        return
    for name, part in schema["properties"].items():
        inner, mark = (part["items"], "[]") if part.get("type") == "array" else (part, "")
        yield from leaves(inner, f"{path}.{name}{mark}".lstrip("."))


def children(given: Spec) -> dict[str, Any]:
    """Everything that is made of a spec."""
    made = wukong(given)
    assert problems(made) == [], given
    spec = made.spec
    result: dict[str, Any] = {"vm": to_dict(virtual_machine_for(made))}
    secret = cloud_init_for(made, KEYS)
    result["cloudinit"] = to_dict(secret) if secret is not None else None
    for item in spec.disks:
        if item.existing_claim is None:
            builder = claim_for if effective_spec.source_of(spec, item) is None else data_volume_for
            result[f"disk {item.name}"] = to_dict(builder(made, item))
    for network in spec.networks:
        if effective_spec.needs_attachment(network):
            result[f"nad {network.name}"] = to_dict(nad_for(made, network))
        if effective_spec.wants_policy(network):
            result[f"nncp {network.name}"] = to_dict(
                policy_for(effective_spec.bridge_of(network), network.physical_interface or "")
            )
    result["services"] = [to_dict(service) for service in services_for(made)]
    return result


_AGENT = {"cloudInitUser": {"name": "ann"}, "sshKeySecret": "keys"}
_STATIC = {"mode": "static", "address": "10.0.0.2/8"}
_VF = {"type": "sriov", "resourceName": "a/b"}


def _ip(**more: Any) -> Spec:
    return net(ipConfig={**_STATIC, **more})


def _user(**more: Any) -> Spec:
    return spec(cloudInitUser={"name": "ann", **more})


def _expose(**more: Any) -> Spec:
    return spec(expose=[{"name": "ssh", "port": 22, **more}])


def _ha(**more: Any) -> Spec:
    return spec(highAvailability=more)


def _users(**more: Any) -> Spec:
    return spec(users=[{"name": "ann", **more}])


PAIRS: dict[str, tuple[Spec, ...]] = {
    "cpu": (spec(), spec(cpu=3)),
    "memory": (spec(), spec(memory="3Gi")),
    "instancetype.name": tuple({"instancetype": {"name": item}, "disks": [DISK]} for item in "ab"),
    "instancetype.kind": tuple({"instancetype": {"name": "a", "kind": item}, "disks": [DISK]} for item in "XY"),
    "preference.name": (spec(preference={"name": "a"}), spec(preference={"name": "b"})),
    "preference.kind": (spec(preference={"name": "a"}), spec(preference={"name": "a", "kind": "X"})),
    "cloneFrom": (spec(), spec(cloneFrom="other")),
    "disks[].name": (spec(), disk(name="other")),
    "disks[].size": (spec(), disk(size="11Gi")),
    "disks[].storageClassName": (spec(), disk(storageClassName="fast")),
    "disks[].boot": (
        spec(disks=[DISK, {"name": "b", "size": "1Gi"}]),
        spec(disks=[DISK, {"name": "b", "size": "1Gi", "boot": True}]),
    ),
    "disks[].image": (spec(), disk(image="x")),
    "disks[].bus": (spec(), disk(bus="scsi")),
    "disks[].volumeMode": (spec(), disk(volumeMode="Block")),
    "disks[].accessModes[]": (spec(), disk(accessModes=["ReadWriteMany"])),
    "disks[].serial": (spec(), disk(serial="x")),
    "disks[].cdrom": tuple(
        spec(disks=[DISK, {**DISK, "name": "iso", "image": "x", "cdrom": item}]) for item in (False, True)
    ),
    "disks[].hotpluggable": (spec(), disk(hotpluggable=True)),
    "disks[].existingClaim": (spec(), spec(disks=[{"name": "system", "existingClaim": "x"}])),
    "disks[].checksum": (disk(image="http://x"), disk(image="http://x", checksum="md5:aa")),
    "disks[].secretRef": (disk(image="x"), disk(image="x", secretRef="s")),
    "disks[].source.http.url": tuple(disk(source={"http": {"url": f"http://{item}"}}) for item in "ab"),
    "disks[].source.http.certConfigMap": tuple(
        disk(source={"http": {"url": "http://x", "certConfigMap": item}}) for item in "ab"
    ),
    "disks[].source.registry.url": tuple(disk(source={"registry": {"url": f"docker://{item}"}}) for item in "ab"),
    "disks[].source.registry.certConfigMap": tuple(
        disk(source={"registry": {"url": "docker://x", "certConfigMap": item}}) for item in "ab"
    ),
    "disks[].source.registry.pullMethod": tuple(
        disk(source={"registry": {"url": "docker://x", "pullMethod": item}}) for item in ("pod", "node")
    ),
    "disks[].source.s3.url": tuple(disk(source={"s3": {"url": f"https://{item}"}}) for item in "ab"),
    "disks[].source.s3.certConfigMap": tuple(
        disk(source={"s3": {"url": "https://x", "certConfigMap": item}}) for item in "ab"
    ),
    "disks[].source.pvc.name": tuple(disk(source={"pvc": {"name": item}}) for item in "ab"),
    "disks[].source.snapshot.name": tuple(disk(source={"snapshot": {"name": item}}) for item in "ab"),
    "disks[].source.dataSource.name": tuple(disk(source={"dataSource": {"name": item}}) for item in "ab"),
    "disks[].source.dataSource.namespace": tuple(
        disk(source={"dataSource": {"name": "x", "namespace": item}}) for item in "ab"
    ),
    "disks[].source.blank": (spec(), disk(source={"blank": {}})),
    "disks[].source.upload": (spec(), disk(source={"upload": {}})),
    "networks[].name": (net(), net(name="other")),
    "networks[].type": (net(), net(type="ovs")),
    "networks[].nadName": (net(), net(nadName="x")),
    "networks[].vlanId": (net(), net(vlanId=7)),
    "networks[].bridgeName": (net(), net(bridgeName="br0")),
    "networks[].physicalInterface": (net(), net(physicalInterface="ens1")),
    "networks[].nodeNetwork.manage": (
        net(physicalInterface="ens1"),
        net(physicalInterface="ens1", nodeNetwork={"manage": False}),
    ),
    "networks[].resourceName": (net(**_VF), net(**{**_VF, "resourceName": "a/c"})),
    "networks[].ipConfig.mode": (net(ipConfig={"mode": "dhcp"}), net(ipConfig=_STATIC)),
    "networks[].ipConfig.address": (_ip(), _ip(address="10.0.0.3/8")),
    "networks[].ipConfig.addresses[]": (_ip(), _ip(addresses=["10.0.0.3/8"])),
    "networks[].ipConfig.gateway": (_ip(), _ip(gateway="10.0.0.1")),
    "networks[].ipConfig.dnsServers[]": (_ip(), _ip(dnsServers=["10.0.0.1"])),
    "networks[].ipConfig.searchDomains[]": (_ip(), _ip(searchDomains=["example.com"])),
    "networks[].ipConfig.routes[].to": tuple(
        _ip(routes=[{"to": f"10.{item}.0.0/16", "via": "10.0.0.1"}]) for item in "12"
    ),
    "networks[].ipConfig.routes[].via": tuple(
        _ip(routes=[{"to": "1.0.0.0/8", "via": f"10.0.0.{item}"}]) for item in "12"
    ),
    "networks[].ipConfig.routes[].metric": tuple(
        _ip(routes=[{"to": "1.0.0.0/8", "via": "10.0.0.1", "metric": item}]) for item in (1, 2)
    ),
    "networks[].primary": (net(), net(primary=True)),
    "networks[].macAddress": (net(), net(macAddress="02:00:00:00:00:01")),
    "networks[].model": (net(), net(model="e1000")),
    "networks[].binding": (
        spec(networks=[{"name": "default"}]),
        spec(networks=[{"name": "default", "binding": "bridge"}]),
    ),
    "networks[].mtu": (net(), net(mtu=9000)),
    "networks[].state": (net(), net(state="down")),
    "osImage": (spec(), spec(osImage="x")),
    "gpus[].name": tuple(spec(gpus=[{"name": item, "deviceName": "a/b"}]) for item in "ab"),
    "gpus[].deviceName": tuple(spec(gpus=[{"name": "a", "deviceName": f"a/{item}"}]) for item in "ab"),
    "guest": (spec(), spec(guest="windows")),
    "firmware": (spec(), spec(firmware="efi")),
    "tpm": (spec(), spec(tpm=True)),
    "machineType": (spec(), spec(machineType="q35")),
    "hostname": (spec(), spec(hostname="x")),
    "sshKeySecret": (_user(), {**_user(), "sshKeySecret": "keys"}),
    "sshKeyPropagation": (spec(**_AGENT), spec(**_AGENT, sshKeyPropagation="guestAgent")),
    "bootstrap.type": (spec(), spec(bootstrap={"type": "none"})),
    "bootstrap.sysprepSecret": tuple(spec(bootstrap={"type": "sysprep", "sysprepSecret": item}) for item in "ab"),
    "bootstrap.userDataSecret": (spec(), spec(bootstrap={"userDataSecret": "x"})),
    "powerState": (spec(), spec(powerState="Stopped")),
    "running": (spec(), spec(running=False)),
    "startStrategy.runStrategy": (spec(), spec(startStrategy={"runStrategy": "Manual"})),
    "startStrategy.autoStart": (spec(), spec(startStrategy={"autoStart": False})),
    "highAvailability.restartPolicy": (_ha(), _ha(restartPolicy="OnFailure")),
    "highAvailability.antiAffinity": (_ha(), _ha(antiAffinity=True)),
    "highAvailability.nodeSelector": (_ha(), _ha(nodeSelector={"a": "b"})),
    "highAvailability.tolerations[]": (_ha(), _ha(tolerations=[{"operator": "Exists"}])),
    "evictionStrategy": (spec(), spec(evictionStrategy="None")),
    "terminationGracePeriodSeconds": (spec(), spec(terminationGracePeriodSeconds=5)),
    "expose[].name": (_expose(), _expose(name="other")),
    "expose[].port": (_expose(), _expose(port=23, targetPort=22)),
    "expose[].targetPort": (_expose(), _expose(targetPort=2222)),
    "expose[].protocol": (_expose(), _expose(protocol="UDP")),
    "expose[].type": (_expose(), _expose(type="NodePort")),
    "deletionProtection": (spec(), spec(deletionProtection=True)),
}
_OF_A_USER: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "name": ({}, {"name": "bob"}),
    "password": ({}, {"password": "x"}),
    "passwordHash": ({}, {"passwordHash": "$6$a$b"}),
    "passwordSecret.name": ({}, {"passwordSecret": {"name": "keys"}}),
    "passwordSecret.key": ({"passwordSecret": {"name": "keys"}}, {"passwordSecret": {"name": "keys", "key": "other"}}),
    "sudo": ({}, {"sudo": ""}),
    "shell": ({}, {"shell": "/bin/sh"}),
    "groups[]": ({}, {"groups": ["adm"]}),
    "lockPasswd": ({}, {"lockPasswd": True}),
    "sshKeySecret": ({}, {"sshKeySecret": "keys"}),
}
PAIRS |= {f"cloudInitUser.{name}": (_user(**item), _user(**other)) for name, (item, other) in _OF_A_USER.items()}
PAIRS |= {f"users[].{name}": (_users(**item), _users(**other)) for name, (item, other) in _OF_A_USER.items()}


@pytest.mark.parametrize("field", PAIRS)
def test_a_field_has_an_effect(field: str) -> None:
    before, after = PAIRS[field]
    assert children(before) != children(after)


@pytest.mark.parametrize("field", BY_THE_RECONCILER)
def test_the_operator_looks_at_it(field: str) -> None:
    file, text = BY_THE_RECONCILER[field]
    assert text in (files("konverge.operators.wukong") / file).read_text()


def test_all_fields_are_accounted_for() -> None:
    schema = crd_dict(Wukong)["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
    assert set(leaves(schema)) == set(PAIRS) | set(BY_THE_RECONCILER)


def _undescribed(schema: dict[str, Any], path: str) -> Iterator[str]:
    for name, part in schema.get("properties", {}).items():
        inner = part.get("items", part)
        if "tolerations" not in name and "conditions" not in name:
            if not part.get("description") and not inner.get("description"):
                yield f"{path}.{name}"
            yield from _undescribed(inner, f"{path}.{name}")


@pytest.mark.parametrize("kind", KINDS)
def test_kubectl_explains_every_field(kind: Any) -> None:
    schema = crd_dict(kind)["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]
    assert [*_undescribed(schema["spec"], "spec"), *_undescribed(schema.get("status", {}), "status")] == []
