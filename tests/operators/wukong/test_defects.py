"""The defects of the public original that concern shapes, one by one: they must not come back.

Numbers are those of the list in the specification's facts; what concerns the reconciler is tested with it.
"""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
import yaml

from konverge.objects import Model, to_dict
from konverge.objects.kinds.core_v1 import Secret
from konverge.operators.wukong.children.cloudinit import cloud_init_for
from konverge.operators.wukong.children.disks import claim_for, data_volume_for
from konverge.operators.wukong.children.networks import nad_for, policy_for
from konverge.operators.wukong.children.virtualmachine import virtual_machine_for
from konverge.operators.wukong.kinds import NetworkAttachmentDefinition
from konverge.operators.wukong.resource import problems
from tests.operators.wukong.specs import STATIC, Spec, disk, net, spec, wukong

pytestmark = pytest.mark.spec("W-07")


def vm(given: Spec) -> Any:
    return to_dict(virtual_machine_for(wukong(given)))


def config(given: Spec) -> Any:
    made = wukong(given)
    return json.loads(nad_for(made, made.spec.networks[0]).spec.config)


def cloud_init(given: Spec, **secrets: Secret) -> Any:
    result = cloud_init_for(wukong(given), secrets)
    assert result is not None
    return {key: yaml.safe_load(base64.b64decode(text)) for key, text in result.data.items()}


def test_3_what_others_put_into_the_machine_is_not_ours() -> None:
    """The board is set by KubeVirt, volumes are plugged in by people: an apply must not claim such fields."""
    domain = vm(spec())["spec"]["template"]["spec"]["domain"]
    assert not {"machine", "firmware", "features", "resources", "clock"} & domain.keys()
    assert "architecture" not in vm(spec())["spec"]["template"]["spec"]


def test_4_run_strategy_instead_of_running_and_nothing_is_ignored() -> None:
    assert "running" not in vm(spec())["spec"]
    assert vm(spec(startStrategy={"runStrategy": "Manual"}))["spec"]["runStrategy"] == "Manual"
    assert vm(spec(highAvailability={"restartPolicy": "Never"}))["spec"]["runStrategy"] == "Once"
    assert vm(spec(startStrategy={"autoStart": False}))["spec"]["runStrategy"] == "Halted"
    assert "affinity" in vm(spec(highAvailability={"antiAffinity": True}))["spec"]["template"]["spec"]
    disks = vm(disk(boot=True))["spec"]["template"]["spec"]["domain"]["devices"]["disks"]
    assert disks[0]["bootOrder"] == 1
    made = wukong(spec(osImage="quay.io/a:1"))
    assert data_volume_for(made, made.spec.disks[0]).spec.source is not None


def test_5_the_cloud_init_volume_has_a_disk() -> None:
    template = vm(spec())["spec"]["template"]["spec"]
    assert {"name": "cloudinitdisk", "disk": {"bus": "virtio"}} in template["domain"]["devices"]["disks"]


def test_6_addresses_are_network_data_and_not_user_data() -> None:
    result = cloud_init(net(ipConfig=STATIC))
    assert "network" not in (result["userdata"] or {})
    assert result["networkdata"]["ethernets"]["lan"]["addresses"] == ["192.168.0.200/24"]


@pytest.mark.spec("W-13")
def test_7_a_plain_password_is_no_hash_and_text_is_no_yaml() -> None:
    user = {"name": "ann", "password": "a: b\nruncmd: [reboot]"}
    result = cloud_init(spec(cloudInitUser=user))["userdata"]
    assert result["users"][0]["plain_text_passwd"] == user["password"]
    assert "passwd" not in result["users"][0]
    assert "runcmd" not in result


@pytest.mark.spec("W-05")
def test_8_the_address_in_a_registry_keeps_its_scheme() -> None:
    for image in ("docker://quay.io/a:1", "quay.io/a:1"):
        made = wukong(disk(image=image))
        source = data_volume_for(made, made.spec.disks[0]).spec.source
        assert source is not None
        assert source.registry is not None
        assert source.registry.url == "docker://quay.io/a:1"


@pytest.mark.spec("W-04")
def test_12_one_policy_for_a_bridge_without_an_address_for_it() -> None:
    assert policy_for("br-lan", "ens192").metadata.name == "wukong-br-br-lan", "for every caller"
    (bridge,) = policy_for("br-lan", "ens192").spec.desired_state["interfaces"]
    assert bridge["ipv4"] == {"enabled": False}
    assert "dhcp" not in str(bridge)


@pytest.mark.spec("W-12")
def test_13_the_plural_of_attachments_has_hyphens() -> None:
    assert NetworkAttachmentDefinition.resource.plural == "network-attachment-definitions"


def test_16_children_know_what_they_are() -> None:
    """Not from an object in memory, which may have lost it."""
    made = wukong(net())
    children: list[Model] = [
        virtual_machine_for(made),
        claim_for(made, made.spec.disks[0]),
        nad_for(made, made.spec.networks[0]),
        policy_for("br-lan", "ens192"),
    ]
    for child in children:
        result = to_dict(child)
        resource = type(child).resource  # type: ignore[attr-defined]
        assert (result["apiVersion"], result["kind"]) == (resource.api_version, resource.kind)


@pytest.mark.spec("W-04")
def test_20_an_attachment_has_no_addresses_to_give() -> None:
    result = config(net(ipConfig=STATIC))
    assert result["disableContainerInterface"] is True
    assert "ipam" not in result


@pytest.mark.spec("W-04")
def test_21_ovs_is_ovs() -> None:
    result = config(net(type="ovs", vlanId=7))
    assert (result["type"], result["bridge"], result["vlan"]) == ("ovs", "br-lan", 7)
    (bridge,) = policy_for("br-lan", "ens192", "ovs").spec.desired_state["interfaces"]
    assert bridge["type"] == "ovs-bridge"


@pytest.mark.spec("W-04")
def test_22_nothing_is_skipped_in_silence() -> None:
    assert config(net(type="sriov", resourceName="a/b"))["type"] == "sriov"
    assert "KubeVirt cannot bind macvlan" in problems(wukong(net(type="macvlan")))[0]


@pytest.mark.spec("W-13")
def test_23_user_data_are_never_in_the_machine_itself() -> None:
    """There they may have 2048 bytes; two long keys are more."""
    key = f"ssh-rsa {'A' * 1500} me"
    data = base64.b64encode(f"{key}1\n{key}2\n".encode()).decode()
    given = spec(sshKeySecret="keys")
    keys = cloud_init(given, keys=Secret(data={"ssh-publickey": data}))["userdata"]["ssh_authorized_keys"]
    assert len(keys) == 2
    (volume,) = [
        volume for volume in vm(given)["spec"]["template"]["spec"]["volumes"] if volume["name"] == "cloudinitdisk"
    ]
    assert volume["cloudInitNoCloud"] == {"secretRef": {"name": "web-cloudinit"}}
