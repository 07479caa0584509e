"""Attachments and policies."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml

from konverge.objects import to_dict
from konverge.operators.wukong.children.networks import RESOURCE_NAME, nad_for, policy_for, removed_policy_for
from tests.operators.wukong.specs import net, wukong

pytestmark = pytest.mark.spec("W-04")


def config(**given: Any) -> dict[str, Any]:
    made = wukong(net(**given))
    result: dict[str, Any] = json.loads(nad_for(made, made.spec.networks[0]).spec.config)
    return result


def test_a_bridge() -> None:
    assert config() == {
        "cniVersion": "0.3.1",
        "name": "web-lan-nad",
        "type": "bridge",
        "bridge": "br-lan",
        "macspoofchk": True,
        "disableContainerInterface": True,
    }


def test_a_bridge_with_everything() -> None:
    result = config(bridgeName="vmbr0", vlanId=100, mtu=9000)
    assert {key: result[key] for key in ("bridge", "vlan", "mtu", "preserveDefaultVlan")} == {
        "bridge": "vmbr0",
        "vlan": 100,
        "mtu": 9000,
        "preserveDefaultVlan": False,
    }


def test_sriov_names_its_pool() -> None:
    made = wukong(net(type="sriov", resourceName="intel.com/sriov", vlanId=7))
    nad = nad_for(made, made.spec.networks[0])
    assert nad.metadata.annotations == {RESOURCE_NAME: "intel.com/sriov"}
    assert json.loads(nad.spec.config) == {"cniVersion": "0.3.1", "name": "web-lan-nad", "type": "sriov", "vlan": 7}


def test_it_is_where_the_machine_is_and_says_whose_it_is() -> None:
    made = wukong(net())
    meta = nad_for(made, made.spec.networks[0]).metadata
    assert (meta.name, meta.namespace) == ("web-lan-nad", "team-a")
    assert meta.labels["vm.novasphere.dev/wukong"] == "web"


@pytest.mark.parametrize("kind", ["macvlan", None])
def test_there_is_no_attachment_of_a_type_that_nothing_binds(kind: str | None) -> None:
    made = wukong(net())
    made.spec.networks[0].type = kind  # type: ignore[assignment]
    with pytest.raises(ValueError, match="no attachment of type"):
        nad_for(made, made.spec.networks[0])


def test_a_policy_is_of_a_bridge_and_nothing_of_a_machine_is_in_it() -> None:
    result = to_dict(policy_for("br-lan", "ens192"))
    assert result["metadata"]["name"] == "wukong-br-br-lan"
    assert "namespace" not in result["metadata"]
    (interface,) = result["spec"]["desiredState"]["interfaces"]
    assert (interface["name"], interface["type"], interface["state"]) == ("br-lan", "linux-bridge", "up")
    (port,) = interface["bridge"]["port"]
    assert port["name"] == "ens192"
    assert port["vlan"]["trunk-tags"] == [{"id-range": {"min": 2, "max": 4094}}], "tags reach the attachments"
    assert interface["bridge"]["options"] == {"stp": {"enabled": False}}


@pytest.mark.parametrize(("kind", "word"), [("bridge", "linux-bridge"), ("ovs", "ovs-bridge")])
def test_the_way_back_says_absent_and_leaves_the_interface_up(kind: Any, word: str) -> None:
    bridge, interface = removed_policy_for("br-lan", "ens192", kind).spec.desired_state["interfaces"]
    assert bridge == {"name": "br-lan", "type": word, "state": "absent"}
    assert (interface["name"], interface["state"]) == ("ens192", "up")
    assert removed_policy_for("br-lan", "ens192", kind).metadata.name == policy_for("br-lan", "ens192").metadata.name


def test_policies_whole() -> None:
    labels = {"app.kubernetes.io/managed-by": "wukong-operator", "vm.novasphere.dev/bridge": "br-lan"}
    metadata = {"name": "wukong-br-br-lan", "labels": labels}
    linux = to_dict(policy_for("br-lan", "ens224"))
    vlan = {
        "mode": "trunk",
        "enable-native": True,
        "tag": 1,
        "trunk-tags": [{"id-range": {"min": 2, "max": 4094}}],
    }
    assert (linux["metadata"], linux["spec"]["desiredState"]) == (
        metadata,
        {
            "interfaces": [
                {
                    "name": "br-lan",
                    "type": "linux-bridge",
                    "state": "up",
                    "ipv4": {"enabled": False},
                    "ipv6": {"enabled": False},
                    "bridge": {"options": {"stp": {"enabled": False}}, "port": [{"name": "ens224", "vlan": vlan}]},
                }
            ]
        },
    )
    ovs = to_dict(policy_for("br-lan", "ens224", "ovs"))
    bridge = {"port": [{"name": "ens224"}]}
    assert (ovs["metadata"], ovs["spec"]["desiredState"]) == (
        metadata,
        {"interfaces": [{"name": "br-lan", "type": "ovs-bridge", "state": "up", "bridge": bridge}]},
    )


def test_an_ovs_attachment_whole() -> None:
    given = wukong(net(type="ovs", vlanId=7, mtu=9000))
    nad = nad_for(given, given.spec.networks[0])
    assert nad.metadata.annotations == {}
    assert yaml.safe_load(nad.spec.config) == {
        "cniVersion": "0.3.1",
        "name": "web-lan-nad",
        "type": "ovs",
        "bridge": "br-lan",
        "vlan": 7,
        "mtu": 9000,
    }
