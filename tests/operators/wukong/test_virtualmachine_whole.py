"""The VirtualMachine and what goes with it, each compared as a whole: what is in it, and that nothing else is."""

from __future__ import annotations

from typing import Any

import pytest

from konverge.objects import to_dict
from konverge.operators.wukong import names
from konverge.operators.wukong.children.virtualmachine import (
    restore_for,
    services_for,
    snapshot_for,
    virtual_machine_for,
)
from konverge.operators.wukong.resource import WukongSnapshot
from tests.operators.wukong.specs import DISK, Spec, spec, wukong
from tests.operators.wukong.stage import SPACE, UID, made

pytestmark = pytest.mark.spec("W-07")

LABELS = {"vm.novasphere.dev/wukong": "web", "app.kubernetes.io/managed-by": "wukong-operator"}
MAC = "02:00:00:00:00:01"


def machine(given: Spec) -> dict[str, Any]:
    result: dict[str, Any] = to_dict(virtual_machine_for(wukong(given)))["spec"]
    return result


def inside(given: Spec) -> dict[str, Any]:
    result: dict[str, Any] = machine(given)["template"]["spec"]
    return result


# ------------------------------------------------------------------ the machine


def test_a_machine_of_windows_whole() -> None:
    given = spec(
        guest="windows",
        bootstrap={"type": "sysprep", "sysprepSecret": "answers"},
        disks=[DISK, {"name": "more", "size": "1Gi", "hotpluggable": True}],
        networks=[{"name": "default", "macAddress": MAC}, {"name": "vf", "type": "sriov", "resourceName": "a/b"}],
        firmware="secureBoot",
        machineType="q35",
        gpus=[{"name": "gpu1", "deviceName": "nvidia.com/gpu"}],
        evictionStrategy="None",
        terminationGracePeriodSeconds=0,
        hostname="pc",
    )
    other = names.mac(UID, "vf")
    assert inside(given) == {
        "domain": {
            "cpu": {"sockets": 2, "cores": 1, "threads": 1},
            "memory": {"guest": "2Gi"},
            "machine": {"type": "q35"},
            "firmware": {"bootloader": {"efi": {"secureBoot": True}}},
            "features": {
                "acpi": {},
                "smm": {"enabled": True},
                "hyperv": {"relaxed": {}, "vapic": {}, "spinlocks": {"spinlocks": 8191}},
            },
            "clock": {
                "utc": {},
                "timer": {
                    "hpet": {"present": False},
                    "pit": {"tickPolicy": "delay"},
                    "rtc": {"tickPolicy": "catchup"},
                    "hyperv": {},
                },
            },
            "devices": {
                "disks": [
                    {"name": "system", "bootOrder": 1, "disk": {"bus": "sata"}},
                    {"name": "more", "disk": {"bus": "scsi"}},
                    {"name": "sysprep", "cdrom": {"bus": "sata"}},
                ],
                "interfaces": [
                    {"name": "default", "macAddress": MAC, "model": "e1000e", "masquerade": {}},
                    {"name": "vf", "macAddress": other, "sriov": {}},
                ],
                "gpus": [{"name": "gpu1", "deviceName": "nvidia.com/gpu"}],
                "tpm": {},
            },
        },
        "volumes": [
            {"name": "system", "persistentVolumeClaim": {"claimName": "web-system"}},
            {"name": "more", "persistentVolumeClaim": {"claimName": "web-more", "hotpluggable": True}},
            {"name": "sysprep", "sysprep": {"secret": {"name": "answers"}}},
        ],
        "networks": [{"name": "default", "pod": {}}, {"name": "vf", "multus": {"networkName": "web-vf-nad"}}],
        "evictionStrategy": "None",
        "terminationGracePeriodSeconds": 0,
        "hostname": "pc",
    }


def test_where_a_machine_may_run_whole() -> None:
    spread = {"vm.novasphere.dev/spread": "true"}
    where = {"antiAffinity": True, "nodeSelector": {"a": "b"}, "tolerations": [{"key": "k", "operator": "Exists"}]}
    given = spec(highAvailability=where)
    assert machine(given)["template"]["metadata"] == {"labels": LABELS | spread}
    result = inside(given)
    term = {"labelSelector": {"matchLabels": spread}, "topologyKey": "kubernetes.io/hostname"}
    weighted = {"weight": 100, "podAffinityTerm": term}
    assert result["affinity"] == {"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [weighted]}}
    assert (result["nodeSelector"], result["tolerations"]) == ({"a": "b"}, [{"key": "k", "operator": "Exists"}])
    alone = spec(highAvailability={"antiAffinity": False, "nodeSelector": {}})
    assert not {"affinity", "nodeSelector", "tolerations"} & inside(alone).keys()
    assert machine(alone)["template"]["metadata"] == {"labels": LABELS}


def test_instance_types_and_preferences() -> None:
    given: Spec = {
        "instancetype": {"name": "u1", "kind": "VirtualMachineInstancetype"},
        "preference": {"name": "fedora"},
        "disks": [DISK],
    }
    result = machine(given)
    assert result["instancetype"] == {"name": "u1", "kind": "VirtualMachineInstancetype"}
    assert result["preference"]["name"] == "fedora"
    assert not {"instancetype", "preference"} & machine(spec()).keys()


@pytest.mark.parametrize(
    ("given", "firmware", "features"),
    [
        ({}, None, None),
        ({"firmware": "bios"}, {"bootloader": {"bios": {}}}, None),
        ({"firmware": "efi"}, {"bootloader": {"efi": {"secureBoot": False}}}, None),
        (
            {"firmware": "secureBoot"},
            {"bootloader": {"efi": {"secureBoot": True}}},
            {"acpi": {}, "smm": {"enabled": True}},
        ),
    ],
)
def test_firmware_of_linux(given: Spec, firmware: Any, features: Any) -> None:
    domain = inside(spec(**given))["domain"]
    assert (domain.get("firmware"), domain.get("features"), domain.get("clock")) == (firmware, features, None)
    windows = inside(spec(guest="windows", bootstrap={"type": "none"}))["domain"]
    assert "smm" not in windows["features"]


def test_a_tpm_is_as_said_or_for_windows() -> None:
    none = {"type": "none"}
    for given, expected in (
        ({}, False),
        ({"tpm": True}, True),
        ({"guest": "windows", "bootstrap": none}, True),
        ({"guest": "windows", "bootstrap": none, "tpm": False}, False),
    ):
        assert ("tpm" in inside(spec(**given))["domain"]["devices"]) == expected


def test_models_of_network_cards() -> None:
    def model(network: dict[str, Any], **given: Any) -> Any:
        devices = inside(spec(networks=[network], **given))["domain"]["devices"]
        return devices["interfaces"][-1].get("model")

    windows = {"guest": "windows", "bootstrap": {"type": "none"}}
    assert model({"name": "default"}) is None
    assert model({"name": "default", "model": "virtio"}, **windows) == "virtio"
    assert model({"name": "default"}, **windows) == "e1000e"


def test_services_whole() -> None:
    exposed = [
        {"name": "ssh", "port": 2222, "targetPort": 22},
        {"name": "dns", "port": 53, "protocol": "UDP", "type": "NodePort"},
    ]
    first, second = (to_dict(service) for service in services_for(wukong(spec(expose=exposed))))
    assert first["metadata"] == {"name": "web-ssh", "namespace": SPACE, "labels": LABELS}
    selector = {"vm.novasphere.dev/wukong": "web"}
    assert first["spec"]["selector"] == second["spec"]["selector"] == selector
    assert first["spec"]["ports"] == [{"name": "ssh", "port": 2222, "targetPort": 22, "protocol": "TCP"}]
    assert second["spec"]["ports"] == [{"name": "dns", "port": 53, "targetPort": 53, "protocol": "UDP"}]
    assert (first["spec"]["type"], second["spec"]["type"]) == ("ClusterIP", "NodePort")


def test_snapshots_and_restores_whole() -> None:
    source = {"apiGroup": "kubevirt.io", "kind": "VirtualMachine", "name": "web-vm"}
    taken = to_dict(snapshot_for(made(WukongSnapshot, "back", spec={"wukongName": "web"})))
    assert taken["metadata"] == {"name": "back", "namespace": SPACE, "labels": LABELS}
    assert taken["spec"] == {"source": source}
    back = to_dict(restore_for(wukong(), "back"))
    assert back["metadata"] == {"name": names.restore("web", "back"), "namespace": SPACE, "labels": LABELS}
    assert back["spec"] == {
        "target": source,
        "virtualMachineSnapshotName": "back",
        "volumeRestorePolicy": "InPlace",
    }
