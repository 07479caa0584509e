"""The VirtualMachine: what stands in it, and what does not."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import assume, given

from konverge.objects import to_dict
from konverge.operators.wukong.children.virtualmachine import virtual_machine_for
from konverge.operators.wukong.resource import problems
from tests.operators.wukong.specs import DISK, GOOD, STATIC, Spec, net, random_specs, spec, wukong

pytestmark = pytest.mark.spec("W-07")


def machine(given: Spec, **more: Any) -> dict[str, Any]:
    return to_dict(virtual_machine_for(wukong(given), **more))


def inside(given: Spec) -> dict[str, Any]:
    result: dict[str, Any] = machine(given)["spec"]["template"]["spec"]
    return result


def devices(given: Spec) -> dict[str, Any]:
    result: dict[str, Any] = inside(given)["domain"]["devices"]
    return result


def test_the_smallest_one_whole() -> None:
    labels = {"vm.novasphere.dev/wukong": "web", "app.kubernetes.io/managed-by": "wukong-operator"}
    cloud_init = {"name": "cloudinitdisk", "cloudInitNoCloud": {"secretRef": {"name": "web-cloudinit"}}}
    mac = devices(spec())["interfaces"][0]["macAddress"]
    assert machine(spec()) == {
        "apiVersion": "kubevirt.io/v1",
        "kind": "VirtualMachine",
        "metadata": {"name": "web-vm", "namespace": "team-a", "labels": labels},
        "spec": {
            "runStrategy": "Always",
            "template": {
                "metadata": {"labels": labels},
                "spec": {
                    "domain": {
                        "cpu": {"sockets": 2, "cores": 1, "threads": 1},
                        "memory": {"guest": "2Gi"},
                        "devices": {
                            "disks": [
                                {"name": "system", "bootOrder": 1, "disk": {"bus": "virtio"}},
                                {"name": "cloudinitdisk", "disk": {"bus": "virtio"}},
                            ],
                            "interfaces": [{"name": "default", "macAddress": mac, "masquerade": {}}],
                        },
                    },
                    "volumes": [
                        {"name": "system", "persistentVolumeClaim": {"claimName": "web-system"}},
                        cloud_init,
                    ],
                    "networks": [{"name": "default", "pod": {}}],
                    "evictionStrategy": "LiveMigrateIfPossible",
                },
            },
        },
    }


def check_as_kubevirt_does(vm: dict[str, Any]) -> None:
    """KubeVirt's admission, as far as it concerns what we write."""
    template = vm["spec"]["template"]["spec"]
    plugged = template["domain"]["devices"]
    networks = {network["name"]: network for network in template["networks"]}
    assert [interface["name"] for interface in plugged["interfaces"]] == list(networks), (
        "one interface for each network"
    )
    assert len(networks) == len(template["networks"])
    assert sum("pod" in network for network in networks.values()) <= 1
    for interface in plugged["interfaces"]:
        assert len({"masquerade", "bridge", "sriov"} & interface.keys()) == 1
        assert "masquerade" not in interface or "pod" in networks[interface["name"]]
    volumes = [volume["name"] for volume in template["volumes"]]
    assert [disk["name"] for disk in plugged["disks"]] == volumes, "one disk for each volume"
    assert len(set(volumes)) == len(volumes)
    assert all(len(volume) == 2 for volume in template["volumes"]), "one source for each volume"
    assert [disk["bootOrder"] for disk in plugged["disks"] if "bootOrder" in disk] == [1]
    assert all(disk.get("cdrom", {}).get("bus") != "virtio" for disk in plugged["disks"])
    assert "running" not in vm["spec"]
    if "instancetype" in vm["spec"]:
        assert not {"cpu", "memory"} & template["domain"].keys()
    assert ("pod" in str(template["networks"])) or plugged["autoattachPodInterface"] is False


@pytest.mark.parametrize("case", GOOD)
def test_kubevirt_would_take_it(case: str) -> None:
    check_as_kubevirt_does(machine(GOOD[case]))


@given(random_specs)
def test_kubevirt_would_take_whatever_we_take(item: Spec) -> None:
    made = wukong(item)
    assume(not problems(made))
    check_as_kubevirt_does(to_dict(virtual_machine_for(made)))


def test_the_boot_disk_is_the_one_that_says_so() -> None:
    disks = [DISK, {"name": "root", "size": "1Gi", "boot": True, "serial": "abc", "bus": "scsi", "hotpluggable": True}]
    first, second, _ = devices(spec(disks=disks))["disks"]
    assert "bootOrder" not in first
    assert second == {"name": "root", "bootOrder": 1, "serial": "abc", "disk": {"bus": "scsi"}}
    claim = {"claimName": "web-root", "hotpluggable": True}
    assert inside(spec(disks=disks))["volumes"][1]["persistentVolumeClaim"] == claim


def test_networks_and_their_bindings() -> None:
    networks = [
        {"name": "default", "binding": "bridge"},
        {"name": "lan", "type": "bridge", "macAddress": "02:00:00:00:00:01", "model": "e1000", "state": "down"},
        {"name": "ovs", "type": "ovs"},
        {"name": "vf", "type": "sriov", "resourceName": "a/b"},
        {"name": "given", "nadName": "infra/net"},
    ]
    result = devices(spec(networks=networks))["interfaces"]
    assert [sorted(item.keys() & {"masquerade", "bridge", "sriov"}) for item in result] == [
        *(["bridge"], ["bridge"], ["bridge"], ["sriov"], ["bridge"])
    ]
    lan = {"name": "lan", "macAddress": "02:00:00:00:00:01", "model": "e1000", "state": "down", "bridge": {}}
    assert result[1] == lan
    assert [
        network.get("multus", {}).get("networkName") for network in inside(spec(networks=networks))["networks"]
    ] == [*(None, "web-lan-nad", "web-ovs-nad", "web-vf-nad", "infra/net")]


def test_a_primary_network_takes_the_place_of_the_pods() -> None:
    given = spec(networks=[{"name": "a", "type": "ovs"}, {"name": "lan", "type": "bridge", "primary": True}])
    assert [network["name"] for network in inside(given)["networks"]] == ["lan", "a"]
    assert devices(given)["autoattachPodInterface"] is False


@pytest.mark.spec("W-13")
def test_cloud_init_by_secrets() -> None:
    volumes = {volume["name"]: volume for volume in inside(net(ipConfig=STATIC))["volumes"]}
    ours = {"name": "web-cloudinit"}
    assert volumes["cloudinitdisk"]["cloudInitNoCloud"] == {"secretRef": ours, "networkDataSecretRef": ours}
    theirs = inside({**net(), "bootstrap": {"userDataSecret": "mine"}})["volumes"][-1]["cloudInitNoCloud"]
    assert theirs == {"secretRef": {"name": "mine"}, "networkDataSecretRef": ours}
    assert [volume["name"] for volume in inside(spec(bootstrap={"type": "none"}))["volumes"]] == ["system"]


@pytest.mark.spec("W-13")
def test_windows() -> None:
    given = spec(guest="windows", bootstrap={"type": "sysprep", "sysprepSecret": "answers"})
    result, domain = inside(given), inside(given)["domain"]
    assert domain["firmware"] == {"bootloader": {"efi": {"secureBoot": False}}}
    assert domain["features"]["hyperv"]["spinlocks"] == {"spinlocks": 8191}
    assert domain["clock"]["timer"]["hpet"] == {"present": False}
    assert domain["devices"]["tpm"] == {}
    assert domain["devices"]["interfaces"][0]["model"] == "e1000e"
    assert domain["devices"]["disks"] == [
        {"name": "system", "bootOrder": 1, "disk": {"bus": "sata"}},
        {"name": "sysprep", "cdrom": {"bus": "sata"}},
    ]
    assert result["volumes"][1] == {"name": "sysprep", "sysprep": {"secret": {"name": "answers"}}}
    assert "tpm" not in devices(spec(guest="windows", tpm=False))


@pytest.mark.parametrize(
    ("firmware", "loader", "smm"),
    [
        ("bios", {"bios": {}}, None),
        ("efi", {"efi": {"secureBoot": False}}, None),
        ("secureBoot", {"efi": {"secureBoot": True}}, {"enabled": True}),
    ],
)
def test_firmware(firmware: str, loader: dict[str, Any], smm: dict[str, Any] | None) -> None:
    domain = inside(spec(firmware=firmware))["domain"]
    assert domain["firmware"] == {"bootloader": loader}
    assert domain.get("features", {}).get("smm") == smm


def test_where_it_may_run() -> None:
    where = {
        "antiAffinity": True,
        "nodeSelector": {"disk": "ssd"},
        "tolerations": [{"key": "vm", "operator": "Exists"}],
    }
    result = inside(spec(highAvailability=where))
    assert result["nodeSelector"] == {"disk": "ssd"}
    assert result["tolerations"] == [{"key": "vm", "operator": "Exists"}]
    (term,) = result["affinity"]["podAntiAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"]
    selected = term["podAffinityTerm"]["labelSelector"]["matchLabels"]
    labels = machine(spec(highAvailability=where))["spec"]["template"]["metadata"]["labels"]
    assert selected.items() <= labels.items(), "machines that ask for it keep away from each other"


@pytest.mark.spec("W-13")
def test_keys_by_the_agent() -> None:
    given = spec(cloudInitUser={"name": "ann"}, sshKeySecret="team", sshKeyPropagation="guestAgent")
    assert inside(given)["accessCredentials"] == [
        {
            "sshPublicKey": {
                "source": {"secret": {"secretName": "team"}},
                "propagationMethod": {"qemuGuestAgent": {"users": ["ann"]}},
            }
        }
    ]


@pytest.mark.spec("W-13")
def test_protection_is_kubevirts_too() -> None:
    assert machine(spec(deletionProtection=True))["metadata"]["labels"]["kubevirt.io/vm-delete-protection"] == "True"


def test_an_instance_type_brings_processors_and_memory() -> None:
    given = {"instancetype": {"name": "u1", "kind": "VirtualMachineInstancetype"}, "disks": [DISK]}
    assert machine(given)["spec"]["instancetype"] == {"name": "u1", "kind": "VirtualMachineInstancetype"}
    assert not {"cpu", "memory"} & inside(given)["domain"].keys()


@pytest.mark.spec("W-13")
def test_power_can_be_left_to_others() -> None:
    assert "runStrategy" not in machine(spec(), strategy="")["spec"]
    assert machine(spec(), strategy="Halted")["spec"]["runStrategy"] == "Halted"
